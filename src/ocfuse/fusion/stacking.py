"""Stacking: a classifier of the member scores."""

import warnings
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidTypeError, OcfuseWarning
from ocfuse.fusion.base import BaseFusion
from ocfuse.system.packages import slow


class StackedFusion(BaseFusion):
    """Stacking: a classifier separates normal rows from anomalies by their member scores.

    The fused score is the `decision_function` of the classifier or, if it has none, the log-odds
    of its probability of +1. It needs anomalies, labelled or generated.

    The classifier does not know that higher scores are more normal. If members agree, a linear
    classifier may give some of them negative coefficients. Then a row that all members score far
    below normal rows may have the highest fused score. No other fusion does that, except with
    ``nonneg=False``. Use stacking for anomalies like those of training, not as the only detector
    of new kinds.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        A clone of it is fitted. None is a strongly regularised logistic regression with balanced
        classes.

    Attributes
    ----------
    classifier_ : object
        The fitted clone.

    Examples
    --------
    >>> from ocfuse.fusion.stacking import StackedFusion
    >>> fusion = StackedFusion().fit([[0.9, 0.2], [0.8, 0.9], [0.1, 0.5]], y=[1, 1, -1])
    >>> near, far = fusion.fuse([[0.9, 0.5], [0.1, 0.5]])
    >>> bool(near > far)
    True
    """

    needs_anomalies = True

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        if self.classifier is None:
            linear = slow("sklearn.linear_model")
            classifier = linear.LogisticRegression(C=0.01, class_weight="balanced")
        else:
            classifier = self._checked(self.classifier)
        self.classifier_ = classifier.fit(Z, y.astype(int), **weight_arguments(classifier, c))

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        if len(Z) == 0:
            return np.empty(0)
        if hasattr(self.classifier_, "decision_function"):
            return np.asarray(self.classifier_.decision_function(Z), dtype=np.float64)
        share = normal_share(self.classifier_, Z)
        return np.asarray(logit(np.clip(share, 1e-12, 1.0 - 1e-12)))  # finite

    def _trust(self) -> FloatArray:
        """Return the scaled coefficients of a linear classifier, else equal weights."""
        coefficients = np.ravel(getattr(self.classifier_, "coef_", np.zeros(self.n_members_)))
        size = np.abs(coefficients).sum()
        return coefficients / size if size > 0 else super()._trust()

    def _checked(self, classifier: Any) -> Any:
        needed = hasattr(classifier, "decision_function") or hasattr(classifier, "predict_proba")
        if isinstance(classifier, type) or not hasattr(classifier, "fit") or not needed:
            raise InvalidTypeError(
                "classifier must be an object with fit and decision_function or predict_proba. "
                f"Got {classifier!r}. Use for example LogisticRegression()."
            )
        return clone(classifier)


def normal_share(classifier: Any, table: FloatArray) -> FloatArray:
    """Return the probability of a normal."""
    column = list(classifier.classes_).index(1)
    return np.asarray(classifier.predict_proba(table)[:, column], dtype=np.float64)


def weight_arguments(classifier: Any, c: FloatArray) -> dict[str, FloatArray]:
    """Return the weights under the name that the classifier knows them by."""
    if (c == c[0]).all():
        return {}
    is_pipeline = isinstance(classifier, slow("sklearn.pipeline").Pipeline)
    last = classifier.steps[-1] if is_pipeline else ("", classifier)
    if not has_fit_parameter(last[1], "sample_weight"):
        warnings.warn(
            f"{type(last[1]).__name__} takes no sample_weight; all rows count alike.",
            OcfuseWarning,
            stacklevel=2,
        )
        return {}
    return {f"{last[0]}__sample_weight" if last[0] else "sample_weight": c}

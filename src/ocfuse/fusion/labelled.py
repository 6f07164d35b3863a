"""A fusion that learns from few known anomalies and still guards against new kinds."""

from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from ocfuse.exceptions import InvalidTypeError
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.evidence import Evidence
from ocfuse.fusion.inputs import FloatArray, check_number
from ocfuse.fusion.stacking import weight_arguments

#: Added to both probabilities: about what a hundred trees can tell from certainty. It
#: bounds the log-odds, so that they cannot outvote a score far below all normals.
_MARGIN = 0.005


class LabelledFusion(BaseFusion):
    """Add the log-odds of two classifiers to a fusion, the more the more anomalies are known.

    ::

        score = arcsinh((P - m) / s) + gain k / (k + prior) logit((q_1 + q_2) / 2)

    P is the given fusion, m and s are its mean and standard deviation on the normals,
    and k is the number of known anomalies. The probabilities of a normal, q_1 and
    q_2, come from one classifier on the features and one on features and scores;
    both are learned with equal total weight of the two classes, on columns that are
    standardised by the normals and tamed by arcsinh.

    The log-odds are bounded and the first term is not: a row that the members put far
    below the normals stays there, even if it is like no known anomaly.

    `weights` and `local_p` are those of the given fusion.

    Parameters
    ----------
    fusion : fusion, optional
        The fusion to start from; by default ``CompetenceFusion()``. It is fitted on
        all rows, anomalies included, and is given the evidence.
    classifier : scikit-learn classifier, optional
        Learns from the features; by default a hundred bagged extra trees.
    joint_classifier : scikit-learn classifier, optional
        Learns from features and scores; by default a regularised logistic regression.
    gain : float, default=4.0
        Weight of the log-odds when there are many anomalies; 0 is the fusion alone.
    prior : float, default=40.0
        Number of anomalies at which half of that weight is reached.

    Attributes
    ----------
    fusion_ : fusion
        The fitted fusion.
    classifier_, joint_classifier_ : object
        The fitted classifiers.
    share_ : float
        Weight of the log-odds. Where the weights of the anomalies differ, k is their
        effective number, ``(sum c)^2 / sum c^2``.
    center_, scale_ : ndarray of shape (m + d + 1,)
        Mean and standard deviation on the normals: of the features, the scores and P.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.fusion import LabelledFusion
    >>> X = np.array([[0.0], [0.2], [-0.2], [0.1], [-0.1], [2.0]])
    >>> Z = 1 - np.abs(X)
    >>> fusion = LabelledFusion().fit(Z, y=[1, 1, 1, 1, 1, -1], X=X)
    >>> near, known, new = fusion.fuse([[1.0], [-1.0], [-9.0]], [[0.0], [2.0], [-10.0]])
    >>> bool(near > known), bool(near > new)
    (True, True)
    """

    needs_X = True  # noqa: N815
    needs_anomalies = True

    def __init__(
        self,
        fusion: BaseFusion | None = None,
        classifier: Any = None,
        joint_classifier: Any = None,
        gain: float = 4.0,
        prior: float = 40.0,
    ) -> None:
        self.fusion = fusion
        self.classifier = classifier
        self.joint_classifier = joint_classifier
        self.gain = gain
        self.prior = prior

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        self._learn(Z, y, X, c, None)

    def _learn(
        self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray, evidence: Evidence | None
    ) -> None:
        gain = check_number(self.gain, "gain", 0.0, 1e6, "0 is the fusion alone.")
        prior = check_number(self.prior, "prior", 0.0, np.inf, "0 trusts one label as many.")
        trees = _cloned(self.classifier, "classifier", _default_trees)
        linear = _cloned(self.joint_classifier, "joint_classifier", _default_linear)
        normal, known = y > 0, c[y < 0]
        count = known.sum() ** 2 / (known**2).sum()
        self.share_ = float(gain / (1.0 + prior / count))
        self.fusion_ = self._inner().fit(Z, y, X, c, evidence)
        rows = np.column_stack([X, Z, self.fusion_.fuse(Z, X)])
        self._standardise(rows[normal], c[normal])
        table, balanced = self._tamed(rows)[:, :-1], _balanced(y, c)
        features = table[:, : X.shape[1]]
        labels = y.astype(int)
        self.classifier_ = trees.fit(features, labels, **weight_arguments(trees, balanced))
        self.joint_classifier_ = linear.fit(table, labels, **weight_arguments(linear, balanced))

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        if len(Z) == 0:
            return np.empty(0)
        table = self._tamed(np.column_stack([X, Z, self.fusion_.fuse(Z, X)]))
        by_features = _normal_share(self.classifier_, table[:, : X.shape[1]])
        by_both = _normal_share(self.joint_classifier_, table[:, :-1])
        share = (by_features + by_both) / 2
        odds = logit((share + _MARGIN) / (1.0 + 2.0 * _MARGIN))
        return np.asarray(table[:, -1] + self.share_ * odds)

    def _weights(self, X: FloatArray) -> FloatArray:
        return self.fusion_.weights(X)

    def _local_p(self, X: FloatArray) -> FloatArray:
        return self.fusion_.local_p(X)

    def _inner(self) -> BaseFusion:
        return CompetenceFusion() if self.fusion is None else clone(self.fusion)

    def _standardise(self, rows: FloatArray, c: FloatArray) -> None:
        self.center_ = np.average(rows, axis=0, weights=c)
        spread = np.sqrt(np.average((rows - self.center_) ** 2, axis=0, weights=c))
        # Below this a column is constant but for rounding.
        least = 1e-10 * np.maximum(np.abs(self.center_), 1e-100)
        self.scale_ = np.where(spread > least, spread, 1.0)

    def _tamed(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.arcsinh((rows - self.center_) / self.scale_))


def _default_trees() -> Any:
    return ExtraTreesClassifier(100, bootstrap=True, random_state=0)


def _default_linear() -> Any:
    return LogisticRegression(C=0.1, max_iter=1000)


def _cloned(classifier: Any, name: str, default: Any) -> Any:
    if classifier is None:
        return default()
    if isinstance(classifier, type) or not hasattr(classifier, "predict_proba"):
        raise InvalidTypeError(
            f"{name} must be an object with fit and predict_proba. Got {classifier!r}. "
            "Use for example LogisticRegression()."
        )
    return clone(classifier)


def _balanced(y: FloatArray, c: FloatArray) -> FloatArray:
    """Return the weights with equal totals of the two classes and mean one."""
    total = np.where(y > 0, c[y > 0].sum(), c[y < 0].sum())
    return np.asarray(c / total * (len(c) / 2))


def _normal_share(classifier: Any, table: FloatArray) -> FloatArray:
    """Return the probability of a normal."""
    column = list(classifier.classes_).index(1)
    return np.asarray(classifier.predict_proba(table)[:, column], dtype=np.float64)

"""Scorers for cross-validation and searches of scikit-learn; conversion of labels.

The scorers of scikit-learn take the larger label, +1, as the positive class. For ``"roc_auc"``
this makes no difference. But ``"average_precision"``, ``"f1"``, ``"precision"`` and ``"recall"``
then measure how well *normal* rows are found, which is easy, as most rows are normal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.arrays import FloatArray, Int64Array
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.metrics import rows
from ocfuse.validation import ANOMALY, NORMAL, UNKNOWN, check_choice, check_training_labels

#: Measures by name: what it is of, how to count it, and +1 where more is better.
MEASURES: dict[str, tuple[str, Callable[..., float], int]] = {
    "auc": ("scores", rows.auc, 1),
    "average_precision": ("scores", rows.average_precision, 1),
    "best_gmean": ("scores", rows.best_gmean, 1),
    "gmean": ("predictions", rows.gmean, 1),
    "false_alarm_rate": ("predictions", rows.false_alarm_rate, -1),
    "missed_alarm_rate": ("predictions", rows.missed_alarm_rate, -1),
}


def as_labels(y: ArrayLike, *, normal: Any = None, anomaly: Any = None) -> Int64Array:
    """Convert labels: +1 normal, -1 anomaly, 0 unknown.

    `fit` of detectors, the measures of this package and scikit-learn's scorers take these labels.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels in any coding. None, NaN and empty text are unknown.
    normal : object or collection of them, default=None
        Label or labels that mean normal; all others mean anomaly.
    anomaly : object or collection of them, default=None
        Label or labels that mean anomaly; all others mean normal. If both are given, others are
        unknown.

    Returns
    -------
    ndarray of shape (n,)
        Labels +1, -1 and 0.

    Examples
    --------
    >>> from ocfuse.metrics import as_labels
    >>> as_labels([0, 0, 1], anomaly=1)
    array([ 1,  1, -1])
    >>> as_labels(["ok", "worn", None], normal="ok")
    array([ 1, -1,  0])
    """
    if normal is None and anomaly is None:
        raise InvalidInputError(
            "Say what the labels mean: normal=, the label of normal rows, or anomaly=, such as "
            "as_labels(y, anomaly=1) for 0 and 1 with 1 = anomaly."
        )
    labels = np.asarray(y, dtype=object)
    if labels.ndim != 1:
        raise InvalidInputError(f"y must have shape (n,). Got shape {labels.shape}.")
    cells = [_plain(label) for label in labels]
    wanted = {NORMAL: _several(normal), ANOMALY: _several(anomaly)}
    both = [label for label in wanted[NORMAL] if label in wanted[ANOMALY]]
    if both:
        raise InvalidInputError(f"A label is normal or an anomaly, not both. Got {both[0]!r}.")
    known = [label for label in cells if label is not None]
    for name, named in (("normal", wanted[NORMAL]), ("anomaly", wanted[ANOMALY])):
        if named and known and not any(label in known for label in named):
            shown = ", ".join(map(repr, dict.fromkeys(known[:1000])))
            raise InvalidInputError(f"No label is {name}={named[0]!r}. y holds {shown[:200]}.")
    # what is not named is the other kind, or unknown if both kinds are named
    other = UNKNOWN
    if normal is None or anomaly is None:
        other = ANOMALY if anomaly is None else NORMAL
    return np.array([_sign(label, wanted, other) for label in cells], dtype=np.int64)


def scorer(measure: str = "auc", *, normal: Any = None, anomaly: Any = None) -> "Scorer":
    """Return a scorer for `cross_val_score`, `GridSearchCV` and others of scikit-learn.

    Rows with an unknown label are not used. It works for any detector whose scores are higher for
    more normal rows, such as those of scikit-learn.

    Parameters
    ----------
    measure : str, default="auc"
        "auc", "average_precision" (of finding anomalies), "best_gmean", "gmean",
        "false_alarm_rate" or "missed_alarm_rate"; the last two with a minus sign, as a search
        maximises the score.
    normal, anomaly : object or collection of them, default=None
        Meaning of the labels, as in `as_labels`. If both are None: +1 normal, -1 anomaly, 0
        unknown.

    Returns
    -------
    Scorer
        Scorer for ``scoring=``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import IsolationForest
    >>> from ocfuse.metrics import scorer
    >>> X, species = load_iris(return_X_y=True)
    >>> forest = IsolationForest(random_state=0).fit(X[species == 0])
    >>> round(scorer("auc", normal=0)(forest, X, species), 2)
    1.0
    """
    check_choice(measure, "measure", tuple(MEASURES))
    return Scorer(measure, normal, anomaly)


@dataclass(frozen=True)
class Scorer:
    """Measure of a fitted detector on labelled rows; returned by `scorer`.

    Attributes
    ----------
    measure : str
        Name of the measure.
    normal, anomaly : object
        Meaning of the labels, as in `as_labels`.
    """

    measure: str
    normal: Any = None
    anomaly: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the measure of a fitted detector; more is better."""
        of, count, sign = MEASURES[self.measure]
        if y is None:
            raise InvalidInputError(
                f"The scorer {self.measure!r} judges by labels. Give y, such as "
                "cross_val_score(detector, X, y, scoring=...)."
            )
        found = _scores(estimator, X) if of == "scores" else np.asarray(estimator.predict(X))
        if self.normal is None and self.anomaly is None:
            labels = check_training_labels(y, len(found))
        else:
            labels = as_labels(y, normal=self.normal, anomaly=self.anomaly)
        known = labels != UNKNOWN
        return sign * count(labels[known], found[known])


def _scores(estimator: Any, X: Any) -> FloatArray:
    """Return scores of which higher is more normal, or refuse a detector that has none."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    kind = None if tags is None else tags().estimator_type
    for name in ("score_samples", "decision_function"):
        # scores of others, such as those of PyOD, may be higher for anomalies
        if hasattr(estimator, name) and (name == "score_samples" or kind == "outlier_detector"):
            return np.asarray(getattr(estimator, name)(X), dtype=np.float64)
    raise InvalidTypeError(
        f"{type(estimator).__name__} has no score_samples, and is no outlier detector of "
        "scikit-learn. Give a detector whose score_samples are higher for more normal rows."
    )


def _several(given: Any) -> list[Any]:
    """Return the labels that were named, as a list."""
    if given is None:
        return []
    is_one = isinstance(given, str | bytes) or not hasattr(given, "__iter__")
    return [_plain(label) for label in ([given] if is_one else given)]


def _plain(label: Any) -> Any:
    """Return a label as Python has it, None if it is missing."""
    value = label.item() if isinstance(label, np.generic) else label
    is_missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    if is_missing or value == "" or value != value:
        return None
    return value


def _sign(label: Any, wanted: dict[int, list[Any]], other: int) -> int:
    if label is None:
        return UNKNOWN
    return next((sign for sign, named in wanted.items() if label in named), other)

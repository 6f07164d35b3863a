"""Detectors of PyOD as estimators that keep our promises."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ocfuse.detectors.base import lower_quantile, require_number
from ocfuse.detectors.gram import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError

#: They add the scored rows to the training rows: one at a time keeps them apart.
ROW_BY_ROW = frozenset({"COPOD", "ECOD"})
#: They compare the scored rows with each other, or draw anew for every batch.
NO_ANSWER_FOR_A_ROW = frozenset({"CD", "COF", "LMDD", "LOCI", "LSCP", "ROD", "SOD", "SOS", "SUOD"})


class PyodDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Make a PyOD detector speak our language: higher is more normal.

    The score is minus PyOD's `decision_function`. A row's score never depends
    on the rows scored with it: ECOD and COPOD, whose own score does, are
    asked row by row (slowly: each row costs a pass over the training rows),
    and detectors that cannot judge a single row are refused.

    Parameters
    ----------
    detector : object
        A detector of PyOD, or one with its methods; it is cloned, never fitted.
    false_alarm_rate : float, default 0.05
        Share of the training rows' own scores below `offset_`. PyOD has seen
        these rows, so fresh rows are called anomalies a little more often.

    Attributes
    ----------
    detector_ : object
        The fitted clone.
    offset_ : float
        Rows that score less are called anomalies.
    """

    def __init__(self, detector: Any, *, false_alarm_rate: float = 0.05) -> None:
        self.detector = detector
        self.false_alarm_rate = false_alarm_rate

    def fit(self, X: ArrayLike, y: Any = None) -> "PyodDetector":
        """Fit a clone of the detector to the rows of X; y is ignored."""
        require_pyod(self.detector)
        require_number("false_alarm_rate", self.false_alarm_rate, 0.0, 1.0)
        table = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.detector_ = clone(self.detector)
        self.detector_.fit(table)
        seen = -np.asarray(self.detector_.decision_scores_, dtype=np.float64)
        self.offset_ = lower_quantile(seen, self.false_alarm_rate)
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return one score per row: higher is more normal."""
        check_is_fitted(self, "offset_")
        table: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        if not any(name in ROW_BY_ROW for name in _class_names(self.detector)):
            return self._scores(table)
        return np.concatenate([self._scores(table[i : i + 1]) for i in range(len(table))])

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the score minus the offset: negative for anomalies."""
        scores: FloatArray = self.score_samples(X) - self.offset_
        return scores

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return +1 for normal rows and -1 for anomalies."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _scores(self, table: FloatArray) -> FloatArray:
        return -np.asarray(self.detector_.decision_function(table), dtype=np.float64).ravel()


def from_pyod(detector: Any, *, false_alarm_rate: float = 0.05) -> PyodDetector:
    """Return an estimator that wraps a detector of PyOD.

    Parameters
    ----------
    detector : object
        A detector of PyOD, such as ``pyod.models.hbos.HBOS()``; it is cloned,
        never fitted. Its `contamination` has no influence.
    false_alarm_rate : float, default 0.05
        Share of the training rows' own scores below the offset.

    Returns
    -------
    PyodDetector
        The estimator, not fitted: `score_samples` is higher for normal rows.
    """
    require_pyod(detector)
    return PyodDetector(detector, false_alarm_rate=false_alarm_rate)


def is_pyod(estimator: Any) -> bool:
    """Tell whether something is a detector of PyOD, by the home of its class."""
    modules = {cls.__module__.split(".")[0] for cls in type(estimator).__mro__}
    return "pyod" in modules


def require_pyod(detector: Any) -> None:
    """Refuse what lacks the methods of a PyOD detector, or cannot score one row."""
    needed = ("fit", "decision_function", "get_params")
    missing = [name for name in needed if not hasattr(detector, name)]
    is_ours = hasattr(detector, "score_samples") and not is_pyod(detector)
    if missing or is_ours or isinstance(detector, type):
        raise InvalidTypeError(
            "detector must be a detector of PyOD, such as pyod.models.hbos.HBOS(). "
            f"Got {detector!r}. An estimator with score_samples needs no adapter."
        )
    refused = [name for name in _class_names(detector) if name in NO_ANSWER_FOR_A_ROW]
    if refused:
        raise InvalidInputError(
            f"detector must give a row a score of its own. Got {refused[0]}, whose scores depend "
            "on the rows that are scored together. Use its members one by one, or another detector."
        )


def _class_names(detector: Any) -> Iterator[str]:
    """Return the class names of a detector and of the detectors it is made of."""
    yield type(detector).__name__
    for value in detector.get_params(deep=False).values():
        parts = value if isinstance(value, list | tuple) else [value]
        for part in parts:
            if hasattr(part, "decision_function") and hasattr(part, "get_params"):
                yield from _class_names(part)

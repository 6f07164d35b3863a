"""Members of a pool: names, requirements, seeds, and an adapter for PyOD."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ocfuse.arrays import FloatArray
from ocfuse.detectors.base import BaseDetector, lower_quantile, require_number
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.system.packages import slow

#: (name, estimator) of every member, in the order of the columns
Members: TypeAlias = list[tuple[str, Any]]


def name_members(members: Any, reserved: Sequence[str] = ()) -> Members:
    """Return (name, estimator) pairs; estimators without a name are named by their class."""
    if isinstance(members, Mapping):
        entries: list[Any] = list(members.items())
    elif isinstance(members, Sequence) and not isinstance(members, str):
        entries = list(members)
    else:
        raise InvalidTypeError(
            "members must be the name of a pool, a list of estimators, a list of (name, estimator) "
            f"pairs or a dict. Got {members!r}."
        )
    if not entries:
        raise InvalidInputError("members must hold at least one estimator. Got none.")
    taken = [entry[0] for entry in entries if _is_pair(entry)]
    _require_names(taken, reserved)
    named: Members = []
    for entry in entries:
        named.append(tuple(entry) if _is_pair(entry) else (_free_name(entry, taken), entry))
        taken.append(named[-1][0])
    return named


def copy_members(members: Members, random_state: Any) -> Members:
    """Return clones that can be fitted, with a seed for each that has none.

    Seeds are drawn in the order of the members and of their parameters.
    """
    random_state = check_random_state(random_state)
    copies: Members = []
    for name, estimator in members:
        require_scorer(name, estimator)
        copies.append((name, seeded(estimator, random_state)))
    return copies


def seeded(estimator: Any, random_state: Any) -> Any:
    """Return a clone in which every seed that is None, nested ones too, is drawn in order."""
    random_state = check_random_state(random_state)
    copy = clone(estimator)
    params = copy.get_params(deep=True)
    seeds = {
        key: int(random_state.randint(2**31 - 1))
        for key in sorted(params)
        if (key == "random_state" or key.endswith("__random_state")) and params[key] is None
    }
    return copy.set_params(**seeds) if seeds else copy


def require_scorer(name: str, estimator: Any) -> None:
    """Refuse what cannot be a member, naming it and what it lacks."""
    if isinstance(estimator, type):
        raise InvalidTypeError(
            f"Member {name!r} must be an estimator. Got the class {estimator.__name__}. "
            f"Use {estimator.__name__}(...)."
        )
    if is_pyod(estimator):
        raise InvalidTypeError(
            f"Member {name!r} is a detector of PyOD, whose scores are high for anomalies. "
            "Use from_pyod(detector)."
        )
    if _is_factor(estimator) and not estimator.novelty:
        raise InvalidInputError(
            f"Member {name!r} must be able to score new rows. Use LocalOutlierFactor(novelty=True)."
        )
    can_score = hasattr(estimator, "score_samples") or hasattr(estimator, "decision_function")
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params") and can_score):
        raise InvalidTypeError(
            f"Member {name!r} must be a scikit-learn estimator with fit, get_params, and "
            f"score_samples or decision_function (higher = more normal). Got {estimator!r}."
        )


def own_scores(estimator: Any, X: FloatArray) -> FloatArray:
    """Score rows by an estimator that is not ours; higher is more normal, -inf is allowed."""
    score = getattr(estimator, "score_samples", None) or estimator.decision_function
    return np.asarray(score(X), dtype=np.float64)


def lowest_score(out_of_fold: FloatArray) -> float:
    """Return what a score of -inf counts as, from training scores some of which may be -inf.

    A detector with a bounded reach, such as a density of kernels that end
    somewhere, scores every row beyond it -inf. That counts as 1,000 ranges of the training scores
    below the lowest of them: below a log-density that just does not vanish (-745), if the range is
    1 or more, and near enough that sums of squares neither overflow nor lose the other rows.
    """
    # The range of larger scores would overflow.
    finite = np.clip(out_of_fold[np.isfinite(out_of_fold)], -1e300, 1e300)
    if not len(finite):
        raise InvalidInputError(
            "A member must give some training rows it has not seen a finite score. Got none. "
            "Use a wider kernel or more neighbours."
        )
    low, high = float(finite.min()), float(finite.max())
    size = max(abs(low), abs(high))
    # A range that is rounding is none.
    unit = high - low if high - low > 1e-12 * size else max(1.0, size)
    return low - 1000.0 * unit


def finite_scores(scores: FloatArray, lowest: float) -> FloatArray:
    """Put `lowest` in the place of -inf; NaN and +inf stay and are refused later."""
    return np.where(np.isneginf(scores), lowest, scores)


def check_scores(scores: FloatArray, n: int, *, far_allowed: bool = False) -> FloatArray:
    """Return one finite score per row, or -inf if `far_allowed`, or refuse."""
    if scores.shape != (n,):
        raise InvalidInputError(f"Scores must have shape ({n},). Got shape {scores.shape}.")
    wrong = ~np.isfinite(scores)
    if far_allowed:
        wrong &= ~np.isneginf(scores)
    if wrong.any():
        raise InvalidInputError(
            f"Scores must be finite. Got {scores[wrong][0]} for row {int(np.argmax(wrong))}, "
            f"and {int(wrong.sum())} such scores in all."
        )
    return scores


def is_shared(estimator: Any) -> bool:
    """Return whether a member can be given distances that others use too."""
    return isinstance(estimator, BaseDetector)


def knows_closed_form(estimator: Any, n: int, m: int) -> bool:
    """Return whether a member of n rows and m columns scores rows left out in closed form."""
    if isinstance(estimator, BaseDetector):
        return estimator.is_closed(estimator.rows_of(n), m)
    return _is_factor(estimator)


def _is_factor(estimator: Any) -> bool:
    """Return whether a member is the local outlier factor of scikit-learn."""
    return isinstance(estimator, slow("sklearn.neighbors").LocalOutlierFactor)


def givers_first(members: Members) -> Members:
    """Return detectors of ours in the order in which they should use one Gram or Query.

    Those that leave there what others can reuse go first, and those that ask
    for more neighbours before those to whom a part of them is enough.
    """
    return sorted(members, key=lambda pair: pair[1].sharing_order())


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, tuple | list) and len(entry) == 2


def _require_names(names: Sequence[Any], reserved: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str) or not name or "__" in name or name in reserved:
            raise InvalidInputError(
                "The name of a member must be a string without '__' and none of "
                f"{', '.join(reserved)}. Got {name!r}."
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise InvalidInputError(f"Names of members must be different. Got {twice!r} twice.")


def _free_name(estimator: Any, taken: Sequence[str]) -> str:
    inner = estimator.detector if isinstance(estimator, PyodDetector) else estimator
    stem = type(inner).__name__.lower().strip("_")
    names = [stem, *(f"{stem}-{i}" for i in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


class PyodDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Adapter for a PyOD detector: higher scores are more normal.

    The score is minus PyOD's `decision_function`. The score of a row never depends on other rows
    of the call. ECOD and COPOD, whose scores do, score row by row, which is slow: each row takes a
    pass over the training rows. Detectors that cannot score a single row are refused.

    Parameters
    ----------
    detector : object
        A detector of PyOD, or one with its methods. A clone of it is fitted.
    false_alarm_rate : float, default 0.05
        Share of the training rows with a score below `offset_`. The detector has seen these rows,
        so fresh normal rows are called anomalies a little more often.

    Attributes
    ----------
    detector_ : object
        The fitted clone.
    offset_ : float
        Threshold: rows with a lower score are anomalies.
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
        # These add the scored rows to the training rows: one at a time keeps them apart.
        if not any(name in ("COPOD", "ECOD") for name in _class_names(self.detector)):
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
        A detector of PyOD, such as ``pyod.models.hbos.HBOS()``; a clone of it is fitted. Its
        `contamination` has no effect.
    false_alarm_rate : float, default 0.05
        Share of the training rows with a score below the threshold.

    Returns
    -------
    PyodDetector
        The estimator, not fitted; its `score_samples` is higher for normal rows.
    """
    require_pyod(detector)
    return PyodDetector(detector, false_alarm_rate=false_alarm_rate)


def is_pyod(estimator: Any) -> bool:
    """Return whether something is a detector of PyOD, by the package of its class."""
    return any(cls.__module__.split(".")[0] == "pyod" for cls in type(estimator).__mro__)


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
    # These compare the scored rows with each other, or draw anew for every batch.
    joint = ("CD", "COF", "LMDD", "LOCI", "LSCP", "ROD", "SOD", "SOS", "SUOD")
    refused = [name for name in _class_names(detector) if name in joint]
    if refused:
        raise InvalidInputError(
            f"detector must give a row a score of its own. Got {refused[0]}, whose scores depend "
            "on the rows that are scored together. Use its members one by one, or another detector."
        )


def _class_names(detector: Any) -> Iterator[str]:
    """Yield the class names of a detector and of the detectors it is made of."""
    yield type(detector).__name__
    for value in detector.get_params(deep=False).values():
        parts = value if isinstance(value, list | tuple) else [value]
        for part in parts:
            if hasattr(part, "decision_function") and hasattr(part, "get_params"):
                yield from _class_names(part)

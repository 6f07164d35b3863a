"""Criteria: AUC, RPAU, stability, and criteria by name."""

from abc import ABC, abstractmethod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, not_one_of
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.competence import rank_correlations
from ocfuse.fusion.crossfit import ScoredRows
from ocfuse.fusion.rules import SumRule
from ocfuse.metrics import auc
from ocfuse.scores import MinMax
from ocfuse.system.cache import cached
from ocfuse.tuning.splits import Judged, JudgedSplit, ScaledSplit, fold_splits

Verdict: TypeAlias = tuple[float, float]

#: Digits after the point to which values must differ, not to be equal.
DIGITS = 10


class Criterion(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class: value of a fusion on rows that it has not seen; higher is better.

    A subclass defines `judge`, and overrides other methods if needed.
    """

    def check(self, rows: ScoredRows) -> None:
        """Raise an error if the rows cannot be used for this criterion."""

    def splits(self, rows: ScoredRows) -> list[JudgedSplit]:
        """Return the splits into rows to learn from and rows to judge, by default one per fold."""
        return fold_splits(rows)

    @abstractmethod
    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the value, and a second value that breaks ties."""

    def value(self, rows: ScoredRows, normaliser: object, fusion: BaseFusion) -> float:
        """Return the value of a normaliser and a fusion, both not fitted."""
        self.check(rows)
        parts = [split.scaled(normaliser).judged(fusion) for split in self.splits(rows)]
        return self.judge(parts)[0]


class PseudoNegativeAUC(Criterion):
    """AUC of normal rows against pseudo-negatives, both held out.

    It says little if all members find the pseudo-negatives, or none does.

    Examples
    --------
    >>> from ocfuse.tuning import PseudoNegativeAUC
    >>> PseudoNegativeAUC()
    PseudoNegativeAUC()
    """

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows without pseudo-negatives."""
        if not rows.has_pseudo:
            raise InvalidInputError(
                "PseudoNegativeAUC needs pseudo-negatives. Got negatives=None. Use "
                'tune="labels" with real anomalies, tune="rpau" or tune="stability" with '
                "normals alone."
            )

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the AUC."""
        return _auc(parts, [part.rows.fold < 0 for part in parts]), 0.0


class LabelledAUC(Criterion):
    """AUC of normal rows against labelled anomalies, both held out.

    Examples
    --------
    >>> from ocfuse.tuning import LabelledAUC
    >>> LabelledAUC()
    LabelledAUC()
    """

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows without labelled anomalies."""
        if not _is_labelled(rows).any():
            raise InvalidInputError(
                "LabelledAUC needs labelled anomalies: rows with y = -1. Got none. Use "
                'tune="pseudo-negatives", tune="rpau" or tune="stability" without.'
            )

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the AUC."""
        return _auc(parts, [_is_labelled(part.rows) for part in parts]), 0.0


def _is_labelled(rows: ScoredRows) -> NDArray[np.bool_]:
    return (rows.y < 0) & (rows.fold >= 0)


def _auc(parts: list[Judged], anomalous: list[NDArray[np.bool_]]) -> float:
    """Return the AUC of all normals against the chosen anomalies of all parts."""
    y = np.concatenate([part.rows.y for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    chosen = (y > 0) | np.concatenate(anomalous)
    return auc(y[chosen], scores[chosen])


class RPAU(Criterion):
    """Relative percentage above unity (RPAU), from normal rows alone.

    No published formula was found; this is a reconstruction. Member scores are mapped to
    ``a = 1 - z``, with z the min-max normalised score, so that most normal rows are in [0, 1] and
    unusual ones above. For held-out normal rows and the learned weights w::

        A_i = sum_j |w_j| a_ij / ||w||_1
        "power":    sum_{A_i > 1} (A_i - 1)^2 / sum_i A_i^2
        "percent":  100 #{A_i > 1} / n

    The value is the negative of this, as less is better. If no A_i is above 1, as often with few
    rows, all candidates have the same value; then, as for every criterion, the p nearest to 2 and
    the middle of the grid are taken. "percent" matches the name in the paper; "power" is the
    default, as its values are less often equal. Without the division by the norm of w the largest
    p would always be best, as its ball is the largest. With a normaliser other than min-max, A is
    not the score that the fusion computes.

    Parameters
    ----------
    kind : {"power", "percent"}, default="power"
        The formula.
    rho : float, default=5.0
        Percentage that min-max trims on either side, the same for all fusions.

    Examples
    --------
    >>> from ocfuse.tuning import RPAU
    >>> RPAU("percent")
    RPAU(kind='percent')
    """

    def __init__(self, kind: Literal["power", "percent"] = "power", rho: float = 5.0) -> None:
        self.kind = kind
        self.rho = rho

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the negative RPAU; between equal ones it does not decide."""
        if self.kind not in ("power", "percent"):
            raise InvalidInputError(f'kind must be "power" or "percent". Got {self.kind!r}.')
        A = np.concatenate([self._averages(part) for part in parts])
        return -self._above_unity(A), 0.0

    def _averages(self, part: Judged) -> FloatArray:
        """Return A of the held-out normals."""
        normals = part.rows.take(part.rows.y > 0)
        a = _outside(part.learned.S[part.learned.y > 0], normals.S, self.rho)
        w = np.abs(part.fusion.weights(normals.X, normals.context))
        w = w / w.sum(axis=1, keepdims=True)
        return np.asarray((w * a).sum(axis=1))

    def _above_unity(self, A: FloatArray) -> float:
        above = A > 1.0
        if self.kind == "percent":
            return 100.0 * float(above.mean())
        total = float((A**2).sum())
        return float(((A[above] - 1.0) ** 2).sum()) / total if total > 0 else 0.0


@cached
def _outside(learned: FloatArray, S: FloatArray, rho: float) -> FloatArray:
    """Return a = 1 - z: from 0 to 1 within the trimmed range, above it where odd."""
    return np.asarray(1.0 - MinMax(rho).fit(learned).transform(S))


class Stability(Criterion):
    """Agreement of two fusions that share neither rows nor members.

    In every fold the other rows are divided into two halves, and so are the members. A fusion is
    learned on each half, and the value is the mean rank correlation of their scores of held-out
    normal rows. To divide the rows only would not suffice: a fusion that learns nothing agrees
    perfectly with itself. Two halves of the members agree if each trusts its best members and
    averages out their errors.

    Examples
    --------
    >>> from ocfuse.tuning import Stability
    >>> Stability()
    Stability()
    """

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows with the scores of one member."""
        if rows.S.shape[1] < 2:
            raise InvalidInputError(
                "Stability compares halves of the members. Got one member. Use another criterion."
            )

    def splits(self, rows: ScoredRows) -> list[JudgedSplit]:
        """Return two splits per fold, with the same normals to judge by."""
        splits = []
        for seed, split in enumerate(fold_splits(rows)):
            order = np.random.RandomState(seed).permutation(rows.S.shape[1])
            halves = _halves(split.learned)
            normals = split.rows.take(split.rows.y > 0)
            for h in (0, 1):
                members = np.sort(order[h::2])
                learned = split.learned.take(halves[h])
                splits.append(JudgedSplit(learned.only(members), normals.only(members)))
        return splits

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the mean rank correlation; it is 0 where one side ties all rows."""
        pairs = zip(parts[::2], parts[1::2], strict=True)
        both = (np.column_stack([one.scores, other.scores]) for one, other in pairs)
        return float(np.mean([rank_correlations(scores)[0, 1] for scores in both])), 0.0


def _halves(rows: ScoredRows) -> list[NDArray[np.bool_]]:
    """Deal rows out to two halves, each sort in turn; a lone known anomaly goes to both."""
    half = np.zeros(len(rows.y), dtype=np.intp)
    for chosen in (rows.y > 0, rows.kind >= 0, rows.known):
        half[chosen] = np.arange(chosen.sum()) % 2
    lone = rows.known & (rows.known.sum() == 1)
    return [(half == h) | lone for h in (0, 1)]


_NAMED: dict[str, type[Criterion]] = {
    "pseudo-negatives": PseudoNegativeAUC,
    "labels": LabelledAUC,
    "rpau": RPAU,
    "stability": Stability,
}


def make_criterion(criterion: Any) -> Criterion:
    """Return the criterion with a name, or the given object.

    Parameters
    ----------
    criterion : str or Criterion
        "pseudo-negatives", "labels", "rpau" or "stability", or an object.

    Returns
    -------
    Criterion
        The criterion.

    Examples
    --------
    >>> from ocfuse.tuning import make_criterion
    >>> make_criterion("rpau")
    RPAU()
    """
    if isinstance(criterion, str):
        if criterion not in _NAMED:
            raise InvalidInputError(not_one_of("A criterion", criterion, _NAMED, ", or an object"))
        return _NAMED[criterion]()
    if not isinstance(criterion, Criterion):
        names = ", ".join(map(repr, _NAMED))
        raise InvalidTypeError(
            f"A criterion must be one of {names}, or an object such as RPAU(). Got {criterion!r}."
        )
    return criterion


def judge(criterion: Criterion, splits: list[ScaledSplit], fusion: BaseFusion) -> Verdict:
    """Return the value of a fusion and what breaks ties; higher is better."""
    value, second = criterion.judge([split.judged(fusion) for split in splits])
    return round(float(value), DIGITS), round(float(second), DIGITS)


def judge_members(rows: ScoredRows, criterion: Criterion, normaliser: Any) -> list[Verdict]:
    """Judge every member by its own score."""
    verdicts = []
    for j in range(rows.S.shape[1]):
        own = rows.only([j])
        criterion.check(own)
        splits = [split.scaled(normaliser) for split in criterion.splits(own)]
        verdicts.append(judge(criterion, splits, SumRule()))
    return verdicts

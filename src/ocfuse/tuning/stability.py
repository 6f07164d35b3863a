"""Stability: whether half of the rows and of the members says what the other half says."""

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.competence import rank_correlations
from ocfuse.tuning.criterion import Criterion
from ocfuse.tuning.crossfit import FloatArray, ScoredRows
from ocfuse.tuning.splits import Judged, Split, fold_splits


class Stability(Criterion):
    """Judge by the agreement of two fusions that share neither rows nor members.

    In every fold the other rows are dealt out to two halves, and so are the
    members; a fusion is learned on each, and the value is the mean rank
    correlation of their scores of the held-out normals. Rows alone would not do:
    a fusion that learns nothing agrees with itself perfectly. Two halves of the
    members agree if each finds those to be trusted and averages their errors away.

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

    def splits(self, rows: ScoredRows) -> list[Split]:
        """Return two splits per fold, with the same normals to judge by."""
        splits = []
        for seed, split in enumerate(fold_splits(rows)):
            order = np.random.RandomState(seed).permutation(rows.S.shape[1])
            halves = _halves(split.learned)
            normals = split.rows.take(split.rows.y > 0)
            for h in (0, 1):
                members = np.sort(order[h::2])
                learned = split.learned.take(halves[h])
                splits.append(Split(learned.only(members), normals.only(members)))
        return splits

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the mean rank correlation."""
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return float(np.mean([_agreement(a.scores, b.scores) for a, b in pairs])), 0.0


def _halves(rows: ScoredRows) -> list[NDArray[np.bool_]]:
    """Deal rows out to two halves, each sort in turn; a lone known anomaly goes to both."""
    half = np.zeros(len(rows.y), dtype=np.intp)
    for chosen in (rows.y > 0, rows.kind >= 0, rows.known):
        half[chosen] = np.arange(chosen.sum()) % 2
    lone = rows.known & (rows.known.sum() == 1)
    return [(half == h) | lone for h in (0, 1)]


def _agreement(a: FloatArray, b: FloatArray) -> float:
    """Return Spearman's rank correlation; 0 where one side ties all rows."""
    return float(rank_correlations(np.column_stack([a, b]))[0, 1])

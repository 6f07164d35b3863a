"""What speaks for each member: comparisons that a competent one wins."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.inputs import FloatArray
from ocfuse.optional import slow

#: A member that never wins still counts a little: its competence is a divisor.
LEAST = 1e-3
#: Equal scores count once as below and once as not.
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class Evidence:
    """Comparisons of rows that a competent member should tell apart.

    Each is one column: how well every member tells normals from one kind of
    pseudo-anomaly, or rows that it has seen from rows that it has not.

    Parameters
    ----------
    auc : ndarray of shape (d, g)
        Area under the ROC curve of every member in every comparison.
    vote : ndarray of shape (g,)
        How much each comparison counts, not negative, not all zero.
    labels : list of str
        Names of the comparisons, for people to read.
    """

    auc: FloatArray
    vote: FloatArray
    labels: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together."""
        shape = np.shape(self.auc)
        if len(shape) != 2 or np.shape(self.vote) != shape[1:]:
            raise InvalidInputError(
                "Evidence needs one vote per comparison, the columns of auc. "
                f"Got auc of shape {shape} and vote of shape {np.shape(self.vote)}."
            )
        if not (np.min(self.vote) >= 0 and np.sum(self.vote) > 0 and np.isfinite(self.auc).all()):
            raise InvalidInputError(
                "Evidence needs finite auc, and votes that are not negative and not all zero. "
                f"Got vote={self.vote!r}."
            )

    def by_rank(self) -> FloatArray:
        """Return the voted mean of the members' ranks, from 0 to 1; ties share a rank."""
        ranks = slow("scipy.stats").rankdata(self.auc, axis=0) / len(self.auc)
        return np.asarray(ranks @ self.vote / np.sum(self.vote))

    def by_value(self) -> FloatArray:
        """Return the voted mean of the areas themselves."""
        return np.asarray(np.maximum(self.auc @ self.vote / np.sum(self.vote), LEAST))


class Ranked:
    """Scores of some rows, sorted once to be compared with those of others.

    Parameters
    ----------
    scores : ndarray of shape (n, d)
        Scores by the members.
    """

    def __init__(self, scores: FloatArray) -> None:
        self._columns = np.array(scores.T, order="C")
        self._columns.sort(axis=1)

    def above(self, others: FloatArray) -> FloatArray:
        """Return how often a row is above one of the others, by member; ties count half."""
        pairs = self._columns.shape[1] * len(others)
        return np.asarray((pairs - self._below(others)) / pairs)

    def below(self, others: FloatArray) -> FloatArray:
        """Return how often a row is below one of the others, by member; ties count half."""
        return np.asarray(self._below(others) / (self._columns.shape[1] * len(others)))

    def _below(self, others: FloatArray) -> FloatArray:
        """Return the number of pairs; it is exact, as all halves of whole numbers are."""
        pairs = zip(self._columns, others.T, strict=True)
        return np.array(
            [
                0.5 * sum(float(mine.searchsorted(theirs, side).sum()) for side in SIDES)
                for mine, theirs in pairs
            ]
        )


def auc_of(normal: FloatArray, anomalous: FloatArray) -> FloatArray:
    """Return the area under the ROC curve of every column; ties count half."""
    return Ranked(normal).above(anomalous)

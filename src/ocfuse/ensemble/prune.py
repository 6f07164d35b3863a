"""Members that change no score by much, and are no longer computed: `FusedDetector.prune`."""

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray
from ocfuse.detectors.pool import Pool
from ocfuse.ensemble.score import ScoreChain
from ocfuse.nearest.exact import representative_rows
from ocfuse.system.cache import caching
from ocfuse.validation import check_number

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

#: Training rows on which scores of members are moved.
MOST_MOVED = 1_000


def pruned_pool(detector: "FusedDetector", tol: float) -> tuple[Pool, FloatArray]:
    """Return the pool without members that hardly matter, and how training scores change by it.

    A member that goes leaves its median out-of-fold score in its column. Its effect is the largest
    change of a fused score by that: with the training rows as they are, and with its score as
    far below, or above, all of its out-of-fold scores as these reach. Members go in the order of
    their effects, as long as those gone have together no more than `tol`; one stays.

    Parameters
    ----------
    detector : FusedDetector
        A fitted detector.
    tol : float
        The effect that is allowed.

    Returns
    -------
    pool : Pool
        The pool that is left.
    change : ndarray of shape (n,)
        What the fused scores of the rows that were learned from have gained.
    """
    check_is_fitted(detector, "pool_")
    check_number(tol, "tol", 0.0, 1e12, "It is in units of the fused score.")
    gone: list[int] = []
    with caching():  # neighbours of the training rows, of which the local scale is made
        effects = _Effects(detector)
        left = effects.left
        alone = [effects.of([j]) for j in left]
        for j in np.argsort(alone, kind="stable")[: len(left) - 1].tolist():
            if effects.of([*gone, left[j]]) > tol:
                break
            gone.append(left[j])
        return _without(detector.pool_, gone, effects.typical), effects.change(gone)


class _Effects:
    """What members do to the fused scores of the training rows."""

    def __init__(self, detector: "FusedDetector") -> None:
        pool = detector.pool_
        self._chain = ScoreChain.of(detector)
        self._rows = detector.training_, detector.training_context_
        self._S = pool.out_of_fold_scores_
        self.left = [j for j, name in enumerate(pool.names_) if name not in pool.constants_]
        self.typical: FloatArray = np.median(self._S, axis=0)
        low, high = self._S.min(axis=0), self._S.max(axis=0)
        reach = high - low
        self._moved = low - reach, high + reach
        self._some = representative_rows(len(self._S), MOST_MOVED)
        self._before = self._fused(self._S)

    def of(self, members: list[int]) -> float:
        """Return the largest change of a score by members that go together."""
        S = self._S[self._some]
        largest = float(np.abs(self.change(members)).max())
        without = self._fused(self._put(S, members, self.typical), chosen=True)
        for scores in self._moved:
            moved = self._fused(self._put(S, members, scores), chosen=True)
            largest = max(largest, float(np.abs(moved - without).max()))
        return largest

    def change(self, members: list[int]) -> FloatArray:
        """Return what the fused scores of the training rows gain when members go."""
        if not members:
            return np.zeros(len(self._S))
        return self._fused(self._put(self._S, members, self.typical)) - self._before

    def _fused(self, S: FloatArray, chosen: bool = False) -> FloatArray:
        E, C = self._rows
        if chosen:
            E, C = E[self._some], None if C is None else C[self._some]
        return self._chain.fuse(S, E, C)[1]

    @staticmethod
    def _put(S: FloatArray, members: list[int], scores: FloatArray) -> FloatArray:
        changed = S.copy()
        changed[:, members] = scores[members]
        return changed


def _without(pool: Pool, members: list[int], typical: FloatArray) -> Pool:
    smaller: Pool = copy(pool)
    constants = {pool.names_[j]: float(typical[j]) for j in members}
    smaller.constants_ = {**pool.constants_, **constants}
    smaller.members_ = [pair for pair in pool.members_ if pair[0] not in constants]
    smaller.out_of_fold_scores_ = pool.out_of_fold_scores_.copy()
    smaller.out_of_fold_scores_[:, members] = typical[members]
    return smaller

"""Rows that come and go: what members of a pool are updated by, and the pool that comes of it."""

from copy import copy

import numpy as np
from sklearn.base import clone

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.base import BaseDetector, core_rows
from ocfuse.detectors.gram import Gram, Reference, RowChange
from ocfuse.detectors.members import Members, is_shared
from ocfuse.detectors.pool import Pool

#: Up to so many rows a member is learned anew, if it cannot be updated: that takes milliseconds.
FEW_ROWS = 500


def updated_pool(
    pool: Pool, training: FloatArray, kept: IntArray, added: FloatArray
) -> tuple[Pool, list[str]]:
    """Return a pool whose members know rows that were added, and forget others.

    Coordinates of views, landmarks and the scale of kernels stay. Members that can take up rows
    do (`BaseDetector.updated`); a member of this package that cannot is learned anew from few
    rows, and is kept as it is from more, as those of others are.

    Parameters
    ----------
    pool : Pool
        A fitted pool; it is not changed.
    training : ndarray of shape (n, m)
        The rows that it was fitted to.
    kept : ndarray of shape (n_kept,)
        Those that stay, ascending.
    added : ndarray of shape (q, m)
        Rows to add behind them.

    Returns
    -------
    pool : Pool
        The new pool. Its `out_of_fold_scores_` and `fold_` are of `kept` alone.
    unchanged : list of str
        Names of members that were kept as they are.
    """
    changes: dict[tuple[int, int], RowChange] = {}
    members: Members = []
    unchanged = []
    rows = np.concatenate([training[kept], added])
    rows.flags.writeable = False
    for name, member in pool.members_:
        fresh = None
        if is_shared(member):
            change = _change_for(member, training, kept, added, rows, changes)
            fresh = _updated(member, change)
        if fresh is None:
            unchanged.append(name)
        members.append((name, member if fresh is None else fresh))
    found: Pool = copy(pool)
    found.members_ = members
    found.out_of_fold_scores_ = pool.out_of_fold_scores_[kept]
    found.fold_ = pool.fold_[kept]
    return found, unchanged


def _change_for(
    member: BaseDetector,
    training: FloatArray,
    kept: IntArray,
    added: FloatArray,
    rows: FloatArray,
    changes: dict[tuple[int, int], RowChange],
) -> RowChange:
    """Return the change of the rows that a member learns from, one for all that share them."""
    n = len(training)
    old = member.reference_
    if old.n_rows != member.rows_of(n):  # it holds landmarks; their rows are all
        same = [c for (size, _), c in changes.items() if size == n]
        if same:
            return same[0]
        old = Reference(training)
    key = old.n_rows, id(old)
    if key not in changes:
        changes[key] = _change_of(old, n, kept, added, rows)
    return changes[key]


def _change_of(
    old: Reference, n: int, kept: IntArray, added: FloatArray, rows: FloatArray
) -> RowChange:
    if old.n_rows < n:  # evenly spaced ones of them: drawn anew
        some = rows[core_rows(len(rows), old.n_rows)]
        return RowChange(old, old.like(some), None, some[:0])
    return RowChange(old, old.like(rows, kept), kept, added)


def _updated(member: BaseDetector, change: RowChange) -> BaseDetector | None:
    """Return the member with the change; None if it must be kept as it is."""
    fresh = member.updated(change)
    if fresh is None and change.old.n_rows <= FEW_ROWS:
        fresh = clone(member).fit_gram(Gram.of(change.new))
    if fresh is not None:
        fresh.n_features_in_ = member.n_features_in_
        fresh.offset_ = member.offset_
    return fresh

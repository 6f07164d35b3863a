"""Marginal tails: how extreme each value is in its column."""

import math
from collections.abc import Iterator
from copy import copy
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.base import MANY_ROWS, BaseDetector
from ocfuse.detectors.gram import Gram, Query, RowChange
from ocfuse.kernels import kernel, thread_count

Side: TypeAlias = Literal["left", "right"]

#: Up to so many rows are not sorted before they are looked up.
FEW_ROWS = 16
#: Values of columns that are sorted together.
VALUES_AT_ONCE = 2**18


class Marginal(BaseDetector):
    """Marginal tails: score rows by how extreme each value is in its column.

    The score is the sum over the columns of ``log((c + 1/2) / (n + 1))``, where c is the number of
    training values at least as extreme: the smaller of the number not above x and the number not
    below x. Values equal to x count on both sides, so that in a 0/1 column c is the frequency of
    the value. The units of columns do not matter, and dependence between columns is ignored.

    Leave-one-out scores are exact: c and n are both 1 less.

    Parameters
    ----------
    max_samples : int, optional
        Most rows to learn from, evenly spaced. None learns from all.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    columns_ : ndarray of shape (m, n)
        Sorted training values of each column.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> detector = Marginal().fit([[0.0], [1.0], [2.0]])
    >>> detector.score_samples([[1.0], [2.0], [9.0]]).round(2)
    array([-0.47, -0.98, -2.08])
    """

    closed_form: ClassVar[bool] = True

    def __init__(self, *, max_samples: int | None = None, false_alarm_rate: float = 0.05) -> None:
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        steps = math.log2(shape.rows + 1)
        size = NUMBER * shape.cells
        return Cost(
            fit_work={"tails": shape.fits() * shape.cells * steps},
            score_work={"tails": shape.columns * steps},
            fit_bytes={"tails": shape.held * size},
            model_bytes={"tails": size},
        )

    def updated(self, change: RowChange) -> "Marginal":
        """Return a copy that knows the new rows: exactly what a fit to them would be."""
        fresh = copy(self)
        fresh.reference_ = change.new
        fresh._fit(Gram.of(change.new))
        return fresh

    def _fit(self, gram: Gram) -> None:
        # Column by column in memory: a lookup in any other order copies the column first.
        self.columns_: FloatArray = np.empty(gram.X.shape[::-1])
        for some, columns in _columns(gram.X):
            columns.sort(axis=1)
            self.columns_[some] = columns

    def _score(self, query: Query) -> FloatArray:
        return _log_tails(self._tail_counts(query.X), self.columns_.shape[1])

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        if gram.n_rows > MANY_ROWS:
            return _log_tails_by_place(gram.X)
        return _log_tails(self._tail_counts(gram.X) - 1, gram.n_rows - 1)

    def _tail_counts(self, X: FloatArray) -> IntArray:
        """Return c of every value, shape (q, m)."""
        if kernel is not None:
            work = 32 * X.size  # numbers that are read, roughly
            counts: IntArray = kernel.tails(self.columns_, X, thread_count(work))
            return counts
        if len(X) > FEW_ROWS or X.shape[1] < 128:
            return _tail_counts_by_column(self.columns_, X)
        not_above = _count_in_step(self.columns_, X, "right")
        not_below = self.columns_.shape[1] - _count_in_step(self.columns_, X, "left")
        counts = np.minimum(not_above, not_below)
        return counts


def _columns(X: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield groups of columns, each contiguous and small enough for the cache."""
    step = max(1, VALUES_AT_ONCE // len(X))
    for begin in range(0, X.shape[1], step):
        some = slice(begin, min(begin + step, X.shape[1]))
        yield some, np.array(X[:, some].T, order="C")


def _tail_counts_by_column(columns: FloatArray, X: FloatArray) -> IntArray:
    """Return c of every value, one column after the other."""
    # Row by row in memory, so that a sum over a row has the same bits in every batch.
    counts = np.empty(X.shape, dtype=np.intp)
    n = columns.shape[1]
    for j, column in enumerate(columns):
        x = X[:, j]
        if len(x) <= FEW_ROWS:
            counts[:, j] = np.minimum(column.searchsorted(x, "right"), n - column.searchsorted(x))
            continue
        # Sorted values are looked up where the one before was found, in the cache.
        order = x.argsort()
        x = x[order]
        below = not_above = column.searchsorted(x)
        if (column.take(below, mode="clip") == x).any():
            not_above = column.searchsorted(x, "right")
        counts[order, j] = np.minimum(not_above, n - below)
    return counts


def _log_tails_by_place(X: FloatArray) -> FloatArray:
    """Return the scores of rows left out: a value's tail follows from its place in the column."""
    n = len(X)
    place = np.arange(n)
    logs = np.log((place + 0.5) / n)  # of the tail of a value with so many others in it
    untied = logs[np.minimum(place, place[::-1])]
    scores = np.zeros(n)
    for _, columns in _columns(X):
        for column in columns:
            order = column.argsort()
            is_new = np.diff(column[order], prepend=np.nan) != 0
            if is_new.all():
                scores[order] += untied
                continue
            starts = np.flatnonzero(is_new)
            ends = np.append(starts[1:], n)
            tails = logs[np.minimum(ends, n - starts) - 1]
            scores[order] += np.repeat(tails, ends - starts)
    return scores


def _count_in_step(columns: FloatArray, X: FloatArray, side: Side) -> IntArray:
    """Return how many values are below X ("left") or not above, in all columns at once.

    Each column on its own takes longer for few rows.
    """
    m, n = columns.shape
    before = n * np.arange(m) - 1
    counts = np.zeros(X.shape, dtype=np.intp)
    is_counted = np.less if side == "left" else np.less_equal
    for step in 2 ** np.arange(n.bit_length())[::-1]:
        further = counts + step
        value = columns.ravel().take(np.minimum(further, n) + before)
        counts = np.where((further <= n) & is_counted(value, X), further, counts)
    return counts


def _log_tails(counts: IntArray, n: int) -> FloatArray:
    scores: FloatArray = np.log((counts + 0.5) / (n + 1)).sum(axis=1)
    return scores

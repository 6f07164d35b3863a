"""Marginal tails: how far out in its column each value is."""

from typing import ClassVar

import numpy as np

from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.gram import FloatArray, Gram, IntArray, Query


class Marginal(BaseDetector):
    """Score rows by how far out in its column each value is.

    The score is the sum over the columns of ``log((c + 1/2) / (n + 1))``, where
    c is the number of training values at least as far out on the nearer side:
    the smaller of the number not above and the number not below. Values equal
    to x count on both sides, so that the tail of a level of a 0/1 column is
    its frequency. Columns count alike whatever their units, and what they have
    in common is ignored.

    Leave-one-out scores are exact: c and n are both 1 less.

    Parameters
    ----------
    max_samples : int, optional
        Learn from at most so many rows, evenly spaced.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    columns_ : ndarray of shape (m, n)
        Sorted training values of every column.
    offset_ : float
        Rows that score less are called anomalies.

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

    def _fit(self, gram: Gram) -> None:
        self.columns_: FloatArray = np.sort(gram.X.T, axis=1)

    def _score(self, query: Query) -> FloatArray:
        return _log_tails(self._tail_counts(query.X), self.columns_.shape[1])

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        return _log_tails(self._tail_counts(gram.X) - 1, gram.n_rows - 1)

    def _tail_counts(self, X: FloatArray) -> IntArray:
        """Return c of every value, shape (q, m)."""
        pairs = list(zip(self.columns_, X.T, strict=True))
        not_above = np.array([column.searchsorted(values, "right") for column, values in pairs])
        below = np.array([column.searchsorted(values, "left") for column, values in pairs])
        counts = np.minimum(not_above, self.columns_.shape[1] - below)
        # Row by row in memory, so that a sum over a row has the same bits in every batch.
        return np.ascontiguousarray(counts.T)


def _log_tails(counts: IntArray, n: int) -> FloatArray:
    scores: FloatArray = np.log((counts + 0.5) / (n + 1)).sum(axis=1)
    return scores

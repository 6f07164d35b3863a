"""One side only: numbers of which a deviation counts on one side, such as errors.

A row is no alarm if it is as usual but for columns that are better than usual. So a value on
the harmless side becomes the one that is to be expected where it stands:

1. Expected is what the other columns say, those of which both sides count: a straight line
   through the training rows, and what the training rows nearest to the row have beside it.
   With ``direction="high"`` a value below what is expected becomes what is expected. Not the
   middle of the column: where flow and pressure rise together, and low pressure is harmless,
   a high flow at a pressure in the middle would be a pair that never was.
2. Several columns of one side go together, too: latency is high and errors are gone. Latency
   says that errors are to be expected, but then the errors are not missed. A column that is
   better than usual by more than one spread (that of its harmless side) is therefore moved
   on towards what the others say, as far beyond what is expected as it is short of it by more
   than that spread. One that is about as usual stays, so that latency without errors
   is still out of the ordinary.

What is found is the most usual row that is no better than the one at hand, as far as there
is reason to take it for better. Members learn from such rows and score such rows, so that the
rate of false alarms is that of the score. A value that is lower than expected is not looked
at any further: as long as the columns of one side are one, the score does not depend on it.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ocfuse.arrays import FloatArray

#: What may be said of a column: only values above what is usual count, or only those below.
DIRECTIONS = ("high", "low")


class Sides(BaseEstimator):  # type: ignore[misc]
    """Replace encoded values on the harmless side by those that are to be expected.

    Parameters
    ----------
    sign : ndarray of shape (e,)
        For every encoded column 1 if only high values count, -1 if only low ones do, and 0 if
        both do.

    Attributes
    ----------
    low_, high_ : ndarray of shape (e,)
        Smallest and largest value of training.
    slope_ : ndarray of shape (u, s)
        Slopes of the straight lines from the other columns, centred, to those of one side.
    donors_ : ndarray of shape (r, u)
        Training rows in the other columns, at most 1,000.
    beside_ : ndarray of shape (r, s)
        How far the same rows are from the lines.
    slack_ : ndarray of shape (s,)
        Spread of each column below what is expected.
    precision_ : ndarray of shape (s, s)
        Inverse covariance of the columns of one side, measured from what is expected.
    """

    #: Training rows that lines are learned from, and those that are searched for neighbours.
    max_rows = 5_000
    max_donors = 1_000
    #: Neighbours, at most; a fifth of the rows if these are few.
    n_neighbours = 20
    #: Part of the variance of a column that slopes are kept small by.
    ridge = 1e-2
    #: Times that each column of one side is moved after the others.
    n_sweeps = 20

    def __init__(self, sign: NDArray[np.int64]) -> None:
        self.sign = sign

    def fit(self, Z: FloatArray) -> "Sides":
        """Learn from encoded training rows what is to be expected.

        Parameters
        ----------
        Z : ndarray of shape (n, e)
            The rows.

        Returns
        -------
        Sides
            The same, fitted.
        """
        # in an order of their own: the last bits of sums depend on it
        rows = self.turned(Z)
        rows = rows[np.lexsort(rows.T[::-1])]
        rows = rows[_spread(len(rows), self.max_rows if rows.shape[1] <= 500 else 1_000)]
        is_one_sided = self.sign != 0
        self.low_, self.high_ = rows.min(axis=0), rows.max(axis=0)
        self.centre_ = rows.mean(axis=0)
        self._fit_lines(rows - self.centre_, is_one_sided)
        near = rows[_spread(len(rows), self.max_donors)]
        self.donors_ = near[:, ~is_one_sided]
        self.beside_ = near[:, is_one_sided] - self._on_line(self.donors_)
        short = rows[:, is_one_sided] - self._expected(rows)
        below = np.minimum(short, 0.0)
        n_below = np.maximum((below < 0).sum(axis=0), 1)
        self.slack_ = np.sqrt((below**2).sum(axis=0) / n_below)
        covariance = short.T @ short / len(short)
        unit = np.sqrt(np.diag(covariance))
        unit[unit < 1e-9] = 1.0  # a constant column
        correlation = covariance / np.outer(unit, unit) + self.ridge * np.eye(len(unit))
        self.precision_ = np.linalg.inv(correlation) / np.outer(unit, unit)
        return self

    def turned(self, Z: FloatArray) -> FloatArray:
        """Return rows with every column of one side turned so that high is harmful."""
        return Z * np.where(self.sign < 0, -1.0, 1.0)

    def transform(self, Z: FloatArray) -> FloatArray:
        """Return rows in which no value is on the harmless side of what is expected."""
        chosen = self.sign != 0
        turned = self.turned(Z)
        values, expected = turned[:, chosen], self._expected(turned)
        short = values - expected
        moved = np.maximum(short, 0.0) if chosen.sum() == 1 else self._most_usual(short)
        found = np.where(moved > short, np.maximum(expected + moved, values), values)
        turned[:, chosen] = found
        return self.turned(turned)

    def no_worse(self, Z: FloatArray, found: FloatArray, others: FloatArray) -> FloatArray:
        """Return other rows with the values of `Z` where these are on the harmless side.

        Parameters
        ----------
        Z, found : ndarray of shape (n, e)
            Encoded rows as they were, and what `transform` made of them.
        others : ndarray of shape (n, e)
            What the rows are compared with.

        Returns
        -------
        ndarray of shape (n, e)
            The other rows; where a column of one side has moved, or the other value is worse,
            the value of `Z`.
        """
        is_harmless = (self.turned(found) > self.turned(Z)) | (self.turned(others) > self.turned(Z))
        return np.asarray(np.where(is_harmless & (self.sign != 0), Z, others))

    def _fit_lines(self, centred: FloatArray, is_one_sided: NDArray[np.bool_]) -> None:
        """Learn the straight lines from the other columns, none of them steep."""
        X, Y = centred[:, ~is_one_sided], centred[:, is_one_sided]
        (n, m), variance = X.shape, float(np.mean(X**2)) if X.size else 0.0
        if variance == 0.0:
            self.slope_ = np.zeros((m, Y.shape[1]))
            return
        penalty = self.ridge * variance * n
        if m <= n:
            self.slope_ = np.linalg.solve(X.T @ X + penalty * np.eye(m), X.T @ Y)
        else:
            self.slope_ = X.T @ np.linalg.solve(X @ X.T + penalty * np.eye(n), Y)

    def _on_line(self, X: FloatArray) -> FloatArray:
        """Return what the straight lines say of rows of the other columns."""
        is_one_sided = self.sign != 0
        line = (X - self.centre_[~is_one_sided]) @ self.slope_
        return np.asarray(line + self.centre_[is_one_sided])

    def _expected(self, turned: FloatArray) -> FloatArray:
        """Return what the other columns say; those beyond training count as at its end."""
        others = self.sign == 0
        X = np.clip(turned[:, others], self.low_[others], self.high_[others])
        donors = self.donors_
        squares = (X**2).sum(axis=1)[:, np.newaxis] + (donors**2).sum(axis=1)
        squares = np.maximum(squares - 2.0 * X @ donors.T, 0.0)
        k = min(self.n_neighbours, max(len(donors) // 5, 1), len(donors) - 1)
        reach = np.partition(squares, k, axis=1)[:, k, np.newaxis]
        # the farther, the less, down to nothing: who is the last one makes no jump
        weight = np.maximum(reach - squares, 0.0)
        total = weight.sum(axis=1, keepdims=True)
        are_equal = total <= 1e-9 * np.maximum(reach, 1.0)  # as far, all of them
        weight = np.where(are_equal, squares <= reach + 1e-9 * np.maximum(reach, 1.0), weight)
        weight /= weight.sum(axis=1, keepdims=True)
        found: FloatArray = self._on_line(X) + weight @ self.beside_
        return found

    def _most_usual(self, short: FloatArray) -> FloatArray:
        """Return how far columns are from what is expected in the most usual row no better.

        Of all between the row and how far each column may rise, the one with the smallest
        Mahalanobis distance, column after column.
        """
        most = np.maximum(np.maximum(-short - self.slack_, 0.0), short)
        moved: FloatArray = np.clip(0.0, short, most)
        diagonal = np.diag(self.precision_)
        for _ in range(self.n_sweeps):
            for j in range(short.shape[1]):
                pull = moved @ self.precision_[:, j] - moved[:, j] * diagonal[j]
                moved[:, j] = np.clip(-pull / diagonal[j], short[:, j], most[:, j])
        return moved


def _spread(n: int, most: int) -> NDArray[np.intp]:
    """Return at most so many of n places, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))

"""What generators of pseudo-anomalies share: contract, one-hot blocks, principal coordinates."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError


@dataclass(frozen=True)
class PrincipalCoordinates:
    """Rows as x = centre + scale * (U t), t their principal coordinates.

    Columns are standardised first, so that their units do not matter. There may
    be fewer coordinates than columns, and none if all rows are equal.
    """

    t: FloatArray  # (n, r), uncorrelated, of mean 0
    U: FloatArray  # (m, r), orthonormal
    centre: FloatArray  # (m,), mean of the columns
    scale: FloatArray  # (m,), their standard deviation, 0 if constant

    def rows(self, t: FloatArray) -> FloatArray:
        """Return the rows that have the coordinates t."""
        return np.asarray(self.centre + self.scale * (t @ self.U.T))


def principal_coordinates(X: FloatArray) -> PrincipalCoordinates:
    """Return the principal coordinates of the rows of X."""
    # about the first row: a constant column is not moved by rounding
    centre = X[0] + (X - X[0]).mean(axis=0)
    centred = X - centre
    peak = np.abs(centred).max(axis=0)
    unit = centred / np.where(peak > 0.0, peak, 1.0)  # its squares cannot overflow
    unit -= unit.mean(axis=0)  # the centre may be rounded by as much as the rows differ
    spread = np.sqrt((unit**2).mean(axis=0))
    Z = unit / np.where(spread > 0.0, spread, 1.0)
    # directions in which Z spreads, from its smaller product with itself
    is_wide = Z.shape[0] < Z.shape[1]
    squares, vectors = np.linalg.eigh(Z @ Z.T if is_wide else Z.T @ Z)
    kept = squares > 1e-3**2 * squares[-1]  # without those of little spread
    U = vectors[:, kept]
    if is_wide:
        U = Z.T @ U / np.sqrt(squares[kept])
    # eigenvectors have no sign of their own: equal seeds draw equal rows everywhere
    U = U * np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])])
    return PrincipalCoordinates(t=Z @ U, U=U, centre=centre, scale=peak * spread)


class OneHotBlocks:
    """Normals whose columns may form blocks: one category, one-hot encoded.

    A block holds several columns of the same source. Its patterns are what its
    columns hold together in some row of X, sorted. `source` holds, for every column, the number
    of the column it was encoded from; None if there are no blocks.
    """

    def __init__(self, X: FloatArray, source: ArrayLike | None = None) -> None:
        self.X = X
        self.columns = [] if source is None else _shared_columns(source, X.shape[1])
        found = [np.unique(X[:, block], axis=0, return_inverse=True) for block in self.columns]
        self.patterns = [patterns for patterns, _ in found]
        self.codes = [codes.reshape(len(X)) for _, codes in found]

    @cached_property
    def principal(self) -> PrincipalCoordinates:
        """The principal coordinates of X, for all who ask."""
        return principal_coordinates(self.X)

    def coded(self) -> FloatArray:
        """Return X with every block as one column: the numbers of its patterns."""
        if not self.columns:
            return self.X
        table = self.X.copy()
        for block, codes in zip(self.columns, self.codes, strict=True):
            table[:, block[0]] = codes
        return table[:, self._features()]

    def decoded(self, rows: FloatArray) -> FloatArray:
        """Return rows that look like X for rows that look like `coded()`."""
        table = np.empty((len(rows), self.X.shape[1]))
        table[:, self._features()] = rows
        for block, patterns in zip(self.columns, self.patterns, strict=True):
            table[:, block] = patterns[table[:, block[0]].astype(np.intp)]
        return table

    def nearest(self, rows: FloatArray) -> FloatArray:
        """Return the rows with every block replaced by the nearest of its patterns."""
        table = rows.copy()
        for block, patterns in zip(self.columns, self.patterns, strict=True):
            # squared distance without the part that all patterns share
            distance = (patterns**2).sum(axis=1) - 2.0 * rows[:, block] @ patterns.T
            table[:, block] = patterns[distance.argmin(axis=1)]
        return table

    def _features(self) -> NDArray[np.bool_]:
        """Return which columns `coded` keeps: of a block only the first."""
        kept = np.ones(self.X.shape[1], dtype=bool)
        for block in self.columns:
            kept[block[1:]] = False
        return kept


def _shared_columns(source: ArrayLike, m: int) -> list[NDArray[np.intp]]:
    numbers = np.asarray(source)
    if numbers.shape != (m,):
        raise InvalidInputError(
            f"source must hold one number for each of the {m} columns of X. "
            f"Got shape {numbers.shape}. Use the source_ of the encoder that made X."
        )
    shared, counts = np.unique(numbers, return_counts=True)
    return [np.flatnonzero(numbers == number) for number in shared[counts > 1]]


class Generator(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of generators of pseudo-negatives, that is, artificial anomalies.

    A subclass defines `_draw(X, n, random)`, which returns n rows. X and n have been checked,
    `random` is a RandomState. `_draw` can ignore blocks, that is, one-hot encoded columns of one
    category: afterwards each block is replaced by the nearest of its patterns in X (of several,
    the first in sorted order). Only if `keeps_values` is set, X has one column for each block,
    with the numbers of its patterns, and a block is taken as a whole from one row.
    """

    #: every value that `_draw` returns occurs in its column of X
    keeps_values: ClassVar[bool] = False

    def sample(
        self, X: ArrayLike, n: int, random_state: Any = None, source: ArrayLike | None = None
    ) -> FloatArray:
        """Return pseudo-negatives for standardised normal rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, m)
            Standardised normal rows, finite.
        n : int
            Number of rows to draw.
        random_state : int, RandomState or None, default=None
            Seed; equal seeds draw equal rows.
        source : array-like of shape (m,), optional
            For each column, the number of the column it was encoded from. Columns with the same
            number are a block. None if there are no blocks.

        Returns
        -------
        ndarray of shape (n, m)
            The pseudo-negatives, in the order of `kinds`.
        """
        rows = _table(X)
        _check_count(n)
        return self._draw_blocks(
            OneHotBlocks(rows, source), int(n), check_random_state(random_state)
        )

    def kinds(self, n: int) -> NDArray[np.intp]:
        """Return the kind of each of n rows from `sample`, as its position in `labels`."""
        _check_count(n)
        return np.repeat(np.arange(len(self.labels)), self._shares(int(n)))

    @property
    def labels(self) -> list[str]:
        """Names of the kinds of rows."""
        return [type(self).__name__.lower()]

    def _shares(self, n: int) -> list[int]:
        """Return how many of n rows are of each kind."""
        return [n]

    def _draw_blocks(self, blocks: OneHotBlocks, n: int, random: RandomState) -> FloatArray:
        """Return n rows whose blocks hold patterns that occur."""
        X = blocks.coded() if self.keeps_values else blocks.X
        drawn = np.asarray(self._draw_from(blocks, X, n, random), dtype=np.float64)
        if drawn.shape != (n, X.shape[1]) or not np.isfinite(drawn).all():
            raise InvalidInputError(
                f"{self.labels[0]} must draw finite rows of shape ({n}, {X.shape[1]}). "
                f"Got shape {drawn.shape}" + ("." if np.isfinite(drawn).all() else ", not finite.")
            )
        return blocks.decoded(drawn) if self.keeps_values else blocks.nearest(drawn)

    def _draw_from(
        self, blocks: OneHotBlocks, X: FloatArray, n: int, random: RandomState
    ) -> FloatArray:
        """Return n rows; `blocks` knows what generators that are given the same X share."""
        return self._draw(X, n, random)

    @abstractmethod
    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        """Return n rows."""


def random_rows(n_rows: int, n: int, random: RandomState) -> NDArray[np.intp]:
    """Choose n of n_rows rows; none is chosen again before all have been."""
    rounds = -(-n // n_rows)
    return np.concatenate([random.permutation(n_rows) for _ in range(rounds)])[:n]


def _check_count(n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InvalidInputError(f"n must be a positive integer. Got n={n!r}.")


def _table(X: ArrayLike) -> FloatArray:
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"X must hold real numbers. {error}.") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInputError(
            "X must be a table of normals of shape (n_rows, n_features), both at least 1. "
            f"Got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise InvalidInputError(
            "X must be finite. Got NaN or infinite values. Impute them before the generator."
        )
    if np.abs(rows).max() > 1e300:  # differences and sums might overflow
        raise InvalidInputError(
            f"X must be within +-1e+300. Got {np.abs(rows).max()}. Standardise it."
        )
    return rows

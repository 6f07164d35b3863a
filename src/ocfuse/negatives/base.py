"""What every generator of pseudo-anomalies shares."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.negatives.blocks import Blocks

FloatArray = NDArray[np.float64]

#: Values beyond this are refused: differences and sums of them might overflow.
FARTHEST = 1e300


class Generator(BaseEstimator, ABC):  # type: ignore[misc]
    """Draws rows that are unlike the normals it is given.

    A subclass writes `_draw(X, n, random)`, which returns n rows. X and n have
    been checked, `random` is a RandomState. It need not know of blocks (columns
    that are one category, one-hot encoded): afterwards each block is replaced by
    the nearest of its patterns that occur in X, the first in sorted order if
    several are. Only if `keeps_values` is set, X has one column for a block, the
    numbers of its patterns, and the block comes as a whole from one row.
    """

    #: every value that `_draw` returns occurs in its column of X
    keeps_values: ClassVar[bool] = False

    def sample(
        self, X: ArrayLike, n: int, random_state: Any = None, source: ArrayLike | None = None
    ) -> FloatArray:
        """Return pseudo-anomalies for the standardised normals X.

        Parameters
        ----------
        X : array-like of shape (n_rows, m)
            Normals, finite.
        n : int
            How many to draw.
        random_state : int, RandomState or None, default=None
            Equal seeds draw equal rows.
        source : array-like of shape (m,), optional
            For every column, the number of the column it was encoded from:
            columns that share one are a block. None if there are no blocks.

        Returns
        -------
        ndarray of shape (n, m)
            The rows, in the order of `kinds`.
        """
        rows = _table(X)
        _check_count(n)
        return self._draw_blocks(Blocks(rows, source), int(n), check_random_state(random_state))

    def kinds(self, n: int) -> NDArray[np.intp]:
        """Return the kind of each of the n rows that `sample` draws: its place in `labels`."""
        _check_count(n)
        return np.repeat(np.arange(len(self.labels)), self._shares(int(n)))

    @property
    def labels(self) -> list[str]:
        """Names of the kinds of rows."""
        return [type(self).__name__.lower()]

    def _shares(self, n: int) -> list[int]:
        """Return how many of n rows are of each kind."""
        return [n]

    def _draw_blocks(self, blocks: Blocks, n: int, random: RandomState) -> FloatArray:
        """Return n rows whose blocks hold patterns that occur."""
        X = blocks.coded() if self.keeps_values else blocks.X
        drawn = np.asarray(self._draw_from(blocks, X, n, random), dtype=np.float64)
        if drawn.shape != (n, X.shape[1]) or not np.isfinite(drawn).all():
            raise InvalidInputError(
                f"{self.labels[0]} must draw finite rows of shape ({n}, {X.shape[1]}). "
                f"Got shape {drawn.shape}" + ("." if np.isfinite(drawn).all() else ", not finite.")
            )
        return blocks.decoded(drawn) if self.keeps_values else blocks.nearest(drawn)

    def _draw_from(self, blocks: Blocks, X: FloatArray, n: int, random: RandomState) -> FloatArray:
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
    if np.abs(rows).max() > FARTHEST:
        raise InvalidInputError(
            f"X must be within +-{FARTHEST}. Got {np.abs(rows).max()}. Standardise it."
        )
    return rows

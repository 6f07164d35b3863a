"""What every generator of pseudo-anomalies shares."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ocfuse.exceptions import InvalidInputError, InvalidTypeError

FloatArray = NDArray[np.float64]


class Generator(BaseEstimator, ABC):  # type: ignore[misc]
    """Draws rows that are unlike the normals it is given.

    A subclass writes `_draw`; what it is given has been checked.
    """

    def sample(self, X: ArrayLike, n: int, random_state: Any = None) -> FloatArray:
        """Return n pseudo-anomalies for the standardised normals X, shape (n, m)."""
        rows = _table(X)
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InvalidInputError(f"n must be a positive integer. Got n={n!r}.")
        return self._draw(rows, int(n), check_random_state(random_state))

    @abstractmethod
    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        """Return n rows."""


def random_rows(n_rows: int, n: int, random: RandomState) -> NDArray[np.intp]:
    """Choose n of n_rows rows; none is chosen again before all have been."""
    rounds = -(-n // n_rows)
    return np.concatenate([random.permutation(n_rows) for _ in range(rounds)])[:n]


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
    return rows

"""What the rivals that learn from rows share."""

from abc import ABC, abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ocfuse.arrays import FloatArray

Self = TypeVar("Self", bound="RowDetector")


class RowDetector(BaseEstimator, ABC):  # type: ignore[misc]
    """Learn from standardised normal rows; score rows, higher = more normal.

    A subclass writes `_fit` and `_score`. There is no threshold: whoever compares
    systems sets one for all of them in the same way.
    """

    random_state: Any

    def fit(self: Self, X: ArrayLike, y: Any = None) -> Self:
        """Learn what is normal from the rows of X, standardised and finite; y is ignored."""
        table: FloatArray = validate_data(self, X, dtype=np.float64, ensure_min_samples=5)
        self._fit(table, check_random_state(self.random_state))
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return one score per row: higher is more normal."""
        check_is_fitted(self)
        table: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        return self._score(table)

    @abstractmethod
    def _fit(self, X: FloatArray, random: RandomState) -> None:
        """Learn from checked rows."""

    @abstractmethod
    def _score(self, X: FloatArray) -> FloatArray:
        """Score checked rows, each on its own."""


def next_seed(random: RandomState) -> int:
    """Draw a seed."""
    return int(random.randint(np.iinfo(np.int32).max))

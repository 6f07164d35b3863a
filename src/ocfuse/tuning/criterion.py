"""The contract of every criterion: fused scores of held-out rows in, one value out."""

from abc import ABC, abstractmethod

from sklearn.base import BaseEstimator

from ocfuse.fusion.base import BaseFusion
from ocfuse.tuning.crossfit import ScoredRows
from ocfuse.tuning.splits import Judged, Split, fold_splits


class Criterion(BaseEstimator, ABC):  # type: ignore[misc]
    """Say how good a fusion is on rows that it has not seen; higher is better.

    A new criterion writes `judge`, and the others where it needs to.
    """

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows that say nothing to this criterion."""

    def splits(self, rows: ScoredRows) -> list[Split]:
        """Return what is learned and what is judged, by default fold after fold."""
        return fold_splits(rows)

    @abstractmethod
    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the value, and a second one that decides between equal values."""

    def value(self, rows: ScoredRows, normaliser: object, fusion: BaseFusion) -> float:
        """Return the value of one normaliser and one fusion, neither of them fitted."""
        self.check(rows)
        parts = [split.scaled(normaliser).judged(fusion) for split in self.splits(rows)]
        return self.judge(parts)[0]

"""Alarms against labels: counts that can be added up over runs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Counts:
    """Hits, false alarms, misses and normals that passed."""

    hits: int = 0
    false: int = 0
    missed: int = 0
    passed: int = 0

    @classmethod
    def of(cls, y: NDArray[np.int64], alarms: NDArray[np.bool_]) -> "Counts":
        anomalous = y < 0
        return cls(
            int((alarms & anomalous).sum()),
            int((alarms & ~anomalous).sum()),
            int((~alarms & anomalous).sum()),
            int((~alarms & ~anomalous).sum()),
        )

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.hits + other.hits,
            self.false + other.false,
            self.missed + other.missed,
            self.passed + other.passed,
        )

    @property
    def f1(self) -> float:
        return 2 * self.hits / (2 * self.hits + self.false + self.missed)

    @property
    def far(self) -> float:
        return 100 * self.false / (self.false + self.passed)

    @property
    def mar(self) -> float:
        return 100 * self.missed / (self.missed + self.hits)

"""Made-up tables whose truth is known: whose rows, at which time, on which side."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Generator = np.random.Generator
FloatArray = NDArray[np.float64]

DAY, WEEK = 86_400, 604_800
START = pd.Timestamp("2026-01-05")  # a Monday


@dataclass(frozen=True)
class Scenario:
    """Normal rows to learn from, fresh normal ones, and anomalies."""

    train: pd.DataFrame
    normal: pd.DataFrame
    anomalies: pd.DataFrame


class Machines:
    """Groups that each have centres, sizes of their noise and correlations of their own.

    Parameters
    ----------
    rng : Generator
        Source of chance.
    n : int
        How many.
    between : float
        Spread of their centres, in the spread of the rows of one.
    """

    columns = ("volume", "errors", "latency", "load")

    def __init__(self, rng: Generator, n: int, between: float = 5.0) -> None:
        m = len(self.columns)
        self.rng, self.n = rng, n
        self.centre = 100.0 + between * rng.normal(size=(n, m))
        self.spread = np.exp(0.4 * rng.normal(size=(n, m)))
        self.mix = np.linalg.cholesky(0.6 * np.eye(m) + 0.4)  # of one row, the same for all

    def rows(self, whose: NDArray[np.intp]) -> pd.DataFrame:
        """Return normal rows of so many machines, one each."""
        noise = self.rng.normal(size=(len(whose), len(self.columns))) @ self.mix.T
        values = self.centre[whose] + self.spread[whose] * noise
        table = pd.DataFrame(values, columns=list(self.columns))
        table.insert(0, "machine", np.char.add("m", whose.astype(str)).astype(object))
        return table

    def anomalies(self, whose: NDArray[np.intp], size: float = 5.0) -> pd.DataFrame:
        """Return rows of which one column is `size` spreads of their machine away."""
        table = self.rows(whose)
        column = self.rng.integers(len(self.columns), size=len(whose))
        sign = self.rng.choice([-1.0, 1.0], size=len(whose))
        for j, name in enumerate(self.columns):
            chosen = column == j
            moved = self.centre[whose, j] + sign * size * self.spread[whose, j]
            table.loc[chosen, name] = moved[chosen]
        return table

    def scenario(self, rows_each: int, fresh: int = 4_000) -> Scenario:
        """Return so many rows of every machine, and as many fresh rows and anomalies."""
        every = np.repeat(np.arange(self.n), rows_each)
        some = self.rng.integers(self.n, size=fresh)
        return Scenario(self.rows(every), self.rows(some), self.anomalies(some[: fresh // 4]))


@dataclass(frozen=True)
class Traffic:
    """Requests, errors and latency of a site: by the hour of day and day of week, and a job at 6.

    Parameters
    ----------
    rng : Generator
        Source of chance.
    gaps : float
        Share of the times at which there is no row.
    """

    rng: Generator
    gaps: float = 0.05

    def rows(self, weeks: int, first_week: int = 0) -> pd.DataFrame:
        """Return a row every ten minutes."""
        seconds = np.arange(first_week * WEEK, (first_week + weeks) * WEEK, 600)
        seconds = seconds[self.rng.random(len(seconds)) >= self.gaps]
        values = np.column_stack([usual + self._noise(spread) for usual, spread in usuals(seconds)])
        table = pd.DataFrame(values, columns=["requests", "errors", "latency"])
        table.insert(0, "when", START + pd.to_timedelta(seconds, unit="s"))
        return table

    def _noise(self, spread: FloatArray) -> FloatArray:
        return spread * self.rng.normal(size=len(spread))

    def anomalies(self, n: int, first_week: int) -> pd.DataFrame:
        """Return rows with the values of another hour, usual in themselves, at a time of day."""
        table = self.rows(2, first_week)
        own = self.rng.integers(len(table), size=n)
        moved = table.iloc[own].reset_index(drop=True)
        hour = moved["when"].dt.hour.to_numpy()
        shift = self.rng.integers(8, 17, size=n)
        seconds = ((hour + shift) % 24) * 3600.0 + 3 * DAY  # a Thursday, at another hour
        for name, (usual, spread) in zip(moved.columns[1:], usuals(seconds), strict=True):
            moved[name] = usual + self._noise(spread)
        return moved

    def hour(self, table: pd.DataFrame) -> NDArray[np.intp]:
        """Return the hour of day of every row."""
        return table["when"].dt.hour.to_numpy()


def usuals(seconds: FloatArray | NDArray[np.int64]) -> list[tuple[FloatArray, FloatArray]]:
    """Return what is usual at some seconds after a Monday's midnight: centre and spread."""
    hour = np.asarray(seconds, dtype=float) % DAY / 3600.0
    is_weekend = np.asarray(seconds, dtype=float) % WEEK >= 5 * DAY
    day = np.exp(1.5 * np.cos((hour - 14.0) / 24.0 * 2.0 * np.pi))
    level = 40.0 * day * np.where(is_weekend, 0.5, 1.0)
    job = np.exp(-(((hour - 6.0) / 0.7) ** 2))  # a batch job at six
    return [
        (level + 60.0 * job, 2.0 + 0.08 * level),
        (2.0 + 0.03 * level, 0.5 + 0.005 * level),
        (20.0 + 50.0 * job + 0.05 * level, np.full(len(hour), 2.0)),
    ]

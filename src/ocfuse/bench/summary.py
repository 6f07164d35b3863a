"""Our results by set and system, shaped as the paper's tables are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.paper import SETS
from ocfuse.bench.systems import TABLES
from ocfuse.exceptions import InvalidInputError

FloatArray = NDArray[np.float64]

#: The set whose printed figures cannot be had with the stated class (errata, point 25).
GLASS = "D4"


def table_names(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the tables of which there are records, in the paper's order."""
    there = {record["table"] for record in results}
    return [name for name in TABLES if name in there]


@dataclass(frozen=True, eq=False)
class OurTable:
    """One measure of one table, as measured.

    Parameters
    ----------
    name, measure : str
        Which table, and which measure of the records.
    sets, systems : tuple of str
        Names of the rows and of the columns.
    mean, std : ndarray of shape (n_sets, n_systems)
        Over the repetitions, in %; NaN for a gap. The deviation is that of a sample,
        NaN if there is one repetition.
    counts : ndarray of shape (n_sets, n_systems)
        Repetitions that did not fail.
    """

    name: str
    measure: str
    sets: tuple[str, ...]
    systems: tuple[str, ...]
    mean: FloatArray
    std: FloatArray
    counts: NDArray[np.int64]

    def columns(self, systems: Sequence[str]) -> FloatArray:
        """Return the means of some systems; NaN for one that was not run."""
        known = dict(zip(self.systems, self.mean.T, strict=True))
        gap = np.full(len(self.sets), np.nan)
        return np.column_stack([known.get(name, gap) for name in systems])

    def cell(self, set_name: str, system: str) -> tuple[float, float]:
        """Return mean and deviation of a cell, NaN if there is none."""
        if set_name not in self.sets or system not in self.systems:
            return np.nan, np.nan
        at = self.sets.index(set_name), self.systems.index(system)
        return float(self.mean[at]), float(self.std[at])

    @property
    def is_reproducible(self) -> NDArray[np.bool_]:
        """Which sets are not Glass."""
        return np.array([name != GLASS for name in self.sets])


def summarise(results: Sequence[dict[str, Any]], name: str, measure: str) -> OurTable:
    """Return mean and deviation over the repetitions of one measure of one table.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.
    name : str
        The table.
    measure : str
        "auc", "gmean", "best_gmean", "ap", "prevalence" or "false_alarms".

    Returns
    -------
    OurTable
        Failures are left out; what has nothing but failures is a gap.
    """
    found = [record for record in results if record["table"] == name]
    if not found:
        raise InvalidInputError(f"results must have records of the table {name!r}. Got none.")
    sets = set_order({record["set"] for record in found})
    systems = tuple(dict.fromkeys(record["row"] for record in found))
    values: dict[tuple[str, str], list[float]] = {}
    for record in found:
        if "failure" not in record:
            values.setdefault((record["set"], record["row"]), []).append(record[measure])
    cells = [[values.get((s, system), []) for system in systems] for s in sets]
    return OurTable(
        name,
        measure,
        sets,
        systems,
        np.array([[np.mean(v) if v else np.nan for v in row] for row in cells]),
        np.array([[np.std(v, ddof=1) if len(v) > 1 else np.nan for v in row] for row in cells]),
        np.array([[len(v) for v in row] for row in cells]),
    )


def set_order(there: set[str]) -> tuple[str, ...]:
    """Return names of sets in the paper's order, others after them."""
    return (*(s for s in SETS if s in there), *sorted(there - set(SETS)))


def system_of(results: Sequence[dict[str, Any]], name: str) -> dict[str, tuple[str, str]]:
    """Return the system and its group for every row of a table."""
    return {
        record["row"]: (record["system"], record["group"])
        for record in results
        if record["table"] == name
    }

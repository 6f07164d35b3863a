"""Our results shaped as the paper's tables, and beside the printed figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.paper.experiment import SETS
from ocfuse.lab.paper.published import PublishedTable, published_table
from ocfuse.lab.paper.sheet import Bold, Cell, Raw, Sheet, number
from ocfuse.lab.paper.systems import TABLES

#: Heading of systems that the paper does not have.
OURS_ONLY = "ours, not in the paper"
#: The set whose printed figures cannot be had with the stated class (errata, point 25).
GLASS = "D4"

Records: TypeAlias = Sequence[dict[str, Any]]


def table_names(results: Records) -> list[str]:
    """Return the tables of which there are records, in the paper's order."""
    there = {record["table"] for record in results}
    return [name for name in TABLES if name in there]


@dataclass(frozen=True, eq=False)
class OurTable:
    """One measure of one table, as measured, in %.

    Mean and standard deviation of a sample over the repetitions have shape (n_sets, n_systems);
    NaN is a gap, or the deviation of one repetition. `counts` are those that did not fail.
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


def summarise(results: Records, name: str, measure: str) -> OurTable:
    """Return mean and deviation over the repetitions of one measure of one table.

    The measure is "auc", "gmean", "best_gmean", "ap", "prevalence" or "false_alarms". Failures are
    left out; what has nothing but failures is a gap.
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


def system_of(results: Records, name: str) -> dict[str, tuple[str, str]]:
    """Return the system and its group for every row of a table."""
    return {
        record["row"]: (record["system"], record["group"])
        for record in results
        if record["table"] == name
    }


@dataclass(frozen=True, eq=False)
class Beside:
    """Our table, and the printed figures in its order: NaN where nothing is printed."""

    ours: OurTable
    paper: FloatArray
    paper_std: FloatArray
    is_printed: tuple[bool, ...]

    @property
    def difference(self) -> FloatArray:
        """Ours less the printed figures."""
        return self.ours.mean - self.paper

    @property
    def is_best(self) -> NDArray[np.bool_]:
        """Which of our figures are the best of their set, as they are shown."""
        return is_highest(self.ours.mean)


def beside(ours: OurTable, printed: PublishedTable) -> Beside:
    """Bring printed figures into the order of our table."""
    shape = ours.mean.shape
    mean, std = np.full(shape, np.nan), np.full(shape, np.nan)
    for i, set_name in enumerate(ours.sets):
        for j, system in enumerate(ours.systems):
            if set_name in printed.sets and system in printed.systems:
                at = printed.sets.index(set_name), printed.systems.index(system)
                mean[i, j], std[i, j] = printed.mean[at], printed.std[at]
    return Beside(ours, mean, std, tuple(name in printed.systems for name in ours.systems))


def table_beside(results: Records, name: str, measure: str, printed: str | None = None) -> Beside:
    """Bring a table of ours and the paper's together; the paper's measure may be another one."""
    return beside(summarise(results, name, measure), published_table(name, printed or measure))


def sheet_beside(both: Beside, name: str, title: str, note: str) -> Sheet:
    """Show ours, the paper's and the difference, system by system; the paper's systems first."""
    order = sorted(range(len(both.is_printed)), key=lambda j: not both.is_printed[j])
    rows: list[list[Cell]] = []
    rules: dict[int, str] = {}
    for j in order:
        if not both.is_printed[j] and OURS_ONLY not in rules.values():
            rules[len(rows)] = OURS_ONLY
        rows += _lines(both, j)
    sets, note = _marked(both.ours.sets, note)
    return Sheet(name, title, ["system", "", *sets, "mean"], rows, note, rules, _raw(both))


def plain_sheet(ours: OurTable, name: str, title: str, note: str) -> Sheet:
    """Show figures of ours that the paper does not have, one line for each system."""
    nothing = np.full(ours.mean.shape, np.nan)
    both = Beside(ours, nothing, nothing, (False,) * len(ours.systems))
    rows = [[line[0], *line[2:]] for j in range(len(ours.systems)) for line in _lines(both, j)]
    sets, note = _marked(ours.sets, note)
    return Sheet(name, title, ["system", *sets, "mean"], rows, note, {}, _raw(both))


def is_highest(table: FloatArray, digits: int = 2) -> NDArray[np.bool_]:
    """Mark the highest figures of every row, to the digits that are shown."""
    shown = np.round(table, digits)
    top = np.max(np.where(np.isnan(shown), -np.inf, shown), axis=1, keepdims=True)
    return np.asarray(shown == top)


def mean_of(values: FloatArray) -> float:
    """Return the mean of what is there, NaN if nothing is."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")


def _lines(both: Beside, j: int) -> list[list[Cell]]:
    """Return the lines of one system: ours, the paper's, the difference."""
    ours, kept = both.ours, both.ours.is_reproducible
    means = np.array([mean_of(column) for column in ours.mean[kept].T])
    is_best = [*both.is_best[:, j], is_highest(means[np.newaxis])[0, j]]
    texts = [_figure(m, s) for m, s in zip(ours.mean[:, j], ours.std[:, j], strict=True)]
    texts.append(number(means[j]))
    figures = [Bold(t) if best else t for t, best in zip(texts, is_best, strict=True)]
    lines: list[list[Cell]] = [[ours.systems[j], "ours", *figures]]
    if both.is_printed[j]:
        paper, std, gap = both.paper[:, j], both.paper_std[:, j], both.difference[:, j]
        printed = [_figure(m, s) for m, s in zip(paper, std, strict=True)]
        lines.append(["", "paper", *printed, number(mean_of(paper[kept]))])
        gaps = [number(value, sign="+") for value in gap]
        lines.append(["", "difference", *gaps, number(mean_of(gap[kept]), sign="+")])
    return lines


def _raw(both: Beside) -> Raw:
    def rounded(value: float) -> float:
        return round(float(value), 4)

    ours = both.ours
    rows = [
        (
            set_name,
            system,
            "yes" if both.is_printed[j] else "no",
            rounded(ours.mean[i, j]),
            rounded(ours.std[i, j]),
            int(ours.counts[i, j]),
            rounded(both.paper[i, j]),
            rounded(both.paper_std[i, j]),
            rounded(both.difference[i, j]),
            "yes" if both.is_best[i, j] else "no",
        )
        for j, system in enumerate(ours.systems)
        for i, set_name in enumerate(ours.sets)
    ]
    header = "set system in_the_paper ours ours_std repetitions paper paper_std difference"
    return [*header.split(), "best_of_ours"], rows


def _figure(mean: float, std: float) -> str:
    return number(mean) if np.isnan(std) else f"{number(mean)} ± {number(std)}"


def _marked(sets: tuple[str, ...], note: str) -> tuple[list[str], str]:
    """Return names of sets and the note, with a mark for Glass."""
    if GLASS in sets:
        note += (
            " † Glass: no class or plain group of classes has the printed figures "
            "(`docs/errata.md`, point 25); the mean is over the other sets."
        )
    return [f"{name} †" if name == GLASS else name for name in sets], note

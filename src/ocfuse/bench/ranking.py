"""Mean ranks, the tests behind them, and which pairs differ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.beside import OURS_ONLY
from ocfuse.bench.published import PublishedTable
from ocfuse.bench.sheet import GAP, Bold, Cell, Sheet, number, p_value
from ocfuse.bench.summary import OurTable
from ocfuse.stats import (
    PairComparison,
    critical_difference,
    mean_ranks,
    skillings_mack,
    wilcoxon_holm,
)

FloatArray = NDArray[np.float64]

#: Random tables for the p-value by Monte Carlo, and their seed.
RESAMPLES, SEED = 10_000, 0
#: Fewer systems or sets than this are not tested.
LEAST = 2


@dataclass(frozen=True, eq=False)
class Ranking:
    """The results that are ranked: those of the systems that the paper ranks.

    Parameters
    ----------
    ours : OurTable
        What was measured, our own rows included.
    printed : PublishedTable
        The table of the paper.
    """

    ours: OurTable
    printed: PublishedTable

    @property
    def systems(self) -> list[str]:
        """Systems that the paper ranks."""
        ranked = zip(self.printed.systems, self.printed.copies, strict=True)
        return [name for name, copies in ranked if copies and name in self.ours.systems]

    @property
    def extra(self) -> list[str]:
        """Our other rows: systems that the paper lacks, or has no result of."""
        return [name for name in self.ours.systems if name not in self.systems]

    @property
    def table(self) -> FloatArray:
        """Our results of these systems."""
        return self.ours.columns(self.systems)

    @property
    def printed_table(self) -> FloatArray:
        """Their printed results."""
        return np.column_stack([self.printed.column(name) for name in self.systems])

    def control(self, beginning: str = "Pure2") -> str | None:
        """Return the system whose name begins so, if it has results."""
        for name in self.systems:
            if name.startswith(beginning) and not np.isnan(self.ours.columns([name])).all():
                return name
        return None

    @property
    def best(self) -> str:
        """The system of the best mean rank in our results."""
        return self.systems[int(np.argmin(mean_ranks(self.table)))]


def rank_sheet(ranking: Ranking, name: str, title: str) -> Sheet:
    """Return mean ranks: printed, recomputed from printed results, and ours.

    Parameters
    ----------
    ranking : Ranking
        What is ranked.
    name, title : str
        Of the sheet.

    Returns
    -------
    Sheet
        The table.
    """
    systems, extra = ranking.systems, ranking.extra
    kept = [ranking.printed.systems.index(system) for system in systems]
    all_rows = mean_ranks(ranking.ours.columns([*systems, *extra]))
    own = np.full(len(extra), np.nan)
    columns = [
        np.concatenate([ranking.printed.ranks[kept], own]),
        np.concatenate([mean_ranks(ranking.printed_table), own]),
        np.concatenate([mean_ranks(ranking.table), own]),
        all_rows,
    ]
    shown = [_lowest_bold(column) for column in columns]
    rows: list[list[Cell]] = [
        [system, *(column[i] for column in shown)] for i, system in enumerate([*systems, *extra])
    ]
    header = ["system", "paper, printed", "paper, recomputed", "ours", "ours, all rows"]
    rules = {len(systems): OURS_ONLY + ", or without a printed figure"} if extra else {}
    note = (
        "Rank 1 is the best. A gap in the printed results counts as the mid-rank, as in the paper; "
        '"ours" ranks the same systems by our results, "all rows" ours among them.'
    )
    return Sheet(name, title, header, rows, note, rules)


def omnibus_sheet(ranking: Ranking, name: str, title: str) -> Sheet:
    """Return Skillings and Mack's test of the printed results and of ours.

    Parameters
    ----------
    ranking : Ranking
        What is tested.
    name, title : str
        Of the sheet.

    Returns
    -------
    Sheet
        The table.
    """
    ours = ranking.ours
    rows: list[list[Cell]] = [
        ["paper, printed", GAP, GAP, GAP, GAP, p_value(ranking.printed.p_value, 4), GAP],
        _test_row("paper, recomputed", ranking.printed_table),
        _test_row("ours", ranking.table),
        _test_row("ours, all rows", ours.columns([*ranking.systems, *ranking.extra])),
        _test_row("ours without Glass", ranking.table[ours.is_reproducible]),
    ]
    header = ["results", "sets", "systems", "T", "df", "p, chi-squared", "p, Monte Carlo"]
    note = (
        f"Monte Carlo: {RESAMPLES} tables with the ranks of each set dealt out anew, ties kept; "
        f"its least value is {1 / (RESAMPLES + 1):.1e}. A small p says that some systems differ, "
        "not which."
    )
    return Sheet(name, title, header, rows, note)


def pair_sheet(ranking: Ranking, name: str, title: str) -> Sheet:
    """Return Wilcoxon's test with Holm's correction, of Pure2 and of the best against all.

    Parameters
    ----------
    ranking : Ranking
        What is compared.
    name, title : str
        Of the sheet.

    Returns
    -------
    Sheet
        The table.
    """
    rows: list[list[Cell]] = []
    rules = {}
    for control in dict.fromkeys([ranking.control(), ranking.best]):
        if control is None:
            continue
        at = ranking.systems.index(control)
        rules[len(rows)] = f"{control} against" + (" (our best)" if control == ranking.best else "")
        ours = _pairs(ranking.table, at)
        theirs = _pairs(ranking.printed_table, at)
        for j, system in enumerate(ranking.systems):
            if j != at:
                rows.append([system, *_pair_cells(ours.get(j)), *_pair_cells(theirs.get(j))])
    header = ["against", "ours: mean difference", "won/level/lost", "p", "p, Holm"]
    header += ["paper: mean difference", "won/level/lost", "p", "p, Holm"]
    return Sheet(name, title, header, rows, _pair_note(ranking), rules)


def _pair_note(ranking: Ranking) -> str:
    n_sets, k = len(ranking.ours.sets), len(ranking.systems)
    gap = critical_difference(k, n_sets)
    ranks = mean_ranks(ranking.table)
    near = [s for s, r in zip(ranking.systems, ranks, strict=True) if r <= ranks.min() + gap]
    return (
        "Wilcoxon's signed-rank test over the sets, exact, level sets split; Holm's correction "
        f"within each block. With {n_sets} sets p is never below {2.0 ** (1 - n_sets):.2g}. "
        f"Nemenyi, all pairs at .05: mean ranks of {k} systems on {n_sets} sets must differ by "
        f"{gap:.2f}; in our results this cannot tell {len(near)} of {k} from the best: "
        f"{', '.join(near)}."
    )


def _test_row(label: str, table: FloatArray) -> list[Cell]:
    informative = (~np.isnan(table)).sum(axis=1) >= LEAST
    table = table[informative]
    if not len(table):
        return [label, *[GAP] * 6]
    found = skillings_mack(table, n_resamples=RESAMPLES, random_state=SEED)
    return [
        label,
        str(found.n_sets),
        str(table.shape[1]),
        number(found.statistic, 4),
        str(found.df),
        p_value(found.p_value, 4),
        p_value(found.resampled_p_value, 4),
    ]


def _pairs(table: FloatArray, control: int) -> dict[int, PairComparison]:
    met = ~np.isnan(table[:, [control]] - table)
    met[:, control] = False
    return {pair.second: pair for pair in wilcoxon_holm(table, control)} if met.any() else {}


def _pair_cells(pair: PairComparison | None) -> list[Cell]:
    if pair is None:
        return [GAP] * 4
    return [
        number(pair.mean_difference, sign="+"),
        f"{pair.wins}/{pair.ties}/{pair.losses}",
        p_value(pair.p_value),
        p_value(pair.adjusted_p_value),
    ]


def _lowest_bold(column: FloatArray) -> Sequence[Cell]:
    lowest = np.nanmin(column) if not np.isnan(column).all() else np.nan
    return [Bold(number(rank)) if rank == lowest else number(rank) for rank in column]

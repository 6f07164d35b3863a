"""Part "dirty": anomalies hidden among the training rows."""

import numpy as np

from benchmarks.accuracy.results import Results, means, run_variants
from benchmarks.accuracy.sets import all_sets
from benchmarks.accuracy.splits import can_be_dirty
from benchmarks.accuracy.systems import DEFAULT
from benchmarks.accuracy.tables import against_default, failure_table
from benchmarks.report import Report, Table, Target
from ocfuse.lab.paper import Cell
from ocfuse.stats import mean_ranks

SHARES = (0.0, 0.01, 0.05, 0.10)
SEEDS = 2

METHOD = """
{seeds} splits as in part "pure", with 0, 1, 5 and 10 % anomalies among the training rows, unknown
to all systems. The normals to learn from and the rows to tell apart are the same for every share;
where anomalies are few, fewer normals are learned from, so that 10 % can be hidden and 20 remain
for the test. The validation normals, which set the threshold, are clean. LSCP is left out for its
cost.
"""


def run(quick: bool, jobs: int) -> Report:
    seeds = range(1 if quick else SEEDS)
    names = [name for name in all_sets(quick) if can_be_dirty(name)]
    cells = [Cell("dirty", str(s), name, seed) for name in names for s in SHARES for seed in seeds]
    variants = run_variants(cells, jobs)
    found = {share: variants[str(share)] for share in SHARES}
    return Report(
        "Anomalies hidden in the training rows",
        METHOD.format(seeds=len(seeds)).strip(),
        targets(found),
        [
            overview("auc", "AUC, %", found),
            overview("gmean", "G-mean, %", found),
            per_set(found),
            *(failure_table(results) for results in found.values() if results.failures),
        ],
        {str(share): results.record(("auc",)) for share, results in found.items()},
    )


def drop(found: dict[float, Results], name: str) -> float:
    """Return what a system loses from clean to the dirtiest rows, in points of mean AUC."""
    clean, dirtiest = (found[share].column(name) for share in (SHARES[0], SHARES[-1]))
    return float(np.nanmean(clean - dirtiest))


def targets(found: dict[float, Results]) -> list[Target]:
    """Return whether the default is first when dirty, and loses least among ours."""
    results = found[SHARES[-1]]
    names = [DEFAULT, *results.of("member", "rule", "rival")]
    mean = means(results.table(names))
    rival = 1 + int(np.argmax(mean[1:]))
    rules = results.of("rule")
    steadiest = min(rules, key=lambda name: drop(found, name))
    return [
        Target(
            f"first in mean AUC with {SHARES[-1]:.0%} hidden anomalies",
            f"{mean[0]:.2f}; next {names[rival]}, {mean[rival]:.2f}",
            bool(mean[0] > mean[rival]),
        ),
        Target(
            "the default loses less than every rule",
            f"{drop(found, DEFAULT):.2f}; {steadiest} {drop(found, steadiest):.2f}",
            drop(found, DEFAULT) < drop(found, steadiest),
        ),
    ]


def overview(measure: str, title: str, found: dict[float, Results]) -> Table:
    """Compare all systems at every share, the best at the highest share first."""
    last = found[SHARES[-1]]
    names = last.systems
    columns = {share: means(results.table(names, measure)) for share, results in found.items()}
    ranks = mean_ranks(last.table(names, measure))
    rows = []
    for i in np.argsort(-columns[SHARES[-1]]):
        name = names[i]
        rows.append(
            [
                f"**{name}**" if name == DEFAULT else name,
                last.groups[name],
                *(f"{columns[share][i]:.2f}" for share in SHARES),
                f"{columns[SHARES[0]][i] - columns[SHARES[-1]][i]:.2f}",
                f"{ranks[i]:.2f}",
                *against_default(last, name, measure),
            ]
        )
    header = ["system", "kind", *(f"{share:.0%}" for share in SHARES), "loss"]
    header += [f"rank at {SHARES[-1]:.0%}", "against it", "p"]
    note = f"{len(last.sets)} sets. Against it and p: the default with {SHARES[-1]:.0%} hidden."
    return Table(title, header, rows, note)


def per_set(found: dict[float, Results]) -> Table:
    """Show what the default does set by set, beside the sum rule."""
    names = [DEFAULT, "sum"]
    header = ["set", *(f"{name}, {share:.0%}" for name in names for share in SHARES)]
    rows = []
    for i, set_name in enumerate(found[SHARES[0]].sets):
        values = [found[share].column(name)[i] for name in names for share in SHARES]
        rows.append([set_name, *(f"{value:.1f}" for value in values)])
    return Table("AUC, %, set by set", header, rows)

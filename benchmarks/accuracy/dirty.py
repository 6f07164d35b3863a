"""Part "dirty": anomalies hidden among the training rows."""

import numpy as np

from benchmarks.accuracy.results import Results, run_variants
from benchmarks.accuracy.sets import all_tasks, finite_means
from benchmarks.accuracy.splits import can_be_dirty
from benchmarks.accuracy.systems import DEFAULT
from benchmarks.accuracy.tables import against_default, failure_table
from benchmarks.report import Report, Table, Target
from ocfuse.lab.paper import Cell
from ocfuse.report.words import count
from ocfuse.stats import mean_ranks

SHARES = (0.0, 0.01, 0.05, 0.10)
SEEDS = 1
#: Points of AUC that the default may be below the best rule.
NEAR = 0.3

METHOD = """
{seeds} of each task that has enough anomalies, as in part "families", with 0, 1, 5 and 10 %
anomalies among the training rows, unknown to all systems. The normals to learn from and the rows
to tell apart are the same for every share; where anomalies are few, fewer normals are learned from,
so that 10 % can be hidden and 20 remain for the test. The validation normals, which set the
threshold, are clean. LSCP and SUOD are left out for their cost.
"""


def run(quick: bool, jobs: int) -> Report:
    seeds = range(1 if quick else SEEDS)
    names = [name for name in all_tasks(quick) if can_be_dirty(name)]
    cells = [Cell("dirty", str(s), name, seed) for name in names for s in SHARES for seed in seeds]
    variants = run_variants(cells, jobs)
    found = {share: variants[str(share)].by_family() for share in SHARES}
    return Report(
        "Anomalies hidden in the training rows",
        METHOD.format(seeds=count(len(seeds), "split")).strip(),
        targets(found),
        [
            overview("auc", "AUC, %", found),
            overview("gmean", "G-mean, %", found),
            per_family(found),
            *(failure_table(results) for results in found.values() if results.failures),
        ],
        {str(share): results.record(("auc",)) for share, results in found.items()},
    )


def targets(found: dict[float, Results]) -> list[Target]:
    """Return how far the default is from the best rule, share by share."""
    made = []
    for share, results in found.items():
        rules = results.of("rule")
        means = finite_means(results.table([DEFAULT, *rules]))
        best = int(np.argmax(means[1:]))
        gain = means[0] - means[1 + best]
        made.append(
            Target(
                f"at most {NEAR} below the best rule with {share:.0%} hidden anomalies",
                f"{means[0]:.2f}; {gain:+.2f} against {rules[best]}",
                bool(gain >= -NEAR),
            )
        )
    return made


def overview(measure: str, title: str, found: dict[float, Results]) -> Table:
    """Compare all systems at every share, the best at the highest share first."""
    last = found[SHARES[-1]]
    names = last.systems
    columns = {s: finite_means(results.table(names, measure)) for s, results in found.items()}
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
    header += [f"rank at {SHARES[-1]:.0%}", "wins/ties/losses of the default", "p"]
    note = f"{len(last.sets)} families. The last two columns: {SHARES[-1]:.0%} hidden."
    return Table(title, header, rows, note)


def per_family(found: dict[float, Results]) -> Table:
    """Show what the default does family by family, beside the sum rule."""
    names = [DEFAULT, "sum"]
    header = ["family", *(f"{name}, {share:.0%}" for name in names for share in SHARES)]
    rows = []
    for i, family in enumerate(found[SHARES[0]].sets):
        values = [found[share].column(name)[i] for name in names for share in SHARES]
        rows.append([family, *(f"{value:.1f}" for value in values)])
    return Table("AUC, %, family by family", header, rows)

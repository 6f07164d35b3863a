"""Part "families": 172 one-class tasks of 64 families, none judged by what was chosen on it."""

import numpy as np

from benchmarks.accuracy.results import Results, run_variants
from benchmarks.accuracy.sets import all_sets, all_tasks, family, family_means
from benchmarks.accuracy.systems import DEFAULT, SUM
from benchmarks.accuracy.tables import failure_table
from benchmarks.estimator.tables import FloatArray
from benchmarks.report import Report, Table, Target
from ocfuse.lab.paper import Cell
from ocfuse.report.words import count
from ocfuse.stats import compare, mean_ranks

SEEDS = 5
#: There are no variants.
PLAIN = "pure"
#: What is shown of every system, by its name in the results.
SHOWN = {"auc": "AUC", "ap": "AUC-PR", "hits_1": "found at 1 %", "hits_5": "found at 5 %"}
#: Targets: gain on the sum, its p-value, share of the way to the best member, the worst family.
GAIN, SURE, CLOSED, WORST = 0.7, 0.001, 0.25, -3.0
#: p-value of the default against each member, rule and rival.
LEVEL = 0.01

METHOD = """
{seeds} of each of {tasks} one-class tasks. The normals, at most 1,000, are split into 60/20/20 for
learning, threshold and test; further normals, up to 1,000 in all, and all anomalies, up to 1,000,
join the test. Gaps are filled by training medians; rivals get standardised rows. Every system sees
the same rows. All members, rules and fusions share the members of the default detector, fitted
once; `FusedDetector()` is fitted anew, as a user would. The five detectors of PyOD are LOF 10 and
30, kNN 5, isolation forest and a mixture of one component; AOM and MOA, which need equal buckets,
have LOF 20 as a sixth. LSCP, whose cost would be most of the whole, is run on the first split only.

Tasks that share rows or a source are one family; their results are averaged first, and every mean,
rank and test is over the {families} families. Trust that was learned from data sets is judged on
families that it was not learned from: `benchmarks/accuracy/families.json` names the fold of every
family, and `trust` has the coefficients learned from the other folds. Found at 1 % (5 %): anomalies
below the score that 1 % (5 %) of the test normals are below. The last column has the mean over the
34 sets that earlier defaults were chosen on.
"""


def run(quick: bool, jobs: int) -> Report:
    tasks = all_tasks(quick)
    seeds = range(1 if quick else SEEDS)
    cells = [Cell("families", PLAIN, name, seed) for seed in seeds for name in tasks]
    results = run_variants(cells, jobs)[PLAIN]
    found = results.by_family()
    best = family_means(results.sets, results.best_member)
    chosen_on = results.take(all_sets(quick=False))
    return Report(
        "Learning from normals only: families that nothing was chosen on",
        METHOD.format(
            seeds=count(len(seeds), "split"), tasks=len(tasks), families=len(found.sets)
        ).strip(),
        targets(found, best),
        [
            overview(found, best, chosen_on),
            per_family(found, best, results),
            failure_table(results),
        ],
        results.record(("auc", "ap", "hits_1", "hits_5")),
    )


def targets(found: Results, best: FloatArray) -> list[Target]:
    """Return the promises of the default, each with what was found."""
    ours, plain = found.column(DEFAULT), found.column(SUM)
    against = compare(ours, plain)
    closed = (ours - plain).mean() / (best - plain).mean()
    worst = int(np.argmin(ours - plain))
    others = found.of("member", "rule", "rival")
    tests = {name: compare(ours, found.column(name)) for name in others}
    nearest = min(tests, key=lambda name: tests[name].mean_difference)
    unsure = max(others, key=lambda n: tests[n].p_value if tests[n].mean_difference > 0 else 2)
    rank = mean_ranks(found.table([DEFAULT, *others]))
    second = 1 + int(np.argmin(rank[1:]))
    return [
        Target(
            f"gain on the sum of its own members >= {GAIN}, p < {SURE:g}",
            f"{against.mean_difference:+.2f}, p = {against.p_value:.2g}",
            bool(against.mean_difference >= GAIN and against.p_value < SURE),
        ),
        Target(
            "first in mean AUC among every member, rule and rival",
            f"{tests[nearest].mean_difference:+.2f} against {nearest}",
            bool(tests[nearest].mean_difference > 0),
        ),
        Target(
            "first in mean rank among every member, rule and rival",
            f"{rank[0]:.2f}; next {others[second - 1]}, {rank[second]:.2f}",
            bool(rank[0] < rank[second]),
        ),
        Target(
            f"p < {LEVEL:g} against each of them",
            f"largest p = {tests[unsure].p_value:.2g}, {tests[unsure].mean_difference:+.2f} "
            f"({unsure})",
            bool(tests[unsure].p_value < LEVEL and tests[unsure].mean_difference > 0),
        ),
        Target(
            f"{CLOSED:.0%} of the way from the sum to the best member of each task",
            f"{closed:.0%}",
            bool(closed >= CLOSED),
        ),
        Target(
            f"no family more than {-WORST:g} points below the sum",
            f"{(ours - plain)[worst]:+.1f} on {found.sets[worst]}",
            bool((ours - plain)[worst] >= WORST),
        ),
    ]


def overview(found: Results, best: FloatArray, chosen_on: Results) -> Table:
    """Compare all systems over the families, the best mean AUC first."""
    names = found.systems
    ranks = dict(zip(names, mean_ranks(found.table(names)), strict=True))
    ours, plain = found.column(DEFAULT), found.column(SUM)
    rows = []
    for name in sorted(names, key=lambda name: -np.nanmean(found.column(name))):
        auc = found.column(name)
        test = None if name == DEFAULT else compare(ours, auc)
        means = [f"{np.nanmean(found.column(name, measure)):.2f}" for measure in SHOWN]
        rows.append(
            [
                f"**{name}**" if name == DEFAULT else name,
                found.groups[name],
                *means,
                f"{ranks[name]:.1f}",
                "" if test is None else f"{test.mean_difference:+.2f}",
                "" if test is None else f"{test.wins}/{test.ties}/{test.losses}",
                "" if test is None else f"{test.p_value:.2g}",
                f"{np.nanmin(auc - plain):+.1f}",
                f"{np.nanmean(chosen_on.column(name)):.2f}",
            ]
        )
    rows.append(["*best member of each task*", "", f"{best.mean():.2f}", *[""] * 9])
    header = ["system", "kind", *SHOWN.values(), "rank", "default gains", "wins/ties/losses", "p"]
    header += ["worst against sum", "34 sets (chosen on these)"]
    note = "Means over the families, in %. p: Wilcoxon over the families, both-sided."
    return Table(f"All systems over {len(found.sets)} families", header, rows, note)


def per_family(found: Results, best: FloatArray, results: Results) -> Table:
    """Show the default beside the sum and the best member, family by family."""
    columns = [found.column(DEFAULT), found.column(SUM), best]
    own = [family(name) for name in results.sets]
    gain = columns[0] - columns[1]
    rows = [
        [name, str(own.count(name)), *(f"{c[i]:.1f}" for c in columns), f"{gain[i]:+.1f}"]
        for i, name in enumerate(found.sets)
    ]
    header = ["family", "tasks", DEFAULT, SUM, "best member", "gain"]
    return Table("AUC, %, family by family", header, rows)

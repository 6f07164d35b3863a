"""Part "labels": 5, 10 and 20 labelled anomalies beside the normals."""

import numpy as np

from benchmarks.accuracy.results import Results, run_variants
from benchmarks.accuracy.rivals import LABELLED
from benchmarks.accuracy.sets import all_tasks, finite_means, one_of_each
from benchmarks.accuracy.splits import can_be_labelled
from benchmarks.accuracy.systems import DEFAULT, PURE_DEFAULT
from benchmarks.accuracy.tables import against_default, failure_table
from benchmarks.report import Report, Table, Target
from ocfuse.lab.paper import Cell
from ocfuse.report.words import count as count_of
from ocfuse.stats import mean_ranks, skillings_mack

COUNTS = (5, 10, 20)
SEEDS = 1
#: With so many labels the default must be first.
PROMISED = 10

METHOD = """
{seeds} of one task of each family that has the anomalies: 60 % of the normals and some labelled
anomalies to learn from; the test is the same for every number of labels and has at least 20
anomalies. The anomalies of a task are parted into four kinds by k-means on standardised features,
and the labelled ones are drawn from half of the kinds (more where they are too few): "new kinds" is
the AUC on anomalies of a kind of which none was labelled, where there are five or more. The
XGBOD-like rival is scikit-learn's histogram gradient boosting on features and out-of-fold scores of
our members{xgbod}. Means are over families, and the default without labels is judged on families
that its trust was not learned from, as in part "families".
"""


def run(quick: bool, jobs: int) -> Report:
    seeds = range(1 if quick else SEEDS)
    cells = [
        Cell("labels", str(count), name, seed)
        for name in one_of_each(all_tasks(quick))
        for count in COUNTS
        if can_be_labelled(name, count)
        for seed in seeds
    ]
    variants = run_variants(cells, jobs)
    found = {count: variants[str(count)].by_family() for count in COUNTS}
    has_own = "PyOD XGBOD" in LABELLED
    missing = "" if has_own else "; PyOD's own needs xgboost, which is not installed"
    return Report(
        "With labelled anomalies",
        METHOD.format(seeds=count_of(len(seeds), "split"), xgbod=missing).strip(),
        targets(found[PROMISED]),
        [
            *(overview(count, results) for count, results in found.items()),
            per_family(found[PROMISED]),
            *(failure_table(results) for results in found.values() if results.failures),
        ],
        {str(count): results.record() for count, results in found.items()},
    )


def targets(results: Results) -> list[Target]:
    """Return whether the default is first, on all anomalies and on new kinds."""
    found = []
    for measure, words in {"auc": "", "auc_new": ", new kinds of anomalies"}.items():
        mean = finite_means(results.table(results.systems, measure))
        ours = mean[results.systems.index(DEFAULT)]
        order = [i for i in np.argsort(-mean) if results.systems[i] != DEFAULT]
        rival = order[0]
        found.append(
            Target(
                f"first in mean AUC with {PROMISED} labels{words}",
                f"{ours:.2f}; next {results.systems[rival]}, {mean[rival]:.2f}",
                bool(ours > mean[rival]),
            )
        )
    mean = finite_means(results.table([DEFAULT, PURE_DEFAULT], "auc_new"))
    return [
        *found,
        Target(
            f"new kinds do not suffer from {PROMISED} labels of others",
            f"{mean[0]:.2f} with, {mean[1]:.2f} without labels",
            bool(mean[0] >= mean[1]),
        ),
    ]


def overview(count: int, results: Results) -> Table:
    """Compare all systems with so many labels."""
    names = results.systems
    mean, new = finite_means(results.table(names)), finite_means(results.table(names, "auc_new"))
    ranks = mean_ranks(results.table(names))
    rows = []
    for i in np.argsort(-mean):
        name = names[i]
        gmean, ap, fit = (
            finite_means(results.table([name], measure))[0] for measure in ("gmean", "ap", "fit")
        )
        rows.append(
            [
                f"**{name}**" if name == DEFAULT else name,
                f"{mean[i]:.2f}",
                f"{ranks[i]:.2f}",
                *against_default(results, name),
                f"{new[i]:.2f}",
                *against_default(results, name, "auc_new"),
                f"{gmean:.1f}",
                f"{ap:.1f}",
                f"{fit:.2f} s",
            ]
        )
    test = skillings_mack(results.table(names))
    header = ["system", "AUC", "rank", "against it", "p", "new kinds", "against it", "p"]
    with_new = np.isfinite(results.column(DEFAULT, "auc_new")).sum()
    note = (
        f"{len(results.sets)} families, {with_new} with new kinds. "
        f"Mean prevalence {results.prevalence.mean():.1f} %. Skillings-Mack in AUC: "
        f"T = {test.statistic:.1f}, p = {test.p_value:.2g}."
    )
    return Table(f"{count} labels", [*header, "G-mean", "AUC-PR", "fit"], rows, note)


def per_family(results: Results) -> Table:
    """Show AUC and, after a slash, AUC on new kinds, family by family."""
    rows = []
    auc, new = results.table(results.systems), results.table(results.systems, "auc_new")
    for name, every, unseen in zip(results.sets, auc, new, strict=True):
        pairs = zip(every, unseen, strict=True)
        rows.append(
            [name, *(f"{a:.1f}" + ("" if np.isnan(b) else f" / {b:.1f}") for a, b in pairs)]
        )
    return Table(
        f"{PROMISED} labels, AUC / AUC on new kinds, %", ["family", *results.systems], rows
    )

"""Part "labels": 5, 10 and 20 labelled anomalies beside the normals."""

import numpy as np

from benchmarks.accuracy.results import Results, means, run_variants
from benchmarks.accuracy.rivals import LABELLED
from benchmarks.accuracy.sets import all_sets
from benchmarks.accuracy.splits import can_be_labelled
from benchmarks.accuracy.systems import DEFAULT, PURE_DEFAULT
from benchmarks.accuracy.tables import against_default, failure_table
from benchmarks.report import Report, Table, Target
from ocfuse.lab.paper import Cell
from ocfuse.stats import mean_ranks, skillings_mack

COUNTS = (5, 10, 20)
SEEDS = 3
#: With so many labels the default must be first.
PROMISED = 10

METHOD = """
{seeds} splits, 60 % of the normals and some labelled anomalies to learn from; the test is the same
for every number of labels and has at least 20 anomalies. The anomalies of a set are parted into
four kinds by k-means on standardised features, and the labelled ones are drawn from half of the
kinds (more where they are too few): "new kinds" is the AUC on anomalies of a kind of which none was
labelled, where there are five or more. The XGBOD-like rival is scikit-learn's histogram gradient
boosting on features and out-of-fold scores of our members{xgbod}. Threshold, standardising and
seconds as in part "pure".
"""


def run(quick: bool, jobs: int) -> Report:
    seeds = range(1 if quick else SEEDS)
    cells = [
        Cell("labels", str(count), name, seed)
        for name in all_sets(quick)
        for count in COUNTS
        if can_be_labelled(name, count)
        for seed in seeds
    ]
    variants = run_variants(cells, jobs)
    found = {count: variants[str(count)] for count in COUNTS}
    has_own = "PyOD XGBOD" in LABELLED
    missing = "" if has_own else "; PyOD's own needs xgboost, which is not installed"
    return Report(
        "With labelled anomalies",
        METHOD.format(seeds=len(seeds), xgbod=missing).strip(),
        targets(found[PROMISED]),
        [
            *(overview(count, results) for count, results in found.items()),
            per_set(found[PROMISED]),
            *(failure_table(results) for results in found.values() if results.failures),
        ],
        {str(count): results.record() for count, results in found.items()},
    )


def targets(results: Results) -> list[Target]:
    """Return whether the default is first, on all anomalies and on new kinds."""
    found = []
    for measure, words in {"auc": "", "auc_new": ", new kinds of anomalies"}.items():
        mean = means(results.table(results.systems, measure))
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
    mean = means(results.table([DEFAULT, PURE_DEFAULT], "auc_new"))
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
    mean, new = means(results.table(names)), means(results.table(names, "auc_new"))
    ranks = mean_ranks(results.table(names))
    rows = []
    for i in np.argsort(-mean):
        name = names[i]
        gmean, ap, fit = (
            means(results.table([name], measure))[0] for measure in ("gmean", "ap", "fit")
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
    note = (
        f"{len(results.sets)} sets, {np.isfinite(results.column(DEFAULT, 'auc_new')).sum()} with "
        f"new kinds. Mean prevalence {results.prevalence.mean():.1f} %. Skillings-Mack in AUC: "
        f"T = {test.statistic:.1f}, p = {test.p_value:.2g}."
    )
    return Table(f"{count} labels", [*header, "G-mean", "AUC-PR", "fit"], rows, note)


def per_set(results: Results) -> Table:
    """Show AUC and, after a slash, AUC on new kinds, set by set."""
    rows = []
    auc, new = results.table(results.systems), results.table(results.systems, "auc_new")
    for name, every, unseen in zip(results.sets, auc, new, strict=True):
        pairs = zip(every, unseen, strict=True)
        rows.append(
            [name, *(f"{a:.1f}" + ("" if np.isnan(b) else f" / {b:.1f}") for a, b in pairs)]
        )
    return Table(f"{PROMISED} labels, AUC / AUC on new kinds, %", ["set", *results.systems], rows)

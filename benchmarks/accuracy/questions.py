"""Part "questions": what the paper asks, on all families: loss, place, anomalies, norm, solver."""

import numpy as np

from benchmarks.accuracy.paper_fusions import BY_BOTH, FUSIONS, MODES, SUM, system_name
from benchmarks.accuracy.results import Results, run_variants
from benchmarks.accuracy.sets import all_tasks
from benchmarks.accuracy.splits import can_be_labelled
from benchmarks.accuracy.tables import failure_table
from benchmarks.estimator.tables import FloatArray
from benchmarks.report import Report, Table
from ocfuse.lab.paper import Cell
from ocfuse.report.words import count
from ocfuse.stats import compare
from ocfuse.tuning.search import PAPER_P

SEEDS = 1
LABELS = 10
RESAMPLES = 10_000
#: Shortest time, in seconds, that is told from none.
CLOCK = 1e-4

METHOD = """
{seeds} of each of {tasks} one-class tasks of {families} families that have {labels} anomalies to
spare. The members are those of the pool "paper" (SVDD, GP, KPCA, GMM), fitted once to 60 % of at
most 1,000 normals; all fusions weigh the same min-max scores. Weights are learned from normals
alone, from normals and anomalies made up, or from normals and {labels} real anomalies; the test is
the same for all. "Global" is one weight vector, "local" has weights and a norm at every place.
Nothing is tuned: every norm of the paper is shown, and differences are of the means over the nine
norms and at p = 2. AUC in %, means over families; 95 % intervals by bootstrap over the families.
Effect: the mean difference over its standard deviation between families (0.2 is called small, 0.5
medium, 0.8 large). p by Wilcoxon, both-sided, not corrected for the number of questions.
"""


def run(quick: bool, jobs: int) -> Report:
    seeds = range(1 if quick else SEEDS)
    tasks = [name for name in all_tasks(quick) if can_be_labelled(name, LABELS)]
    cells = [Cell("questions", str(LABELS), name, seed) for seed in seeds for name in tasks]
    results = run_variants(cells, jobs)[str(LABELS)]
    found = results.by_family()
    return Report(
        "The paper's questions, on all families",
        METHOD.format(
            seeds=count(len(seeds), "split"),
            tasks=len(tasks),
            families=len(found.sets),
            labels=LABELS,
        ).strip(),
        [],
        [answers(found), norms(found), speeds(found), failure_table(results)],
        found.record(("auc",)),
    )


def answers(found: Results) -> Table:
    """Answer each question by a difference with its interval."""
    rows = []
    for mode in MODES:
        for first, second in (
            ("local hinge", "global hinge"),
            ("global hinge", "global squares"),
            ("global hinge", SUM),
            ("local hinge", SUM),
        ):
            pair = [_over_norms(found, kind, mode) for kind in (first, second)]
            rows.append([f"{first} - {second}", f"{mode}, all p", *_difference(*pair)])
            pair = [_column(found, kind, mode, 2.0) for kind in (first, second)]
            rows.append([f"{first} - {second}", f"{mode}, p = 2", *_difference(*pair)])
    for kind in FUSIONS:
        for mode in MODES[1:]:
            pair = [_over_norms(found, kind, m) for m in (mode, MODES[0])]
            rows.append([f"{mode} - normals", f"{kind}, all p", *_difference(*pair)])
    for kind in FUSIONS:
        for mode in MODES:
            pair = [_column(found, kind, mode, p) for p in (PAPER_P[0], PAPER_P[-1])]
            rows.append(["p = 32/31 - p = 100", f"{kind}, {mode}", *_difference(*pair)])
    for mode in MODES:
        for p in BY_BOTH:
            pair = [
                found.column(system_name("local hinge", mode, p, solver))
                for solver in ("interior point", "Frank-Wolfe")
            ]
            rows.append(
                ["interior point - Frank-Wolfe", f"{mode}, p = {p:.4g}", *_difference(*pair)]
            )
    header = ["difference", "of what", "AUC", "95 % interval", "effect"]
    return Table("Answers", [*header, "wins/ties/losses", "p"], rows)


def speeds(found: Results) -> Table:
    """Show how long Frank-Wolfe takes beside the interior point, on the same problems."""
    rows = []
    for mode in MODES:
        for p in BY_BOTH:
            slow, fast = (
                found.column(system_name("local hinge", mode, p, solver), "fit")
                for solver in ("Frank-Wolfe", "interior point")
            )
            logs = np.log(np.maximum(slow, CLOCK) / np.maximum(fast, CLOCK))
            rows.append([mode, f"{p:.4g}", f"{np.exp(logs.mean()):.2f}"])
    header = ["learned from", "p", "time of Frank-Wolfe / interior point"]
    return Table("CPU time of the local weights, geometric mean of the families", header, rows)


def norms(found: Results) -> Table:
    """Show the mean AUC of every fusion, norm by norm."""
    rows = []
    for mode in MODES:
        for kind in FUSIONS:
            values = [float(np.mean(_column(found, kind, mode, p))) for p in PAPER_P]
            rows.append([kind, mode, *(f"{v:.2f}" for v in values), f"{np.mean(values):.2f}"])
    plain = float(found.column(SUM).mean())
    rows.append([SUM, "nothing", *[""] * len(PAPER_P), f"{plain:.2f}"])
    header = ["fusion", "learned from", *(f"p = {p:.4g}" for p in PAPER_P), "mean"]
    return Table("AUC, %, norm by norm", header, rows)


def _column(found: Results, kind: str, mode: str, p: float) -> FloatArray:
    return found.column(SUM if kind == SUM else system_name(kind, mode, p))


def _over_norms(found: Results, kind: str, mode: str) -> FloatArray:
    return np.asarray(np.mean([_column(found, kind, mode, p) for p in PAPER_P], axis=0))


def _difference(ours: FloatArray, theirs: FloatArray) -> list[str]:
    gain = ours - theirs
    test = compare(ours, theirs)
    drawn = np.random.default_rng(0).integers(len(gain), size=(RESAMPLES, len(gain)))
    low, high = np.quantile(gain[drawn].mean(axis=1), [0.025, 0.975])
    return [
        f"{gain.mean():+.2f}",
        f"{low:+.2f} to {high:+.2f}",
        f"{gain.mean() / max(gain.std(ddof=1), 1e-9):+.2f}",
        f"{test.wins}/{test.ties}/{test.losses}",
        f"{test.p_value:.2g}",
    ]

"""Part "synthetic": growth with the number of rows."""

from statistics import median

from benchmarks.estimator.systems import SYSTEMS
from benchmarks.estimator.tables import synthetic_task
from benchmarks.estimator.trial import Trial, one_row_seconds, run_trial, summary
from benchmarks.report import Data, Report, Table, Target

#: Rows, and how often.
SIZES = {1_000: 3, 5_000: 3, 20_000: 1}
AT, FACTOR = 5_000, 5.0
RIVAL, OURS = "PyOD LSCP", "FusedDetector, the PyOD members"
ONE_ROW_CALLS = 20


def run(quick: bool) -> Report:
    trials: dict[int, list[Trial]] = {}
    one_row: Data = {}
    for n, seeds in ({1_000: 1} if quick else SIZES).items():
        trials[n] = []
        for seed in range(seeds):
            task = synthetic_task(n, seed=seed)
            for name in SYSTEMS:
                trial, system = run_trial(name, str(n), task, seed)
                trials[n].append(trial)
                if system is not None and seed == 0:
                    one_row[f"{n} {name}"] = one_row_seconds(system, task, ONE_ROW_CALLS)
                print(trial, flush=True)
    return Report(
        "Growth with the number of rows",
        "Four regions in 10 dimensions, n normal rows to learn from and n rows to score, of which "
        "a tenth are anomalies. The members are those of part uci. CPU seconds on one thread, "
        f"median over the draws; one row: median wall time of {ONE_ROW_CALLS} calls.",
        targets(trials),
        [table(n, trials[n], one_row) for n in trials],
        {"trials": [t.record() for found in trials.values() for t in found], "one_row": one_row},
    )


def cost(trials: list[Trial], name: str) -> float:
    return summary([t for t in trials if t.system == name], lambda t: t.fit + t.score)


def targets(trials: dict[int, list[Trial]]) -> list[Target]:
    if AT not in trials:
        return []
    ratio = cost(trials[AT], RIVAL) / cost(trials[AT], OURS)
    own = cost(trials[AT], RIVAL) / cost(trials[AT], "FusedDetector, own counterparts")
    return [
        Target(
            f"fit + score {FACTOR:g} times faster than LSCP with the same members, n = {AT:,}",
            f"{ratio:.1f} times ({own:.1f} with our own counterparts)",
            ratio >= FACTOR,
        )
    ]


def table(n: int, trials: list[Trial], one_row: Data) -> Table:
    rows = []
    for name in SYSTEMS:
        chosen = [trial for trial in trials if trial.system == name]
        single = one_row.get(f"{n} {name}")
        rows.append(
            [
                name,
                f"{summary(chosen, lambda t: t.fit):.2f} s",
                f"{summary(chosen, lambda t: t.score):.2f} s",
                f"{1e3 * median(single):.1f} ms" if single else "failed",
                f"{cost(trials, RIVAL) / cost(trials, name):.1f}",
                f"{summary(chosen, lambda t: t.auc):.1f}",
            ]
        )
    header = ["system", "fit", f"score {n:,} rows", "one row", "LSCP / this", "AUC"]
    return Table(f"n = {n:,}", header, rows)

"""Part "uci": the ten sets of the paper, ten splits each."""

import numpy as np

from benchmarks.estimator.systems import SYSTEMS
from benchmarks.estimator.tables import UCI, uci_task
from benchmarks.estimator.trial import Trial, run_trial, summary
from benchmarks.report import Report, Table, Target

SEEDS = 10
OURS = [name for name in SYSTEMS if name.startswith("Fused")]


def run(quick: bool) -> Report:
    trials = []
    for seed in range(1 if quick else SEEDS):
        for task_name in UCI:
            task = uci_task(task_name, seed)
            for name in SYSTEMS:
                trial, _ = run_trial(name, task_name, task, seed)
                trials.append(trial)
        print(f"split {seed + 1} done", flush=True)
    failed = [trial for trial in trials if trial.failure]
    ours = [trial for trial in failed if trial.system in OURS]
    n_ours = sum(trial.system in OURS for trial in trials)
    return Report(
        "Ten UCI sets",
        f"{max(t.seed for t in trials) + 1} splits: 70 % of the normals to learn from, the other "
        "normals and all anomalies to tell apart; no label, no tuning. The five members of PyOD "
        "are LOF 10 and 30, kNN 5, isolation forest and a mixture of one component. Seconds are "
        "CPU time on one thread. Means leave failures out.",
        [Target("zero failures of FusedDetector", f"{len(ours)} of {n_ours} runs", not ours)],
        [auc_table(trials), cost_table(trials), failure_table(failed)],
        {"trials": [trial.record() for trial in trials]},
    )


def auc_table(trials: list[Trial]) -> Table:
    rows = []
    for task_name in UCI:
        cells = [_of(trials, name, task_name) for name in SYSTEMS]
        rows.append([task_name, *(_mean_and_sd(cell) for cell in cells)])
    means = [_mean_of_means(trials, name) for name in SYSTEMS]
    rows.append(["**mean of the sets**", *(f"**{mean:.2f}**" for mean in means)])
    return Table("AUC, % (mean and standard deviation)", ["set", *SYSTEMS], rows)


def cost_table(trials: list[Trial]) -> Table:
    rows = []
    for name in SYSTEMS:
        chosen = [trial for trial in trials if trial.system == name]
        rows.append(
            [
                name,
                f"{1e3 * summary(chosen, lambda t: t.fit):.0f} ms",
                f"{1e3 * summary(chosen, lambda t: t.score):.0f} ms",
                f"{_total(trials, 'PyOD LSCP') / _total(trials, name):.2f}",
                str(sum(bool(trial.failure) for trial in chosen)),
            ]
        )
    header = ["system", "fit, median", "score all test rows, median", "LSCP / this", "failures"]
    note = "LSCP / this: ratio of the summed fit and score times, over the runs where LSCP ran."
    return Table("Cost", header, rows, note)


def failure_table(failed: list[Trial]) -> Table:
    found: dict[tuple[str, str, str], int] = {}
    for trial in failed:
        key = (trial.system, trial.task, trial.failure.replace("|", "/"))
        found[key] = found.get(key, 0) + 1
    rows = [[*key, str(count)] for key, count in found.items()]
    return Table("Failures", ["system", "set", "error", "splits"], rows or [["none", "", "", ""]])


def _of(trials: list[Trial], system: str, task: str) -> list[Trial]:
    return [trial for trial in trials if trial.system == system and trial.task == task]


def _mean_and_sd(cell: list[Trial]) -> str:
    values = [trial.auc for trial in cell if not trial.failure]
    if not values:
        return "failed"
    lost = len(cell) - len(values)
    return f"{np.mean(values):.2f} ({np.std(values):.1f})" + (f", {lost} failed" if lost else "")


def _mean_of_means(trials: list[Trial], system: str) -> float:
    return float(np.mean([np.nanmean([t.auc for t in _of(trials, system, s)]) for s in UCI]))


def _total(trials: list[Trial], system: str) -> float:
    ran = {(t.task, t.seed) for t in trials if t.system == "PyOD LSCP" and not t.failure}
    chosen = [t for t in trials if t.system == system and (t.task, t.seed) in ran and not t.failure]
    return sum(trial.fit + trial.score for trial in chosen)

"""Part "ranges": the runs of part "skab", judged by measures of sequences."""

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Table, Target
from benchmarks.sequences.skab import OURS, SUM, TRAIN, VIEWS, learn, parts, rivals, seconds
from ocfuse import FusedDetector
from ocfuse.datasets import load_skab
from ocfuse.datasets.dataset import Sequence
from ocfuse.metrics import (
    EventScores,
    auc,
    event_scores,
    range_precision,
    range_recall,
    vus_pr,
    vus_roc,
)
from ocfuse.stats import compare

FloatArray = NDArray[np.float64]

#: Largest buffer, in samples of a second: a minute, settled before anything was scored.
WINDOW = 60
RANDOM = "random scores"


@dataclass
class Judged:
    """Measures of one system, run by run."""

    aucs: list[float] = field(default_factory=list)
    roc: list[float] = field(default_factory=list)
    pr: list[float] = field(default_factory=list)
    precision: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    events: list[EventScores] = field(default_factory=list)

    def add(self, run: Sequence, scores: FloatArray, offset: float) -> None:
        """Judge the rows after the training part."""
        known = np.isfinite(scores)
        known[:TRAIN] = False
        y, scores = run.y[known], scores[known]
        alarms = np.where(scores < offset, -1, 1)
        self.aucs.append(100 * auc(y, scores))
        self.roc.append(100 * vus_roc(y, scores, WINDOW))
        self.pr.append(100 * vus_pr(y, scores, WINDOW))
        self.recall.append(range_recall(y, alarms))
        if (alarms < 0).any():
            self.precision.append(range_precision(y, alarms))
        self.events.append(event_scores(y, alarms))

    def row(self, name: str) -> list[str]:
        found = sum(e.n_found for e in self.events)
        delays = np.concatenate([e.delays for e in self.events])
        false = sum(e.n_false for e in self.events)
        return [
            name,
            *(f"{np.mean(values):.1f}" for values in (self.aucs, self.roc, self.pr)),
            f"{np.mean(self.precision):.2f} / {np.mean(self.recall):.2f}",
            f"{found} of {len(delays)}",
            f"{false} of {sum(e.n_episodes for e in self.events)}",
            f"{np.nanmedian(delays):.0f}",
            f"{np.mean([e.composite_f1 for e in self.events]):.2f}",
        ]


def run(quick: bool) -> Report:
    runs = load_skab()[1:]
    if quick:
        runs = runs[14:17]
    rng = np.random.default_rng(0)
    found: dict[str, Judged] = {}
    for r in runs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            systems = systems_of(r) | {RANDOM: (rng.random(len(r.y)), 0.01)}
        for name, (scores, offset) in systems.items():
            found.setdefault(name, Judged()).add(r, scores, offset)
        print(r.name, f"{found[OURS].pr[-1]:.1f}", flush=True)
    return report(runs, found)


def systems_of(r: Sequence) -> dict[str, tuple[FloatArray, float]]:
    """Return scores of all rows and the threshold, for every system."""
    time = seconds(r)
    learned = learn(r.X, time, drift="drop")
    found = {OURS: (learned.score_run(r.X, time), learned.offset_)}
    found[SUM] = parts(learned, r.X, time)["sum"]
    for name, estimator in rivals().items():
        for words, settings in VIEWS.items():
            single = FusedDetector([(name, estimator)], fusion="sum", negatives=None)
            learned = learn(r.X, time, detector=single, **settings)
            found[f"{name}, {words}"] = learned.score_run(r.X, time), learned.offset_
    return found


def report(runs: list[Sequence], found: dict[str, Judged]) -> Report:
    test = compare(found[OURS].pr, found[SUM].pr)
    gain = float(np.mean(found[OURS].pr) - np.mean(found[SUM].pr))
    best = max((name for name in found if name != OURS), key=lambda name: np.mean(found[name].pr))
    lead = float(np.mean(found[OURS].pr) - np.mean(found[best].pr))
    share = float(np.mean([np.mean(r.y[TRAIN:] < 0) for r in runs]))
    header = ["system", "AUC", "VUS-ROC", "VUS-PR", "range precision / recall", "events found"]
    header += ["false alarms", "delay", "composite F1"]
    return Report(
        "SKAB by measures of sequences",
        "The runs, training parts and settings of [skab](skab.md); windows and limits were "
        "chosen with test results in view there. Means over the runs. Buffers of volumes reach "
        f"{WINDOW} s; on average {share:.0%} of the samples are anomalous, about the VUS-PR "
        "of random scores would be without buffers. A false alarm is an unbroken stretch of alarms "
        "that meets no event; the delay is the median over the events found, in samples, those "
        "with an alarm that was on before among them.",
        [
            Target(
                "VUS-PR not below the sum rule by more than 0.3",
                f"{gain:+.2f} (p = {test.p_value:.2f})",
                gain >= -0.3,
            ),
            Target(f"VUS-PR not below the best other system ({best})", f"{lead:+.2f}", lead >= 0),
        ],
        [Table("Systems", header, [each.row(name) for name, each in found.items()])],
        {
            name: {"auc": each.aucs, "vus_roc": each.roc, "vus_pr": each.pr}
            for name, each in found.items()
        },
    )

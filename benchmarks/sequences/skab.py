"""Part "skab": 34 runs of a water pump, learned from their first 400 seconds."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.onsets import on_before
from benchmarks.report import Report, Table, Target
from benchmarks.sequences.counts import Counts
from ocfuse import FusedDetector
from ocfuse.datasets import load_skab
from ocfuse.datasets.dataset import Sequence
from ocfuse.metrics import auc
from ocfuse.stats import compare
from ocfuse.streaming import StreamDetector, drift_ratio, time_to_detection
from ocfuse.streaming.course import DRIFTING

FloatArray = NDArray[np.float64]

TRAIN = 400
RATE = 0.01
#: Quoted from the README of waico/SKAB@b2c0d46: F1, FAR, MAR.
LEADERBOARD = (
    ("Conv-AE (looks 58 rows ahead)", 0.78, 13.6, 28.0),
    ("MSET", 0.78, 39.7, 14.1),
    ("T-squared + Q", 0.76, 26.6, 24.9),
    ("LSTM-AE", 0.74, 30.0, 25.9),
    ("T-squared", 0.66, 19.2, 42.6),
    ("isolation forest", 0.29, 2.6, 82.9),
)
#: Of the targets: what a user gets by one setting, which asks nothing of other runs.
OURS, SUM = "fusion, channels by the run itself", "sum rule, channels by the run itself"

#: What the rivals see: what ours does, and rows alone.
VIEWS: dict[str, dict[str, Any]] = {
    "the same windows": {"drift": "drop"},
    "raw rows": {"windows": ()},
}


@dataclass
class Found:
    """What one system did on the runs."""

    aucs: list[float] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    already: list[bool] = field(default_factory=list)

    def add(self, run: Sequence, scores: FloatArray, offset: float) -> None:
        """Judge the rows after the training part; a row without a score raises no alarm."""
        y, scores, time = run.y[TRAIN:], scores[TRAIN:], run.time[TRAIN:]
        alarms = scores < offset
        known = np.isfinite(scores)
        self.aucs.append(100 * auc(y[known], scores[known]))
        self.counts.append(Counts.of(y, alarms))
        self.delays += time_to_detection(y, alarms, time).tolist()
        self.already += on_before(y, alarms).tolist()

    def row(self, name: str) -> list[str]:
        total = sum(self.counts, Counts())
        delays, already = np.array(self.delays), np.array(self.already)
        fresh = delays[~already & np.isfinite(delays)]
        return [
            name,
            f"{np.mean(self.aucs):.1f}",
            f"{np.median(self.aucs):.1f}",
            f"{total.f1:.3f}",
            f"{total.far:.1f}",
            f"{total.mar:.1f}",
            f"{np.isnan(delays).sum()} / {already.sum()}",
            f"{np.median(fresh):.0f} s" if len(fresh) else "",
        ]


def run(quick: bool) -> Report:
    runs = load_skab()[1:]
    if quick:
        runs = runs[14:17]
    ratios = np.array([drift_ratio(r.X[:TRAIN]) for r in runs])
    is_steady = np.median(ratios, axis=0) <= DRIFTING
    found: dict[str, Found] = {}
    for r in runs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, (scores, offset) in systems(r, is_steady).items():
                found.setdefault(name, Found()).add(r, scores, offset)
        print(r.name, *(f"{found[name].aucs[-1]:.1f}" for name in (OURS, SUM)), flush=True)
    return report(runs, found, ratios, is_steady)


def systems(r: Sequence, is_steady: NDArray[np.bool_]) -> dict[str, tuple[FloatArray, float]]:
    """Return scores of all rows and the threshold, for every system."""
    bed, time = r.X[:, is_steady], seconds(r)
    found: dict[str, tuple[FloatArray, float]] = {}
    learned = learn(r.X, time, drift="drop")
    found[OURS] = learned.score_run(r.X, time), learned.offset_
    members = parts(learned, r.X, time)
    found[SUM] = members.pop("sum")
    for name, estimator in rivals().items():
        for words, settings in VIEWS.items():
            single = FusedDetector([(name, estimator)], fusion="sum", negatives=None)
            learned = learn(r.X, time, detector=single, **settings)
            found[f"{name}, {words}"] = learned.score_run(r.X, time), learned.offset_
    learned = learn(r.X, time)
    found["fusion, all channels"] = learned.score_run(r.X, time), learned.offset_
    found["sum rule, all channels"] = parts(learned, r.X, time)["sum"]
    learned = learn(r.X, time, drift="follow")
    found["fusion, drifting channels followed"] = learned.score_run(r.X, time), learned.offset_
    learned = learn(bed, time)
    found["fusion, channels by all runs"] = learned.score_run(bed, time), learned.offset_
    found["sum rule, channels by all runs"] = parts(learned, bed, time)["sum"]
    learned = learn(bed, time, context=time)
    with_time = learned.score_run(bed, time, time), learned.offset_
    found["fusion, channels by all runs, time as context"] = with_time
    return found | {f"member {name}": pair for name, pair in members.items()}


def rivals() -> dict[str, Any]:
    return {
        "isolation forest": IsolationForest(random_state=0),
        "LOF": LocalOutlierFactor(novelty=True),
    }


def learn(
    X: FloatArray,
    time: FloatArray,
    context: FloatArray | None = None,
    detector: Any = None,
    **settings: Any,
) -> StreamDetector:
    """Learn the first rows of a run, which its owner vouches for."""
    detector = FusedDetector(random_state=0) if detector is None else detector
    detector.set_params(false_alarm_rate=RATE)
    known = None if context is None else context[:TRAIN]
    stream = StreamDetector(detector, **settings)
    return stream.fit(X[:TRAIN], np.ones(TRAIN), time=time[:TRAIN], context=known)


def parts(
    learned: StreamDetector, X: FloatArray, time: FloatArray
) -> dict[str, tuple[FloatArray, float]]:
    """Return the same for each member alone and for the sum of their scores."""
    detector = learned.detector_
    rows = learned.features(X, time=time)
    scored = ~np.isnan(rows).any(axis=1)
    S = detector.transform(rows[scored])
    out_of_fold = detector.normaliser_.transform(detector.pool_.out_of_fold_scores_)
    found = {}
    for name, column, known in [
        *zip(detector.pool_.names_, S.T, out_of_fold.T, strict=True),
        ("sum", S.mean(axis=1), out_of_fold.mean(axis=1)),
    ]:
        scores = np.full(len(X), np.nan)
        scores[scored] = column
        rank = int(RATE * (len(known) + 1))  # as the threshold of FusedDetector
        found[name] = scores, float(np.sort(known)[max(rank - 1, 0)])
    return found


def seconds(r: Sequence) -> FloatArray:
    assert r.time is not None
    return (r.time - r.time[0]) / np.timedelta64(1, "s")


def report(
    runs: list[Sequence],
    found: dict[str, Found],
    ratios: FloatArray,
    is_steady: NDArray[np.bool_],
) -> Report:
    total = sum(found[OURS].counts, Counts())
    ours, plain = np.mean(found[OURS].aucs), np.mean(found[SUM].aucs)
    test = compare(found[OURS].aucs, found[SUM].aucs)
    left_out = [name for name, steady in zip(runs[0].columns, is_steady, strict=True) if not steady]
    header = ["system", "AUC", "median", "F1", "FAR", "MAR", "missed / on before", "delay"]
    alone = [name for name in found if name.startswith("member")]
    board = [
        [name, "", "", f"{f1:.2f}", f"{far:.1f}", f"{mar:.1f}", "", ""]
        for name, f1, far, mar in LEADERBOARD
    ]
    tables = [
        Table(
            "Systems",
            header,
            [*(each.row(name) for name, each in found.items() if name not in alone), *board],
            "F1, FAR and MAR (in %) are counted over all rows of all runs, as on the leaderboard "
            "of SKAB, whose figures stand below ours as they were published. AUC: mean and "
            "median over the runs. Missed: anomalies without an alarm; on before: alarms that "
            f"were on when the anomaly began; both of {len(found[OURS].delays)}. Delay: median "
            "time from the beginning of an anomaly to its first alarm, of the others.",
        ),
        Table(
            "Members, on the windows of the same channels",
            header,
            [found[name].row(name.removeprefix("member ")) for name in alone],
        ),
        Table(
            "Drift ratio in the training parts",
            ["channel", "median", "runs above 0.3"],
            [
                [name, f"{np.median(ratio):.2f}", f"{(ratio > DRIFTING).sum()} of {len(ratio)}"]
                for name, ratio in zip(runs[0].columns, ratios.T, strict=True)
            ],
        ),
        per_run(runs, found),
    ]
    return Report(
        "SKAB: a water pump",
        f"Learned from the first {TRAIN} rows of each run, judged on the others; windows of 10 "
        "and 30 rows, default pool, threshold at a nominal false-alarm rate of "
        f"{RATE:.0%} from held-out blocks of the training rows (4 blocks, purge 29). Everything "
        "is causal; the training rows are taken as normal, and labels serve to judge only. "
        f'*Channels by the run itself* (`drift="drop"`): those with a drift ratio above '
        f"{DRIFTING:g} in its training rows are left out; the targets are judged by this. *The "
        "same windows* are those of these channels. *All channels*: as they are. *Channels by "
        "all runs*: without those whose median ratio over the training parts of all runs is above "
        f'{DRIFTING:g}: {", ".join(left_out)}. *Followed*: `drift="follow"`. The threshold of '
        "the sum rule and of the members is their own 1 % quantile over the same held-out blocks. "
        "`other/2` has anomalies among its training rows and stays in.\n\n"
        "**Chosen with test results in view.** The windows and the limit of "
        f"{DRIFTING:g} come from an earlier study of these runs. While this page was made, ten "
        "ways to treat drift and windows, four fusions, about a dozen thresholds and three weights "
        "of time were tried on the test rows, some 150 figures. *Channels by all runs* did best, "
        "and is therefore not what the targets are judged by: it is a choice by the test, needs "
        "the other runs, and no setting of `StreamDetector` does it. Fusion, pool, number of "
        "blocks, purge and nominal rate are the defaults or follow from the windows.",
        [
            Target("F1 at least .81", f"{total.f1:.3f}", total.f1 >= 0.81),
            Target("FAR at most 18 %", f"{total.far:.1f} %", total.far <= 18),
            Target("mean AUC at least 87.0", f"{ours:.2f}", bool(ours >= 87.0)),
            Target(
                "fusion not below the sum rule by more than 0.3 AUC",
                f"{ours - plain:+.2f} (p = {test.p_value:.2f})",
                bool(ours - plain >= -0.3),
            ),
            Target(
                "stretch: F1 at least .84 and FAR at most 13 %",
                f"{total.f1:.3f}, {total.far:.1f} %",
                total.f1 >= 0.84 and total.far <= 13,
            ),
        ],
        tables,
        {
            name: {"auc": each.aucs, "counts": [vars(c) for c in each.counts], "delay": each.delays}
            for name, each in found.items()
        },
    )


def per_run(runs: list[Sequence], found: dict[str, Found]) -> Table:
    rows = [
        [
            r.name.removeprefix("skab/"),
            *(f"{found[name].aucs[i]:.1f}" for name in (SUM, OURS)),
            f"{found[OURS].counts[i].far:.1f}",
            f"{found[OURS].counts[i].mar:.1f}",
        ]
        for i, r in enumerate(runs)
    ]
    return Table("By run", ["run", "AUC, sum", "AUC, fusion", "FAR", "MAR"], rows)

"""Part "robot_failures": ten normal sequences of forces and torques to learn from."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.report import Report, Table, Target
from benchmarks.sequences.counts import Counts
from ocfuse import FusedDetector
from ocfuse.datasets import load_robot_failures
from ocfuse.metrics import auc
from ocfuse.scores import prediction_limit

FloatArray = NDArray[np.float64]

#: lp3 is lp2 once more, and lp5 is nearly lp2 and lp4.
SETS = ("lp1", "lp2", "lp4")
#: Draws 0 to 3 were looked at while the threshold was devised; these were not.
FIRST, SEEDS = 100, 10
RATE = 0.05
OURS, SUM = "fusion", "sum rule"
#: AUC, then counts by the lowest held-out score and by the prediction limit.
Outcome = tuple[float, Counts, Counts]


def run(quick: bool) -> Report:
    found: dict[str, dict[str, list[Outcome]]] = {}
    sizes = []
    for name in SETS[:1] if quick else SETS:
        X, y = sequences(name)
        sizes.append(f"{name} {int((y > 0).sum()) // 2}")
        for seed in range(FIRST, FIRST + (2 if quick else SEEDS)):
            for system, outcome in one_split(X, y, seed).items():
                found.setdefault(system, {}).setdefault(name, []).append(outcome)
        print(name, flush=True)
    return report(found, sizes)


def sequences(name: str) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return one row of 15 x 6 values per sequence, and its label."""
    found = load_robot_failures(name)
    return np.array([s.X.ravel() for s in found]), np.array([s.y[0] for s in found])


def one_split(X: FloatArray, y: NDArray[np.int64], seed: int) -> dict[str, Outcome]:
    """Learn half of the normal sequences; judge all others."""
    normal = np.random.default_rng(seed).permutation(np.flatnonzero(y > 0))
    known = normal[: len(normal) // 2]
    fresh = np.setdiff1d(np.arange(len(y)), known)
    train, test, labels = X[known], X[fresh], y[fresh]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector: Any = None
        for name, fusion in ((OURS, None), (SUM, "sum")):
            detector = FusedDetector(fusion=fusion, false_alarm_rate=RATE, random_state=seed)
            detector.fit(train, np.ones(len(train)))
            found[name] = judged(detector.score_samples(test), detector.training_scores_, labels)
        S = detector.pool_.score_samples(detector.encoder_.transform(test))
        columns = zip(detector.pool_.names_, S.T, detector.pool_.out_of_fold_scores_.T, strict=True)
        found |= {
            f"member {name}": judged(s, out_of_fold, labels) for name, s, out_of_fold in columns
        }
        for name, estimator in rivals(len(train), seed).items():
            single = FusedDetector([estimator], fusion="sum", negatives=None)
            single.fit(train, np.ones(len(train)))
            found[name] = judged(single.score_samples(test), single.training_scores_, labels)
    return found


def rivals(n: int, seed: int) -> dict[str, Any]:
    return {
        "isolation forest (scikit-learn)": IsolationForest(random_state=seed),
        "LOF (scikit-learn)": LocalOutlierFactor(min(20, n // 2), novelty=True),
    }


def judged(scores: FloatArray, held_out: FloatArray, y: NDArray[np.int64]) -> Outcome:
    limit = prediction_limit(held_out, RATE)
    return (
        100 * auc(y, scores),
        Counts.of(y, scores < held_out.min()),
        Counts.of(y, scores < limit),
    )


def report(found: dict[str, dict[str, list[Outcome]]], sizes: list[str]) -> Report:
    ours, plain = mean_auc(found[OURS]), mean_auc(found[SUM])
    far, mar = mean_rates(found[OURS], 2)
    lowest = mean_rates(found[OURS], 1)
    header = ["system", *found[OURS], "mean AUC", "FAR, MAR: lowest", "FAR, MAR: limit"]
    rows = [
        [
            name,
            *(f"{np.mean([o[0] for o in outcomes]):.2f}" for outcomes in sets.values()),
            f"{mean_auc(sets):.2f}",
            "{:.1f}, {:.1f}".format(*mean_rates(sets, 1)),
            "{:.1f}, {:.1f}".format(*mean_rates(sets, 2)),
        ]
        for name, sets in found.items()
    ]
    return Report(
        "Robot execution failures",
        "Each sequence of 15 x 6 forces and torques is one row. Half of the normal sequences are "
        f"learned ({', '.join(sizes)}), all others judged; {SEEDS} draws, default pool. lp3 holds "
        "the sequences of lp2 and lp5 those of lp2 and lp4, so there are three sets. Two "
        "thresholds, both from held-out scores of the training sequences only: *lowest*, below "
        "the lowest of them, which for ten sequences stands for a rate of 9 %; *limit*, "
        f"`prediction_limit` at {RATE:.0%}, from their median and MAD. What was chosen with test "
        "results in view, on four other draws of the same sequences: the rows (of three ways to "
        "describe a sequence), and the limit with its rate (of seven thresholds), after the "
        "lowest score had been seen to miss failures of lp2. The draws below were not looked at "
        "before, but they are draws from the same few sequences: read the stretch target, which is "
        "judged by the limit, as optimistic.",
        [
            Target("mean AUC at least 99.5", f"{ours:.2f}", ours >= 99.5),
            Target("fusion within .2 of the sum rule", f"{ours - plain:+.2f}", ours >= plain - 0.2),
            Target(
                "stretch: FAR at most 10 % at MAR at most 1 %",
                f"{far:.1f} %, {mar:.1f} % by the limit; {lowest[0]:.1f} %, {lowest[1]:.1f} % by "
                "the lowest",
                far <= 10 and mar <= 1,
            ),
        ],
        [Table("Systems", header, rows), *rates_by_set(found)],
        {
            name: {
                key: [[o[0], vars(o[1]), vars(o[2])] for o in outcomes]
                for key, outcomes in sets.items()
            }
            for name, sets in found.items()
        },
    )


def rates_by_set(found: dict[str, dict[str, list[Outcome]]]) -> list[Table]:
    rows = []
    for name in (OURS, SUM):
        for key, outcomes in found[name].items():
            cells = ["{:.1f}, {:.1f}".format(*mean_rates({key: outcomes}, way)) for way in (1, 2)]
            rows.append([name, key, *cells])
    header = ["system", "set", "FAR, MAR: lowest", "FAR, MAR: limit"]
    return [Table("Alarms by set, %", header, rows)]


def mean_auc(sets: dict[str, list[Outcome]]) -> float:
    return float(np.mean([np.mean([o[0] for o in outcomes]) for outcomes in sets.values()]))


def mean_rates(sets: dict[str, list[Outcome]], way: int) -> tuple[float, float]:
    """Return FAR and MAR in %, mean over sets and draws."""
    rates = [[(o[way].far, o[way].mar) for o in outcomes] for outcomes in sets.values()]
    far, mar = np.mean([np.mean(each, axis=0) for each in rates], axis=0)
    return float(far), float(mar)

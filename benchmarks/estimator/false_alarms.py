"""Part "false_alarms": does the stated rate hold on fresh normal rows of real data?"""

import warnings

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.sets import adbench
from benchmarks.accuracy.sets import rows as rows_of
from benchmarks.report import Report, Table, Target
from ocfuse import FusedDetector

RATES = (0.01, 0.05, 0.1)
MOST_TRAIN, MOST_FRESH = 600, 2_000
SEEDS = 5
WITHIN = 1.25


def run(quick: bool) -> Report:
    names = adbench()[: 3 if quick else None]
    rows, found = [], []
    for name in names:
        normal, _ = rows_of(name)
        shares = np.array([one_split(normal, seed) for seed in range(1 if quick else SEEDS)])
        found.append({"set": name, "n": len(normal), "shares": shares.tolist()})
        mean = 100 * shares.mean(axis=0)
        rows.append([name, str(len(normal)), *(f"{value:.2f}" for value in mean.ravel())])
        print(rows[-1], flush=True)
    overall = np.mean([np.mean(each["shares"], axis=0) for each in found], axis=0)
    rows.append(["**mean**", "", *(f"**{100 * value:.2f}**" for value in overall.ravel())])
    ways = ("fit", "fit with y = +1", "calibrate")
    header = ["set", "normals", *(f"{way}, {rate:.0%}" for way in ways for rate in RATES)]
    worst, exact = (
        float(max(overall[way, k] / rate for k, rate in enumerate(RATES))) for way in (0, 2)
    )
    return Report(
        "False alarms on fresh normals",
        f"The normal rows of the development sets, {SEEDS} splits: default detector on half of "
        f"them (at most {MOST_TRAIN}), alarms on the others, in %. `fit`: nobody vouches for the "
        "rows, and those far outside are not learned from. `fit with y = +1`: all are. "
        "`calibrate`: learned from half of the training rows, threshold from the other half.",
        [
            Target(
                f"mean rate within {WITHIN:g} times the stated one after fit",
                f"at most {worst:.2f} times",
                worst <= WITHIN,
            ),
            Target(
                f"mean rate within {WITHIN:g} times the stated one after calibrate",
                f"at most {exact:.2f} times",
                exact <= WITHIN,
            ),
        ],
        [Table("Alarms on fresh normals, %", header, rows)],
        {"sets": found},
    )


def one_split(normal: NDArray[np.float64], seed: int) -> list[list[float]]:
    """Return the shares of alarms: one row per way, one column per rate."""
    X = np.random.default_rng(seed).permutation(normal)
    cut = min(len(X) // 2, MOST_TRAIN)
    train, fresh = X[:cut], X[cut : cut + MOST_FRESH]
    half = cut // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = FusedDetector(random_state=seed).fit(train)
        vouched = FusedDetector(random_state=seed).fit(train, np.ones(len(train)))
        split = FusedDetector(random_state=seed).fit(train[:half]).calibrate(train[half:])
        return [
            [float(np.mean(d.set_threshold(rate).predict(fresh) == -1)) for rate in RATES]
            for d in (plain, vouched, split)
        ]

"""Part "promise": is `false_alarm_rate` held on every kind of table?

The mean over draws of the share of fresh normal rows that raise an alarm, with its standard error.
Alone: ``python -m benchmarks.estimator promise``. One kind, while the threshold is worked on:
``python -m benchmarks.estimator.promise "zeros and ones" 100 40``.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.report import Data, Report, Table, Target
from ocfuse import FusedDetector

RATES = (0.01, 0.05, 0.1)
SIZES = (50, 100, 300)
COPIED_SIZE = 100
SEEDS, QUICK_SEEDS = 20, 2
FRESH = 1_000
#: Share of the stated rate by which a mean may exceed it, beyond two standard errors.
TOLERANCE = 0.1
WAYS = ("fit", "calibrate")

Generator: TypeAlias = np.random.Generator
FloatArray: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = Any  # an array or a data frame


# -- sources: so many rows of one distribution, whose parameters are drawn too --------------


def gaussian(rng: Generator, n: int) -> FloatArray:
    return rng.normal(size=(n, 6)) @ rng.normal(size=(6, 6))


def heavy_tails(rng: Generator, n: int) -> FloatArray:
    return rng.standard_t(2, size=(n, 4))


def skewed(rng: Generator, n: int) -> FloatArray:
    return np.exp(1.5 * rng.normal(size=(n, 5)))


def counts(rng: Generator, n: int) -> FloatArray:
    return rng.poisson(rng.uniform(0.3, 5, size=6), size=(n, 6)).astype(float)


def modes(rng: Generator, n: int) -> FloatArray:
    centres = rng.normal(scale=8, size=(3, 4))
    chosen = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    return centres[chosen] + rng.normal(size=(n, 4))


def zeros_and_ones(rng: Generator, n: int) -> FloatArray:
    return (rng.random((n, 10)) < rng.uniform(0.1, 0.9, size=10)).astype(float)


def even_ones(rng: Generator, n: int) -> FloatArray:
    return (rng.random((n, 12)) < 0.5).astype(float)


def rare_ones(rng: Generator, n: int) -> FloatArray:
    return (rng.random((n, 20)) < 0.1).astype(float)


def categories(rng: Generator, n: int) -> pd.DataFrame:
    columns = {}
    for j, n_levels in enumerate((2, 3, 4, 6, 9)):
        levels = np.array([f"level {k}" for k in range(n_levels)], dtype=object)
        columns[f"c{j}"] = rng.choice(levels, size=n, p=rng.dirichlet(np.ones(n_levels)))
    return pd.DataFrame(columns)


def mixed(rng: Generator, n: int) -> pd.DataFrame:
    table = categories(rng, n)[["c1", "c3"]]
    return table.assign(x=rng.normal(size=n), y=np.exp(rng.normal(size=n)), k=rng.poisson(2, n))


# -- copies: what a join or a logger makes of rows --------------------------------------------


def as_they_are(X: Rows, rng: Generator) -> Rows:
    return X


def twice(X: Rows, rng: Generator) -> Rows:
    return _repeated(X, np.full(len(X), 2))


def three_times(X: Rows, rng: Generator) -> Rows:
    return _repeated(X, np.full(len(X), 3))


def half_twice(X: Rows, rng: Generator) -> Rows:
    return _repeated(X, 1 + (np.arange(len(X)) < len(X) // 2))


def nearly_twice(X: Rows, rng: Generator) -> Rows:
    doubled = np.asarray(twice(X, rng), dtype=float)
    return doubled + 1e-9 * rng.normal(size=doubled.shape)


def runs_of_one_value(X: Rows, rng: Generator) -> Rows:
    return _repeated(X, rng.geometric(0.4, size=len(X)))


def _repeated(X: Rows, times: NDArray[np.int64]) -> Rows:
    rows = np.repeat(np.arange(len(X)), times)
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


@dataclass(frozen=True)
class Kind:
    """A source of rows, and how often training and calibration hold each of them."""

    source: Callable[[Generator, int], Rows]
    copied: Callable[[Rows, Generator], Rows] = as_they_are
    sizes: tuple[int, ...] = SIZES


COPIED = (COPIED_SIZE,)
KINDS = {
    "Gaussian": Kind(gaussian),
    "heavy tails": Kind(heavy_tails),
    "skewed": Kind(skewed),
    "modes": Kind(modes),
    "counts": Kind(counts),
    "zeros and ones": Kind(zeros_and_ones),
    "zeros and ones alike": Kind(even_ones),
    "rare ones": Kind(rare_ones),
    "categories": Kind(categories),
    "mixed columns": Kind(mixed),
    "Gaussian, rows twice": Kind(gaussian, twice, COPIED),
    "Gaussian, rows three times": Kind(gaussian, three_times, COPIED),
    "Gaussian, half of the rows twice": Kind(gaussian, half_twice, COPIED),
    "Gaussian, copies with noise 1e-9": Kind(gaussian, nearly_twice, COPIED),
    "Gaussian, runs of repeated rows": Kind(gaussian, runs_of_one_value, COPIED),
    "zeros and ones, rows twice": Kind(zeros_and_ones, twice, COPIED),
    "mixed columns, rows twice": Kind(mixed, twice, COPIED),
}


# -- measuring --------------------------------------------------------------------------------


def run(quick: bool) -> Report:
    found = []
    for name, kind in KINDS.items():
        for n in COPIED if quick else kind.sizes:
            found.append(measured(name, n, QUICK_SEEDS if quick else SEEDS))
            print(*told(found[-1]), sep=" | ", flush=True)
    return Report(
        "The stated rate, by kind of table",
        f"Default detector on n different rows of a source, {found[0]['seeds']} draws of source "
        f"and rows; alarms on {FRESH:,} fresh rows of the source in %, mean and standard error "
        "over the draws. `fit`: the threshold of `fit`. `calibrate`: set anew from n further rows, "
        "copied in the same way. Where n rows cannot promise a rate, `set_threshold` warns and "
        "`threshold_rate_` tells the rate that holds: its mean stands behind the slash, and is "
        "what the alarms are judged by. **Bold**: above what is stated by more than two standard "
        f"errors and {TOLERANCE:.0%} of it.",
        [target(found, way, rate) for way in WAYS for rate in RATES],
        [Table("Alarms on fresh normals, %: mean ± SE, stated", header(), rows(found))],
        {"kinds": found, "tolerance": TOLERANCE},
    )


def one_draw(name: str, n: int, seed: int) -> list[list[list[float]]]:
    """Return share of alarms and stated rate: by way, then by rate."""
    rng = np.random.default_rng([seed, n])
    kind = KINDS[name]
    X = kind.source(rng, 2 * n + FRESH)
    train, more = kind.copied(X[:n], rng), kind.copied(X[n : 2 * n], rng)
    fresh = X[2 * n :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = FusedDetector(random_state=seed).fit(train)
        after_fit = [_alarms(detector, fresh, rate) for rate in RATES]
        detector.calibrate(more)
        return [after_fit, [_alarms(detector, fresh, rate) for rate in RATES]]


def _alarms(detector: FusedDetector, fresh: Rows, rate: float) -> list[float]:
    detector.set_threshold(rate)
    share = float(np.mean(detector.predict(fresh) == -1))
    return [share, max(rate, float(detector.threshold_rate_))]


def measured(name: str, n: int, seeds: int) -> Data:
    """Return the mean rate, its standard error and the stated rate: by way, then by rate."""
    drawn = np.array([one_draw(name, n, seed) for seed in range(seeds)])
    shares, stated = drawn[..., 0], drawn[..., 1].mean(axis=0)
    mean = shares.mean(axis=0)
    error = shares.std(axis=0, ddof=1) / np.sqrt(seeds)
    broken = mean > (1 + TOLERANCE) * stated + 2 * error
    return {
        "kind": name,
        "n": n,
        "seeds": seeds,
        "mean": mean.tolist(),
        "standard_error": error.tolist(),
        "stated": stated.tolist(),
        "broken": broken.tolist(),
    }


# -- telling ----------------------------------------------------------------------------------


def header() -> list[str]:
    return ["kind", "n", *(f"{way}, {rate:.0%}" for way in WAYS for rate in RATES)]


def told(found: Data) -> list[str]:
    cells = []
    for way in range(len(WAYS)):
        for k, rate in enumerate(RATES):
            mean, error, stated = (
                100 * found[what][way][k] for what in ("mean", "standard_error", "stated")
            )
            cell = f"{mean:.1f} ± {error:.1f}" + (f" / {stated:.1f}" if stated > 101 * rate else "")
            cells.append(f"**{cell}**" if found["broken"][way][k] else cell)
    return [found["kind"], str(found["n"]), *cells]


def rows(found: list[Data]) -> list[list[str]]:
    means = np.mean([each["mean"] for each in found], axis=0)
    last = ["mean of all", "", *(f"{100 * value:.1f}" for value in means.ravel())]
    return [*(told(each) for each in found), last]


def target(found: list[Data], way: str, rate: float) -> Target:
    i, k = WAYS.index(way), RATES.index(rate)
    broken = [each for each in found if each["broken"][i][k]]
    worst = max(found, key=lambda each: each["mean"][i][k] / each["stated"][i][k])
    return Target(
        f"after {way}, {rate:.0%}: nowhere above the stated rate by more than 2 SE + "
        f"{TOLERANCE:.0%} of it",
        f"{len(broken)} of {len(found)} above; worst {worst['kind']}, n = {worst['n']}: "
        f"{100 * worst['mean'][i][k]:.1f} ± {100 * worst['standard_error'][i][k]:.1f} % at "
        f"{100 * worst['stated'][i][k]:.1f} %",
        not broken,
    )


def main(words: list[str]) -> None:
    name, n, seeds = words[0], int(words[1]), int(words[2])
    print(" | ".join(header()))
    print(" | ".join(told(measured(name, n, seeds))))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Part "sides": columns of which only one side is bad."""

import numpy as np
import pandas as pd

from benchmarks.context.systems import RATE, fused
from benchmarks.report import Data, Report, Table, Target

SEEDS, QUICK_SEEDS = 10, 2
N, FRESH, SIZE = 1_000, 4_000, 6.0
COLUMNS = ("errors", "latency", "throughput", "load", "heat")
SIDES = {"errors": "high", "latency": "high", "throughput": "low"}
METHOD = (
    f"Five columns, correlated by .5, {N:,} rows to learn from; errors and latency are bad when "
    "they "
    "are high, throughput when it is low, load and heat on both sides. Fresh rows are normal, "
    "moved "
    f"{SIZE:g} spreads to the harmless side in one of the three, moved to the harmful side of one "
    "of "
    "the five, or both: harmless in one and harmful in another. Share that alarms at "
    f"{100 * RATE:g} % stated; means of the draws, three laws of the noise in turn."
)
LAWS = ("gaussian", "heavy tails", "skewed")
KINDS = ("normal", "harmless", "harmful", "both")


def rows(rng: np.random.Generator, n: int, law: str) -> pd.DataFrame:
    """Return normal rows with a spread of about 1."""
    m = len(COLUMNS)
    mix = np.linalg.cholesky(0.5 * np.eye(m) + 0.5)
    noise = rng.normal(size=(n, m)) @ mix.T
    if law == "heavy tails":
        noise *= np.sqrt(3.0 / rng.chisquare(5, size=(n, 1)))
    if law == "skewed":
        noise = (np.exp(0.5 * noise) - np.exp(0.125)) / 0.6
    return pd.DataFrame(noise, columns=list(COLUMNS))


def moved(rng: np.random.Generator, n: int, law: str, kind: str) -> pd.DataFrame:
    """Return rows of one kind."""
    table = rows(rng, n, law)
    values = table.to_numpy().copy()
    sided = rng.integers(3, size=n)
    other = (sided + rng.integers(1, len(COLUMNS), size=n)) % len(COLUMNS)
    bad = np.array([1.0, 1.0, -1.0, 0.0, 0.0])
    toward = np.where(bad == 0, rng.choice([-1.0, 1.0], size=(n, 1)), bad)
    every = np.arange(n)
    if kind in ("harmless", "both"):
        values[every, sided] -= SIZE * bad[sided]
    if kind in ("harmful", "both"):
        values[every, other] += SIZE * toward[every, other]
    return pd.DataFrame(values, columns=list(COLUMNS))


SYSTEMS = [fused("FusedDetector()"), fused("**FusedDetector(direction=...)**", direction=SIDES)]


def run(is_quick: bool) -> Report:
    data: Data = {}
    for law in LAWS:
        for seed in range(QUICK_SEEDS if is_quick else SEEDS):
            rng = np.random.default_rng([seed, LAWS.index(law)])
            train = rows(rng, N, law)
            tests = {
                kind: moved(rng, FRESH if kind == "normal" else 1_000, law, kind) for kind in KINDS
            }
            for system in SYSTEMS:
                together = pd.concat(list(tests.values()), ignore_index=True)
                whose = np.repeat(np.arange(len(KINDS)), [len(t) for t in tests.values()])
                alarms = system.run(train, together, together.iloc[:1]).is_false
                shares = np.bincount(whose, weights=alarms) / np.bincount(whose)
                data.setdefault(law, {}).setdefault(system.name, []).append(shares.tolist())
    table, worst = [], {}
    for law, found in data.items():
        for name, values in found.items():
            mean = 100 * np.mean(values, axis=0)
            worst[law, name] = mean
            table.append([law, name, *(f"{value:.1f} %" for value in mean)])
    plain, ours = (np.mean([worst[law, system.name] for law in LAWS], axis=0) for system in SYSTEMS)
    stated = 100 * RATE
    targets = [
        Target(
            "harmless rows alarm no more often than normal ones (within twice the rate)",
            f"{ours[1]:.1f} % (plain {plain[1]:.1f} %)",
            bool(ours[1] <= 2 * stated),
        ),
        Target(
            "harmful rows are found as often as without sides, within 3 points",
            f"{ours[2]:.1f} % (plain {plain[2]:.1f} %)",
            bool(ours[2] >= plain[2] - 3.0),
        ),
        Target(
            "a harmless deviation hides none: both at once are found within 5 points of harmful "
            "alone",
            f"{ours[3]:.1f} against {ours[2]:.1f} %",
            bool(ours[3] >= ours[2] - 5.0),
        ),
        Target(
            "the rate is held within a quarter",
            f"{ours[0]:.1f} %",
            bool(abs(ours[0] - stated) <= 0.25 * stated),
        ),
    ]
    shown = Table("Share that alarms", ["noise", "system", *KINDS], table)
    return Report("One side", METHOD, targets, [shown], data)

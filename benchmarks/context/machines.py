"""Part "machines": a table a day of 90 machines, 10 of which run at a fifth of their usual volume.

From the command line, as a user has it, and in Python: what is usual for one machine is far too
much or too little for another.
"""

import io
import json
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.context.systems import RATE
from benchmarks.report import Data, Report, Table, Target
from ocfuse import FusedDetector
from ocfuse.cli.app import run as command

N, N_LOW, DAYS = 90, 10, 30
SEEDS, QUICK_SEEDS = 10, 2
METHOD = (
    f"{N} machines, {DAYS} days to learn from, a row a day and machine: volume (30 to 3,000 by "
    "machine, 10 % noise), errors (1 % of the volume) and duration. On the day after, "
    f"{N_LOW} machines have a fifth of their usual volume. `ocfuse fit history.csv`, `ocfuse "
    f"score`, with the default of {100 * RATE:g} % false alarms; mean of {SEEDS} draws."
)


def draw(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame, list[int]]:
    """Return the history, the day after, and which machines run low on it."""
    usual = np.exp(rng.uniform(np.log(30), np.log(3_000), size=N))
    duration = rng.uniform(20, 200, size=N)

    def day(low: list[int]) -> pd.DataFrame:
        volume = usual * np.exp(0.1 * rng.normal(size=N))
        volume[low] /= 5.0
        return pd.DataFrame(
            {
                "machine": [f"press {k:03d}" for k in range(N)],
                "volume": volume.round(1),
                "errors": rng.poisson(0.01 * volume + 0.5),
                "duration": (duration * np.exp(0.05 * rng.normal(size=N))).round(2),
            }
        )

    low = sorted(rng.choice(N, size=N_LOW, replace=False).tolist())
    return pd.concat([day([]) for _ in range(DAYS)], ignore_index=True), day(low), low


def by_command(history: pd.DataFrame, today: pd.DataFrame, *flags: str) -> list[int]:
    """Return the machines that the command line tells."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history.to_csv(folder / "history.csv", index=False)
        today.to_csv(folder / "today.csv", index=False)
        model, scores = folder / "m.ocf", folder / "s.csv"
        for words in (
            ["fit", folder / "history.csv", "-o", model, "--quiet", "--seed", "0", *flags],
            ["score", model, folder / "today.csv", "-o", scores, "--quiet"],
        ):
            _call([str(word) for word in words])
        found = pd.read_csv(scores)
        return np.flatnonzero(found["is_anomaly"]).tolist()


def _call(words: list[str]) -> None:
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            command(words)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise RuntimeError(f"ocfuse {' '.join(words)}: {stop.code}, {out.getvalue()}") from None


def by_python(history: pd.DataFrame, today: pd.DataFrame, **settings: object) -> list[int]:
    """Return the machines that FusedDetector tells."""
    detector = FusedDetector(random_state=0, **settings).fit(history)
    return np.flatnonzero(detector.predict(today) == -1).tolist()


WAYS = {
    "command line, as it is": lambda *t: by_command(*t),
    "command line, `--by machine`": lambda *t: by_command(*t, "--by", "machine"),
    "FusedDetector()": lambda *t: by_python(*t),
    "FusedDetector(by='machine')": lambda *t: by_python(*t, by="machine"),
}


def run(is_quick: bool) -> Report:
    seeds = QUICK_SEEDS if is_quick else SEEDS
    data: Data = {name: [] for name in WAYS}
    for seed in range(seeds):
        history, today, low = draw(np.random.default_rng(seed))
        for name, way in WAYS.items():
            told = way(history, today)
            hits = len(set(told) & set(low))
            data[name].append({"found": hits, "false": len(told) - hits})
    mean = {
        name: [float(np.mean([row[key] for row in rows])) for key in ("found", "false")]
        for name, rows in data.items()
    }
    rows = [
        [name, f"{found:.1f} of {N_LOW}", f"{false:.1f} of {N - N_LOW}"]
        for name, (found, false) in mean.items()
    ]
    found, false = mean["command line, `--by machine`"]
    target = Target(
        f"command line, --by machine: >= 9 of {N_LOW} with <= 5 % false",
        f"{found:.1f}, {100 * false / (N - N_LOW):.1f} %",
        found >= 9 and false <= 0.05 * (N - N_LOW),
    )
    table = Table("Found", ["way", "found", "false"], rows)
    return Report("Machines that run low", METHOD, [target], [table], json.loads(json.dumps(data)))

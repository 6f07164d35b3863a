"""Tables of a plant and a model of its normal days, for the tests of the commands."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd

MAIN = "from ocfuse.cli import main; main()"
ANOMALIES = (17, 150)


def plant(n, seed):
    """Return rows of a plant: temperature follows pressure."""
    rng = np.random.default_rng(seed)
    pressure = rng.normal(size=n)
    return pd.DataFrame(
        {
            "part": [f"P{i:05d}" for i in range(n)],
            "when": pd.date_range("2024-01-01", periods=n, freq="min").strftime("%F %T"),
            "pressure": pressure,
            "temperature": 20 + 2 * pressure + 0.3 * rng.normal(size=n),
            "mode": rng.choice(["on", "off"], n),
        }
    )


def with_anomalies(n=200):
    """Return new rows, two of them anomalies."""
    frame = plant(n, seed=1)
    frame.loc[ANOMALIES[0], "temperature"] = 60
    frame.loc[ANOMALIES[1], "pressure"] = -9
    return frame


def process(*arguments, **options):
    """Start the console script's function in a Python of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
        **options,
    )

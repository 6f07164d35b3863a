"""A model and requests to send to it."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from ocfuse import FusedDetector
from ocfuse.tables import TableDetector

N_ROWS, N_COLUMNS, N_REQUESTS = 1_000, 20, 512


def rows(n: int, seed: int) -> pd.DataFrame:
    """Return rows of sensors that go together."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(n, 5))
    X = causes @ np.random.default_rng(0).normal(size=(5, N_COLUMNS))
    names = [f"sensor{j}" for j in range(N_COLUMNS)]
    return pd.DataFrame(X + 0.3 * rng.normal(size=X.shape), columns=names)


def write(folder: Path) -> tuple[Path, Path]:
    """Write the default detector of these rows, and bodies of requests of one row each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TableDetector(FusedDetector(random_state=0)).fit(rows(N_ROWS, 1))
    bodies = [json.dumps({"rows": [row]}) for row in rows(N_REQUESTS, 2).to_dict("records")]
    (folder / "bodies.jsonl").write_text("\n".join(bodies) + "\n")
    return model.save(folder / "model.ocf"), folder / "bodies.jsonl"

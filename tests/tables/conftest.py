import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def pumps():
    """Rows of every kind: an id, a time, numbers with and without gaps, categories, notes."""
    rng = np.random.default_rng(0)
    n = 240
    gaps = rng.normal(size=n)
    gaps[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "part_id": [f"p{i:04d}" for i in range(n)],
            "when": pd.date_range("2024-01-01", periods=n, freq="min"),
            "Druck °": rng.normal(size=n),
            "flow": rng.normal(20, 3, size=n).round(3),
            "valves": rng.integers(1, 9, size=n),
            "fixed": 1.5,
            "state": rng.choice(["on", "off", "idle, warm"], n),
            "note": [f"note {i * 7 % 230}" for i in range(n)],
            "gaps": gaps,
            "flag": rng.random(n) < 0.5,
        }
    )

"""Real data, where the environment names it."""

import os
from pathlib import Path

import pytest

DATA = os.environ.get("OCFUSE_DATA")


@pytest.fixture
def data():
    """Return the folder of the real data sets."""
    if not DATA:
        pytest.skip("OCFUSE_DATA does not name the folder of the data sets")
    return Path(DATA)

"""The demo in Python tells its story, and what it says agrees with itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def printed():
    result = subprocess.run(
        [sys.executable, "-W", "error", str(DEMO)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def test_alarms_are_where_they_should_be(printed):
    found = re.findall(r"alarms on ([\d.]+)% of the anomalies and on ([\d.]+)% of", printed)
    assert len(found) == 2
    for true, false in found:
        assert float(true) > 60
        assert float(false) < 15


def test_labels_help(printed):
    without, with_labels = map(float, re.findall(r"AUC (\d\.\d{3})", printed))
    assert 0.9 < without < with_labels


def test_one_alarm_is_explained_and_the_model_survives(printed):
    assert "anomaly: score" in printed
    assert "the scores are the same" in printed

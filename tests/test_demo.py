"""`make demo` tells the whole story, and what it says agrees with itself."""

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


def test_every_member_and_the_fusion_have_a_row(printed):
    rows = re.findall(r"^  (\S.*?) +(\d\.\d{3})(?: +(\d\.\d{3}))?$", printed, re.MULTILINE)
    count = int(re.search(r"^(\d+) members and their fusion", printed, re.MULTILINE)[1])
    weights = [float(weight) for _, _, weight in rows if weight]
    assert len(weights) == count
    assert sum(weights) == pytest.approx(1, abs=0.0005 * count)
    assert [name for name, _, weight in rows if not weight] == ["sum of all", "fused"]
    assert all(0.5 < float(value) <= 1 for _, value, _ in rows)


def test_alarms_are_where_they_should_be(printed):
    found = re.findall(r"alarms on ([\d.]+)% of the anomalies and on ([\d.]+)% of", printed)
    assert len(found) == 2
    for true, false in found:
        assert float(true) > 60
        assert float(false) < 15


def test_one_alarm_is_explained_and_the_model_survives(printed):
    assert "anomaly: score" in printed
    assert "most unusual: " in printed
    assert "the scores are the same" in printed

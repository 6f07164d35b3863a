"""The demo in Python tells its story, and what it says agrees with itself."""

import re
import runpy
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def printed():
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        runpy.run_path(str(DEMO), run_name="__main__")
    assert err.getvalue() == ""
    return out.getvalue()


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

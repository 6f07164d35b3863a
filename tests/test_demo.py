"""`make demo` prints a table that says what it promises."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"
FUSION = re.compile(
    r"^lp fusion, (?P<kind>pure|10 anomalies) +(?P<p>\S+)(?P<w>( +\d\.\d{3}){4})"
    r" +(?P<gap>\S+)  (?P<status>\w+) +(?P<auc>\d\.\d{3})$",
    re.MULTILINE,
)
NORMS = {"32/31": 32 / 31, "2": 2.0, "100": 100.0}


@pytest.fixture(scope="module")
def printed():
    result = subprocess.run(
        [sys.executable, "-W", "error", str(DEMO)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_table_is_complete(printed):
    rows = [(match["kind"], match["p"]) for match in FUSION.finditer(printed)]
    assert rows == [(kind, p) for kind in ("pure", "10 anomalies") for p in NORMS]
    assert len(re.findall(r"^\w+ alone +\d\.\d{3}$", printed, re.MULTILINE)) == 4
    assert len(re.findall(r"^sum rule .* \d\.\d{3}$", printed, re.MULTILINE)) == 1


def test_fusions_are_certified_and_feasible(printed):
    for match in FUSION.finditer(printed):
        w = np.array(match["w"].split(), dtype=float)
        assert match["status"] == "solved"
        assert float(match["gap"]) <= 1e-6
        # The weights are printed with three decimals.
        assert np.linalg.norm(w, NORMS[match["p"]]) <= 1 + 4 * 0.0005
        assert 0.5 < float(match["auc"]) <= 1.0


def test_verdict_agrees_with_the_table(printed):
    members = re.findall(r"^\w+ alone +(\d\.\d{3})$", printed, re.MULTILINE)
    assert f"AUC {max(members)}." in printed
    pure = max(match["auc"] for match in FUSION.finditer(printed) if match["kind"] == "pure")
    word = "above" if pure > max(members) else "below" if pure < max(members) else "equal to"
    assert f": {pure}, {word} that member" in printed

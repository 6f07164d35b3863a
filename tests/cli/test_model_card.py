"""What commands write as a report, and what they refuse before any work is done."""

import numpy as np
import pandas as pd
import pytest
import typer

from ocfuse import FusedDetector
from ocfuse.cli.model_card import check_report
from ocfuse.exceptions import MissingPackageError
from ocfuse.tables import TableDetector


def test_names_are_checked_first(tmp_path, monkeypatch):
    check_report(tmp_path / "r.htm")
    with pytest.raises(typer.BadParameter, match=r"\.html or \.pdf. Got r\.txt"):
        check_report(tmp_path / "r.txt")
    with pytest.raises(typer.BadParameter, match="Create it first"):
        check_report(tmp_path / "none" / "r.html")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPackageError, match="browser"):
        check_report(tmp_path / "r.pdf")


def test_the_card_tells_of_the_table(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["flow", "level"])
    rows.insert(0, "id", [f"r{i}" for i in range(60)])
    model = TableDetector(FusedDetector("light", random_state=0)).fit(rows)
    model.report(rows, name="plant.csv").save(tmp_path / "r.html")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    for text in ("Anomalies in plant.csv", "60 rows, 2 columns", "id (id: ", model.card_["sha256"]):
        assert text in html

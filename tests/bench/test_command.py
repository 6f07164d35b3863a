"""The command: it runs the experiment, writes results, and goes on after a stop."""

import json
import os

import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from ocfuse.cli.bench import app
from ocfuse.exceptions import InvalidInputError

RUN = ["paper", "--quick", "--sets", "D5", "--seeds", "1", "--jobs", "1", "--out"]


@pytest.mark.skipif("OCFUSE_DATA" not in os.environ, reason="OCFUSE_DATA names no data")
def test_one_set_and_one_cell_again(tmp_path):
    runner = CliRunner()
    result = runner.invoke(app, [*RUN, str(tmp_path)])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "results.json").read_text())
    assert f"{len(found)} results, 0 of them failures" in result.output
    assert not [record for record in found if "failure" in record]
    assert {record["n_train"] for record in found} == {35}
    assert min(r["auc"] for r in found if r["row"] == "LOF") > 80
    files = sorted((tmp_path / "cells" / "paper").rglob("*"))
    assert [file.name for file in files if file.is_file()] == ["D5.0.json"] * 2
    written = files[-1].stat().st_mtime_ns
    runner.invoke(app, [*RUN, str(tmp_path)])
    assert files[-1].stat().st_mtime_ns == written

    cell = tmp_path / "cells" / "paper" / "pure" / "D5.0.json"
    again = runner.invoke(app, ["cell", str(cell), "Sum rule RPAU"])
    assert json.loads(again.output)["is_same"]
    wrong = runner.invoke(app, ["cell", str(cell), "Sum"])
    assert isinstance(wrong.exception, InvalidInputError)


@pytest.mark.parametrize(
    "arguments", [["paper", "--sets", "D11"], ["paper", "--seeds", "0"], ["cell", "no.json", "IF"]]
)
def test_impossible_wishes(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InvalidInputError)

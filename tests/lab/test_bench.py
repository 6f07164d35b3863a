"""The command: it runs the experiment, writes results, and goes on after a stop."""

import json
import os

import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from ocfuse.cli.app import run
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.bench import app
from ocfuse.lab.paper import experiment

RUN = ["paper", "--quick", "--sets", "D5", "--seeds", "1", "--jobs", "1", "--out"]
#: Systems that take longest; all run in `tests.lab.paper.test_paper`.
DEAR = ("FusedDetector", "Pure1", "Non-pure1", "DEOD", "IF", "RAEOCSVM")


@pytest.mark.slow
@pytest.mark.skipif("OCFUSE_DATA" not in os.environ, reason="OCFUSE_DATA names no data")
def test_one_set_and_one_cell_again(tmp_path, monkeypatch):
    for protocol, known in experiment.SYSTEMS.items():
        cheap = {name: known[name] for name in known if not name.startswith(DEAR)}
        monkeypatch.setitem(experiment.SYSTEMS, protocol, cheap)
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

    again = runner.invoke(app, ["cell", str(tmp_path), "Sum rule RPAU", "--set", "d5"])
    assert json.loads(again.output)["is_same"]
    assert again.exit_code == 0
    wrong = runner.invoke(app, ["cell", str(tmp_path), "Sum"])
    assert isinstance(wrong.exception, InvalidInputError)
    changed = [record | {"auc": 1.0} for record in found]
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    other = runner.invoke(app, ["cell", str(tmp_path / "changed.json"), "Sum rule RPAU"])
    assert other.exit_code == 1
    assert not json.loads(other.output)["is_same"]


@pytest.mark.parametrize(
    "arguments", [["paper", "--sets", "D11"], ["paper", "--seeds", "0"], ["cell", "no.json", "IF"]]
)
def test_impossible_wishes(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InvalidInputError)


@pytest.mark.parametrize("text", ["[]", "null", "3", '{"runs": []}', "[{}]", "{"])
def test_wrong_file_of_results(tmp_path, capsys, text):
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(SystemExit) as exit_info:
        run(["bench", "cell", str(file), "IF"])
    assert exit_info.value.code == 3
    assert capsys.readouterr().err.startswith("Error: ")


def test_folder_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as exit_info:
        run(["bench", "paper", "--sets", "D5", "--out", str(tmp_path / "file" / "out")])
    assert exit_info.value.code == 3
    assert "out' must be one to write to" in capsys.readouterr().err

"""`ocfuse fit`: what it prints and writes, and what it refuses before any work."""

import json
import os
import stat

import numpy as np
import pandas as pd
import pytest

from ocfuse import load
from ocfuse.paper import PaperDetector
from ocfuse.persistence import read_header
from ocfuse.persistence.header import FORMAT
from tests.cli.cases import plant


@pytest.fixture
def table(tmp_path):
    """Return a small table on disk."""
    path = tmp_path / "normal.csv"
    frame = plant(120, seed=0)
    frame["unit"] = 1
    frame.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_fit_prints_schema_and_summary_and_writes_a_model(table, tmp_path, run_command):
    out = tmp_path / "m.ocf"
    code, text, err = run_command(
        *("fit", table, "-o", out, "--members", "light", "--id", "part", "--time", "when"),
        *("--ignore", "mode", "--ignore", "unit", "--false-alarms", "0.1"),
    )
    assert code == 0, err
    kinds = {line.split()[0]: line.split()[1] for line in text.splitlines() if line}
    expected = {"part": "id", "when": "time", "pressure": "number", "mode": "ignored"}
    assert expected.items() <= kinds.items()
    for words in ("gmm-1, gmm-3, knn-5, lof-20", "120", "10.00% stated", f"{out} written"):
        assert words in text
    model = load(out)
    assert model.schema_.features == ["pressure", "temperature"]
    assert model.detector_.false_alarm_rate == 0.1
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


@pytest.mark.slow
def test_json_holds_the_same_and_quiet_says_nothing(table, tmp_path, run_command):
    out = tmp_path / "m.ocf"
    arguments = ("fit", table, "-o", out, "--members", "knn-5,gmm-1", "--fusion", "sum")
    code, text, _ = run_command(*arguments, "--json")
    told = json.loads(text)
    assert code == 0
    assert told["members"] == ["knn-5", "gmm-1"]
    assert told["fusion"] == "SumRule"
    assert told["rows"] == 120
    assert told["file"] == str(out)
    assert {"name", "kind", "reason"} <= told["columns"][0].keys()
    assert run_command(*arguments, "--force", "--quiet") == (0, "", "")


@pytest.mark.slow
def test_seed_makes_equal_models_without_being_asked(table, tmp_path, run_command):
    for name in ("a.ocf", "b.ocf"):
        assert run_command("fit", table, "-o", tmp_path / name, "--members", "light")[0] == 0
    frame = pd.read_csv(table)
    a, b = (load(tmp_path / name) for name in ("a.ocf", "b.ocf"))
    pd.testing.assert_frame_equal(a.score(frame), b.score(frame))


def test_an_existing_model_is_kept_without_force(table, tmp_path, run_command):
    out = tmp_path / "m.ocf"
    out.write_text("precious")
    code, text, err = run_command("fit", table, "-o", out)
    assert (code, text) == (2, "")
    assert "--force" in err
    assert out.read_text() == "precious"
    assert run_command("fit", table, "-o", out, "--members", "light", "--force")[0] == 0
    assert read_header(out).format == FORMAT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--members", "knn-55"], "knn-5"),
        (["--fusion", "some"], "'sum'"),
        (["--tune", "luck"], "rpau"),
        (["--false-alarms", "5"], "0.01"),
        (["--threads", "0"], "threads"),
        (["--out", "/nowhere/m.ocf"], "/nowhere"),
        (["--out", "/dev/full", "--force"], "not a file"),
        (["--delimiter", "::"], "character"),
        (["--report", "r.txt"], ".html"),
        (["--report", "/nowhere/r.html"], "/nowhere"),
    ],
)
def test_wrong_usage_is_told_before_the_work(table, run_command, arguments, words):
    code, text, err = run_command("fit", table, *arguments)
    assert (code, text) == (2, "")
    assert words in err


def test_no_device_is_ever_replaced(table, run_command):
    before = os.stat("/dev/null")
    assert run_command("fit", table, "--members", "light", "-o", "/dev/null", "--force")[0] == 2
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert os.stat("/dev/null").st_ino == before.st_ino


@pytest.mark.parametrize("content", ["", "a,b\n", "\n\n"])
def test_a_table_without_rows_is_bad_data(tmp_path, run_command, content):
    path = tmp_path / "t.csv"
    path.write_text(content)
    code, text, err = run_command("fit", path, "-o", tmp_path / "m.ocf")
    assert (code, text) == (3, "")
    assert err.startswith("Error: t.csv ")
    assert not (tmp_path / "m.ocf").exists()


def test_unknown_column_is_bad_data(table, tmp_path, run_command):
    code, _, err = run_command("fit", table, "-o", tmp_path / "m.ocf", "--label", "clas")
    assert code == 3
    assert "clas" in err


def test_a_folder_that_takes_no_file(table, run_command):
    # whoever runs this, even root cannot write there
    code, out, err = run_command("fit", table, "--members", "light", "-o", "/proc/m.ocf")
    assert (code, out) == (3, "")
    assert err.startswith("Error: ")
    assert "/proc" in err


def test_warnings_are_single_lines_after_the_summary(tmp_path, run_command):
    path = tmp_path / "few.csv"
    plant(12, seed=0).to_csv(path, index=False)
    arguments = ("fit", path, "-o", tmp_path / "m.ocf", "--members", "light", "--force")
    code, _, err = run_command(*arguments, "--id", "part", "--time", "when")
    assert code == 0
    assert err
    assert all(line.startswith("Warning: ") for line in err.splitlines())
    assert len(set(err.splitlines())) == len(err.splitlines())


def test_warnings_that_matter_are_told_once_also_as_json(tmp_path, run_command):
    path = tmp_path / "few.csv"
    plant(36, seed=0).assign(unit=1, run=np.arange(36) // 2).to_csv(path, index=False)
    arguments = ("fit", path, "-o", tmp_path / "m.ocf", "--members", "light", "--force")
    arguments += ("--id", "part", "--ignore", "when", "--group", "run")
    code, text, err = run_command(*arguments, "--json")
    assert code == 0, err
    told = json.loads(text)["warnings"]
    assert err.splitlines() == [f"Warning: {note}" for note in told]
    assert sum("same value in every row: unit" in note for note in told) == 1
    assert sum("18 groups are too few" in note for note in told) == 1
    assert load(tmp_path / "m.ocf").schema_.features == ["pressure", "temperature", "mode", "unit"]


def test_hints_of_the_library_are_for_the_command_line(table, tmp_path, run_command):
    arguments = ("fit", table, "-o", tmp_path / "m.ocf", "--members", "light", "--fusion", "sum")
    code, _, err = run_command(*arguments, "--tune", "rpau")
    assert (code, "leave --tune out" in err, "Search" in err) == (3, True, False)
    code, _, err = run_command("score", table, table)
    assert (code, "that `ocfuse fit` wrote" in err) == (3, True)


def test_hints_name_flags(tmp_path, run_command):
    path = tmp_path / "t.csv"
    frame = plant(60, seed=0).assign(state=["a", "b", "c"] * 20)
    frame.to_csv(path, index=False)
    code, _, err = run_command("fit", path, "-o", tmp_path / "m.ocf", "--label", "state")
    assert code == 3
    assert "--normal 'a'" in err
    frame["pressure"] = ["1,5", *frame["pressure"].astype(str)[1:]]
    frame.to_csv(path, index=False)
    code, _, err = run_command("fit", path, "-o", tmp_path / "m.ocf")
    assert code == 3
    assert "--decimal ','" in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-o", "same.html", "--report", "same.html"], "--out and --report are the same file"),
        (["-o", "normal.csv", "--force"], "is the data and would be overwritten"),
        (["-o", "sub/../normal.csv", "--force"], "is the data and would be overwritten"),
    ],
)
def test_no_file_is_written_twice_or_over_the_data(table, run_command, monkeypatch, flags, words):
    monkeypatch.chdir(table.parent)
    (table.parent / "sub").mkdir()
    before = table.read_bytes()
    code, _, err = run_command("fit", "normal.csv", "--members", "light", *flags)
    assert code == 2
    assert words in " ".join(err.replace("│", "").split())
    assert table.read_bytes() == before


@pytest.mark.slow
def test_rows_are_counted_by_what_became_of_them(table, tmp_path, run_command):
    frame = plant(120, seed=0).assign(fault=(np.arange(120) >= 110).astype(int))
    frame.loc[110:, "pressure"] += 9
    frame.to_csv(table, index=False)
    flags = ("--members", "gmm-1, knn-5", "--label", "fault", "-o", tmp_path / "m.ocf")
    code, text, _ = run_command("fit", table, *flags)
    assert code == 0
    assert "120: 110 learned from as normal, 10 labelled anomalies" in text
    assert "2: gmm-1, knn-5" in text


@pytest.mark.slow
def test_the_paper_s_method(table, tmp_path, run_command):
    out = tmp_path / "paper.ocf"
    code, text, err = run_command(
        *("fit", table, "-o", out, "--method", "paper", "--tuning", "pseudo-negatives"),
        *("--solver", "frank-wolfe", "--scope", "global", "--p", "2", "--json"),
        *("--id", "part", "--time", "when", "--ignore", "mode"),
    )
    assert code == 0, err
    told = json.loads(text)
    assert told["fusion"] == "LpFusion"
    assert [name.partition("-")[0] for name in told["members"]] == ["svdd", "gp", "kpca", "gmm"]
    assert (told["rows"], told["rows_learned"], told["rows_held_out"]) == (120, 93, 27)
    assert told["anomalies_labelled"] == 0
    detector = load(out).detector_
    assert isinstance(detector, PaperDetector)
    assert (detector.tuning, detector.solver, detector.p_) == ("pseudo-negatives", "frank-wolfe", 2)
    code, text, _ = run_command("inspect", out)
    assert code == 0
    assert "93 learned from as normal, 27 held out for choices and threshold" in text
    scores = tmp_path / "scores.csv"
    assert run_command("score", out, table, "-o", scores)[0] == 0
    assert len(pd.read_csv(scores)) == 120


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tuning", "rpau"), "only with --method paper. Add that"),
        (("--p", "2"), "only with --method paper. Add that"),
        (("--method", "paper", "--fusion", "sum"), "--fusion: not with --method paper"),
        (("--method", "paper", "--stream"), "is for rows: leave --stream out"),
        (("--method", "paper", "--solver", "simplex"), "'simplex' is not one of"),
        (("--method", "paper", "--p", "0.5"), "p must be a number in [1, inf]"),
    ],
)
def test_flags_of_the_paper_s_method_that_are_refused(
    table, tmp_path, run_command, arguments, words
):
    code, _, err = run_command("fit", table, "-o", tmp_path / "m.ocf", *arguments)
    assert code in (2, 3)
    assert words in " ".join(err.replace("│", " ").split())
    assert not (tmp_path / "m.ocf").exists()

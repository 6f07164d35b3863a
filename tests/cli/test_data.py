"""`ocfuse data`, in this process: what it prints, and its exit codes."""

import json
import shutil
import warnings

import pytest
from typer.testing import CliRunner

from ocfuse.cli.app import app, run
from ocfuse.datasets.uci import UCI_SETS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder of the user's; nothing is cached, and nobody listens."""
    monkeypatch.setenv("OCFUSE_DATA", str(tmp_path))
    monkeypatch.setenv("OCFUSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr("ocfuse.datasets.uci.ARCHIVE", "http://127.0.0.1:1")
    monkeypatch.setattr("ocfuse.datasets.sequences.URL", "http://127.0.0.1:1/robot.zip")
    return tmp_path


def invoke(*arguments):
    """Run the command and return what it printed to stdout."""
    result = CliRunner().invoke(app, ["data", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def failing(capsys, *arguments):
    """Run the command as the console script does; return its code and its two outputs."""
    with pytest.raises(SystemExit) as caught:
        run(["data", *arguments])
    return caught.value.code, *capsys.readouterr()


def test_list(folder):
    text = invoke("list")
    for name in UCI_SETS:
        assert f"uci/{name}" in text
    (wine,) = (line.split() for line in text.splitlines() if line.startswith("uci/wine"))
    assert wine == ["uci/wine", "D7", "table", "178", "13", "71", "CC", "BY", "4.0", wine[-1]]
    assert wine[-1] == "scikit-learn"


def test_list_as_json(folder):
    entries = {entry["name"]: entry for entry in json.loads(invoke("list", "--json"))}
    assert entries["uci/wine"]["here"] == "scikit-learn"
    assert entries["uci/iris"]["here"] is None
    assert entries["uci/iris"]["n_normals"] == 50
    assert len(entries["uci/iris"]["sha256"]) == 64


def test_show(folder):
    text = invoke("show", "D7", "--rows", "2")
    for expected in ("uci/wine", "CC BY 4.0", UCI_SETS["wine"].sha256, "10.24432/C5PC7J"):
        assert expected in text
    assert "\n2         71\n" in text  # class and count
    assert "alcohol               14.23  13.2" in text


def test_show_as_json(folder):
    shown = json.loads(invoke("show", "wine", "--rows", "1", "--json"))
    assert shown["classes"] == {"1": 59, "2": 71, "3": 48}
    assert shown["first_rows"][0][:2] == [14.23, 1.71]
    assert shown["first_classes"] == ["1"]
    assert shown["normal_class"] == "2"


@pytest.mark.slow
def test_show_gaps_sequences_and_many_columns(data):
    gaps = json.loads(invoke("show", "hepatitis", "--json"))
    assert gaps["first_rows"][0][17] is None
    assert "obstruction      34" in invoke("show", "robot-failures/lp1")
    assert "anomaly  13067" in invoke("show", "skab")
    assert "... 512 columns in all" in invoke("show", "adbench/MVTec-AD_cable")


def test_fetch(folder):
    assert invoke("fetch", "D7", "uci/wine").split() == [
        *("name", "here"),
        *("uci/wine", "scikit-learn"),
        *("uci/wine", "scikit-learn"),
    ]


def test_fetch_tells_full_names_and_places(data):
    results = json.loads(invoke("fetch", "D1", "Iris", "skab/valve1/0", "--json"))
    assert results == [
        {"name": "uci/banknotes", "here": str(data / "uci" / "D1_banknotes.csv")},
        {"name": "uci/iris", "here": str(data / "uci" / "D5_iris.csv")},
        {"name": "skab/valve1/0", "here": str(data / "sequences/skab/valve1/0.csv")},
    ]


def test_damaged_set_is_left_out_of_the_list(folder, capsys):
    (folder / "adbench").mkdir()
    damaged = folder / "adbench" / "7_damaged.npz"
    damaged.write_bytes(b"no")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, err = failing(capsys, "list")
    assert code == 0
    assert "uci/wine" in out
    assert "7_damaged" not in out
    assert err.startswith(f"Warning: A set is left out. {damaged} cannot be read as npz")
    assert err.count("\n") == 1


def test_fetch_goes_on_after_a_failure(folder, capsys):
    code, out, err = failing(capsys, "fetch", "iris", "wine", "--json")
    assert code == 3
    iris, wine = json.loads(out)
    assert wine == {"name": "uci/wine", "here": "scikit-learn"}
    assert "cannot be reached" in iris["error"]
    assert f"put it at {folder}/uci/iris.zip" in err


def test_fetch_all_asks_for_everything_that_has_an_address(folder, capsys):
    code, out, _ = failing(capsys, "fetch", "--all", "--json")
    assert code == 3
    names = [result["name"] for result in json.loads(out)]
    assert names == [f"uci/{n}" for n in UCI_SETS] + [f"robot-failures/lp{i}" for i in range(1, 6)]


def test_fetch_all_from_the_folder(data):
    results = json.loads(invoke("fetch", "--all", "--json"))
    assert all(result["here"].startswith(str(data)) for result in results)


@pytest.mark.parametrize(
    "arguments",
    [["fetch"], ["fetch", "--all", "wine"], ["show"], ["show", "D7", "--rows", "-1"], ["nonsense"]],
)
def test_wrong_usage(folder, capsys, arguments):
    code, out, err = failing(capsys, *arguments)
    assert code == 2
    assert "Usage" in err
    assert out == ""


@pytest.mark.parametrize("command", ["show", "fetch"])
def test_unknown_name(folder, capsys, command):
    code, out, err = failing(capsys, command, "irsi")
    assert (code, out) == (3, "")
    assert err == "Error: name must be a known name. Got 'irsi'. Did you mean 'uci/iris'?\n"


def test_unknown_number_of_the_paper(folder, capsys):
    code, out, err = failing(capsys, "show", "D99")
    assert (code, out) == (3, "")
    assert "Got 'D99'" in err
    assert "D1 to D10" in err


def test_broken_file(data, folder, capsys):
    (folder / "uci").mkdir()
    broken = folder / "uci" / "D5_iris.csv"
    shutil.copy(data / "uci" / "D5_iris.csv", broken)
    broken.write_text(broken.read_text().replace("5.1,3.5", "5.2,3.5"))
    code, out, err = failing(capsys, "show", "D5")
    assert (code, out) == (3, "")
    assert f"Expected content with SHA-256 {UCI_SETS['iris'].sha256}. Got " in err

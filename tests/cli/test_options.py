"""Settings from a file: equal to the flags, which win; mistakes are told."""

import json
import sys

import pytest


@pytest.fixture
def configured(plant_folder, tmp_path, run_command):
    """Return what runs `ocfuse score` with a file of settings."""

    def run_it(settings, *flags, command="score"):
        path = tmp_path / "ocfuse.toml"
        path.write_text(settings, encoding="utf-8")
        files = (plant_folder / "model.ocf", plant_folder / "new.csv")
        return run_command(command, *files, "--config", path, *flags)

    return run_it


def n_anomalies(text):
    return sum(json.loads(line)["is_anomaly"] for line in text.splitlines())


def test_file_equals_flags_and_flags_win(configured):
    settings = "json = true\nquiet = true\n[score]\nthreshold = 1e9\nfail-on-anomaly = true\n"
    code, text, err = configured(settings)
    assert (code, err, n_anomalies(text)) == (1, "", 200)
    code, text, _ = configured(settings, "--threshold", "-1e9")
    assert (code, n_anomalies(text)) == (0, 0)


def test_flags_switch_off_what_the_file_switches_on(configured):
    settings = "json = true\nquiet = true\n[score]\nfail-on-anomaly = true\n"
    code, text, err = configured(settings, "--no-json", "--no-quiet", "--no-fail-on-anomaly")
    assert code == 0
    assert text.startswith("row,part,")
    assert err.startswith("200 rows, 2 anomalies")


def test_lists_and_single_values(configured):
    for rows in ("[150, 17]", "17"):
        code, text, err = configured(f"[explain]\nrow = {rows}\njson = true", command="explain")
        assert code == 0, err
        assert json.loads(text)[-1]["row"] == 17


def test_tables_of_other_commands_and_shared_keys_that_do_not_apply(configured):
    code, _, err = configured("seed = 3\n[fit]\nmembers = 'light'\n[compare]\nx = 1\n", "--quiet")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[score]\nfalse_alarms = 0.1", "'false-alarms'"),
        ("[score]\nmembers = 'light'", "members"),
        ("[scores]\nthreshold = 1", "'score'"),
        ("trheads = 1", "'threads'"),
        ("score = 1", "[score]"),
        ("[score]\nthreshold = true", "threshold"),
        ("[score]\nfail-on-anomaly = 1", "true or false"),
        ("[score]\nthreshold = [1.0]", "single value"),
        ("[score]\nthreshold = 'low'", "threshold"),
        ("[score]\nmodel = 'm.ocf'", "model"),
        ("[score\n", "TOML"),
    ],
)
def test_mistakes(configured, settings, words):
    code, text, err = configured(settings)
    assert (code, text) == (2, "")
    assert words in " ".join(err.replace("│", "").split())


def test_no_such_file(plant_folder, tmp_path, run_command):
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    code, _, err = run_command("score", *files, "--config", tmp_path / "none.toml")
    assert code == 2
    assert "none.toml" in err


def test_python_without_a_reader_of_toml(configured, monkeypatch):
    monkeypatch.setitem(sys.modules, "tomllib", None)
    code, _, err = configured("")
    assert code == 2
    assert "ocfuse.toml needs Python 3.11" in err


def test_the_file_of_the_working_folder_is_read_unasked(
    plant_folder, tmp_path, run_command, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ocfuse.toml").write_text("quiet = true\njson = true\n[score]\nthreshold = 1e9")
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    code, text, err = run_command("score", *files)
    assert (code, err, n_anomalies(text)) == (0, "", 200)

"""`ocfuse score`: the same scores in every format, complete files or none, exit codes."""

import io
import json
import resource
import signal
import time
from contextlib import contextmanager

import pandas as pd
import pytest

from ocfuse import load
from ocfuse.cli import score as score_command
from ocfuse.tables import open_source
from tests.cli.cases import ANOMALIES, plant, process


@pytest.fixture
def expected(plant_folder):
    """Return the scores that the library gives."""
    frame = open_source(plant_folder / "new.csv").read()
    return load(plant_folder / "model.ocf").score(frame)


def chunked(monkeypatch, n_rows):
    """Let the command read few rows at a time."""
    monkeypatch.setattr(
        "ocfuse.tables.open_source", lambda *a, **k: open_source(*a, **k, chunk_rows=n_rows)
    )


def read_lines(path):
    return pd.DataFrame(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("s.csv", pd.read_csv),
        ("s.csv.gz", pd.read_csv),
        ("s.TSV", lambda path: pd.read_csv(path, sep="\t")),
        ("s.parquet", pd.read_parquet),
        ("s.jsonl", read_lines),
    ],
)
def test_formats_hold_the_scores_of_the_library(
    plant_folder, tmp_path, run_command, expected, monkeypatch, name, read
):
    # several chunks: order and header must not show them
    chunked(monkeypatch, 64)
    code, text, err = run_command(
        "score", plant_folder / "model.ocf", plant_folder / "new.csv", "-o", tmp_path / name
    )
    assert (code, err) == (0, "")
    assert f"200 rows, {len(ANOMALIES)} anomalies (1.00%)" in text
    scores = read(tmp_path / name)
    assert list(scores["row"]) == list(range(200))
    assert list(scores["part"]) == [f"P{i:05d}" for i in range(200)]
    assert scores["score"].tolist() == pytest.approx(expected["score"].tolist())
    assert tuple(scores.index[scores["is_anomaly"]]) == ANOMALIES
    assert [path.name for path in tmp_path.iterdir()] == [name]


def to_the_bit(file):
    """Return the scores of a CSV file; pandas before 3 rounds the last digit when it reads."""
    return pd.read_csv(file, dtype={"score": "str"})["score"].astype(float)


def test_stdout_holds_scores_alone(plant_folder, run_command, expected):
    arguments = ("score", plant_folder / "model.ocf", plant_folder / "new.csv")
    code, text, err = run_command(*arguments)
    assert code == 0
    assert to_the_bit(io.StringIO(text)).tolist() == expected["score"].tolist()
    assert err.startswith("200 rows")
    code, text, err = run_command(*arguments, "--json", "--quiet")
    assert (code, err) == (0, "")
    assert [json.loads(line)["score"] for line in text.splitlines()] == expected["score"].tolist()


def test_fail_on_anomaly(plant_folder, tmp_path, run_command):
    model, out = plant_folder / "model.ocf", tmp_path / "s.csv"
    code, *_ = run_command("score", model, plant_folder / "new.csv", "-o", out, "--fail-on-anomaly")
    assert code == 1
    assert len(pd.read_csv(out)) == 200
    code, *_ = run_command(
        *("score", model, plant_folder / "new.csv", "--threshold", "-1e9", "--fail-on-anomaly")
    )
    assert code == 0


def test_threshold_and_false_alarms_move_the_alarms(plant_folder, tmp_path, run_command):
    arguments = ("score", plant_folder / "model.ocf", plant_folder / "new.csv", "--json")
    out = ("-o", tmp_path / "s.csv")
    everything = json.loads(run_command(*arguments, *out, "--threshold", "1e9")[1])
    assert everything["anomalies"] == everything["rows"] == 200
    many = json.loads(run_command(*arguments, *out, "--false-alarms", "0.4")[1])
    assert len(ANOMALIES) < many["anomalies"] < 200
    code, _, err = run_command(*arguments, "--threshold", "1", "--false-alarms", "0.1")
    assert code == 2
    assert "either" in err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.rename(columns={"temperature": "temp"}), ("temperature", "temp")),
        (lambda frame: frame.assign(pressure="high"), ("pressure", "another type", "high")),
    ],
)
def test_columns_that_do_not_match(plant_folder, tmp_path, run_command, change, words):
    path, out = tmp_path / "other.csv", tmp_path / "s.csv"
    change(pd.read_csv(plant_folder / "new.csv")).to_csv(path, index=False)
    code, text, err = run_command("score", plant_folder / "model.ocf", path, "-o", out)
    assert (code, text) == (3, "")
    assert all(word in err for word in words), err
    assert not out.exists()


@pytest.mark.slow
def test_further_columns_are_told_once_and_not_used(
    plant_folder, tmp_path, run_command, expected, monkeypatch
):
    frame = pd.read_csv(plant_folder / "new.csv").assign(extra=1)
    frame.loc[190:, "mode"] = [f"mode {i}" for i in range(190, 200)]
    path = tmp_path / "more.csv"
    frame.to_csv(path, index=False)
    chunked(monkeypatch, 1)
    code, text, err = run_command("score", plant_folder / "model.ocf", path)
    assert code == 0
    scores = pd.read_csv(io.StringIO(text))["score"]
    assert scores[:190].tolist() == pytest.approx(expected["score"][:190].tolist())
    warnings, summary = err.splitlines()[:-1], err.splitlines()[-1]
    assert warnings == [
        "Warning: Cells unlike those of training:",
        "  mode: new values, which make their rows unusual ('mode 190', 'mode 191', 'mode 192', "
        "'mode 193', 'mode 194' and 5 more): 10 rows, the first of them row 190",
        "Warning: These columns were not there in training and are not used: extra.",
    ]
    assert summary.startswith("200 rows")


def test_a_row_that_cannot_be_scored_stops_all_and_says_where(
    plant_folder, tmp_path, run_command, monkeypatch
):
    frame = pd.read_csv(plant_folder / "new.csv")
    frame.loc[130, "pressure"] = float("nan")
    path, out = tmp_path / "gap.csv", tmp_path / "s.csv"
    frame.to_csv(path, index=False)
    out.write_text("of yesterday")
    chunked(monkeypatch, 100)
    flags = ("--gaps", "refuse", "-o", out)
    code, text, err = run_command("score", plant_folder / "model.ocf", path, *flags)
    assert (code, text) == (3, "")
    assert "row 130" in err
    assert "--gaps 'judge'" in err
    assert "pressure" in err
    assert out.read_text() == "of yesterday"
    assert {file.name for file in tmp_path.iterdir()} == {"gap.csv", "s.csv"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("s.xlsx", ".parquet"), ("s", ".csv"), (".", "folder"), ("new.csv", "overwritten")],
)
def test_wrong_targets(plant_folder, run_command, name, words):
    before = (plant_folder / "new.csv").read_bytes()
    code, _, err = run_command(
        "score", plant_folder / "model.ocf", plant_folder / "new.csv", "-o", plant_folder / name
    )
    assert code == 2
    assert words in err
    assert (plant_folder / "new.csv").read_bytes() == before


@pytest.mark.parametrize("content", ["", "part,when,pressure,temperature,mode\n"])
def test_nothing_to_score(plant_folder, tmp_path, run_command, content):
    path, out = tmp_path / "none.csv", tmp_path / "s.csv"
    path.write_text(content)
    code, text, err = run_command("score", plant_folder / "model.ocf", path, "-o", out)
    assert (code, text) == (3, "")
    assert err.startswith("Error: none.csv ")
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"\x80\x04.", "pickle"), (b"a,b\n1,2\n", "not an ocfuse model")],
)
def test_what_is_no_model(plant_folder, tmp_path, run_command, content, words):
    path = tmp_path / "m.ocf"
    path.write_bytes(content)
    code, _, err = run_command("score", path, plant_folder / "new.csv")
    assert code == 3
    assert words in err
    code, _, err = run_command("score", tmp_path / "none.ocf", plant_folder / "new.csv")
    assert (code, "none.ocf" in err) == (3, True)


def test_a_detector_without_columns_is_refused(plant_folder, tmp_path, run_command):
    path = tmp_path / "arrays.ocf"
    load(plant_folder / "model.ocf").detector_.save(path)
    code, _, err = run_command("score", path, plant_folder / "new.csv")
    assert code == 3
    assert "FusedDetector" in err


def test_full_disk(plant_folder, tmp_path, run_command):
    out = tmp_path / "s.csv"
    out.symlink_to("/dev/full")
    code, text, err = run_command(
        "score", plant_folder / "model.ocf", plant_folder / "new.csv", "-o", out
    )
    assert (code, text, err) == (3, "", f"Error: {out}: No space left on device\n")


@contextmanager
def small_disk():
    """Let no file grow beyond some bytes; what the tests themselves write may be one, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_a_disk_that_fills_up_leaves_nothing(plant_folder, tmp_path, run_command, name):
    given = (plant_folder / "model.ocf", plant_folder / "new.csv")
    with small_disk():
        code, out, err = run_command("score", *given, "-o", tmp_path / name)
    assert (code, out) == (3, "")
    assert err == f"Error: {tmp_path / name}: File too large\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_leaves_no_half_written_file(plant_folder, tmp_path):
    """It has begun its file, and waits for more rows."""
    done = process("score", plant_folder / "model.ocf", "-", "-o", tmp_path / "s.csv", stdin=-1)
    done.stdin.write((plant_folder / "new.csv").read_text())
    done.stdin.flush()
    while done.poll() is None and not any(tmp_path.iterdir()):
        time.sleep(0.02)
    done.send_signal(signal.SIGINT)
    done.wait(300)  # before its input ends, which would end it as well
    _, err = done.communicate()
    assert (done.returncode, err) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_report(plant_folder, tmp_path, run_command):
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    out, page = tmp_path / "s.csv", tmp_path / "r.html"
    code, *_ = run_command("score", *files, "-o", out, "--report", page)
    assert code == 0
    text = page.read_text(encoding="utf-8")
    assert "Anomalies in new.csv" in text
    assert "P00017" in text
    code, _, err = run_command("score", files[0], "-", "--report", page)
    assert (code, "stdin" in err) == (2, True)


def test_a_report_reads_and_scores_the_table_once(
    plant_folder, tmp_path, run_command, monkeypatch, counted
):
    chunked(monkeypatch, 64)
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    out, page = tmp_path / "s.csv", tmp_path / "r.html"
    assert run_command("score", *files, "-o", out, "--report", page)[0] == 0
    assert (counted["reads"], counted["scored"]) == (1, 200)


@pytest.mark.parametrize(
    ("out", "report", "words"),
    [
        ("model.ocf", None, "The name tells the format"),
        ("new.csv", None, "is the data and would be overwritten"),
        (None, "new.html", "is the data and would be overwritten"),
    ],
)
def test_nothing_that_is_read_is_overwritten(
    plant_folder, tmp_path, run_command, out, report, words
):
    new = tmp_path / ("new.csv" if report is None else "new.html")
    new.write_bytes((plant_folder / "new.csv").read_bytes())
    before = new.read_bytes()
    flags = ("-o", tmp_path / out) if out else ("--report", tmp_path / report)
    code, _, err = run_command("score", plant_folder / "model.ocf", new, *flags)
    assert code == 2
    assert words in " ".join(err.replace("│", "").split())
    assert new.read_bytes() == before


@pytest.mark.slow
def test_labels_and_times_that_cannot_be_used_leave_the_report_without_them(tmp_path, run_command):
    frame = plant(100, seed=0).assign(fault=0)
    table, model, page = (tmp_path / name for name in ("t.csv", "m.ocf", "r.html"))
    frame.to_csv(table, index=False)
    flags = ("--members", "light", "--label", "fault", "--time", "when")
    assert run_command("fit", table, "-o", model, *flags)[0] == 0
    frame.assign(fault="maybe", when="noon").to_csv(table, index=False)
    code, _, err = run_command("score", model, table, "-o", tmp_path / "s.csv", "--report", page)
    assert (code, "maybe" in err, "noon" in err) == (0, True, True)
    html = page.read_text(encoding="utf-8")
    assert "No row has a label that says normal or anomaly" in html
    assert 'id="time-title"' not in html


@pytest.fixture
def with_gaps(plant_folder, tmp_path):
    """Return new rows, two of which cannot be scored."""
    frame = pd.read_csv(plant_folder / "new.csv", dtype="str")  # numbers as they are written
    frame.loc[[3, 130], "pressure"] = None
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    return tmp_path / "gaps.csv"


def test_keep_going(plant_folder, tmp_path, run_command, expected, monkeypatch, with_gaps):
    chunked(monkeypatch, 100)
    out, page = tmp_path / "s.csv", tmp_path / "r.html"
    flags = ("--keep-going", "--gaps", "refuse", "-o", out, "--report", page)
    code, text, err = run_command("score", plant_folder / "model.ocf", with_gaps, *flags)
    assert code == 0, err
    assert text.startswith("200 rows (2 without a score), 2 anomalies (1.00%)")
    assert "2 rows, the first of them row 3" in err
    scores = to_the_bit(out)
    assert scores.index[scores.isna()].tolist() == [3, 130]
    assert scores.drop([3, 130]).tolist() == expected["score"].drop([3, 130]).tolist()
    assert "2 rows without a score left out" in page.read_text(encoding="utf-8")


def test_an_error_that_comes_late_leaves_chunks_on_stdout(
    plant_folder, run_command, monkeypatch, with_gaps
):
    with_gaps.write_text(with_gaps.read_text().replace(",,", ",0.5,", 1))  # row 3
    chunked(monkeypatch, 100)
    flags = ("--gaps", "refuse")
    code, text, _ = run_command("score", plant_folder / "model.ocf", with_gaps, *flags)
    assert (code, len(text.splitlines())) == (3, 101)


def test_gaps_are_judged_or_alarms(plant_folder, run_command, with_gaps):
    """One gap stops nothing; whoever wants an alarm says so."""
    judged, alarm = "judged by the other columns", "taken for an anomaly"
    for flags, is_alarm in (((), False), (("--gaps", "alarm"), True)):
        code, text, err = run_command("score", plant_folder / "model.ocf", with_gaps, *flags)
        assert code == 0
        assert f"no gaps there; {alarm if is_alarm else judged}: 2 rows, the first of" in err
        scores = pd.read_csv(io.StringIO(text))
        assert scores["score"].notna().all()
        assert scores["is_anomaly"][[3, 130]].all() == is_alarm


@pytest.mark.parametrize(("share", "expected_code"), [("0.005", 1), ("0.01", 0)])
def test_fail_above_a_share(plant_folder, run_command, share, expected_code):
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    assert run_command("score", *files, "--fail-above", share)[0] == expected_code


def test_alarms_of_more_than_half_are_warned_of(plant_folder, run_command):
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    assert "More than half of the rows" in run_command("score", *files, "--threshold", "1e9")[2]
    assert "More than half of the rows" not in run_command("score", *files)[2]


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_threshold_is_a_number(plant_folder, run_command, value):
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    code, _, err = run_command("score", *files, "--threshold", value)
    assert (code, "--threshold" in err) == (2, True)


def test_one_row_is_counted_as_one(plant_folder, tmp_path, run_command):
    pd.read_csv(plant_folder / "new.csv").iloc[[17]].to_csv(tmp_path / "one.csv", index=False)
    err = run_command("score", plant_folder / "model.ocf", tmp_path / "one.csv")[2]
    assert err.startswith("1 row, 1 anomaly (100.00%)")


@pytest.mark.slow
def test_ids_that_are_bytes_or_missing(plant_folder, tmp_path, run_command):
    frame = plant(60, seed=0).astype({"when": "datetime64[us]"})
    table, model = tmp_path / "t.parquet", tmp_path / "m.ocf"
    frame["part"] = [b"\xff%d" % i for i in range(60)]
    frame.to_parquet(table)
    flags = ("--members", "light", "--id", "part", "--time", "when")
    assert run_command("fit", table, "-o", model, *flags)[0] == 0
    frame.loc[3, ["part", "when"]] = None
    frame.to_parquet(table)
    code, text, _ = run_command("score", model, table, "--json")
    told = [json.loads(line) for line in text.splitlines()]
    assert (code, told[3]["part"], told[3]["when"]) == (0, None, None)
    code, text, _ = run_command("explain", model, table, "--row", "3", "--json")
    assert (code, json.loads(text)[0]["when"]) == (0, None)
    code, text, _ = run_command("explain", model, table, "--row", "3")
    assert (code, text.splitlines()[0]) == (0, "row 3")


def test_an_id_column_called_row(tmp_path, run_command):
    frame = plant(60, seed=0).rename(columns={"part": "row"})
    path, model, out = (tmp_path / name for name in ("t.csv", "m.ocf", "s.csv"))
    frame.to_csv(path, index=False)
    assert run_command("fit", path, "-o", model, "--members", "light", "--id", "row")[0] == 0
    assert run_command("score", model, path, "-o", out)[0] == 0
    scores = pd.read_csv(out)
    assert scores["row_2"].tolist() == list(range(60))
    assert scores["row"].tolist() == frame["row"].tolist()


@pytest.mark.parametrize(
    ("name", "read"),
    [("s.csv", pd.read_csv), ("s.parquet", pd.read_parquet), ("s.jsonl", read_lines)],
)
def test_why_gives_every_alarm_a_reason(
    plant_folder, tmp_path, run_command, monkeypatch, name, read
):
    chunked(monkeypatch, 64)  # the first chunks of the two alarms are not the same
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    code, _, err = run_command("score", *files, "-o", tmp_path / name, "--why")
    assert (code, err) == (0, "")
    scores = read(tmp_path / name)
    assert list(scores.columns[-2:]) == ["is_anomaly", "why"]
    assert tuple(scores.index[scores["why"].notna()]) == ANOMALIES
    assert scores["why"][17].startswith("temperature 60, usually ")
    assert scores["why"][150].startswith("pressure -9, usually ")


def test_why_all_gives_every_row_a_reason(plant_folder, tmp_path, run_command):
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    assert run_command("score", *files, "-o", tmp_path / "s.csv", "--why-all")[0] == 0
    assert pd.read_csv(tmp_path / "s.csv")["why"].notna().all()


def test_reasons_are_bounded_over_all_chunks(plant_folder, run_command, monkeypatch):
    chunked(monkeypatch, 64)
    monkeypatch.setattr("ocfuse.tables.detector.TableDetector.max_scored", 8)
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    code, text, err = run_command("score", *files, "--why")
    assert code == 0
    assert pd.read_csv(io.StringIO(text))["why"].notna().sum() == 1
    assert "Rows without a reason" in err
    assert "row 150" in err


def test_why_does_not_go_with_an_engine(plant_folder, tmp_path, run_command):
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    code, _, err = run_command("score", *files, "--engine", "dask", "-o", tmp_path / "s", "--why")
    assert code == 2
    assert "--why: not with --engine dask" in err


def test_files_that_were_written_before_are_told_apart(capsys):
    summary = {"rows": 3, "anomalies": 1, "without_score": 0, "threshold": 0.5, "file": "scores"}
    score_command.print_summary(summary | {"files": 4, "resumed": 3}, json=False, quiet=False)
    assert "Of 4 files, 3 files had been written before." in capsys.readouterr().out
    score_command.print_summary(summary | {"files": 4, "resumed": 0}, json=False, quiet=False)
    assert "before" not in capsys.readouterr().out

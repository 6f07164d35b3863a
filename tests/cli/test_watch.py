"""`ocfuse watch`: alarms at once, bad rows counted, and a clean end."""

import gzip
import io
import json
import select
import signal
import time

import pytest

from ocfuse import load
from ocfuse.cli.watch_events import Flags, Reporter
from ocfuse.cli.watch_rows import Watch
from ocfuse.tables import open_source
from tests.cli.cases import ANOMALIES, plant, process

BAD = (b"P1,2024", b"P1,2024-01-01 00:00:00,high,20,on")
GAP = b"P1,2024-01-01 00:00:00,,20,on"


@pytest.fixture
def watch(plant_folder, run_command, monkeypatch):
    """Return what runs the command on bytes at stdin."""

    def run_it(content, *arguments):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run_command("watch", plant_folder / "model.ocf", *arguments)

    return run_it


@pytest.fixture
def rows(plant_folder):
    """Return the header and the new rows as lines."""
    return (plant_folder / "new.csv").read_bytes().splitlines()


def test_alarms_and_summary(watch, rows):
    code, text, err = watch(b"\n".join(rows))
    assert code == 0
    assert [line.split()[:5] for line in text.splitlines()] == [
        ["alarm", "row", str(i), "part", f"P{i:05d}"] for i in ANOMALIES
    ]
    assert err == "200 rows, 2 alarms, 0 left out\n"
    assert watch(b"\n".join(rows), "--quiet", "--fail-on-anomaly")[::2] == (1, "")


def test_all_rows_have_the_scores_of_the_library(watch, rows, plant_folder):
    code, text, _ = watch(b"\r\n".join(rows), "--all", "--json")
    assert code == 0
    told = [json.loads(line) for line in text.splitlines()]
    frame = open_source(plant_folder / "new.csv").read()
    expected = load(plant_folder / "model.ocf").score(frame)
    assert [row["score"] for row in told] == pytest.approx(expected["score"].tolist())
    assert [row["row"] for row in told] == list(range(200))


def test_bad_rows_are_counted_and_the_others_scored(watch, rows):
    mixed = [*rows[:18], *BAD, b"", b"\xff\xfe,\xff", b'P1,"open,1,2,on', *rows[18:]]
    code, text, err = watch(b"\n".join(mixed), "--json", "--all")
    told = [json.loads(line) for line in text.splitlines()]
    assert code == 0
    assert [row["part"] for row in told] == [f"P{i:05d}" for i in range(200)]
    assert [row["row"] for row in told if row["is_anomaly"]] == [21, 154]
    assert err.splitlines()[-1] == "204 rows, 2 alarms, 4 left out"
    assert [line.split()[1] for line in err.splitlines() if line.startswith("Row")] == [
        *("17", "18", "19", "20")
    ]


@pytest.mark.parametrize("bad", BAD)
def test_strict_stops(watch, rows, bad):
    code, _, err = watch(b"\n".join([*rows[:5], bad]), "--strict")
    assert code == 3
    assert "Row 4 cannot be scored" in err


def test_a_gap_is_judged_by_the_other_columns_and_marked_whenever_it_comes(watch, rows):
    mixed = [*rows[:18], GAP, *rows[18:30], GAP.replace(b"20,on", b"60,")]
    code, text, err = watch(b"\n".join(mixed), "--json", "--all")
    told = [json.loads(line) for line in text.splitlines()]
    assert code == 0
    without = {row["row"]: row["judged_without"] for row in told if row["judged_without"]}
    assert without == {17: "pressure", 30: "pressure, mode"}
    assert [told[17]["is_anomaly"], told[30]["is_anomaly"]] == [False, True]
    assert err.splitlines()[-1].endswith("0 left out, 2 judged without some columns")
    lines = watch(b"\n".join(mixed))[1].splitlines()
    assert [line.endswith("  judged without pressure, mode") for line in lines[-1:]] == [True]
    assert not any("judged" in line for line in lines[:-1])


def test_gaps_can_be_refused_or_alarms(watch, rows):
    mixed = b"\n".join([*rows[:5], GAP])
    code, _, err = watch(mixed, "--gaps", "refuse")
    assert code == 0
    assert "Row 4 is left out" in err
    assert err.endswith("5 rows, 0 alarms, 1 left out\n")
    code, _, err = watch(mixed, "--gaps", "refuse", "--strict")
    assert (code, "Row 4 cannot be scored" in err) == (3, True)
    assert watch(mixed, "--gaps", "alarm")[1].startswith("alarm  row 4")


def test_a_header_may_come_again_and_in_another_order(watch, rows):
    swapped = [b",".join(line.split(b",")[::-1]) for line in rows]
    code, text, err = watch(b"\n".join([*rows, *rows, *swapped]))
    assert code == 0
    scores = [line.split("score")[1] for line in text.splitlines()]
    assert err == "600 rows, 6 alarms, 0 left out\n"
    assert scores[:2] == scores[2:4] == scores[4:]


def test_other_delimiters_and_decimals(watch, rows):
    lines = [line.replace(b",", b";").replace(b".", b",") for line in rows]
    assert watch(b"\n".join(lines))[1] == watch(b"\n".join(rows))[1]
    lines = [line.replace(b",", b"\t") for line in rows]
    assert watch(b"\n".join(lines), "--delimiter", "tab")[1] == watch(b"\n".join(rows))[1]


def test_wrong_or_missing_header(watch, rows):
    code, _, err = watch(b"a,b\n1,2\n")
    assert code == 3
    assert "temperature" in err
    code, _, err = watch(b"")
    assert code == 3
    assert "header" in err
    assert watch(rows[0])[::2] == (0, "0 rows, 0 alarms, 0 left out\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'part,"when\n', "It cannot be read"),
        (gzip.compress(b"part,when\n1,2\n", mtime=0) + b"\n", "it is compressed"),
        (b"PAR1\x15\x04\n", "it is a Parquet file"),
        ("part,when\n".encode("utf-16"), "UTF-16"),
        (b"part,part,pressure,temperature,mode\n", "same name: part"),
    ],
)
def test_a_header_that_cannot_be_read_ends_it(watch, rows, content, words):
    code, text, err = watch(content + b"\n".join(rows))
    assert (code, text) == (3, "")
    assert words in err
    assert "0 rows" not in err


@pytest.mark.slow
def test_windows_1252_is_read_as_other_commands_read_it(tmp_path, run_command):
    frame = plant(80, seed=0).rename(columns={"temperature": "temp °C"})
    table, model = tmp_path / "t.csv", tmp_path / "m.ocf"
    frame.to_csv(table, index=False, encoding="cp1252", sep=";")
    assert run_command("fit", table, "-o", model, "--members", "light", "--id", "part")[0] == 0
    expected = run_command("score", model, table, "--json", "--quiet")[1]
    code, text, err = run_command("watch", model, table, "--all", "--json")
    assert code == 0
    assert err.count("read as Windows-1252") == 1
    scores = [json.loads(line)["score"] for line in text.splitlines()]
    assert scores == pytest.approx([json.loads(line)["score"] for line in expected.splitlines()])


def test_the_columns_of_the_model_tell_the_delimiter(watch, rows):
    lines = [line.replace(b",", b";") + b";a,b,c" for line in rows]
    lines[0] = rows[0].replace(b",", b";") + b";a,b,c,d,e,f,g"
    assert watch(b"\n".join(lines))[1] == watch(b"\n".join(rows))[1]
    assert watch(b"sep=;\n" + b"\n".join(lines))[1] == watch(b"\n".join(rows))[1]


@pytest.mark.slow
def test_an_id_column_called_threshold(tmp_path, run_command):
    frame = plant(60, seed=0).rename(columns={"part": "threshold"})
    table, model = tmp_path / "t.csv", tmp_path / "m.ocf"
    frame.to_csv(table, index=False)
    assert run_command("fit", table, "-o", model, "--members", "light", "--id", "threshold")[0] == 0
    text = run_command("watch", model, table, "--all")[1]
    assert text.splitlines()[0].split()[:5] == ["normal", "row", "0", "threshold", "P00000"]
    told = json.loads(run_command("watch", model, table, "--all", "--json")[1].splitlines()[0])
    assert (told["threshold"], told["threshold_2"]) == ("P00000", load(model).detector_.offset_)


@pytest.mark.parametrize("arguments", [["--follow"], ["--new"]])
def test_wrong_usage(watch, arguments):
    assert watch(b"", *arguments)[0] == 2


def test_few_bad_rows_do_not_cost_a_call_per_row(plant_folder, rows):
    model = load(plant_folder / "model.ocf")
    calls = []

    class Counted:
        kind, schema_, detector_ = model.kind, model.schema_, model.detector_
        limits_, result_names = model.limits_, model.result_names

        def score_rows(self, frame, **options):
            calls.append(len(frame))
            return model.score_rows(frame, **options)

        def judged_without(self, frame):
            return model.judged_without(frame)

        def plain_reader(self, header):
            return model.plain_reader(header)

        def score_plain(self, rows):
            calls.append(len(rows))
            return model.score_plain(rows)

    bad = []

    class Silent(Reporter):
        def report(self, rows, without):
            pass

        def complain(self, number, error):
            bad.append(number)

    watch = Watch(Counted(), Silent(model, Flags()))
    watch.take([*rows[:101], BAD[1], *rows[101:]])
    assert bad == [100]
    assert watch.n_rows == 201
    assert len(calls) < 20


@pytest.mark.slow
def test_a_growing_file_in_a_process_of_its_own(plant_folder, tmp_path, rows):
    path = tmp_path / "log.csv"
    path.write_bytes(b"\n".join(rows[:30]) + b"\n")
    done = process("watch", plant_folder / "model.ocf", path, "--follow", "--new", "--json")
    anomaly = rows[1 + ANOMALIES[0]] + b"\n"

    def append(text):
        with path.open("ab") as file:
            file.write(text)

    # only rows written after it has caught up count; when that is, one cannot see
    deadline = time.monotonic() + 300
    append(anomaly[:20])
    append(anomaly[20:])
    first = _next_line(done, append, anomaly, deadline)
    assert first["part"] == f"P{ANOMALIES[0]:05d}"
    path.unlink()
    path.write_bytes(rows[0] + b"\n" + rows[1 + ANOMALIES[1]] + b"\n")
    while (told := json.loads(done.stdout.readline()))["part"] != f"P{ANOMALIES[1]:05d}":
        assert time.monotonic() < deadline
    assert told["is_anomaly"]
    done.send_signal(signal.SIGTERM)
    _, err = done.communicate()
    assert done.returncode == 0
    assert "replaced" in err
    assert " alarms, 0 left out" in err.splitlines()[-1]


@pytest.mark.slow
def test_ctrl_c_and_a_row_told_before_the_next_comes(plant_folder, rows):
    done = process("watch", plant_folder / "model.ocf", "--all", stdin=-1)
    for i in (0, 1):
        lines = rows[:2] if i == 0 else rows[2:3]
        done.stdin.write(b"\n".join(lines).decode() + "\n")
        done.stdin.flush()
        assert done.stdout.readline().startswith(f"normal  row {i}  part P0000{i}")
    done.send_signal(signal.SIGINT)
    done.wait(300)  # before its input ends, which would end it as well
    _, err = done.communicate()
    assert done.returncode == 130
    assert err == "2 rows, 0 alarms, 0 left out\n"


def _next_line(done, append, anomaly, deadline):
    """Return the first alarm; as long as there is none, write the row again."""
    while not select.select([done.stdout], [], [], 0.5)[0]:
        assert time.monotonic() < deadline
        append(anomaly)
    return json.loads(done.stdout.readline())

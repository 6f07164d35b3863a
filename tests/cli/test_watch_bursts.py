"""`ocfuse watch` in bursts: rows that wait are scored together, and told as one by one."""

import io
import json
import os
import re
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest

from ocfuse.cli import watch_rows
from ocfuse.cli.app import run as main
from ocfuse.cli.watch_rows import MOST_ROWS, batches, lines_of_file, lines_of_stdin
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import StreamTable
from ocfuse.tables import TableDetector
from tests.cli.cases import with_anomalies
from tests.cli.test_watch_events import run

#: Members whose scores do not depend on other rows to the bit: they multiply no matrices.
MEMBERS = ("--members", "knn-1,knn-5", "--fusion", "mean")
SIZES = (7, 256)
N, FAULT = 150, 100


def fit(*arguments):
    with redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as caught:
        main(["fit", *map(str, arguments), *MEMBERS, "--quiet"])
    assert caught.value.code == 0


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a folder with a model of rows, one of streams with times, one with runs."""
    folder = tmp_path_factory.mktemp("models")
    with_anomalies(200).to_csv(folder / "plant.csv", index=False)
    fit(folder / "plant.csv", "-o", folder / "plant.ocf", "--id", "part")
    (folder / "runs").mkdir()
    for i in range(10):
        run(i).to_csv(folder / "runs" / f"{i}.csv", index=False)
    stream = ("--stream", "--windows", "5,10", "--false-alarms", "0.1")
    fit(folder / "runs", *stream, "-o", folder / "pump.ocf")
    untimed = pd.concat([run(i).assign(run=f"r{i}").drop(columns="when") for i in range(10)])
    untimed.to_csv(folder / "all.csv", index=False)
    fit(folder / "all.csv", *stream, "--group", "run", "-o", folder / "grouped.ocf")
    return folder


@pytest.fixture
def told(models, run_command, monkeypatch, tmp_path):
    """Return what `watch` says of lines, so many at once: code, output, errors, events."""

    def run_it(name, lines, most, *flags):
        monkeypatch.setattr(watch_rows, "MOST_ROWS", most)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines))))
        events = tmp_path / "events.jsonl"
        events.unlink(missing_ok=True)
        more = ("--events", events) if name in ("pump.ocf", "grouped.ocf") else ()
        said = run_command("watch", models / name, "-", *flags, *more)
        written = events.read_text() if events.exists() else ""
        # when a drift was told
        return [re.sub(r'"at": "[^"]*"', '"at": null', str(text)) for text in (*said, written)]

    return run_it


def plant_lines():
    return with_anomalies(200).to_csv(index=False).encode().splitlines()


def pump_lines(**changes):
    new = run(50).assign(**changes)
    new.loc[FAULT : FAULT + 29, "current"] += 3
    return new.to_csv(index=False).encode().splitlines()


def spoilt(lines):
    """Return rows of the plant with everything that may be wrong with a line or a cell."""
    middle = lines[40].split(b",")
    cells = {
        2: [b"", b"high", b"inf", b"1_000", b" 1.5 ", b"nan", b"1e400", b"0x10", b"\xef\xbc\x91"],
        1: [b"", b"01/02/2024 10:00", b"13/02/2024 10:00", b"2024-01-01", b"yesterday"],
        4: [b"", b"broken", b" on", b"ON", b"7"],
        0: [b"", b'"a,b"', b"  x", b"\xff\xfe"],
    }
    bad = [b",".join([*middle[:j], cell, *middle[j + 1 :]]) for j in cells for cell in cells[j]]
    swapped = [b",".join(line.split(b",")[::-1]) for line in (lines[0], *lines[80:90])]
    return [
        *lines[:30],
        *(line for pair in zip(bad, lines[60:], strict=False) for line in pair),
        *bad,
        *(b"garbage", b"", b'P1,"open,1,2,on', b"P1,2024"),
        *lines[30:60],
        *swapped,
        *lines,
    ]


def require_same(told, name, lines, *flags):
    """Return what is told of rows one by one, having seen that it is the same of batches."""
    one = told(name, lines, 1, *flags)
    for most in SIZES:
        assert told(name, lines, most, *flags) == one
    return one


class TestSameAsOneByOne:
    @pytest.mark.parametrize(
        "flags",
        [
            ("--all", "--json"),
            ("--all",),
            ("--fail-on-anomaly",),
            ("--strict", "--all"),
            ("--gaps", "refuse", "--json", "--all"),
            ("--gaps", "alarm"),
        ],
    )
    def test_rows(self, told, flags):
        require_same(told, "plant.ocf", spoilt(plant_lines()), *flags)

    def test_the_first_row_tells_what_is_odd_of_the_table(self, told):
        lines = [line + b",7" for line in plant_lines()]
        lines[0] = lines[0][:-1] + b"further"
        lines[1] = lines[1].replace(b"2024-01-01", b"yesterday")
        lines[5] = lines[5].replace(b"on", b"broken").replace(b"off", b"broken")
        one = require_same(told, "plant.ocf", lines)
        assert "further" in one[2]
        assert "broken" not in one[2]

    @pytest.mark.parametrize("first", [b"1,234", b"1,5", b"1.5"])
    def test_decimal_commas(self, told, first):
        lines = [line.replace(b",", b";") for line in plant_lines()]
        cells = lines[1].split(b";")
        odd = [b";".join([*cells[:2], cell, *cells[3:]]) for cell in (first, b"1,234", b"2,25")]
        lines = [*lines[:9], *odd, *lines[9:40], *odd[::-1], *lines[40:]]
        require_same(told, "plant.ocf", lines, "--all", "--json")

    @pytest.mark.parametrize("flags", [("--all", "--json"), ("--fail-on-anomaly",)])
    def test_streams(self, told, flags):
        lines = pump_lines()
        when = pd.Series(pd.date_range("2024-03-03 02:00", periods=N, freq="s"))
        when[30:] -= pd.Timedelta(hours=1)
        when[60:] += pd.Timedelta(days=1)
        when[75] = when[74]
        jumping = pump_lines(when=when.dt.strftime("%F %T"))
        drifting = pump_lines(flow=np.linspace(0, 90, N), current=np.linspace(0, -50, N))
        dead = [line.rsplit(b",", 2)[0] + b",ERR," for line in lines[41:90]]
        odd = [
            b",".join([lines[50].split(b",")[0], cell, b"1"]) for cell in (b"1_000", b"inf", b"?")
        ]
        other = [line.replace(b"2024-03-03", b"03.03.2024", 1) for line in lines[90:120]]
        content = [
            *(*lines, *jumping, b"garbage", *lines[:60], *dead, *[b"garbage"] * 30),
            *(*lines[90:], *drifting, *odd, *lines[-9:], *other, *jumping[1:]),
        ]
        one = require_same(told, "pump.ocf", content, *flags)
        if "--json" in flags:
            kinds = {json.loads(line)["kind"] for line in one[1].splitlines()}
            expected = {"row", "alarm", "event", "blind", "drift", "summary"}
            assert kinds == expected | {"missing", "range"}

    def test_runs_of_a_stream(self, told):
        table = run(50, n=400).drop(columns="when")
        table["flow"] += np.linspace(0, 30, 400)
        table["run"] = ["a"] * 90 + ["b"] * 90 + ["a", "b"] * 30 + [" "] * 60 + ["c"] * 100
        lines = table.to_csv(index=False).encode().splitlines()
        one = require_same(told, "grouped.ocf", lines, "--all", "--json")
        assert '"kind": "blind"' in one[1]

    def test_scores_of_members_that_multiply_matrices_but_for_rounding(
        self, models, told, run_command
    ):
        arguments = ("fit", models / "plant.csv", "--id", "part", "--members", "light", "-q")
        assert run_command(*arguments, "-o", models / "light.ocf")[0] == 0
        lines = spoilt(plant_lines())
        tables = [
            pd.DataFrame(
                map(json.loads, told("light.ocf", lines, most, "--all", "--json")[1].splitlines())
            )
            for most in (1, 256)
        ]
        ranks = [table.pop("p_value") for table in tables]
        pd.testing.assert_frame_equal(*tables, rtol=1e-12, atol=1e-12)
        # a row that scores as a training row does is above it or below, as it is rounded
        assert np.abs(ranks[0] - ranks[1]).max() <= 1.01 / 200  # the training rows


def counting(monkeypatch):
    """Return a list that the sizes of all batches go to."""
    sizes = []
    for kind, name in ((TableDetector, "score_plain"), (StreamTable, "follow_plain")):
        real = getattr(kind, name)

        def counted(model, rows, real=real):
            sizes.append(len(rows))
            return real(model, rows)

        monkeypatch.setattr(kind, name, counted)
    return sizes


class TestBatches:
    @pytest.mark.parametrize(
        ("name", "lines"), [("plant.ocf", plant_lines), ("pump.ocf", pump_lines)]
    )
    def test_no_batch_is_larger_than_stated_and_few_are_smaller(
        self, name, lines, told, monkeypatch
    ):
        sizes = counting(monkeypatch)
        header, *rows = lines()
        content = [header, *rows * 5]
        told(name, content, MOST_ROWS, "-q")
        n = 5 * len(rows)
        assert sum(sizes) == n - 1  # the first is read closely, for warnings
        assert max(sizes) == MOST_ROWS == 256
        assert len(sizes) <= n / MOST_ROWS + 2

    def test_rows_that_come_one_by_one_are_told_before_the_next(self, models, monkeypatch, capsys):
        sizes = counting(monkeypatch)
        header, *rows = plant_lines()
        n_told = []

        def slowly():
            yield [header]
            yield []
            for row in rows[:20]:
                n_told.append(len(capsys.readouterr().out.splitlines()))
                yield [row]
                yield []

        monkeypatch.setattr(watch_rows, "lines_of_stdin", slowly)
        with pytest.raises(SystemExit):
            main(["watch", str(models / "plant.ocf"), "-", "--all", "-q"])
        assert sizes == [1] * 19
        assert n_told == [0, *[1] * 19]

    def test_a_pipe_is_not_waited_for(self, monkeypatch):
        monkeypatch.setattr(watch_rows, "PAUSE", 600)
        reader, writer = os.pipe()
        with os.fdopen(reader) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            found = (batch for batch in batches(lines_of_stdin()) if batch)
            os.write(writer, b"a,b\n1,2\n3")
            assert next(found) == [b"a,b", b"1,2"]
            os.write(writer, b",4\n")
            assert next(found) == [b"3,4"]
            os.write(writer, b"5,6\n" * 1000)
            os.close(writer)
            sizes = [len(batch) for batch in found]
        assert sum(sizes) == 1000
        assert max(sizes) == MOST_ROWS

    @pytest.mark.parametrize("block", [5, 100, 65_536])
    def test_batches_do_not_depend_on_blocks(self, tmp_path, monkeypatch, block):
        monkeypatch.setattr(watch_rows, "BLOCK", block)
        path = tmp_path / "t"
        path.write_bytes(b"".join(b"%d\n" % i for i in range(600)))
        found = list(batches(lines_of_file(path)))
        assert [len(batch) for batch in found] == [256, 256, 88]
        assert [int(line) for batch in found for line in batch] == list(range(600))

    @pytest.mark.parametrize("error", [InvalidInputError, OSError, KeyboardInterrupt])
    def test_what_came_before_an_error_is_told(self, error):
        def source():
            yield [b"a", b"b"]
            raise error

        found = batches(source())
        assert next(found) == [b"a", b"b"]
        with pytest.raises(error):
            next(found)

    def test_ctrl_c_counts_what_was_told(self, models, monkeypatch, capsys):
        real, calls = TableDetector.score_plain, []

        def interrupted(model, rows):
            calls.append(len(rows))
            if len(calls) == 2:
                raise KeyboardInterrupt
            return real(model, rows)

        monkeypatch.setattr(TableDetector, "score_plain", interrupted)
        monkeypatch.setattr(watch_rows, "MOST_ROWS", 50)
        content = io.TextIOWrapper(io.BytesIO(b"\n".join(plant_lines())))
        monkeypatch.setattr("sys.stdin", content)
        with pytest.raises(SystemExit) as caught:
            main(["watch", str(models / "plant.ocf"), "-", "--all"])
        told = capsys.readouterr()
        assert caught.value.code == 130
        assert len(told.out.splitlines()) == 49  # with the header, the first fifty lines
        assert told.err.startswith("49 rows, ")

"""`ocfuse watch` of JSON lines, CSV without names, and tables that are no text."""

import gzip
import io
import json

import pandas as pd
import pytest

from ocfuse.tables import open_source
from tests.cli.cases import ANOMALIES


@pytest.fixture
def watch(plant_folder, run_command, monkeypatch):
    """Return what runs the command, on lines at stdin if there are some."""

    def run_it(lines, *arguments):
        content = b"\n".join(lines if isinstance(lines, list) else [])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        given = () if isinstance(lines, list) else (lines,)
        return run_command("watch", plant_folder / "model.ocf", *given, *arguments)

    return run_it


@pytest.fixture
def rows(plant_folder):
    return (plant_folder / "new.csv").read_bytes().splitlines()


@pytest.fixture
def objects(plant_folder):
    """Return the rows as JSON objects, with the digits that they have in CSV."""
    frame = open_source(plant_folder / "new.csv").read()
    numbers = ("pressure", "temperature")
    return [
        json.dumps({n: float(v) if n in numbers else v for n, v in row.items()}).encode()
        for row in frame.to_dict("records")
    ]


class TestJsonLines:
    def test_are_told_as_csv(self, watch, rows, objects):
        assert watch(objects, "--all", "--json") == watch(rows, "--all", "--json")

    def test_of_a_file_and_of_a_compressed_one(self, watch, objects, tmp_path):
        expected = watch(objects)
        path = tmp_path / "new.jsonl"
        path.write_bytes(b"\n".join(objects))
        assert watch(path) == expected
        packed = tmp_path / "new.jsonl.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        assert watch(packed) == expected

    def test_that_cannot_be_read_are_told_and_left_out(self, watch, objects):
        bad = [b'{"part": "P1",', b"[1, 2]", b'{"pressure": [1]}', b'{"Flow": 1.5}', b"1,2"]
        code, text, err = watch([*objects[:5], *bad, *objects[5:]], "--json", "--all")
        told = [json.loads(line) for line in text.splitlines()]
        assert code == 0
        assert [row["part"] for row in told] == [f"P{i:05d}" for i in range(200)]
        said = [line for line in err.splitlines() if line.startswith("Row")]
        assert [line.split()[1] for line in said] == ["5", "6", "7", "8", "9"]
        assert "It is no JSON at its end" in said[0]
        assert "It is no JSON object" in said[1]
        assert "'pressure' holds a list" in said[2]
        assert "Missing: pressure, temperature, mode. Extra: Flow." in said[3]
        assert "separated" not in err
        assert err.endswith("205 rows, 2 alarms, 5 left out\n")

    def test_without_a_name_have_a_gap_there(self, watch, objects, rows):
        row = json.loads(objects[5])
        row.pop("mode")
        cells = rows[6].split(b",")
        in_csv = [*rows[:6], b",".join([*cells[:4], b""])]
        assert watch([*objects[:5], json.dumps(row).encode()], "--all") == watch(in_csv, "--all")

    def test_may_have_names_that_the_first_has_not(self, watch, objects):
        first = json.loads(objects[0])
        first.pop("part")
        code, text, _ = watch([json.dumps(first).encode(), *objects[1:3]], "--all", "--json")
        assert code == 0
        told = [json.loads(line) for line in text.splitlines()]
        assert [row.get("part") for row in told] == [None, "P00001", "P00002"]

    def test_of_another_table_end_with_words(self, watch):
        code, _, err = watch([b'{"a": 1}', b'{"a": 2}'])
        assert code == 3
        assert "No row has the columns of the model" in err

    def test_take_no_names_from_the_command(self, watch, objects):
        code, _, err = watch(objects, "--columns", "a,b")
        assert (code, "Leave --columns out" in err) == (3, True)

    def test_take_objects_apart(self, watch, rows, objects):
        nested = [
            json.dumps({k: {"": v} for k, v in json.loads(line).items()}).encode()
            for line in objects[:1]
        ]
        code, _, err = watch(nested)
        assert code == 3
        assert "Extra: part., when., pressure." in err


class TestNamesOfColumns:
    NAMES = "part,when,pressure,temperature,mode"

    def test_stand_for_the_first_line(self, watch, rows, tmp_path):
        expected = watch(rows, "--all")
        assert watch(rows[1:], "--all", "--columns", self.NAMES) == expected
        assert watch(rows, "--all", "--columns", self.NAMES) == expected
        semicolons = [line.replace(b",", b";") for line in rows[1:]]
        assert watch(semicolons, "--all", "--columns", self.NAMES) == expected
        path = tmp_path / "rows.csv"
        path.write_bytes(b"\n".join(rows[1:]))
        assert watch(path, "--all", "--columns", self.NAMES) == expected

    def test_that_do_not_fit_are_told(self, watch, rows):
        code, _, err = watch(rows[1:3], "--columns", "part,when")
        assert (code, "Missing: pressure, temperature, mode" in err) == (3, True)
        more = f"{self.NAMES},more"
        _, _, err = watch(rows[1:3], "--columns", more)
        assert "Row 0 is left out: It has 5 values, --columns 6 names" in err
        assert watch(rows, "--columns", "a,,b")[0] == 2


class TestBroker:
    def test_rows_are_told_as_from_a_file(self, watch, objects, monkeypatch):
        expected = watch(objects, "--all")
        heard = []

        def lines(address, notify, pause):
            heard.append(address)
            notify("The broker is gone")
            yield []
            yield objects[:100]
            yield objects[100:]

        monkeypatch.setattr("ocfuse.cli.watch_rows.lines_of_topic", lines)
        code, text, err = watch([], "--all", "--from", "mqtt://host/line")
        assert (code, text, heard) == (*expected[:2], ["mqtt://host/line"])
        assert err == "The broker is gone\n" + expected[2]
        assert watch([], "--all", "--from", "mqtt://host/line", "--quiet")[2] == ""

    def test_takes_the_place_of_a_file(self, watch, plant_folder):
        code, _, err = watch(plant_folder / "new.csv", "--from", "mqtt://host/line")
        assert (code, "takes the place of a file" in err) == (2, True)
        code, _, err = watch([], "--from", "mqtt://me:secret@host/line")
        assert (code, "OCFUSE_MQTT_PASSWORD" in err) == (3, True)


class TestTables:
    def test_are_played_through(self, watch, rows, plant_folder, tmp_path):
        frame = pd.read_csv(plant_folder / "new.csv")
        expected = watch(rows, "--all", "--json")
        frame.to_parquet(tmp_path / "new.parquet")
        assert watch(tmp_path / "new.parquet", "--all", "--json") == expected
        frame.to_feather(tmp_path / "new.feather")
        assert watch(tmp_path / "new.feather", "--all", "--json") == expected

    def test_of_a_folder_follow_each_other(self, watch, plant_folder, tmp_path):
        frame = pd.read_csv(plant_folder / "new.csv")
        frame[:100].to_parquet(tmp_path / "a.parquet")
        frame[100:].to_parquet(tmp_path / "b.parquet")
        code, text, _ = watch(tmp_path, "--json")
        assert code == 0
        told = [json.loads(line) for line in text.splitlines()]
        assert [(row["row"], row["file"]) for row in told] == [
            (ANOMALIES[0], "a.parquet"),
            (ANOMALIES[1], "b.parquet"),
        ]

    def test_of_text_have_no_topics(self, watch, rows):
        code, _, err = watch(rows, "--topic", "/joint_states")
        assert (code, "--topic is for recordings by ROS" in err) == (3, True)

    def test_do_not_grow(self, watch, tmp_path):
        path = tmp_path / "new.parquet"
        path.write_bytes(b"")
        code, _, err = watch(path, "--follow")
        assert (code, "Leave --follow out" in err) == (3, True)

"""Files for scores: links are followed, types hold, and a failure leaves what was there."""

import gzip

import pandas as pd
import pytest

from ocfuse.cli.score_files import to_file
from ocfuse.exceptions import InvalidInputError

FRAME = pd.DataFrame({"row": [0, 1], "id": ["ä,b", None], "score": [0.5, -1.5]})


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with to_file(link) as write:
        write(FRAME)
        assert real.read_text() == "old"  # until all is there
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == 'row,id,score\n0,"ä,b",0.5\n1,,-1.5\n'


def test_json_knows_no_gap_but_null(tmp_path):
    with to_file(tmp_path / "s.ndjson.gz") as write:
        write(FRAME)
    lines = gzip.decompress((tmp_path / "s.ndjson.gz").read_bytes()).decode().splitlines()
    assert lines == [
        '{"row": 0, "id": "ä,b", "score": 0.5}',
        '{"row": 1, "id": null, "score": -1.5}',
    ]


def test_parquet_refuses_what_changes_its_type(tmp_path):
    def write_both():
        with to_file(tmp_path / "s.parquet") as write:
            write(pd.DataFrame({"id": [1, 2]}))
            write(pd.DataFrame({"id": ["A", "B"]}))

    with pytest.raises(InvalidInputError, match="CSV instead"):
        write_both()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_any_failure_leaves_the_old_file(tmp_path, name):
    (tmp_path / name).write_text("old")

    def write_half():
        with to_file(tmp_path / name) as write:
            write(FRAME)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


@pytest.mark.parametrize(("zone", "end"), [(None, ""), ("Europe/Berlin", "+00:00")])
def test_times_have_one_form_whatever_is_in_a_chunk(tmp_path, zone, end):
    days = pd.Series(pd.to_datetime(["2024-01-01", None])).dt.tz_localize("UTC")
    halves = pd.Series(pd.to_datetime(["2024-01-01 12:00:00.5"])).dt.tz_localize("UTC")
    with to_file(tmp_path / "s.csv") as write:
        for times in (days, halves):
            write(pd.DataFrame({"when": times.dt.tz_convert(zone)}))
    assert (tmp_path / "s.csv").read_text().splitlines() == [
        "when",
        f"2024-01-01 00:00:00.000000{end}",
        '""',
        f"2024-01-01 12:00:00.500000{end}",
    ]


def test_no_text_of_a_csv_file_is_a_formula_and_numbers_stay(tmp_path):
    texts = ["=1+1", "+cmd|x", "-2+3", "@a", "\t=1", "pump", "-1.5", "+7", None]
    frame = pd.DataFrame({"=id": texts, "score": [-1.5] * 9, "is_anomaly": [True] * 9})
    for kind in ("csv", "tsv"):
        with to_file(tmp_path / f"s.{kind}") as write:
            write(frame)
        read = pd.read_csv(tmp_path / f"s.{kind}", sep=None, engine="python", dtype=str)
        assert read.columns.tolist() == ["'=id", "score", "is_anomaly"]
        found = read["'=id"].tolist()
        assert found[:5] == [f"'{text}" for text in texts[:5]]
        assert found[5:8] == texts[5:8]
        assert set(read["score"]) == {"-1.5"}


def test_other_formats_hold_text_as_it_is(tmp_path):
    with to_file(tmp_path / "s.jsonl") as write:
        write(pd.DataFrame({"id": ["=1+1"]}))
    assert (tmp_path / "s.jsonl").read_text() == '{"id": "=1+1"}\n'

"""Plain rows: read without a data frame, as the data frame reads them."""

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector
from ocfuse.streaming import StreamDetector, StreamTable
from ocfuse.tables import TableDetector
from tests.cli.cases import plant
from tests.cli.test_watch_events import run
from tests.streaming.cases import MEMBERS

HEADER = ["part", "when", "pressure", "temperature", "mode"]
ROW = ["P1", "2024-01-01 00:00:00", "0.5", "21", "on"]


@pytest.fixture(scope="module")
def model():
    return TableDetector(FusedDetector("light", random_state=0), id="part").fit(plant(200, 0))


@pytest.fixture(scope="module")
def numbers():
    frame = plant(200, 0)[["pressure", "temperature"]]
    return TableDetector(FusedDetector("light", random_state=0)).fit(frame)


@pytest.fixture(scope="module")
def stream():
    frame = pd.concat([run(i).assign(run=f"r{i}") for i in range(6)])
    light = FusedDetector(MEMBERS, false_alarm_rate=0.2, random_state=0)
    return StreamTable(StreamDetector(light, windows=(5,)), group="run").fit(frame)


def text_of(frame):
    return frame.astype(str).to_numpy().tolist()


def changed(name, cell):
    return [cell if column == name else old for column, old in zip(HEADER, ROW, strict=True)]


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.TableWarning")
@pytest.mark.parametrize("columns", [HEADER, [*HEADER[::-1], "further"], HEADER[2:]])
def test_scores_are_those_of_the_data_frame_to_the_bit(model, columns):
    frame = plant(60, 1).assign(further="x")[columns]
    reader = model.plain_reader(columns)
    cells = text_of(frame)
    expected = model.score_rows(pd.DataFrame(cells, columns=columns, dtype="string"))
    rows = reader.read(cells)
    assert np.array_equal(model.score_plain(rows), expected["score"])
    shown = pd.DataFrame(rows.shown, columns=reader.names)
    assert shown.to_dict("records") == expected[reader.names].to_dict("records")


def test_numbers_alone(numbers):
    columns = ["temperature", "pressure"]
    cells = text_of(plant(60, 1)[columns])
    expected = numbers.score_rows(pd.DataFrame(cells, columns=columns, dtype="string"))
    rows = numbers.plain_reader(columns).read(cells)
    assert np.array_equal(numbers.score_plain(rows), expected["score"])


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *(("pressure", cell) for cell in ("", "nan", "inf", "1e999", "1_000", "high", "0x1", "?")),
        *(("mode", cell) for cell in ("", "broken", "nan")),
        *(("when", cell) for cell in ("", "2024-01-01", "2024-13-01 00:00:00", "01.02.2024 10:00")),
        ("when", "2024-01-01 00:00:00Z"),
    ],
)
def test_what_needs_a_closer_look(model, name, cell):
    reader = model.plain_reader(HEADER)
    assert reader.read([ROW]) is not None
    assert reader.read([ROW, changed(name, cell)]) is None


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("pressure", " 1.5"),
        ("pressure", "+1e-3"),
        ("mode", " on "),
        ("when", "2024-01-01T00:00:00.5"),
    ],
)
def test_odd_but_plain_cells_are_read_as_by_the_data_frame(model, name, cell):
    cells = [changed(name, cell)]
    expected = model.score_rows(pd.DataFrame(cells, columns=HEADER, dtype="string"))
    reader = model.plain_reader(HEADER)
    rows = reader.read(cells)
    assert model.score_plain(rows)[0] == expected["score"][0]
    shown = dict(zip(reader.names, rows.shown[0], strict=True))
    assert shown == expected[reader.names].to_dict("records")[0]
    assert str(shown["when"]) == str(expected["when"][0])
    assert shown["when"].isoformat() == expected["when"][0].isoformat()


@pytest.mark.parametrize("header", [HEADER[:-1], [*HEADER, "part"]])
def test_headers_without_features_or_with_one_name_twice_have_no_reader(model, header):
    assert model.plain_reader(header) is None


def test_a_stream_is_followed_as_by_the_data_frame(stream):
    frame = run(50).assign(run=["a"] * 70 + ["b"] * 80)
    cells = text_of(frame)
    for i, cell in ((20, ""), (21, "NA"), (90, " 1 ")):
        cells[i][1] = cell
    cells[40][0] = cells[39][0]
    rows = stream.restart().plain_reader(list(frame.columns)).read(cells)
    scores, log = stream.follow_plain(rows)
    counts = stream.counts
    table = pd.DataFrame(cells, columns=frame.columns, dtype="string")
    expected, closely = stream.restart().follow(table)
    assert np.array_equal(scores, expected["score"], equal_nan=True)
    assert (counts, log.odd, log.drifted) == (stream.counts, closely.odd, closely.drifted)
    assert counts["repeated"] == 1
    assert rows.runs == list(frame["run"])


def test_times_of_a_zone_are_given_in_utc():
    frame = plant(100, 0)
    frame["when"] = frame["when"].str.replace(" ", "T") + "+02:00"
    model = TableDetector(FusedDetector("light", random_state=0), id="part").fit(frame)
    cells = text_of(frame[:3])
    reader = model.plain_reader(list(frame.columns))
    expected = model.score_rows(pd.DataFrame(cells, columns=frame.columns, dtype="string"))
    assert [row[1] for row in reader.read(cells).shown] == expected["when"].tolist()
    assert reader.read([["P1", "2024-01-01 00:00:00", *cells[0][2:]]]) is None

import numpy as np
import pandas as pd
import pytest

from ocfuse.exceptions import TableError
from ocfuse.tables import Schema
from ocfuse.tables.cells import has_zone, settled_formats, time_formats, times, zones

TEXT = pd.StringDtype("pyarrow")


@pytest.mark.parametrize(
    ("cells", "formats"),
    [
        (["2024-01-31", "2024-02-01 10:00"], ["ISO8601"]),
        (["2024-01-31T10:00:00Z", "2024-01-31T10:00:00.5+02:00"], ["ISO8601"]),
        (["31.01.2024 10:00", "01.02.2024 11:30"], ["%d.%m.%Y %H:%M"]),
        (["13/01/2024"], ["%d/%m/%Y"]),
        (["01/13/2024"], ["%m/%d/%Y"]),
        (["01/02/2024"], ["%d/%m/%Y", "%m/%d/%Y"]),
        (["1/13/2024 3:04 PM"], ["%m/%d/%Y %I:%M %p"]),
        (["on", "off"], []),
        (["2024-01-31", "off"], []),
    ],
)
def test_time_formats(cells, formats):
    assert time_formats(cells) == formats


def test_times_do_not_depend_on_the_other_cells():
    cells = ["2024-01-01", "2024-01-01 10:00:00.123456", "later", "2024-01-01T10:00:00+02:00", ""]
    for utc in (False, True):
        column = pd.Series(cells, dtype=TEXT, index=range(10, 15), name="when")
        whole = times(column, "ISO8601", utc)
        parts = pd.concat([times(column.iloc[[i]], "ISO8601", utc) for i in range(len(cells))])
        pd.testing.assert_series_equal(whole, parts)
        assert whole.isna().tolist() == [False, False, True, False, True]
        assert whole.iloc[3].hour == 8
    assert zones(column).tolist() == [False, False, False, True, False]


def test_times_that_have_their_type():
    column = pd.Series(pd.date_range("2024-01-01", periods=2, tz="Europe/Berlin"))
    assert times(column, "ISO8601", True).iloc[0] == pd.Timestamp("2023-12-31 23:00", tz="UTC")
    assert times(pd.Series(["1", "2"]), "number", False).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2024-01-01 00:00:00", False),
        ("2024-01-01", False),
        ("2024-01", False),
        ("20240101T100000", False),
        ("20240101T100000Z", True),
        ("2024-01-01 00:00:00.123", False),
        ("2024-01-01 00:00:00+02", True),  # as PostgreSQL writes it
        ("2024-01-01 00:00:00.5-0330", True),
        ("2024-01-01T00:00+02:00", True),
        ("2024-01-01T00:00:00Z", True),
        ("2024-01-01 00:00:00 UTC", True),
    ],
)
def test_time_zones(cell, expected):
    assert has_zone(cell) == expected
    found = times(pd.Series([cell]), "ISO8601", utc=True)
    assert found.notna().all()


def dates(start, periods, freq, format):
    return pd.date_range(start, periods=periods, freq=freq).strftime(format).tolist()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (dates("2024-02-03 20:00", 40, "20min", "%d/%m/%Y %H:%M"), ["%d/%m/%Y %H:%M"]),
        (dates("2024-02-03 20:00", 40, "20min", "%m/%d/%Y %H:%M"), ["%m/%d/%Y %H:%M"]),
        (["05/01/2024", "12/01/2024", "02/02/2024"], ["%d/%m/%Y"]),
        (["01/01/2024", "01/02/2024", "01/03/2024"], ["%d/%m/%Y", "%m/%d/%Y"]),
        (dates("2024-02-03", 9, "1min", "%d/%m/%Y %H:%M"), ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"]),
    ],
)
def test_order_of_rows_may_tell_days_from_months(cells, expected):
    assert settled_formats(cells) == expected


def test_long_texts_are_not_tried_as_times():
    class Counted(str):
        tried = 0

        def __len__(self):
            Counted.tried += 1
            return super().__len__()

    cells = [Counted(f"{i}{'k' * 100_000}") for i in range(60)]
    assert time_formats(cells) == []
    assert Counted.tried == 1  # the first tells


def test_times_that_no_calendar_has_are_refused_when_learning_and_later():
    far = pd.Series(np.full(20, 2**62, dtype="M8[s]"), name="when")
    frame = pd.DataFrame({"x": np.arange(20) % 7, "when": far})
    with pytest.raises(TableError, match="'when' holds times that are too far from now"):
        Schema.infer(frame)
    with pytest.raises(TableError, match="too far"):
        times(far, "ISO8601", utc=False)

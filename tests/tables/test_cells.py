"""Cells: numbers and how they are written, text, times."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import ColumnMismatchError, TableError
from ocfuse.tables import Schema, open_source
from ocfuse.tables.cells import (
    Notation,
    has_zone,
    numbers,
    settled_formats,
    settled_notation,
    texts,
    time_formats,
    times,
    words,
    zones,
)

TEXT = pd.StringDtype("pyarrow")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_numbers_come_back_to_the_last_bit(values):
    for dtype in (TEXT, object):
        found, wrong = numbers(pd.Series([repr(value) for value in values], dtype=dtype))
        assert np.array_equal(found, np.array(values))
        assert not wrong.any()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["1", " 2.5 ", "+3e2", "", "NA", "-", "x", "1_0", "1,5", "inf"])))
def test_one_cell_at_a_time(cells):
    """The fast way and the slow way agree, and no cell depends on another."""
    found, wrong = numbers(pd.Series(cells, dtype=TEXT))
    alone = [numbers(pd.Series([cell], dtype=object)) for cell in cells]
    assert np.array_equal(wrong, [bool(each[1][0]) for each in alone])
    assert np.array_equal(found, [each[0][0] for each in alone], equal_nan=True)
    assert wrong.tolist() == [cell in ("x", "1_0", "1,5") for cell in cells]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2]),
        pd.Series([1, 2], dtype="Int16"),
        pd.Series([1, 2], dtype="float32"),
        pd.Series([1, 2], dtype="int64[pyarrow]"),
        pd.Series([1, "2"], dtype=object),
        pd.Series(["1", "2.0"]),
        pd.Series(["1", "2"], dtype="category"),
    ],
)
def test_numbers_of_many_types(column):
    found, wrong = numbers(column)
    assert found.dtype == np.float64
    assert found.tolist() == [1, 2]
    assert not wrong.any()


@pytest.mark.parametrize("gap", [None, math.nan, pd.NA, "", " ", "NaN", "n/a", "?", "null"])
def test_gaps_among_numbers(gap):
    found, wrong = numbers(pd.Series([1.5, gap], dtype=object))
    assert not wrong.any()
    assert np.isnan(found).tolist() == [False, True]


def test_booleans_are_no_numbers():
    for column in (pd.Series([True, False]), pd.Series([True, None], dtype="boolean")):
        assert numbers(column)[1].tolist()[0]


def test_huge_numbers_are_infinite():
    assert numbers(pd.Series([10**400, "1e999"], dtype=object))[0].tolist() == [math.inf] * 2


def test_texts():
    column = pd.Series(["a", " b", "", None, 1, 2.0, 2.5, True, "NA", "None"], dtype=object)
    assert texts(column) == ["a", "b", None, None, "1", "2", "2.5", "true", "NA", "None"]
    assert words(column) == ["a", "b", None, None, "1", "2", "2.5", "true", "NA", None]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, False, None], dtype=object),
        pd.Series([True, False, None], dtype="boolean"),
        pd.Series(["TRUE", "FALSE", ""], dtype=TEXT),
        pd.Series([" True", "false ", " "], dtype=object),
        pd.Series([np.True_, np.False_, np.nan], dtype=object),
    ],
)
def test_truth_has_one_spelling(column):
    assert texts(column) == ["true", "false", None]


@pytest.mark.parametrize(
    ("cells", "pattern", "numbers"),
    [
        (["45.3%", "7%", "-1.5 %"], "1000.0%", [45.3, 7, -1.5]),
        (["$12.50", "$1,200.00", "($3.20)"], "$1,000.0", [12.5, 1200, -3.2]),
        (["5,911.19", "12.5", "1,234,567"], "1,000.0", [5911.19, 12.5, 1234567]),
        (["1.234,5", "12,25", "7"], "1.000,0", [1234.5, 12.25, 7]),
        (["€ 3", "€ 14"], "1000.0€", [3, 14]),
        (["12,5 %", "3,25 %"], "1000,0%", [12.5, 3.25]),
        (["1 234.5", "1 000"], "1 000.0", [1234.5, 1000]),
    ],
)
def test_numbers_that_are_written_alike(cells, pattern, numbers):
    notation = settled_notation(cells)
    assert notation is not None
    assert notation.pattern == pattern
    assert Notation.of(pattern) == notation
    assert [notation.number(cell) for cell in cells] == numbers


@pytest.mark.parametrize(
    "cells",
    [["45%", "$3"], ["12%", "x"], ["1,234.5", "1.234,5"], ["1.5", "2"], [], ["$5%"], ["12%", "3"]],
)
def test_other_cells_are_no_such_numbers(cells):
    assert settled_notation(cells) is None


def test_what_may_mean_two_things_is_refused():
    with pytest.raises(TableError, match="'\\$1,234' may mean thousands or decimals"):
        settled_notation(["$1,234", "$12"])


def test_later_tables_are_read_as_in_training():
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5] * 4, "price": ["$1,200.50", "$7.25", ""] * 4})
    schema = Schema.infer(frame)
    assert "written as $1,000.0" in schema.columns[1].reason
    assert schema.features_of(frame)["price"].tolist()[:2] == [1200.5, 7.25]
    numbers = frame.assign(price=7.25)
    assert schema.features_of(numbers)["price"].tolist() == [7.25] * 12
    with pytest.raises(ColumnMismatchError, match=r"price holds no number .*written as \$1,000"):
        schema.check(frame.assign(price="7.25 €"))


@pytest.mark.parametrize("decimal", [None, ","])
def test_points_mark_thousands_where_commas_are_decimal(tmp_path, decimal):
    path = tmp_path / "t.csv"
    points = ("1.234,5", "12,25", "7") if decimal is None else ("1.234,5", "12,25", "1.234")
    path.write_text("x;price\n" + "".join(f"{i},5;{p}\n" for i in range(4) for p in points))
    frame = open_source(path, decimal=decimal).read()
    found = Schema.infer(frame).features_of(frame)["price"].tolist()
    assert found[:3] == [1234.5, 12.25, 7.0 if decimal is None else 1234.0]


@pytest.mark.parametrize(("form", "odd"), [("${}.50", "$-"), ("{}.5%", "inf%"), ("€{}", "free")])
def test_one_cell_that_is_no_number_does_not_make_prices_text(form, odd):
    cells = [form.format(i % 37) for i in range(60)]
    frame = pd.DataFrame({"x": np.arange(60) % 7, "price": [*cells, odd][1:]})
    with pytest.raises(TableError, match=re.escape(f"numbers, but not in row 59 ({odd!r})")):
        Schema.infer(frame)


def test_text_with_some_prices_stays_text():
    frame = pd.DataFrame({"x": np.arange(60) % 7, "price": ["$5", "free", "$9"] * 20})
    assert Schema.infer(frame).columns[1].kind == "category"


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

"""Numbers with units and marks are read in one way, or not at all."""

import re

import numpy as np
import pandas as pd
import pytest

from ocfuse.exceptions import ColumnMismatchError, TableError
from ocfuse.tables import Schema, open_source
from ocfuse.tables.cells import Notation, settled_notation


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

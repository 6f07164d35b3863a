import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.tables.cells import numbers, texts, words

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

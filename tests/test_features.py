"""Tables as users have them become standardised numbers, by the stated policy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.features import FARTHEST, FeatureEncoder, NumberScaler, check_table, take_rows


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "speed": [1.0, 2.0, 3.0, 4.0],
            "state": ["on", "off", "on", "on"],
            "ok": [True, False, True, True],
            "kind": pd.Categorical(["a", "b", "a", "c"]),
        }
    )


def test_numbers_are_standardised():
    X = np.random.default_rng(0).normal(5, 3, (50, 3))
    Z = FeatureEncoder().fit(X).transform(X)
    np.testing.assert_allclose(Z, (X - X.mean(0)) / X.std(0))


@pytest.mark.parametrize("value", [0.0, 7.0, 1e9, 0.1])
def test_a_constant_column_is_centred_and_a_deviation_still_shows(value):
    X = np.full((10, 1), value)
    encoder = FeatureEncoder().fit(X)
    np.testing.assert_allclose(encoder.transform(X), 0, atol=1e-6)
    np.testing.assert_allclose(encoder.transform(X + 2.0), 2.0, atol=1e-6)


def test_row_order_changes_no_bit():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(101, 4)) * 1e3
    order = rng.permutation(len(X))
    first, second = FeatureEncoder().fit(X), FeatureEncoder().fit(X[order])
    np.testing.assert_array_equal(first.transform(X), second.transform(X))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_any_finite_column_comes_out_finite(values):
    X = np.array(values)[:, np.newaxis]
    Z = FeatureEncoder().fit(X).transform(X)
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() <= FARTHEST


def test_gaps_are_filled_where_training_had_gaps():
    X = np.array([[1.0, 1.0], [2.0, np.nan], [3.0, 3.0], [4.0, 8.0]])
    encoder = FeatureEncoder().fit(X)
    filled = encoder.transform([[1.0, np.nan]])
    np.testing.assert_array_equal(filled, encoder.transform([[1.0, 3.0]]))


def test_a_gap_in_a_complete_column_is_refused():
    encoder = FeatureEncoder().fit(np.arange(8.0).reshape(4, 2))
    with pytest.raises(InvalidInputError, match=r"complete in training: 1\."):
        encoder.transform([[0.0, np.nan]])


def test_an_empty_column_is_refused():
    with pytest.raises(InvalidInputError, match="no value at all"):
        NumberScaler().fit([[np.nan, 1.0], [np.nan, 2.0]])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(value):
    with pytest.raises(ValueError, match="infinity"):
        FeatureEncoder().fit([[value], [1.0]])


def test_categories_become_columns(frame):
    encoder = FeatureEncoder().fit(frame)
    Z = encoder.transform(frame)
    np.testing.assert_array_equal(encoder.source_, [0, 2, 1, 1, 3, 3, 3])
    np.testing.assert_array_equal(Z[:, 2:4], [[0, 1], [1, 0], [0, 1], [0, 1]])
    np.testing.assert_allclose(Z[:, :2].mean(0), 0, atol=1e-12)


def test_an_unknown_category_is_unlike_any_row(frame):
    encoder = FeatureEncoder().fit(frame)
    new = frame.assign(state="broken")
    np.testing.assert_array_equal(encoder.transform(new)[:, 2:4], 0)


def test_polars_equals_pandas(frame):
    table = pl.DataFrame({name: frame[name].to_list() for name in frame.columns})
    expected = FeatureEncoder().fit(frame).transform(frame)
    np.testing.assert_array_equal(FeatureEncoder().fit(table).transform(table), expected)


def test_numeric_frames_equal_arrays():
    X = np.random.default_rng(2).normal(size=(20, 3))
    expected = FeatureEncoder().fit(X).transform(X)
    for table in (pd.DataFrame(X), pl.DataFrame(X), pd.DataFrame(X).astype(object)):
        np.testing.assert_array_equal(FeatureEncoder().fit(table).transform(table), expected)


def test_nullable_integers_have_gaps():
    table = pd.DataFrame({"a": pd.array([1, 2, None, 4], dtype="Int64"), "b": [1.0, 2, 3, 4]})
    Z = FeatureEncoder().fit(table).transform(table)
    np.testing.assert_array_equal(Z[2, 0], FeatureEncoder().fit(table).transform(table)[1, 0])


def test_missing_categories(frame):
    frame["state"] = ["on", None, "on", "off"]
    encoder = FeatureEncoder().fit(frame)
    assert encoder.transform(frame).shape == (4, 8)
    with pytest.raises(InvalidInputError, match=r"complete in training: kind\."):
        encoder.transform(frame.assign(kind=[None, "a", "a", "a"]))


def test_text_in_a_number_column_is_refused(frame):
    encoder = FeatureEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match=r"were numbers in training: speed\."):
        encoder.transform(frame.assign(speed=["fast"] * 4))


def test_an_array_for_a_frame_with_categories_is_refused(frame):
    with pytest.raises(InvalidTypeError, match="must be a data frame"):
        FeatureEncoder().fit(frame).transform(np.zeros((1, 4)))


@pytest.mark.parametrize(
    ("column", "message"),
    [(pd.date_range("2026-01-01", periods=4), "dates"), ([{}, {}, {}, {}], "dict objects")],
)
def test_unusable_columns_are_named(frame, column, message):
    frame["when"] = column
    with pytest.raises(InvalidTypeError, match=rf"'when' holds {message}"):
        FeatureEncoder().fit(frame)


def test_repeated_names_are_refused():
    table = pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"])
    with pytest.raises(InvalidInputError, match=r"twice: \['a'\]"):
        FeatureEncoder().fit(table)


def test_check_table_and_take_rows(frame):
    assert check_table(frame) is frame
    with pytest.raises(InvalidInputError, match="at least one row"):
        check_table(frame.iloc[:0])
    table = pl.DataFrame({"speed": [1.0, 2.0, 3.0]})
    rows = np.array([2, 0])
    assert take_rows(frame, rows)["speed"].tolist() == [3.0, 1.0]
    assert take_rows(table, rows)["speed"].to_list() == [3.0, 1.0]
    np.testing.assert_array_equal(take_rows(np.arange(3), rows), [2, 0])

"""Checks of arguments: tables, numbers, weights and labels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, LabelsWarning
from ocfuse.validation import (
    check_number,
    check_sample_weight,
    check_table,
    check_training_labels,
    labels_to_learn_from,
)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_tables(frame):
    table = check_table(frame({"a": [1, 2], "b": [0.5, 1.5]}), "Z", "n_members")
    np.testing.assert_array_equal(table, [[1.0, 0.5], [2.0, 1.5]])


def test_sparse_is_refused_with_advice():
    with pytest.raises(InvalidTypeError, match=r"Z\.toarray\(\)"):
        check_table(csr_matrix(np.eye(3)), "Z", "n_members")


def test_text_and_times_are_refused():
    for values in ([["a"]], np.array([["2020-01-01"]], dtype="datetime64[D]"), [[1, [2]]]):
        with pytest.raises(InvalidTypeError, match="real numbers"):
            check_table(values, "X", "n_features")


def test_weights_are_relative():
    np.testing.assert_array_equal(check_sample_weight([1, 2, 4], 3), [0.25, 0.5, 1.0])
    assert check_sample_weight(None, 2).tolist() == [1.0, 1.0]


def test_intervals():
    assert check_number(np.float32(0.5), "a", 0, 1, "") == 0.5
    assert check_number(1, "a", 0, 1, "") == 1.0
    for value in (True, None, "1", np.nan, 1.1):
        with pytest.raises(InvalidInputError, match=r"a must be a number in \[0, 1\]"):
            check_number(value, "a", 0, 1, "")
    with pytest.raises(InvalidInputError, match=r"in \(0, 1\]"):
        check_number(0, "a", 0, 1, "", open_low=True)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (None, [0, 0, 0]),
        ([1, -1, 0], [1, -1, 0]),
        ([1.0, -1.0, np.nan], [1, -1, 0]),
        ([1.0, np.nan, 1.0], [1, 0, 1]),
        ([True, False, True], [1, -1, 1]),
        ([1, 1, 1], [1, 1, 1]),
        ([0, 0, 0], [0, 0, 0]),
        ([-1, 0, -1], [-1, 0, -1]),
        (np.array([1, -1, None], dtype=object), [1, -1, 0]),
        (pd.array([True, None, False], dtype="boolean"), [1, 0, -1]),
        (pd.array([1, None, -1], dtype="Int64"), [1, 0, -1]),
    ],
)
def test_accepted(y, expected):
    np.testing.assert_array_equal(check_training_labels(y, 3), expected)


@pytest.mark.parametrize(
    ("y", "advice"),
    [
        ([0, 1, 1], "1 - 2 \\* y"),
        ([1, 2, 1], "np.where\\(y == the_normal_value"),
        (["a", "b", "a"], "np.where\\(y == 'the normal class'"),
        (np.array(["a", 1, None], dtype=object), "dtype object"),
        ([1, 1], r"shape \(3,\). Got shape \(2,\)"),
        ([[1], [1], [1]], "one label per row"),
    ],
)
def test_refused_with_advice(y, advice):
    with pytest.raises(InvalidInputError, match=advice):
        check_training_labels(y, 3)


@pytest.mark.parametrize("y", [[0, 1, 2, 0, 1, 2], [0, 1, 0, 1, 1, 0], [1.5, 2, 2, 1.5, 3, 4]])
def test_classes_are_not_learned_from_and_that_is_said(y):
    with pytest.warns(LabelsWarning, match="all rows count as unknown") as told:
        found = labels_to_learn_from(y, 6)
    assert not found.any()
    assert ("1 - 2 * y" in str(told[0].message)) == (set(y) == {0, 1})


@pytest.mark.parametrize(
    ("y", "advice"),
    [
        ([0, 0, 0, 0, 0, 1], "1 - 2 \\* y"),  # most likely anomalies
        ([1, 1, 1, 1, 1, 0], "1 - 2 \\* y"),
        ([1, 0, 1, 0, 1, 0, 1], "1 - 2 \\* y"),
        ([2, 2, 2, 2, 2, 7], "np.where\\(y == the_normal_value"),
        ([0, 0, 0, 0, 0, 7, 8], "np.where"),  # kinds of anomalies
        ([1, -1, 2, 2, 1, -1], "np.where"),
        (["ok", "bad", "ok", "bad"], "'the normal class'"),
    ],
)
def test_labels_in_another_coding_are_refused_with_the_line_to_write(y, advice):
    with pytest.raises(InvalidInputError, match=advice):
        labels_to_learn_from(y, len(y))


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.arange(210) < 10, "10 of 210 labels in y are True, which means normal"),
        ([False, False, False], "0 of 3 labels"),
        (pd.array([True, None, False, False], dtype="boolean"), "1 of 3 labels"),
    ],
)
def test_booleans_that_are_mostly_false_are_not_learned_from(y, said):
    with pytest.raises(InvalidInputError, match=said) as caught:
        labels_to_learn_from(y, len(y))
    for line in ("pass ~y", "as_labels(y, anomaly=True)", "as_labels(y, anomaly=False)"):
        assert line in str(caught.value)


def test_labels_that_judge_may_be_mostly_false():
    np.testing.assert_array_equal(check_training_labels([True, False, False], 3), [1, -1, -1])
    y = pd.array([True, None, False, False], dtype="boolean")
    np.testing.assert_array_equal(check_training_labels(y, 4), [1, 0, -1, -1])


def test_booleans_that_are_normal_in_half_of_the_rows_are_learned_from():
    np.testing.assert_array_equal(labels_to_learn_from([True, False], 2), [1, -1])


def test_the_warning_of_0_and_1_begins_with_what_happens_to_measures():
    with pytest.warns(LabelsWarning, match="^If 1 means anomaly, scores of scikit-learn") as told:
        labels_to_learn_from([0, 1, 0, 1, np.nan], 5)
    assert "upside down (0.01 for 0.99)" in str(told[0].message)
    with pytest.warns(LabelsWarning, match="^y was not learned from"):
        labels_to_learn_from([0, 1, 2], 3)


def test_labels_in_our_coding_are_learned_from():
    np.testing.assert_array_equal(labels_to_learn_from([1, -1, 0], 3), [1, -1, 0])
    np.testing.assert_array_equal(labels_to_learn_from(None, 3), [0, 0, 0])

import numpy as np
import pandas as pd
import pytest

from ocfuse.exceptions import TableError
from ocfuse.tables.labels import is_label_name, learn_rule


def labels(values, name="label", normal=None):
    column = pd.Series(values, name=name, dtype=object)
    return learn_rule(column, normal).labels(column).tolist()


@pytest.mark.parametrize(
    ("values", "name", "normal", "expected"),
    [
        (["1", "-1", "0", ""], "label", None, [1, -1, 0, 0]),
        ([1.0, -1.0, np.nan], "label", None, [1, -1, 0]),
        (["+1", "1.0"], "label", None, [1, 1]),
        ([0, 1, 0], "anomaly", None, [1, -1, 1]),
        ([0, 0], "is_outlier", None, [1, 1]),
        (["0", "1", ""], "is_ok", None, [-1, 1, 0]),
        ([True, False], "abnormal", None, [-1, 1]),
        ([True, False, None], "normal", None, [1, -1, 0]),
        (["true", "FALSE"], "fault", None, [-1, 1]),
        (["OK", "leak", ""], "label", None, [1, -1, 0]),
        (["good", "defective", "broken"], "label", None, [1, -1, -1]),
        (["normal", "unknown", "attack"], "label", None, [1, 0, -1]),
        (["a", "b", "c", ""], "label", "B", [-1, 1, -1, 0]),
        (["a", "b", "c"], "label", ["a", "c"], [1, -1, 1]),
        ([0, 1, 2], "label", 0, [1, -1, -1]),
        (["0.0", "1"], "label", "0", [1, -1]),
        ([True, False], "label", False, [-1, 1]),
    ],
)
def test_labels(values, name, normal, expected):
    assert labels(values, name, normal) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b", "b"], r"It holds b \(2 rows\), a \(1 rows\).*normal='b'"),
        ([0, 1, 0], r"0 \(2 rows\), 1 \(1 rows\)"),
        ([0, 0], "not clear"),
        ([True, False], "not clear"),
        (["normal", "leak", "blockage"], "not clear"),
        (["", None], "holds no labels: all 2 cells are empty"),
    ],
)
def test_labels_that_are_not_clear(values, message):
    with pytest.raises(TableError, match=message):
        labels(values)


@pytest.mark.parametrize("normal", ["z", ["a", "z"], []])
def test_normal_must_occur(normal):
    with pytest.raises(TableError, match=r"must name values of column 'label', which holds a, b"):
        labels(["a", "b"], normal=normal)


def test_a_name_within_another_word_says_nothing():
    with pytest.raises(TableError, match="not clear"):
        labels([0, 1], name="smoke")


def test_labels_after_training():
    rule = learn_rule(pd.Series(["ok", "ok"], name="label"))
    assert rule.labels(pd.Series(["good", "leak", ""])).tolist() == [1, -1, 0]
    rule = learn_rule(pd.Series([0, 1], name="fault"))
    later = pd.Series([0, 2], name="fault")
    assert rule.labels(later).tolist() == [1, 0]
    assert rule.is_strange(later).tolist() == [False, True]


def test_a_zero_after_ones_alone_is_strange():
    later = pd.Series([1, 0, -1], name="label")
    for seen, expected in (([1, 1], [False, True, False]), ([1, -1], [False] * 3)):
        rule = learn_rule(pd.Series(seen, name="label"))
        assert rule.labels(later).tolist() == [1, 0, -1]
        assert rule.is_strange(later).tolist() == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[(name, True) for name in ("Label", "y", "fault", "machine_failure", "changepoint")],
        *[(name, True) for name in ("is_normal", "class", "target", "attack", "true_label")],
        *[(name, False) for name in ("default", "normalised_flow", "flow", "temp_target", "smoke")],
    ],
)
def test_names_of_labels(name, expected):
    assert is_label_name(name) == expected

"""Labels: what is accepted, what is refused, and what the advice says."""

import numpy as np
import pandas as pd
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.validation import check_training_labels


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

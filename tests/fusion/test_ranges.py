"""Context far beyond training is told, in either direction and in any column."""

import warnings

import numpy as np
import pytest

from ocfuse.exceptions import SuspectInputWarning
from ocfuse.fusion.local_scale import warn_if_far


@pytest.mark.parametrize("context", [[2.0, 7.0], [-1.0, np.nan], [], [[0.5], [6.9]]])
def test_up_to_its_width_beyond_nothing_is_told(context):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not warn_if_far(context, low=1.0, high=4.0)


@pytest.mark.parametrize(("value", "shown"), [(7.1, "7.1"), (-2.1, "-2.1"), (1e9, r"1e\+09")])
def test_farther_is_told(value, shown):
    with pytest.warns(SuspectInputWarning, match=f"was 1 to 4 in training, and is {shown} now"):
        assert warn_if_far([2.0, value], low=1.0, high=4.0)


def test_every_column_has_its_range():
    low, high = np.array([0.0, 100.0]), np.array([1.0, 200.0])
    assert not warn_if_far([[0.5, 150.0]], low, high)
    with pytest.warns(SuspectInputWarning, match="was 0 to 1 in training, and is 150 now"):
        assert warn_if_far([[0.5, 150.0], [150.0, 150.0]], low, high)

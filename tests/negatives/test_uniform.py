"""Laws of the box."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.negatives import Uniform
from tests.negatives.cases import COUNTS, TABLES, normals


@given(X=TABLES, n=COUNTS, margin=st.sampled_from([0.0, 0.25, 2.0]))
@settings(deadline=None, max_examples=50)
def test_within_the_widened_box(X, n, margin):
    drawn = Uniform(margin=margin).sample(X, n, 0)
    low, high = X.min(axis=0), X.max(axis=0)
    room = margin * (high - low) + 1e-12 * np.abs(X).max()
    assert np.all(drawn >= low - room)
    assert np.all(drawn <= high + room)


def test_fills_the_widened_box():
    drawn = Uniform(margin=0.25).sample([[0.0, -1.0], [4.0, 1.0]], 4000, 0)
    place = (drawn - [-1.0, -1.5]) / [6.0, 3.0]
    np.testing.assert_allclose(place.min(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(place.max(axis=0), 1.0, atol=0.01)
    np.testing.assert_allclose(place.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(place.var(axis=0), 1.0 / 12.0, atol=0.005)


def test_every_level_of_a_category_is_as_likely():
    X = np.eye(3)[[0] * 97 + [1, 2, 1]]
    counts = Uniform().sample(X, 6000, 0, source=[0, 0, 0]).sum(axis=0)
    np.testing.assert_allclose(counts, 2000, atol=150)


@pytest.mark.parametrize("margin", [-0.1, np.inf, np.nan])
def test_wrong_margin(margin):
    with pytest.raises(InvalidInputError, match="margin"):
        Uniform(margin=margin).sample(normals(), 3, 0)

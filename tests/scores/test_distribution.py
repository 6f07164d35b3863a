"""Weighted samples: what counts as a tie."""

import numpy as np
import pytest

from ocfuse.scores.distribution import WeightedSample


def sample(values, weights=None):
    values = np.array(values)
    return WeightedSample.of(values, np.ones(len(values)) if weights is None else weights)


def test_near_ties_are_one_value_at_their_weighted_mean():
    merged = sample([0.0, 1.0, 1.0 + 4e-15, 2.0], np.array([1.0, 3.0, 1.0, 1.0]))
    merged = merged.without_near_ties()
    np.testing.assert_array_equal(merged.weights, [1.0, 4.0, 1.0])
    np.testing.assert_array_equal(merged.values[[0, 2]], [0.0, 2.0])
    assert 0.0 < merged.values[1] - 1.0 < 2e-15


def test_distinct_values_stay_to_the_bit():
    values = np.random.default_rng(0).standard_cauchy(3000)
    found = sample(values).without_near_ties()
    assert len(found.values) > 2990
    plain = sample([-5.0, 1e-6, 3e-6])
    assert plain.without_near_ties() is plain


def test_far_outliers_do_not_merge_the_bulk():
    bulk = np.linspace(0.0, 1.0, 500)
    assert len(sample([*bulk, -1e9]).without_near_ties().values) == 501


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_scale_does_not_matter(scale):
    values = scale * np.array([-3.0, -3.0 + 1e-12, 0.5, 2.0])
    assert len(sample(values).without_near_ties().values) == 3

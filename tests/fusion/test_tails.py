"""Quantiles and tails of weighted scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ocfuse.fusion.labelled import logistic_scale, tail_knots, tail_log_odds, weighted_quantile

numbers = st.floats(-100, 100).map(lambda v: round(v, 2))


@given(arrays(np.float64, (9, 2), elements=numbers), st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_quantile_keeps_its_rate_and_is_the_largest(Z, rate):
    c = np.arange(1.0, 10.0)
    q = weighted_quantile(Z, c, rate)
    for z, v in zip(Z.T, q, strict=True):
        assert v in z
        assert c[z < v].sum() <= (rate + 1e-9) * c.sum()
        above = z[z > v]
        if above.size:
            assert c[z < above.min()].sum() > rate * c.sum()


def test_weights_count_as_copies():
    rng = np.random.default_rng(0)
    Z, c = rng.normal(size=(30, 3)), rng.integers(1, 5, 30)
    copies, ones = np.repeat(Z, c, axis=0), np.ones(c.sum())
    for rate in (0.0, 0.05, 0.5, 1.0):
        np.testing.assert_array_equal(
            weighted_quantile(Z, c.astype(float), rate), weighted_quantile(copies, ones, rate)
        )
    np.testing.assert_allclose(logistic_scale(Z, c), logistic_scale(copies, ones))
    for ours, theirs in zip(
        tail_knots(Z[:, 0], c.astype(float)), tail_knots(copies[:, 0], ones), strict=True
    ):
        np.testing.assert_allclose(ours, theirs)


def test_constant_columns_have_unit_scale():
    Z = np.column_stack([np.full(50, 0.1), np.linspace(0, 1, 50), np.full(50, 1e9 + 0.1)])
    scale = logistic_scale(Z, np.ones(50))
    assert scale[0] == scale[2] == 1.0
    assert scale[1] == pytest.approx(np.linspace(0, 1, 50).std() * np.sqrt(3) / np.pi)


def test_log_odds_are_those_of_the_share_below():
    r = np.arange(1.0, 100.0)
    at, odds = tail_knots(r, np.ones(99))
    found = tail_log_odds(np.array([50.0, 10.5, 90.0]), at, odds, 1.0)
    share = 1 / (1 + np.exp(-found))
    np.testing.assert_allclose(share, [0.5, 10 / 99, 89.5 / 99], atol=2e-4)


@given(arrays(np.float64, 12, elements=numbers), st.lists(numbers, min_size=2, max_size=8))
@settings(deadline=None, max_examples=60)
def test_log_odds_rise_with_the_score(r, points):
    at, odds = tail_knots(r, np.ones(12))
    found = tail_log_odds(np.sort(points), at, odds, 0.5)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()


def test_far_tails_do_not_tie():
    at, odds = tail_knots(np.linspace(0, 1, 1000), np.ones(1000))
    assert len(at) <= 257
    assert (at[0], at[-1]) == (0.0, 1.0)
    far = tail_log_odds(np.array([-1e6, -1e3, 2.0, 1e6]), at, odds, 0.3)
    assert (np.diff(far) > 0).all()

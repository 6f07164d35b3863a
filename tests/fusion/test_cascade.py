"""The dual-threshold cascade."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from scipy.stats import kstest
from sklearn.metrics import roc_auc_score

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import CascadeFusion
from ocfuse.fusion.cascade import tail_knots, tail_log_odds
from tests.fusion.cases import scores


def normals(n=2000, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_stages_follow_the_thresholds():
    Z = normals()
    model = CascadeFusion(low=0.05, high=0.6).fit(Z)
    stages = model.stage(Z)
    first = Z[:, 0]
    clear = (first <= np.quantile(first, 0.05)) | (first >= np.quantile(first, 0.6))
    assert (clear == (stages == 0)).mean() > 0.995
    np.testing.assert_array_equal(model.stage_counts_, np.bincount(stages, minlength=4))
    assert model.stage_counts_.sum() == len(Z)
    assert model.stage_counts_[0] == pytest.approx(0.45 * len(Z), rel=0.03)


def test_a_decided_row_does_not_depend_on_later_members():
    Z = normals()
    model = CascadeFusion().fit(Z)
    stages, fused = model.stage(Z), model.fuse(Z)
    later = np.arange(4) > stages[:, np.newaxis]
    changed = np.where(later, 99.0, Z)
    np.testing.assert_array_equal(model.stage(changed), stages)
    np.testing.assert_array_equal(model.fuse(changed), fused)


def test_order_is_the_order_of_asking():
    Z, y, _ = scores(d=3)
    turned = CascadeFusion(order=[2, 0, 1]).fit(Z, y)
    plain = CascadeFusion().fit(Z[:, [2, 0, 1]], y)
    np.testing.assert_array_equal(turned.fuse(Z), plain.fuse(Z[:, [2, 0, 1]]))
    np.testing.assert_array_equal(turned.order_, [2, 0, 1])


def test_score_is_a_tail_probability_at_every_stage():
    model = CascadeFusion(low=0.0, high=1.0).fit(normals(5000))
    fresh = normals(5000, seed=1)
    odds = model._odds(fresh)
    for j in range(4):
        assert kstest(expit(odds[:, j]), "uniform").statistic < 0.03
    # Without early decisions the last stage scores, which is the sum rule's order.
    order = model.fuse(fresh).argsort()
    np.testing.assert_array_equal(order, fresh.mean(axis=1).argsort())
    assert (model.stage(fresh) == 3).all()


def test_decisions_and_scores_agree():
    Z = normals()
    model = CascadeFusion(low=0.05, high=0.6).fit(Z)
    fused, stages = model.fuse(Z), model.stage(Z)
    early = stages < 3
    share = expit(fused[early])
    assert ((share <= 0.05 + 1e-12) | (share >= 0.6 - 1e-12)).all()


def test_monotone_within_one_path():
    Z = normals()
    model = CascadeFusion().fit(Z)
    higher = Z + 0.05
    same = model.stage(Z) == model.stage(higher)
    assert same.mean() > 0.5
    assert (model.fuse(higher)[same] >= model.fuse(Z)[same]).all()


def test_lower_everywhere_is_never_called_more_normal_at_the_first_stage():
    model = CascadeFusion().fit(normals())
    far = -np.logspace(0.7, 8, 30)[:, np.newaxis] * np.ones(4)
    assert (model.stage(far) == 0).all()
    assert (np.diff(model.fuse(far)) < 0).all()


def test_anomalies_raise_the_upper_threshold():
    N = normals(500)
    A = normals(100, seed=1) + np.array([1.5, -4.0, -4.0, -4.0])  # the cheap member is fooled
    Z, y = np.vstack([N, A]), np.r_[np.ones(500), -np.ones(100)]
    blind, seeing = CascadeFusion().fit(N), CascadeFusion().fit(Z, y)
    assert seeing.upper_[0] > blind.upper_[0]
    passed = (seeing._odds(A) >= seeing.upper_).mean(axis=0)
    assert (passed <= 0.01).all()
    assert roc_auc_score(y, seeing.fuse(Z)) > roc_auc_score(y, blind.fuse(Z)) + 0.1


@pytest.mark.parametrize("low", [0.0, 0.05, 0.2])
def test_at_most_the_stated_share_of_the_anomalies_passes(low):
    N, A = normals(300), normals(60, seed=1)  # not to be told apart
    y = np.r_[np.ones(300), -np.ones(60)]
    model = CascadeFusion(low=low).fit(np.vstack([N, A]), y)
    passed = (model._odds(A) >= model.upper_).mean(axis=0)
    assert (passed <= low).all()
    assert (passed >= low - 2 / 60).all()


def test_weights_count_as_copies():
    Z = normals(50)
    c = np.random.default_rng(0).integers(1, 4, 50)
    weighted = CascadeFusion().fit(Z, sample_weight=c)
    copied = CascadeFusion().fit(np.repeat(Z, c, axis=0))
    np.testing.assert_allclose(weighted.fuse(Z), copied.fuse(Z), rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CascadeFusion(low=0.5, high=0.5), "low must be below high"),
        (CascadeFusion(low=-0.1), "low must be a number"),
        (CascadeFusion(high=2.0), "high must be a number"),
        (CascadeFusion(order=[0, 1]), "each of the members 0 to 3"),
        (CascadeFusion(order=[0, 0, 1, 2]), "each of the members 0 to 3"),
    ],
)
def test_wrong_parameters_are_refused(model, message):
    with pytest.raises(InvalidInputError, match=message):
        model.fit(normals(20))


def test_wrong_scores_are_refused_by_stage():
    with pytest.raises(InvalidInputError, match="4 columns"):
        CascadeFusion().fit(normals(20)).stage([[1.0, 2.0]])


numbers = st.floats(-100, 100).map(lambda v: round(v, 2))


def test_weights_of_knots_count_as_copies():
    rng = np.random.default_rng(0)
    r, c = rng.normal(size=30), rng.integers(1, 5, 30)
    ours, theirs = tail_knots(r, c.astype(float)), tail_knots(np.repeat(r, c), np.ones(c.sum()))
    np.testing.assert_allclose(ours, theirs)


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

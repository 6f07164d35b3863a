"""Fixed rules: known values, laws of every rule, quantiles, and the single best member."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import trim_mean
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import (
    AverageOfMaximum,
    MajorityVote,
    MaxRule,
    MedianRule,
    MinRule,
    ProductRule,
    SingleBest,
    SumRule,
    TrimmedMean,
)
from ocfuse.fusion.rules import logistic_scale, weighted_quantile
from tests.fusion.cases import RULES, name_of, scores

Z = np.array([[0.2, 0.9, 0.4, -3.0, 0.5], [1.0, 1.0, 0.0, 0.0, 7.0]])
values = st.floats(-1e3, 1e3, allow_subnormal=False)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (SumRule(), Z.mean(axis=1)),
        (MaxRule(), Z.max(axis=1)),
        (MinRule(), Z.min(axis=1)),
        (MedianRule(), np.median(Z, axis=1)),
        (TrimmedMean(0.2), trim_mean(Z, 0.2, axis=1)),
        (TrimmedMean(0.5), np.median(Z, axis=1)),
        (TrimmedMean(0.0), Z.mean(axis=1)),
        (MajorityVote(threshold=0.4), [3 / 5, 3 / 5]),
        (MajorityVote(threshold=[0.2, 1.0, 0.0, 0.0, 7.0]), [2 / 5, 1.0]),
        (AverageOfMaximum(n_groups=1), Z.min(axis=1)),
        (AverageOfMaximum(n_groups=5), Z.mean(axis=1)),
    ],
)
def test_known_values(rule, expected):
    np.testing.assert_allclose(rule.fit(Z).fuse(Z), expected, rtol=1e-14)


def test_median_of_an_even_number():
    assert MedianRule().fit([[1.0, 2.0, 4.0, 9.0]]).fuse([[9.0, 1.0, 4.0, 2.0]]) == 3.0


def test_average_of_maximum_by_hand():
    rule = AverageOfMaximum(n_groups=2, random_state=1).fit(np.zeros((1, 4)))
    first, second = (np.flatnonzero(rule.groups_ == g) for g in (0, 1))
    assert len(first) == len(second) == 2
    z = np.zeros(4)
    z[first], z[second] = [0.7, 0.1], [0.9, 0.5]
    # Of each group the lower normality, which is the higher anomaly score.
    assert rule.fuse([z]) == pytest.approx((0.1 + 0.5) / 2)


def test_average_of_maximum_groups():
    groups = [AverageOfMaximum(random_state=s).fit(np.zeros((1, 15))).groups_ for s in range(20)]
    assert all(np.array_equal(np.bincount(g), [3] * 5) for g in groups)
    assert len({tuple(g) for g in groups}) > 1
    with pytest.raises(InvalidInputError, match="number of members, 3"):
        AverageOfMaximum(n_groups=4).fit(np.zeros((1, 3)))


def test_vote_threshold_rejects_the_stated_share_of_each_member():
    rng = np.random.default_rng(0)
    N = rng.normal(size=(200, 3))
    vote = MajorityVote(rate=0.1).fit(np.vstack([N, N - 50]), np.repeat([1, -1], 200))
    np.testing.assert_array_equal((vote.thresholds_ > N).sum(axis=0), 20)


def test_vote_threshold_heeds_weights():
    N = np.arange(10.0).reshape(-1, 1)
    c = np.where(N[:, 0] < 5, 1.0, 3.0)
    assert MajorityVote(rate=0.05).fit(N, sample_weight=c).thresholds_ == 1.0
    assert MajorityVote(rate=0.5).fit(N, sample_weight=c).thresholds_ == 6.0


def test_product_is_the_sum_of_log_probabilities():
    N = np.array([[0.0, 4.0], [2.0, 8.0], [4.0, 6.0]])
    rule = ProductRule().fit(N)
    t = (N - N.mean(axis=0)) * np.pi / (np.sqrt(3) * N.std(axis=0))
    np.testing.assert_allclose(rule.fuse(N), np.log(1 / (1 + np.exp(-t))).mean(axis=1))


def test_product_keeps_the_order_of_far_anomalies():
    N, _, _ = scores(n_anomalies=0)
    far = -np.logspace(0, 12, 40)[:, np.newaxis] * np.ones(4)
    fused = ProductRule().fit(N).fuse(far)
    assert (np.diff(fused) < 0).all()
    assert np.isfinite(fused).all()


@given(
    arrays(np.float64, (6, 3), elements=st.floats(-5, 5).map(lambda v: round(v, 3))),
    st.floats(0.1, 10),
    st.floats(-10, 10),
)
@settings(deadline=None, max_examples=40)
def test_product_does_not_depend_on_an_affine_normalisation(N, a, b):
    N = N + np.arange(6.0)[:, np.newaxis]
    first = ProductRule().fit(N).fuse(N)
    np.testing.assert_allclose(ProductRule().fit(a * N + b).fuse(a * N + b), first, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=name_of)
@given(z=arrays(np.float64, 7, elements=values), j=st.integers(0, 6), step=st.floats(0, 1e3))
@settings(deadline=None, max_examples=60)
def test_monotone_in_each_member(rule, z, j, step):
    model = clone(rule).fit(scores(d=7)[0])
    higher = z.copy()
    higher[j] += step
    low, high = model.fuse([z, higher])
    assert high >= low - 1e-12 * (1 + abs(low))


ORDER_RULES = [rule for rule in RULES if not isinstance(rule, ProductRule | MajorityVote)]


@pytest.mark.parametrize("rule", ORDER_RULES, ids=name_of)
@given(z=arrays(np.float64, 7, elements=values), a=st.floats(0.01, 100), b=values)
@settings(deadline=None, max_examples=40)
def test_between_the_extremes_and_affine(rule, z, a, b):
    model = clone(rule).fit(scores(d=7)[0])
    (fused,), (moved,) = model.fuse([z]), model.fuse([a * z + b])
    slack = 1e-10 * (1 + np.abs(z).max())
    assert z.min() - slack <= fused <= z.max() + slack
    assert moved == pytest.approx(a * fused + b, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("rule", ORDER_RULES, ids=name_of)
def test_shares_of_a_row_add_up_to_one(rule):
    ones = clone(rule).fit(scores(d=6)[0])
    np.testing.assert_allclose(ones._shares(scores(d=6)[0]).sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (TrimmedMean(0.6), "share must be a number"),
        (TrimmedMean("a"), "share must be a number"),
        (TrimmedMean(True), "share must be a number"),
        (AverageOfMaximum(n_groups=0), "n_groups must be a positive integer"),
        (AverageOfMaximum(n_groups=1.5), "n_groups must be a positive integer"),
        (MajorityVote(rate=1.5), "rate must be a number"),
        (MajorityVote(threshold=[0.1, 0.2]), "one per member"),
        (MajorityVote(threshold=np.nan), "finite"),
    ],
)
def test_wrong_parameters_are_refused(rule, message):
    with pytest.raises(InvalidInputError, match=message):
        rule.fit(Z)


def test_best_by_auc():
    Z, y, X = scores(d=5)
    model = SingleBest().fit(Z, y)
    quality = [roc_auc_score(y, z) for z in Z.T]
    np.testing.assert_allclose(model.quality_, quality)
    assert model.best_ == int(np.argmax(quality))
    np.testing.assert_array_equal(model.fuse(Z), Z[:, model.best_])
    assert model.weights(X)[0, model.best_] == 1.0


def test_best_by_average_precision_of_the_anomalies():
    Z, y, _ = scores(d=5)
    model = SingleBest("average-precision").fit(Z, y)
    np.testing.assert_allclose(model.quality_, [average_precision_score(y < 0, -z) for z in Z.T])


def test_weights_can_change_the_choice():
    Z = np.array([[0.9, 0.5], [0.1, 0.6], [0.5, 0.55]])
    y = [1, 1, -1]
    assert SingleBest().fit(Z, y, sample_weight=[3, 1, 1]).best_ == 0
    assert SingleBest().fit(Z, y, sample_weight=[1, 3, 1]).best_ == 1


def test_the_first_of_equals():
    assert SingleBest().fit([[1.0, 1.0], [0.0, 0.0]], [1, -1]).best_ == 0


def test_unknown_criterion():
    with pytest.raises(InvalidInputError, match="'auc', 'average-precision'"):
        SingleBest("f1").fit([[1.0], [0.0]], [1, -1])


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


def test_constant_columns_have_unit_scale():
    Z = np.column_stack([np.full(50, 0.1), np.linspace(0, 1, 50), np.full(50, 1e9 + 0.1)])
    scale = logistic_scale(Z, np.ones(50))
    assert scale[0] == scale[2] == 1.0
    assert scale[1] == pytest.approx(np.linspace(0, 1, 50).std() * np.sqrt(3) / np.pi)

"""The finite-sample guarantees, by simulation and by counting."""

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest
from sklearn.exceptions import NotFittedError

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import ConformalCalibrator, conformal_threshold

LAW = settings(deadline=None, max_examples=150)
DRAWS = {
    "gaussian": lambda rng, size: rng.standard_normal(size),
    "cauchy": lambda rng, size: rng.standard_cauchy(size),
    "five levels": lambda rng, size: rng.integers(0, 5, size).astype(float),
    "mostly one": lambda rng, size: (rng.random(size) < 0.9).astype(float),
}
N_SPLITS = 6_000
scores_of_any_kind = st.lists(st.integers(-8, 8).map(float), min_size=1, max_size=40)
rates = st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.05, 0.07, 0.1, 0.29, 0.5, 0.58]))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("n", [1, 9, 40, 99])
@pytest.mark.parametrize("kind", DRAWS)
def test_false_alarm_rate_of_fresh_normals(kind, n, rate):
    table = DRAWS[kind](np.random.default_rng(n), (N_SPLITS, n + 1))
    # every split is its own calibration set and one fresh normal
    alarms, guaranteed = 0, 0.0
    for calibration, fresh in zip(table[:, :n], table[:, n], strict=True):
        offset, guaranteed = conformal_threshold(calibration, rate)
        alarms += fresh < offset
    error = 4.0 * np.sqrt(guaranteed * (1 - guaranteed) / N_SPLITS)
    assert alarms / N_SPLITS <= guaranteed + error
    assert guaranteed <= rate or guaranteed == 1.0 / (n + 1)
    if kind in ("gaussian", "cauchy"):
        # and it is no lower than need be
        assert alarms / N_SPLITS >= guaranteed - error


@pytest.mark.slow
@given(scores=scores_of_any_kind, rate=rates)
@LAW
def test_guarantee_is_exact_over_all_orders(scores, rate):
    # leaving each of n + 1 exchangeable scores out in turn: the share of alarms is the rate
    scores = [*scores, 0.0]
    alarms = 0
    for fresh in range(len(scores)):
        offset, guaranteed = conformal_threshold(scores[:fresh] + scores[fresh + 1 :], rate)
        alarms += scores[fresh] < offset
    assert alarms <= round(guaranteed * len(scores))


@pytest.mark.parametrize(
    ("n", "rate", "k"),
    [(99, 0.05, 5), (99, 0.29, 29), (99, 0.58, 58), (98, 0.05, 4), (19, 0.05, 1), (18, 0.05, 0)],
)
def test_offset_is_the_kth_smallest(n, rate, k):
    scores = np.random.default_rng(0).permutation(n).astype(float)
    offset, guaranteed = conformal_threshold(scores, rate)
    assert offset == max(k, 1) - 1
    assert guaranteed == max(k, 1) / (n + 1)
    assert (guaranteed > rate * (1 + 1e-9)) == (k == 0)


@pytest.mark.slow
@given(scores=scores_of_any_kind, rate=rates, fresh=scores_of_any_kind)
@LAW
def test_p_value_and_threshold_agree(scores, rate, fresh):
    calibrator = ConformalCalibrator().fit(scores)
    offset, guaranteed = calibrator.threshold(rate)
    assert (offset, guaranteed) == conformal_threshold(scores, rate)
    alarms = np.array(fresh) < offset
    np.testing.assert_array_equal(alarms, calibrator.p_values(fresh) <= guaranteed + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWS)
def test_p_values_are_super_uniform_on_normals(kind):
    rng = np.random.default_rng(1)
    n = 19
    table = DRAWS[kind](rng, (N_SPLITS, n + 1))
    p_values = np.array([ConformalCalibrator().fit(row[:n]).p_values(row[n:])[0] for row in table])
    for level in np.arange(1, n + 1) / (n + 1):
        share = np.mean(p_values <= level + 1e-12)
        error = 4.0 * np.sqrt(level * (1 - level) / len(p_values))
        assert share <= level + error
        if kind == "gaussian":
            assert share >= level - error


@pytest.mark.slow
@given(scores=scores_of_any_kind, fresh=scores_of_any_kind)
@LAW
def test_p_values_by_counting(scores, fresh):
    p_values = ConformalCalibrator().fit(scores).p_values(fresh)
    expected = [(1 + sum(c <= s for c in scores)) / (len(scores) + 1) for s in fresh]
    np.testing.assert_array_equal(p_values, expected)


@pytest.mark.parametrize("fdr", [0.05, 0.2])
@pytest.mark.parametrize(
    ("n_anomalies", "distance", "levels"),
    [(0, 0.0, None), (10, 2.0, None), (30, 4.0, None), (30, 4.0, 1.0), (10, 3.0, 0.5)],
)
def test_false_discovery_rate(fdr, n_anomalies, distance, levels):
    rng = np.random.default_rng(2)
    n_repeats, n_batch = 800, 60
    false_shares, found = [], 0
    for _ in range(n_repeats):
        calibration, batch = rng.standard_normal(400), rng.standard_normal(n_batch)
        batch[:n_anomalies] -= distance
        if levels is not None:
            calibration, batch = np.round(calibration / levels), np.round(batch / levels)
        chosen = ConformalCalibrator().fit(calibration).select(batch, fdr)
        false_shares.append(chosen[n_anomalies:].sum() / max(chosen.sum(), 1))
        found += chosen[:n_anomalies].sum()
    error = 4.0 * np.std(false_shares) / np.sqrt(n_repeats)
    assert np.mean(false_shares) <= fdr * (1 - n_anomalies / n_batch) + error
    if distance == 4.0 and levels is None:
        assert found / (n_repeats * n_anomalies) > 0.8


@pytest.mark.slow
@given(scores=scores_of_any_kind, fresh=scores_of_any_kind, fdr=rates)
@LAW
def test_select_is_benjamini_hochberg(scores, fresh, fdr):
    calibrator = ConformalCalibrator().fit(scores)
    p_values = calibrator.p_values(fresh)
    q = len(fresh)
    best = 0
    for count in range(1, q + 1):
        if np.sort(p_values)[count - 1] <= fdr * count / q * (1 + 1e-12):
            best = count
    chosen = calibrator.select(fresh, fdr)
    assert chosen.dtype == np.bool_
    # ties with the last chosen are chosen as well, and still pass the bound
    assert chosen.sum() == best
    assert not best or p_values[chosen].max() <= fdr * best / q * (1 + 1e-12)


def test_select_of_an_empty_batch():
    assert ConformalCalibrator().fit([1.0, 2.0]).select([], 0.1).shape == (0,)


def test_saved_and_loaded():
    calibrator = ConformalCalibrator().fit([3.0, 1.0, 2.0])
    data = skops.io.dumps(calibrator)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(loaded.p_values([0.0, 2.0]), calibrator.p_values([0.0, 2.0]))


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, np.nan, "0.1", None, True])
def test_wrong_rates(rate):
    calibrator = ConformalCalibrator().fit([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="rate"):
        conformal_threshold([1.0, 2.0], rate)
    with pytest.raises(InvalidInputError, match="rate"):
        calibrator.threshold(rate)
    with pytest.raises(InvalidInputError, match="fdr"):
        calibrator.select([1.0], rate)


@pytest.mark.parametrize("scores", [[], [[1.0]], [np.nan], ["a"]])
def test_wrong_scores(scores):
    with pytest.raises(InvalidInputError, match="scores"):
        conformal_threshold(scores, 0.1)
    with pytest.raises(InvalidInputError, match="normal_scores"):
        ConformalCalibrator().fit(scores)


def test_unfitted():
    for call in ("p_values", "threshold"):
        with pytest.raises(NotFittedError):
            getattr(ConformalCalibrator(), call)(0.1)


class TestRowsLeftOut:
    scores = np.random.default_rng(0).normal(size=199)

    @pytest.mark.parametrize("rate", [0.02, 0.05, 0.1])
    @pytest.mark.parametrize("t", [0, 1, 3, 8, 60])
    def test_they_take_at_most_half_of_the_alarms(self, t, rate):
        offset, guaranteed = ConformalCalibrator().fit(self.scores, t).threshold(rate)
        alarms = np.sum(self.scores < offset) + 1
        assert rate * 200 / 2 - 1 <= alarms <= rate * 200
        assert guaranteed <= rate

    def test_few_of_them_count_fully(self):
        # 2 of 10 alarms are theirs: as if they were the lowest scores of all
        lowest = np.append(self.scores, [-1e9, -1e9])
        expected = ConformalCalibrator().fit(lowest).threshold(0.05)
        assert ConformalCalibrator().fit(self.scores, 2).threshold(0.05) == expected

    @pytest.mark.parametrize("t", [0, 2, 40])
    def test_an_alarm_is_a_small_p_value(self, t):
        calibrator = ConformalCalibrator().fit(self.scores, t)
        queries = np.random.default_rng(1).normal(size=500)
        for rate in (0.02, 0.1, 0.5):
            offset, _ = calibrator.threshold(rate)
            np.testing.assert_array_equal(calibrator.p_values(queries) <= rate, queries < offset)


grouped_scores = st.lists(
    st.tuples(st.integers(-8, 8).map(float), st.integers(0, 6)), min_size=1, max_size=40
)


class TestGroups:
    @pytest.mark.slow
    @given(rows=grouped_scores, fresh=st.integers(-9, 9).map(float), rate=rates)
    @LAW
    def test_p_value_and_threshold_agree(self, rows, fresh, rate):
        scores, groups = map(list, zip(*rows, strict=True))
        calibrator = ConformalCalibrator().fit(scores, groups=groups)
        offset, promised = calibrator.threshold(rate)
        if promised <= rate:
            assert (calibrator.p_values([fresh])[0] <= rate) == (fresh < offset)
        else:
            assert (offset, promised) == (min(scores), 1 / (calibrator.n_groups_ + 1))

    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    @pytest.mark.parametrize("k", [2, 9, 19, 39])
    def test_they_agree_at_every_rate_that_can_be_promised(self, k, size):
        """Shares such as 1/3 and 1/7 do not add up in floating point; whole groups must."""
        rng = np.random.default_rng(k)
        groups = rng.permutation(np.repeat(np.arange(k), size))
        calibrator = ConformalCalibrator().fit(rng.permutation(k * size), groups=groups)
        fresh = np.arange(-1, k * size) + 0.5
        for rate in {*(j / (k + 1) for j in range(1, k + 1)), *calibrator.rates_[:-1].tolist()}:
            offset, promised = calibrator.threshold(rate)
            assert promised <= rate
            assert ((calibrator.p_values(fresh) <= rate) == (fresh < offset)).all()

    @pytest.mark.parametrize("effect", [0.0, 1.0, 5.0])
    @pytest.mark.parametrize("rate", [0.05, 0.1, 0.3])
    def test_the_rate_holds_for_fresh_groups(self, rate, effect):
        """Groups differ in level, spread and size."""
        rng, alarms, p_values = np.random.default_rng(1), [], []
        for _ in range(600):
            sizes = rng.integers(1, 12, size=31)
            groups = np.repeat(np.arange(31), sizes)
            level, spread = effect * rng.normal(size=31), rng.uniform(0.2, 2, size=31)
            scores = level[groups] + spread[groups] * rng.normal(size=len(groups))
            old = groups < 30
            calibrator = ConformalCalibrator().fit(scores[old], groups=groups[old])
            offset, promised = calibrator.threshold(rate)
            assert promised <= rate
            alarms.append(np.mean(scores[~old] < offset))
            p_values.append(np.mean(calibrator.p_values(scores[~old]) <= rate))
        assert alarms == p_values
        error = 3 * np.std(alarms) / np.sqrt(len(alarms))
        assert rate - 1 / 31 - error < np.mean(alarms) < rate + error

    def test_groups_count_and_not_rows(self):
        """One long strange run must not move the threshold for all others."""
        rng = np.random.default_rng(0)
        scores = np.concatenate([rng.normal(-5, 1, 1000), rng.normal(0, 1, 390)])
        groups = np.repeat(np.arange(40), [1000, *[10] * 39])
        by_group = ConformalCalibrator().fit(scores, groups=groups)
        assert by_group.threshold(0.1)[0] > ConformalCalibrator().fit(scores).threshold(0.1)[0] + 2
        assert by_group.n_groups_ == 40
        assert by_group.share_below(-3.0) == pytest.approx(1 / 40, rel=0.1)

    @pytest.mark.parametrize("n_left_out", [0, 4])
    def test_groups_of_one_row_are_no_groups(self, n_left_out):
        scores = np.random.default_rng(0).normal(size=60).round(1)
        rows = ConformalCalibrator().fit(scores, n_left_out)
        groups = ConformalCalibrator().fit(scores, n_left_out, groups=np.arange(60))
        np.testing.assert_array_equal(rows.rates_, groups.rates_)

    def test_rows_left_out_raise_p_values_at_most_twofold(self):
        scores, groups = np.arange(60.0), np.arange(60) % 20
        known = ConformalCalibrator().fit(scores, groups=groups).p_values(scores)
        some = ConformalCalibrator().fit(scores, 3, groups).p_values(scores)
        many = ConformalCalibrator().fit(scores, 1000, groups).p_values(scores)
        # three of 63 rows are one group of 21
        np.testing.assert_allclose(some[5:], (known[5:] * 21 + 1) / 22)
        assert ((known <= some) & (some <= many) & (many <= 2 * known)).all()

    def test_names_and_order_do_not_matter(self):
        rng = np.random.default_rng(0)
        scores, groups = rng.normal(size=50).round(1), rng.integers(0, 7, 50)
        one = ConformalCalibrator().fit(scores, groups=groups)
        order = rng.permutation(50)
        other = ConformalCalibrator().fit(scores[order], groups=[f"run {g}" for g in groups[order]])
        fresh = rng.normal(size=20)
        np.testing.assert_array_equal(one.p_values(fresh), other.p_values(fresh))

    def test_wrong_groups(self):
        with pytest.raises(InvalidInputError, match="each of the 3 scores"):
            ConformalCalibrator().fit([1.0, 2.0, 3.0], groups=[1, 2])


def test_other_scores_of_the_same_rows():
    scores, groups = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), ["a", "a", "b", "b", "b"]
    moved = np.array([3.0, -1.0, 2.0, 9.0, 0.0])
    for own in (None, groups):
        one = ConformalCalibrator().fit(scores, 2, own).rescored(moved)
        other = ConformalCalibrator().fit(moved, 2, own)
        np.testing.assert_array_equal(one.scores_, other.scores_)
        np.testing.assert_array_equal(one.rates_, other.rates_)
        np.testing.assert_allclose(one.weights_, other.weights_)
        assert one.n_groups_ == other.n_groups_


@LAW
@given(scores_of_any_kind, st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20))
def test_severity_rises_as_scores_fall_and_is_that_of_p_values_within_the_data(normals, asked):
    calibrator = ConformalCalibrator().fit(normals)
    fresh = np.sort(np.array([*asked, *normals]))
    found = calibrator.severity(fresh)
    assert (np.diff(found) <= 0).all()
    assert (found >= 0).all()
    within = fresh >= min(normals)
    np.testing.assert_allclose(found[within], -np.log10(calibrator.p_values(fresh[within])))
    below = fresh[~within]
    lowest = -np.log10(calibrator.p_values([min(normals) - 1.0]))
    assert (calibrator.severity(below) >= lowest).all()
    far = calibrator.severity(min(normals) - np.array([1.0, 10.0, 100.0, 1e300, 1e308]))
    assert (np.diff(far[:4]) > 0).all()
    assert np.isfinite(far).all()


def test_a_row_without_a_score_has_no_severity():
    assert np.isnan(ConformalCalibrator().fit([1.0, 2.0]).severity([np.nan, 1.5])).tolist() == [
        True,
        False,
    ]


# -- how surely the rate holds for one calibration set ---------------------------------


def _rates_of_many_sets(n, rate, n_sets=4000, confidence=None, seed=0):
    """Return the true rates of the offsets of many sets of n uniform scores."""
    draws = np.random.default_rng(seed).random((n_sets, n))
    return np.array(
        [ConformalCalibrator().fit(one).threshold(rate, confidence)[0] for one in draws]
    )


def test_rate_of_one_set_follows_the_beta_law():
    true = _rates_of_many_sets(199, 0.05)
    found = kstest(true, beta(10, 190).cdf)
    assert found.pvalue > 1e-4


def test_certificate_is_exceeded_as_often_as_it_says():
    certificate = ConformalCalibrator().fit(range(199)).certificate(0.05, 0.9)
    true = _rates_of_many_sets(199, 0.05)
    assert np.mean(true <= certificate.at_most) == pytest.approx(0.9, abs=0.02)
    assert np.mean(true <= 0.05) == pytest.approx(certificate.sureness, abs=0.03)
    assert certificate.mean == pytest.approx(0.05) == pytest.approx(true.mean(), abs=2e-3)


def test_threshold_with_confidence_holds_its_rate_in_nearly_that_share_of_sets():
    true = _rates_of_many_sets(400, 0.05, n_sets=1500, confidence=0.9)
    assert 0.88 <= np.mean(true <= 0.05) <= 0.97  # ranks are whole numbers


def test_certificate_counts_groups_that_are_alike_within():
    # every group is one draw, repeated: the rate is that of groups, never of rows
    rng, held, n_sets = np.random.default_rng(1), 0, 400
    for _ in range(n_sets):
        scores, groups = np.repeat(rng.random(40), 5), np.repeat(np.arange(40), 5)
        calibrator = ConformalCalibrator().fit(scores, groups=groups)
        certificate = calibrator.certificate(0.1, 0.8)
        held += calibrator.threshold(0.1)[0] <= certificate.at_most
    assert held / n_sets >= 0.8
    of_rows = ConformalCalibrator().fit(scores).certificate(0.1, 0.8)
    assert certificate.at_most > of_rows.at_most


@given(
    n=st.integers(2, 60),
    rate=st.floats(0.01, 0.6),
    confidence=st.floats(0.5, 0.99),
    n_left_out=st.integers(0, 9),
    size=st.integers(1, 3),
)
@LAW
def test_certificate_agrees_with_itself(n, rate, confidence, n_left_out, size):
    groups = None if size == 1 else np.arange(n) // size
    calibrator = ConformalCalibrator().fit(np.arange(n), n_left_out, groups)
    found = calibrator.certificate(rate, confidence)
    assert 0.0 < found.at_most <= 1.0
    assert found.is_exact == (n_left_out == 0)
    # what holds with a confidence holds with it, and surer means higher
    again = calibrator.certificate(rate, found.sureness) if 0 < found.sureness < 1 else found
    assert again.at_most <= rate * (1 + 1e-6) or again is found
    assert calibrator.certificate(rate, (1 + confidence) / 2).at_most >= found.at_most - 1e-12
    # a threshold with confidence holds, or is the lowest score
    offset, mean = calibrator.threshold(rate, confidence)
    certificate = calibrator.certificate(rate, confidence, offset=offset)
    assert certificate.at_most <= rate * (1 + 1e-9) or offset == 0
    assert offset <= calibrator.threshold(rate)[0]
    assert mean == certificate.mean


def test_certificate_says_in_words_what_holds():
    calibrator = ConformalCalibrator().fit(range(1999))
    words = "1 % on average; with 95 % confidence at most 1.4 % for this model"
    assert str(calibrator.certificate(0.01)) == words
    nearly = ConformalCalibrator().fit(range(1999), is_out_of_fold=True).certificate(0.01)
    assert str(nearly) == f"{words}, if fresh rows score like held-out ones (sure after calibrate)"
    alike = ConformalCalibrator("run").fit(range(1999), are_alike=True).certificate(0.01)
    assert np.isnan(alike.at_most)
    assert "not known" in str(alike)


def test_certificate_of_equal_scores_counts_the_last_of_them():
    # the fifth smallest is one of 100 that are equal
    tied = ConformalCalibrator().fit([0.0] * 100 + [1.0] * 100).certificate(0.025)
    assert tied.mean == pytest.approx(100 / 201)
    assert tied.at_most > 0.5


@pytest.mark.parametrize("confidence", [0.0, 1.0, np.nan, 95])
def test_confidence_outside_0_and_1_is_refused(confidence):
    with pytest.raises(InvalidInputError, match="confidence must be in"):
        ConformalCalibrator().fit([1.0, 2.0]).certificate(0.1, confidence)

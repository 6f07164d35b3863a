"""Thresholds from observed scores and from few runs, and the methods that detectors share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from ocfuse.exceptions import FewSamplesWarning, InvalidInputError
from ocfuse.metrics import best_gmean, gmean
from ocfuse.scores import ConformalCalibrator, gmean_threshold, prediction_limit, quantile_threshold
from ocfuse.scores.threshold import AlarmMixin, InnerThresholdMixin, settle_threshold

LAW = settings(deadline=None, max_examples=200)
scores_of_any_kind = st.lists(st.integers(-8, 8).map(float), min_size=1, max_size=40)
labelled = st.lists(
    st.tuples(st.integers(-8, 8).map(float), st.sampled_from([1, -1])), min_size=2, max_size=30
).filter(lambda rows: len({label for _, label in rows}) == 2)


@pytest.mark.slow
@given(scores=scores_of_any_kind, rate=st.floats(0.001, 0.999))
@LAW
def test_quantile_is_the_largest_offset_within_the_rate(scores, rate):
    offset = quantile_threshold(scores, rate)
    values = np.array(scores)
    assert offset in values
    assert np.mean(values < offset) <= rate * (1 + 1e-9)
    higher = values[values > offset]
    if len(higher):
        assert np.mean(values < higher.min()) > rate * (1 - 1e-9)


def test_quantile_of_whole_shares():
    assert quantile_threshold(np.arange(100.0), 0.29) == 29.0
    assert quantile_threshold([3.0], 0.5) == 3.0


@pytest.mark.slow
@given(rows=labelled)
@LAW
def test_gmean_threshold_reaches_the_best_gmean(rows):
    scores, y = (np.array(column) for column in zip(*rows, strict=True))
    offset = gmean_threshold(scores, y)
    predictions = np.where(scores < offset, -1, 1)
    assert gmean(y, predictions) == pytest.approx(best_gmean(y, scores), abs=1e-12)
    if np.ptp(scores) > 0:
        # in the middle of a gap
        low, high = scores[scores < offset].max(), scores[scores >= offset].min()
        assert offset == pytest.approx(0.5 * (low + high))


def test_gmean_threshold_takes_the_fewest_false_alarms():
    # below 1 and below 3 are equally good: one anomaly and no normal, both and half
    scores, y = [0.0, 2.0, 4.0, 4.0, 2.0], [-1, 1, 1, -1, 1]
    assert gmean_threshold(scores, y) == 1.0


def test_gmean_threshold_of_neighbouring_floats():
    low = 1.0
    high = np.nextafter(low, 2.0)
    offset = gmean_threshold([low, high], [-1, 1])
    assert low < offset <= high


def test_gmean_threshold_of_equal_scores_alarms_nobody():
    assert gmean_threshold([2.0, 2.0], [1, -1]) == 2.0


@pytest.mark.parametrize(
    ("y", "message"),
    [([1, 1], "no -1"), ([-1, -1], r"no \+1"), ([0, 1], "Got 0"), ([1], "shape")],
)
def test_wrong_labels(y, message):
    with pytest.raises(InvalidInputError, match=message):
        gmean_threshold([1.0, 2.0], y)


def test_wrong_rate_and_scores():
    with pytest.raises(InvalidInputError, match="rate"):
        quantile_threshold([1.0], 1.0)
    with pytest.raises(InvalidInputError, match="at least one row"):
        quantile_threshold([], 0.1)


class Given(AlarmMixin, BaseEstimator):
    """Rows that are their own scores."""

    def fit(self, normal):
        self.conformal_ = ConformalCalibrator().fit(normal)
        return self.set_threshold(0.1)

    def score_samples(self, X, context=None):
        return np.asarray(X, dtype=float)


class Outer(InnerThresholdMixin, BaseEstimator):
    """A detector around another."""

    def fit(self, detector):
        self.detector_ = detector
        return self


@pytest.fixture
def detector():
    return Given().fit(np.arange(1.0, 100.0))


def test_alarms_are_below_the_threshold(detector):
    assert (detector.offset_, detector.threshold_rate_) == (10.0, 0.1)
    assert detector.decision_function([9.0, 10.0, 12.0]).tolist() == [-1.0, 0.0, 2.0]
    assert detector.predict([9.0, 10.0, 12.0]).tolist() == [-1, 1, 1]


def test_a_row_without_a_score_is_never_called_normal_and_has_no_p_value(detector):
    assert detector.predict([np.nan, 0.0, 1e9]).tolist() == [-1, -1, 1]
    np.testing.assert_array_equal(detector.p_values([np.nan, 0.0, 1e9]), [np.nan, 0.01, 1.0])
    np.testing.assert_array_equal(detector.p_values([np.nan]), [np.nan])


def test_the_threshold_of_a_detector_inside(detector):
    outer = Outer().fit(detector)
    assert outer.set_threshold(offset=50.0) is outer
    assert detector.offset_ == outer.offset_ == 50.0
    assert detector.threshold_rate_ == outer.threshold_rate_
    assert outer.conformal_ is detector.conformal_


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_the_rate_is_about_right_for_ten_gaussian_scores(rate):
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4000, 11))
    alarms = [row[10] < prediction_limit(row[:10], rate) for row in draws]
    assert rate < np.mean(alarms) < 2.5 * rate  # the price of being robust


def test_one_odd_score_hardly_matters():
    scores = np.random.default_rng(1).normal(size=12)
    odd = scores.copy()
    odd[odd.argmin()] = -1e6
    assert prediction_limit(odd) == prediction_limit(scores)


def test_units_carry_over():
    scores = np.random.default_rng(2).normal(size=9)
    assert prediction_limit(3 * scores - 7) == pytest.approx(3 * prediction_limit(scores) - 7)


@pytest.mark.parametrize(("scores", "rate"), [([1.0, 2.0, np.nan], 0.05), ([1, 2, 3], 0.5)])
def test_unusable_input_is_refused(scores, rate):
    with pytest.raises(InvalidInputError):
        prediction_limit(scores, rate)


def test_too_few_rows_for_a_confidence_are_told_how_many_it_takes():
    conformal = ConformalCalibrator().fit(range(50))
    words = r"with confidence 0\.99: .* Use at least 459 normal rows"
    with pytest.warns(FewSamplesWarning, match=words):
        settle_threshold(conformal, 0.01, None, 0.99)
    with pytest.warns(FewSamplesWarning, match="Use more rows: at least 99"):
        settle_threshold(conformal, 0.01, None)

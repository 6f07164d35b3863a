"""Alarms at other thresholds, and stated rates beside measured ones."""

from dataclasses import replace

import numpy as np
import pytest

from ocfuse.report.data import compare_rates, count_p_values, judged_normal, tabulate, whose
from ocfuse.scores import ConformalCalibrator
from tests.report import examples


def data_with(normal, fresh, groups=None):
    return replace(
        examples.bare_data(),
        calibrator=ConformalCalibrator().fit(normal, groups=groups),
        held_out_scores=normal,
        scores=fresh,
    )


def test_normal_rows_stay_near_the_diagonal():
    rng = np.random.default_rng(0)
    trust = compare_rates(data_with(rng.normal(size=4000), rng.normal(size=4000)))
    assert np.abs(trust.held_out - trust.rates).max() < 0.02
    assert np.abs(trust.fresh - trust.rates).max() < 0.03
    assert ((trust.low <= trust.rates) & (trust.high >= trust.rates)).all()


@pytest.mark.slow
def test_band_covers_the_true_rate_nine_times_of_ten():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        normal = np.sort(rng.uniform(size=100))  # of uniform scores the rate is the threshold
        trust = compare_rates(data_with(normal, normal))
        i = int(np.searchsorted(trust.rates, 0.1))
        hits += trust.low[i] <= np.sort(normal)[int(trust.rates[i] * 101) - 1] <= trust.high[i]
    assert 0.84 < hits / 300 < 0.96


def test_the_band_of_few_groups_is_wider():
    normal = np.random.default_rng(0).normal(size=600)
    rows = compare_rates(data_with(normal, normal))
    groups = compare_rates(data_with(normal, normal, np.arange(600) % 30))
    i = int(np.searchsorted(rows.rates, 0.1))
    assert groups.high[i] - groups.low[i] > 3 * (rows.high[i] - rows.low[i])
    assert np.isnan(groups.low[0])


def test_drift_between_the_halves_shows():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=400)
    normal[200:] -= 3.0
    trust = compare_rates(data_with(normal, normal))
    assert trust.held_out[np.searchsorted(trust.rates, 0.05)] > 0.2


def test_few_rows_say_nothing_about_rare_rates():
    normal = np.random.default_rng(0).normal(size=30)
    trust = compare_rates(data_with(normal, normal))
    assert np.isnan(trust.low[0])
    assert np.isnan(trust.held_out[0])
    assert not np.isnan(trust.low[-1])
    assert np.isnan(compare_rates(data_with(normal[:12], normal)).held_out).all()


def test_labels_choose_the_rows_judged():
    data = examples.full_data()
    assert len(judged_normal(data)) == examples.N_NORMAL
    unknown = replace(data, labels=np.zeros_like(data.labels))
    assert len(judged_normal(unknown)) == len(data.scores)


def test_p_values_are_all_counted():
    assert sum(count_p_values(np.array([0.0, 0.3, 1.0]))) == 3


def test_labelled_anomalies_are_not_judged_as_normal_rows():
    data = examples.full_data()
    some = replace(data, labels=np.minimum(data.labels, 0))
    assert len(judged_normal(some)) == examples.N_NORMAL
    assert whose(some) == "rows not labelled anomaly"
    assert whose(data) == "rows labelled normal"
    assert whose(replace(data, labels=None)) == "rows of this report"
    alone = replace(data, labels=np.full(len(data.scores), -1))
    assert np.isnan(compare_rates(alone).fresh).all()


@pytest.fixture(scope="module")
def table():
    return tabulate(examples.full_data())


def test_it_starts_at_the_detectors_threshold(table):
    data = examples.full_data()
    assert table.values[table.start] == data.offset
    assert table.rates[table.start] == pytest.approx(data.threshold_rate)
    assert table.alarms[table.start] == data.is_alarm.sum()


def test_counts_are_those_of_all_rows(table):
    data = examples.full_data()
    for value, alarms, found, wrong in zip(
        table.values, table.alarms, table.found, table.wrong, strict=True
    ):
        below = data.scores < value
        assert (alarms, found, wrong) == (
            below.sum(),
            (below & (data.labels < 0)).sum(),
            (below & (data.labels > 0)).sum(),
        )


def test_rates_are_those_that_set_threshold_states(table):
    detector, before = examples.fitted(), examples.fitted().offset_
    for rate in (0.02, 0.1, 0.3):
        detector.set_threshold(rate)
        at = np.searchsorted(table.values, detector.offset_)
        if table.values[at] == detector.offset_:
            assert table.rates[at] == pytest.approx(detector.threshold_rate_)
    detector.set_threshold(offset=before)
    detector.set_threshold(detector.false_alarm_rate)
    assert detector.offset_ == before


def test_it_reaches_from_no_alarm_to_many(table):
    assert table.alarms[0] == 0
    assert 0.3 < table.rates[-1] <= 0.55
    assert (np.diff(table.values) > 0).all()
    assert (np.diff(table.rates) >= 0).all()
    assert tabulate(examples.bare_data()).found is None

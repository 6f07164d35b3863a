"""The slider tells what the detector would do at other thresholds."""

import numpy as np
import pytest

from ocfuse.report.data import tabulate
from tests.report import examples


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

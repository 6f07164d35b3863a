"""Scores of whole runs, and time to detection."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import run_score, time_to_detection

Y = [1, 1, -1, -1, -1, 1, -1, -1]


def test_the_lowest_score_or_a_low_percentile():
    scores = np.r_[np.arange(100.0), np.nan]
    assert run_score(scores) == 0
    assert run_score(scores, 0.05) == 4
    assert np.isnan(run_score([np.nan]))


def test_delay_of_every_anomaly():
    alarms = np.array([0, 1, 0, 0, 1, 0, 0, 0], dtype=bool)
    np.testing.assert_array_equal(time_to_detection(Y, alarms), [2, np.nan])
    np.testing.assert_array_equal(time_to_detection(Y, np.where(alarms, -1, 1)), [2, np.nan])


def test_an_alarm_in_time_has_no_delay():
    np.testing.assert_array_equal(time_to_detection(Y, np.ones(8, bool)), [0, 0])


def test_times_and_dates():
    alarms = np.array([0, 0, 0, 1, 0, 0, 0, 1], dtype=bool)
    np.testing.assert_allclose(time_to_detection(Y, alarms, np.arange(8) * 0.1), [0.1, 0.1])
    dates = np.datetime64("2026-01-01T00:00:00") + 3 * np.arange(8).astype("timedelta64[s]")
    np.testing.assert_array_equal(time_to_detection(Y, alarms, dates), [3, 3])


def test_no_anomaly_no_delay():
    assert len(time_to_detection([1, 1], [True, False])) == 0


def test_unusable_input_is_refused():
    with pytest.raises(InvalidInputError, match="one entry per sample"):
        time_to_detection([1, -1], [True])
    with pytest.raises(InvalidInputError, match="quantile"):
        run_score([1.0], 1.0)
    with pytest.raises(InvalidInputError, match="numbers or dates"):
        time_to_detection([1], [True], ["noon"])

"""Counts and tables of the sequences benchmark, without data."""

import numpy as np
import pytest

from benchmarks.onsets import on_before
from benchmarks.sequences.counts import Counts


def test_counts_of_alarms():
    y = np.array([1, 1, 1, -1, -1])
    counts = Counts.of(y, np.array([True, False, False, True, False]))
    assert counts == Counts(hits=1, false=1, missed=1, passed=2)
    assert counts.far == pytest.approx(100 / 3)
    assert counts.mar == 50
    assert counts.f1 == 0.5


def test_counts_add_up_over_runs():
    total = Counts(1, 2, 3, 4) + Counts(10, 20, 30, 40)
    assert vars(total) == {"hits": 11, "false": 22, "missed": 33, "passed": 44}


def test_an_alarm_that_is_on_when_an_anomaly_begins():
    y = np.array([-1, 1, 1, -1, -1, 1, -1])
    alarms = np.array([True, False, True, True, False, False, True])
    # at the very begin of a run nothing can be on before
    assert on_before(y, alarms).tolist() == [False, True, False]
    assert on_before(np.ones(7), alarms).tolist() == []

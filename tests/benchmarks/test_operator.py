"""Events against faults: what counts as false, found, and on before."""

import numpy as np

from benchmarks.operator.outcome import Outcome, Settings, within_twice
from ocfuse.streaming.events import EventRule

TIME = np.arange(100.0) * 36.0  # an hour
SETTINGS = Settings(offset=0.0, leave=0.0, rule=EventRule(1, 5), stated=1.0)


def scores(*below):
    found = np.ones(100)
    found[list(below)] = -1.0
    return found


def test_an_event_in_normal_time_is_false():
    outcome = Outcome()
    outcome.add_normal(SETTINGS, scores(10, 12, 50), TIME)
    assert (outcome.false, round(outcome.hours, 2)) == (2, 0.99)


def test_a_fault_is_found_by_the_first_event_after_its_onset():
    outcome = Outcome()
    assert outcome.add_fault(SETTINGS, scores(5, 60, 80), TIME, 40, 99) == 60
    assert (outcome.false, outcome.delays, outcome.per_fault) == (1, [20 * 36.0], [2])


def test_an_event_that_was_on_before_has_found_nothing():
    outcome = Outcome()
    assert outcome.add_fault(SETTINGS, scores(*range(38, 90)), TIME, 40, 99) is None
    assert (outcome.already, outcome.per_fault, outcome.false) == (1, [1], 1)
    assert np.isnan(outcome.delays).all()
    assert np.isinf(outcome.delay)


def test_a_factor_of_two():
    for false, met in ((1, False), (2, True), (8, True), (9, False)):
        assert within_twice(Outcome(hours=4.0, false=false, stated=[1.0])) == met

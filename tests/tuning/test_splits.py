"""One of each family: the best, and of equal ones the middle."""

import pytest

from ocfuse.tuning.splits import best_of_each, middle_best


@pytest.mark.parametrize(
    ("values", "place"),
    [([1, 3, 2], 1), ([3], 0), ([3, 3], 0), ([3, 3, 3], 1), ([3, 1, 3, 3], 2), ([3, 3, 3, 3], 1)],
)
def test_of_equal_ones_the_middle_is_best(values, place):
    assert middle_best([(float(value), 0.0) for value in values]) == place


def test_second_value_breaks_ties():
    assert middle_best([(1.0, 0.0), (1.0, 0.5), (1.0, 0.0)]) == 1


def test_ties_are_within_a_family():
    names = ["svdd-0.25", "svdd-0.5", "svdd-1", "gmm-1", "gmm-2", "lof"]
    verdicts = [(1.0, 0.0)] * 3 + [(1.0, 0.0), (2.0, 0.0)] + [(0.0, 0.0)]
    assert best_of_each(names, verdicts) == ["svdd-0.5", "gmm-2", "lof"]

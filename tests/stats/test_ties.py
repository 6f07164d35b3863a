"""One rule for ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.stats import friedman, mean_ranks, skillings_mack, wilcoxon_holm, wins
from ocfuse.stats.ranks import steps

#: Level, if rounding does not count: 0.1 + 0.2 is above 0.3 in binary.
SUM, PLAIN = 0.1 + 0.2, 0.3


def test_ranks_and_wins_agree_that_rounding_does_not_count():
    assert SUM > PLAIN
    assert mean_ranks([[SUM, PLAIN]]).tolist() == [1.5, 1.5]
    assert wins([SUM], [PLAIN]) == (0, 1, 0)
    rounded, plain = [[SUM, PLAIN, 0.1], [0.9, 0.8, 0.1]], [[3.0, 3.0, 1.0], [9.0, 8.0, 1.0]]
    assert friedman(rounded).statistic == friedman(plain).statistic
    assert skillings_mack(rounded).statistic == skillings_mack(plain).statistic
    assert [pair.p_value for pair in wilcoxon_holm(rounded)] == [
        pair.p_value for pair in wilcoxon_holm(plain)
    ]


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.floats(-2, 2), st.sampled_from([0, 1e-16, 3e-13, 3e-12, 0.1]))))
def test_ranks_and_wins_agree(sets):
    for value, step in sets:
        level = wins([value], [value + step])[1] == 1
        assert (mean_ranks([[value, value + step]])[0] == 1.5) == level


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.floats(-200, 200))
def test_noise_and_scale_do_not_count(seed, exponent):
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 5, (3, 5)).astype(float)
    table[rng.random((3, 5)) < 0.2] = np.nan
    noisy = (table + rng.uniform(-1e-14, 1e-14, (3, 5))) * 10.0**exponent
    np.testing.assert_array_equal(steps(noisy), steps(table))


def test_neighbours_that_rounding_would_part_are_level():
    # rounding to 12 digits puts a border between these two
    low = 0.1234567890125
    assert steps([np.nextafter(low, 0), np.nextafter(low, 1), 1.0]).tolist() == [0, 0, 1]


def test_gaps_stay_and_the_unit_may_be_given():
    np.testing.assert_array_equal(steps([2.0, np.nan, 1.0]), [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(steps([np.nan, np.nan]), [np.nan, np.nan])
    assert steps([1e-13, 2e-13], 1.0).tolist() == [0, 0]
    assert steps([1e-13, 2e-13]).tolist() == [0, 1]
    assert steps([0.0, 0.0]).tolist() == [0, 0]


@pytest.mark.parametrize("largest", [5e-324, 1.7e308])
def test_extreme_numbers(largest):
    assert steps([-largest, largest, 0.0]).tolist() == [0, 2, 1]

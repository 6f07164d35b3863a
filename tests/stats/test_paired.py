"""Two systems on the same sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats import compare, wins

RESULTS = st.tuples(st.integers(0, 9), st.integers(0, 9))
#: Few, where ties are permuted exactly, and many, where the normal approximation serves.
PAIRS = st.lists(RESULTS, min_size=1, max_size=7) | st.lists(RESULTS, min_size=14, max_size=30)


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_the_other_way_round(pairs):
    a, b = np.array(pairs, dtype=float).T
    there, back = compare(a, b), compare(b, a)
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
    assert there.mean_difference == pytest.approx(-back.mean_difference)
    assert there.p_value == pytest.approx(back.p_value)
    assert 0.0 <= there.p_value <= 1.0
    assert there.wins + there.ties + there.losses == len(pairs)


def test_p_value_by_counting_all_signs():
    difference = np.array([0.5, -0.2, 0.9, 1.4, 0.7, -0.1, 0.3, 1.1])
    ranks = np.argsort(np.argsort(np.abs(difference))) + 1
    sums = [np.dot(signs, ranks) for signs in itertools.product([0, 1], repeat=8)]
    extreme = np.abs(np.array(sums) - 18) >= abs(ranks[difference > 0].sum() - 18)
    assert compare(difference, np.zeros(8)).p_value == pytest.approx(extreme.mean())


def test_level_sets_speak_against_a_difference():
    a = np.arange(1.0, 21.0)
    b = np.r_[np.zeros(10), a[10:]]
    dropped = wilcoxon((a - b)[:10]).pvalue
    assert compare(a, b).p_value > dropped
    assert wins(a, b) == (10, 10, 0)


def test_identical_systems_do_not_differ():
    found = compare([1.0, 2.0], [1.0, 2.0])
    assert (found.mean_difference, found.p_value, found.ties) == (0.0, 1.0, 2)


def test_gaps_are_left_out():
    assert wins([1.0, np.nan, 3.0], [0.0, 1.0, np.nan]) == (1, 0, 0)
    assert compare([1.0, np.nan], [0.0, 1.0]).mean_difference == 1.0


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]]), ([np.nan], [1.0])])
def test_refuses_what_is_not_paired(a, b):
    with pytest.raises(InvalidInputError, match="a and b must"):
        compare(a, b)


def test_refuses_words():
    with pytest.raises(InvalidTypeError, match="real numbers"):
        wins(["a"], ["b"])

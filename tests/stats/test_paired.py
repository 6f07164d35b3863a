"""Two systems on the same sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats import compare, tests, wins
from ocfuse.stats.tests import EXACT_SETS

RESULTS = st.tuples(st.integers(0, 9), st.integers(0, 9))
PAIRS = st.lists(RESULTS, min_size=1, max_size=30)


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


@pytest.mark.parametrize("levels", [2, 4, 40])
def test_p_value_by_counting_all_signs(levels):
    # with ties and, at few levels, zeros
    rng = np.random.default_rng(levels)
    difference = rng.integers(-levels, levels + 2, 9).astype(float)
    ranks = rankdata(np.abs(difference))
    sums = [np.dot(signs, ranks) for signs in itertools.product([-1, 1], repeat=9)]
    extreme = np.abs(sums) >= abs(np.dot(np.sign(difference), ranks))
    assert compare(difference, np.zeros(9)).p_value == pytest.approx(extreme.mean())


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_equals_scipys_without_ties(n, seed):
    difference = np.random.default_rng(seed).normal(0.3, 1.0, n)
    expected = wilcoxon(difference, method="exact").pvalue
    assert compare(difference, np.zeros(n)).p_value == pytest.approx(expected)


def test_normal_curve_takes_over_without_a_jump(monkeypatch):
    difference = np.random.default_rng(0).integers(-5, 6, EXACT_SETS).astype(float)
    exact = compare(difference, np.zeros(EXACT_SETS)).p_value
    monkeypatch.setattr(tests, "EXACT_SETS", 0)
    assert compare(difference, np.zeros(EXACT_SETS)).p_value == pytest.approx(exact, rel=0.02)
    assert compare(np.ones(3), np.ones(3)).p_value == 1.0


def test_differences_that_only_rounding_tells_apart_are_ties():
    # 0.9 - 0.8, 0.8 - 0.7 and 0.3 - 0.2 are three different numbers in binary
    rounded = compare([0.9, 0.8, 0.3, 0.5], [0.8, 0.7, 0.2, 0.6])
    exact = compare([9, 8, 3, 5], [8, 7, 2, 6])
    assert rounded.p_value == exact.p_value == 0.625
    assert wins([0.1 + 0.2], [0.3]) == (0, 1, 0)


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


@pytest.mark.parametrize(
    ("a", "b"), [([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]]), ([np.nan], [1.0]), ([np.inf], [1.0])]
)
def test_refuses_what_is_not_paired(a, b):
    with pytest.raises(InvalidInputError, match="a and b must"):
        compare(a, b)


def test_refuses_words():
    with pytest.raises(InvalidTypeError, match="real numbers"):
        wins(["a"], ["b"])

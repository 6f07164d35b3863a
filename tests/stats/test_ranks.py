"""Ranks, ties, rank correlation, and the critical difference of mean ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats import (
    critical_difference,
    friedman,
    mean_ranks,
    skillings_mack,
    wilcoxon_holm,
    wins,
)
from ocfuse.stats.ranks import rank_correlation, steps

#: Two-tailed Nemenyi constants at .05 for 2 to 10 systems (Demsar 2006, table 5).
NEMENYI = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]


@st.composite
def tables(draw):
    """Results with ties and gaps, at least two in every row."""
    n, k = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = rng.integers(0, 5, (n, k)).astype(float)
    gaps = rng.random((n, k)) < draw(st.sampled_from([0.0, 0.3]))
    gaps[:, :2] = False
    return np.where(gaps, np.nan, table)


def test_ties_and_gaps_by_hand():
    table = [[3, 2, 2, 1], [1, 4, np.nan, 2]]
    np.testing.assert_allclose(mean_ranks(table), [2.0, 1.75, 2.25, 3.0])


@settings(deadline=None, max_examples=50)
@given(tables())
def test_mean_ranks_average_to_the_mean_mid_rank(table):
    middle = (np.sum(~np.isnan(table), axis=1) + 1) / 2
    assert mean_ranks(table).mean() == pytest.approx(middle.mean())


@settings(deadline=None, max_examples=50)
@given(tables())
def test_only_the_order_within_a_set_counts(table):
    moved = np.exp(table / 3) + np.arange(len(table))[:, np.newaxis]
    np.testing.assert_allclose(mean_ranks(moved), mean_ranks(table))


@pytest.mark.parametrize(("k", "constant"), list(enumerate(NEMENYI, start=2)))
def test_critical_difference_against_the_printed_constants(k, constant):
    expected = constant * np.sqrt(k * (k + 1) / (6 * 30))
    assert critical_difference(k, 30) == pytest.approx(expected, rel=3e-4)


def test_critical_difference_shrinks_with_sets_and_grows_with_caution():
    assert critical_difference(5, 40) == pytest.approx(critical_difference(5, 10) / 2)
    assert critical_difference(5, 10, 0.01) > critical_difference(5, 10, 0.05)


@pytest.mark.parametrize("table", [[1.0, 2.0], [[1.0]], np.empty((0, 3)), [[np.inf, 1.0]]])
def test_tables_that_are_none(table):
    with pytest.raises(InvalidInputError, match="table must"):
        mean_ranks(table)


def test_words_are_no_results():
    with pytest.raises(InvalidTypeError, match="real numbers"):
        mean_ranks([["a", "b"]])


@pytest.mark.parametrize("call", [(1, 5), (2, 0), (2, 5, 0.0), (2, 5, 1.0)])
def test_critical_difference_refuses(call):
    with pytest.raises(InvalidInputError, match="must be"):
        critical_difference(*call)


def test_counts_are_integers():
    with pytest.raises(InvalidTypeError, match="n_systems must be an integer"):
        critical_difference(2.5, 5)


@pytest.mark.parametrize("alpha", ["x", None, True, [0.05]])
def test_the_level_is_a_number(alpha):
    with pytest.raises(InvalidTypeError, match="alpha must be a number"):
        critical_difference(2, 5, alpha)


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


def test_it_is_spearmans():
    S = np.random.default_rng(0).normal(size=(40, 3)).round(1)  # with ties
    assert rank_correlation(S) == pytest.approx(spearmanr(S).statistic)


def test_constant_column_agrees_with_nobody():
    R = rank_correlation([[1.0, 5.0], [2.0, 5.0]])
    assert R[0, 0] == 1.0
    assert np.isnan(R[1]).all()
    assert np.isnan(R[:, 1]).all()


def test_one_column():
    assert rank_correlation([[1.0], [2.0]]).tolist() == [[1.0]]

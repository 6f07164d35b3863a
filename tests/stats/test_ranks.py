"""Ranks, and the critical difference of mean ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats import critical_difference, mean_ranks

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

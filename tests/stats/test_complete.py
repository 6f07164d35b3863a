"""Friedman's test against scipy, a printed example and its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from ocfuse.exceptions import InvalidInputError
from ocfuse.stats import friedman, mean_ranks, skillings_mack

#: AUC of four variants of C4.5 on fourteen sets (Demsar 2006, table 6); two
#: results are printed as 0.975 and ranked 2 and 3.
DEMSAR = [
    [0.763, 0.768, 0.771, 0.798],
    [0.599, 0.591, 0.590, 0.569],
    [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657],
    [0.882, 0.888, 0.886, 0.898],
    [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685],
    [0.583, 0.583, 0.563, 0.625],
    [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000],
    [0.940, 0.962, 0.965, 0.962],
    [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975],
    [0.957, 0.978, 0.946, 0.970],
]


def test_the_example_of_demsar():
    # printed: mean ranks, and 9.28 and 3.69 without the correction for ties
    found = friedman(DEMSAR)
    np.testing.assert_allclose(found.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    uncorrected = skillings_mack(DEMSAR).statistic
    assert uncorrected == pytest.approx(9.28, abs=0.005)
    assert 13 * uncorrected / (14 * 3 - uncorrected) == pytest.approx(3.69, abs=0.005)
    assert found.statistic > uncorrected
    assert found.f_df == (3, 39)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9), st.integers(3, 6), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_equals_scipys_ties_included(n, k, levels, seed):
    table = np.random.default_rng(seed).integers(0, levels, (n, k)).astype(float)
    table[0] = np.arange(k)
    expected = friedmanchisquare(*table.T)
    found = friedman(table)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    np.testing.assert_allclose(found.mean_ranks, mean_ranks(table))


def test_f_is_an_analysis_of_variance_of_the_ranks():
    # two-way, sets and systems, without interaction
    ranks = np.array([[1, 2, 3], [1, 3, 2], [2, 1, 3], [1, 2, 3], [3, 1, 2]], dtype=float)
    systems = 5 * np.sum((ranks.mean(axis=0) - 2) ** 2) / 2
    rest = (np.sum((ranks - 2) ** 2) - 2 * systems) / 8
    assert friedman(-ranks).f_statistic == pytest.approx(systems / rest)


def test_full_agreement_and_none():
    agreed = friedman(np.tile([1.0, 2.0, 3.0], (4, 1)))
    assert (agreed.statistic, agreed.f_statistic, agreed.f_p_value) == (8.0, np.inf, 0.0)
    level = friedman(np.ones((4, 3)))
    assert (level.statistic, level.p_value, level.f_p_value) == (0.0, 1.0, 1.0)


def test_f_finds_more_than_chi_squared():
    found = friedman(DEMSAR)
    assert found.f_p_value < found.p_value


def test_refuses_gaps_and_single_sets():
    with pytest.raises(InvalidInputError, match="skillings_mack"):
        friedman([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(InvalidInputError, match="two sets"):
        friedman([[1.0, 2.0]])

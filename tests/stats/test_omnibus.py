"""The test of Skillings and Mack against printed and independent figures."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, friedmanchisquare

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats import mean_ranks, skillings_mack

NAN = np.nan

#: Table 1 of Skillings and Mack (1981): four ways of assembly, nine people.
ASSEMBLY = [
    [3.2, 4.1, 3.8, 4.2],
    [3.1, 3.9, 3.4, 4.0],
    [4.3, 3.5, 4.6, 4.8],
    [3.5, 3.6, 3.9, 4.0],
    [3.6, 4.2, 3.7, 3.9],
    [4.5, 4.7, 3.7, NAN],
    [NAN, 4.2, 3.4, NAN],
    [4.3, 4.6, 4.4, 4.9],
    [3.5, NAN, 3.7, 3.9],
]
#: Statistic and p-value of the published result tables, and one printed mean rank.
PUBLISHED = [
    ("uci_rpau", "auc", 52.1045, 1.091e-7, "Pure2 (interior point)", 2.75),
    ("uci_rpau", "gmean", 52.4773, 9.309e-8, "Pure2 (interior point)", 2.10),
    ("uci_pseudo_negative", "auc", 46.8727, 9.960e-7, "Pure2 (interior point)", 3.30),
    ("uci_pseudo_negative", "gmean", 55.2045, 2.892e-8, "Pure2 (interior point)", 2.30),
    ("uci_versus_others", "auc", 60.4718, 7.577e-9, "Non-pure2", 2.20),
    ("uci_versus_others", "gmean", 61.1560, 5.651e-9, "FNDF", 7.60),
]


def test_the_example_of_skillings_and_mack():
    found = skillings_mack(ASSEMBLY)
    assert found.statistic == pytest.approx(15.493049, abs=5e-7)
    assert found.df == 3
    assert found.p_value == pytest.approx(0.001440, abs=5e-7)
    assert found.resampled_p_value is None


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 12), st.integers(3, 7), st.integers(0, 2**32 - 1))
def test_is_friedmans_without_gaps_and_ties(n, k, seed):
    table = np.random.default_rng(seed).random((n, k))
    expected = friedmanchisquare(*table.T)
    found = skillings_mack(table)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.df == k - 1


def test_is_durbins_in_balanced_incomplete_blocks():
    # every pair of the 4 systems meets once, 2 at a time: t = 4, k = 2, r = 3
    ahead = {(0, 1): 0, (0, 2): 0, (0, 3): 0, (1, 2): 1, (1, 3): 1, (2, 3): 2}
    table = np.full((6, 4), NAN)
    for row, (pair, winner) in zip(table, ahead.items(), strict=True):
        row[list(pair)] = 0.0
        row[winner] = 1.0
    rank_sums = np.array([3, 4, 5, 6])
    t, k, r = 4, 2, 3
    durbin = 12 * (t - 1) / (r * t * (k - 1) * (k + 1)) * np.sum((rank_sums - r * (k + 1) / 2) ** 2)
    found = skillings_mack(table)
    assert found.statistic == pytest.approx(durbin)
    assert found.p_value == pytest.approx(chi2.sf(durbin, 3))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_does_not_depend_on_direction_order_or_scale(seed):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((7, 5)) < 0.3, NAN, rng.integers(0, 6, (7, 5)))
    table[0] = np.arange(5)
    found = skillings_mack(table).statistic
    assert skillings_mack(-3 * table).statistic == pytest.approx(found)
    moved = table[rng.permutation(7)][:, rng.permutation(5)]
    assert skillings_mack(moved).statistic == pytest.approx(found)


def test_sets_with_one_result_say_nothing():
    more = [*ASSEMBLY, [1.0, NAN, NAN, NAN], [NAN] * 4]
    assert skillings_mack(more) == skillings_mack(ASSEMBLY)


def test_systems_that_never_meet_share_no_degree_of_freedom():
    table = [[1.0, 2.0, NAN, NAN], [NAN, NAN, 1.0, 2.0], [3.0, 1.0, NAN, NAN]]
    assert skillings_mack(table).df == 2


def test_resampling_is_exact_on_a_table_that_can_be_counted():
    # 2 sets of 3: T is largest if both orders agree, in 6 of 36 cases
    found = skillings_mack([[1, 2, 3], [4, 5, 6]], n_resamples=20_000, random_state=0)
    assert found.resampled_p_value == pytest.approx(1 / 6, abs=0.01)


def test_resampling_keeps_ties():
    # 1 against 1 tied: T = 0 whatever is dealt
    found = skillings_mack([[1.0, 1.0], [2.0, 2.0]], n_resamples=99, random_state=0)
    assert found.statistic == 0.0
    assert found.resampled_p_value == 1.0


def test_resampling_agrees_with_chi_squared_on_many_sets():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(60, 4))
    table[:, 0] += 0.35
    table[rng.random((60, 4)) < 0.2] = NAN
    found = skillings_mack(table, n_resamples=20_000, random_state=1)
    assert 0.01 < found.p_value < 0.5
    assert found.resampled_p_value == pytest.approx(found.p_value, abs=0.01)


def test_resampling_is_repeatable():
    first, second = (skillings_mack(ASSEMBLY, n_resamples=500, random_state=4) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("name", "measure", "T", "p", "system", "rank"), PUBLISHED)
def test_published_rank_tables(name, measure, T, p, system, rank):
    folder = os.environ.get("OCFUSE_DATA")
    path = Path(folder or ".").parent / "reference" / "published.json"
    if not folder or not path.is_file():
        pytest.skip("reference/published.json is not beside OCFUSE_DATA")
    sets = [entry[measure] for entry in json.loads(path.read_text())[name].values()]
    systems = [s for s in sets[0] if any(entry[s] is not None for entry in sets)]
    table = [[NAN if entry[s] is None else entry[s][0] for s in systems] for entry in sets]
    found = skillings_mack(table)
    assert found.statistic == pytest.approx(T, abs=5e-5)
    assert found.p_value == pytest.approx(p, rel=5e-4)
    assert mean_ranks(table)[systems.index(system)] == pytest.approx(rank, abs=0.005)


@pytest.mark.parametrize("table", [[[1.0, NAN], [NAN, 1.0]], [[NAN, NAN]]])
def test_refuses_tables_without_a_comparison(table):
    with pytest.raises(InvalidInputError, match="at least two results"):
        skillings_mack(table)


def test_refuses_strange_numbers_of_resamples():
    with pytest.raises(InvalidInputError, match="negative"):
        skillings_mack(ASSEMBLY, n_resamples=-1)
    with pytest.raises(InvalidTypeError, match="integer"):
        skillings_mack(ASSEMBLY, n_resamples=1.5)

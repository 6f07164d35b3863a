"""All pairs with Holm's correction."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats import compare, wilcoxon_holm
from ocfuse.stats.tests import holm

NAN = np.nan
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8).map(np.array)


def results(seed, n=12, k=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)) + 0.6 * np.arange(k)


def test_holm_by_hand():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.5, 0.6])), [1.0, 1.0])


@settings(deadline=None, max_examples=60)
@given(P_VALUES, st.floats(0.01, 0.5))
def test_holm_rejects_what_its_steps_reject(p_values, alpha):
    is_rejected = np.zeros(len(p_values), dtype=bool)
    for step, at in enumerate(np.argsort(p_values, kind="stable")):
        if (len(p_values) - step) * p_values[at] > alpha:
            break
        is_rejected[at] = True
    np.testing.assert_array_equal(holm(p_values) <= alpha, is_rejected)


@settings(deadline=None, max_examples=60)
@given(P_VALUES)
def test_holm_lies_between_none_and_bonferroni(p_values):
    adjusted = holm(p_values)
    assert np.all(adjusted >= p_values)
    assert np.all(adjusted <= np.minimum(len(p_values) * p_values, 1.0))
    order = np.argsort(p_values, kind="stable")
    assert np.all(np.diff(adjusted[order]) >= 0)


def test_all_pairs_are_compared_by_wilcoxons_test():
    table = results(0)
    found = wilcoxon_holm(table)
    assert [(f.first, f.second) for f in found] == list(itertools.combinations(range(5), 2))
    for pair in found:
        alone = compare(table[:, pair.first], table[:, pair.second])
        assert pair.p_value == alone.p_value
        assert pair.mean_difference == alone.mean_difference
        assert (pair.wins, pair.ties, pair.losses) == (alone.wins, alone.ties, alone.losses)
    np.testing.assert_array_equal(
        [f.adjusted_p_value for f in found], holm(np.array([f.p_value for f in found]))
    )


def test_a_control_makes_a_smaller_family():
    table = results(1)
    everything = {(f.first, f.second): f for f in wilcoxon_holm(table)}
    against = wilcoxon_holm(table, control=2)
    assert [(f.first, f.second) for f in against] == [(2, 0), (2, 1), (2, 3), (2, 4)]
    for pair in against:
        same = everything[min(pair.first, pair.second), max(pair.first, pair.second)]
        assert pair.p_value == pytest.approx(same.p_value)
        assert pair.adjusted_p_value <= same.adjusted_p_value


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_does_not_depend_on_the_order_of_sets_and_systems(seed):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((9, 4)) < 0.2, NAN, rng.integers(0, 6, (9, 4)))
    table[0] = np.arange(4)
    order = rng.permutation(4)

    def by_pair(found, names):
        return {frozenset((names[f.first], names[f.second])): f.adjusted_p_value for f in found}

    moved = wilcoxon_holm(table[rng.permutation(9)][:, order])
    assert by_pair(moved, order) == pytest.approx(by_pair(wilcoxon_holm(table), range(4)))


def test_pairs_that_never_meet_do_not_count():
    table = np.array([[3, 1, NAN], [5, 2, NAN], [4, 1, NAN], [NAN, 1, 2]])
    found = wilcoxon_holm(table)
    assert [(f.first, f.second) for f in found] == [(0, 1), (1, 2)]
    assert found[0].adjusted_p_value == pytest.approx(2 * 0.25)


@pytest.mark.slow
def test_alike_systems_rarely_differ():
    # any false difference in at most 5 % of tables, but for three standard errors
    rng = np.random.default_rng(0)
    false = [
        min(f.adjusted_p_value for f in wilcoxon_holm(rng.normal(size=(12, 4)))) <= 0.05
        for _ in range(500)
    ]
    assert 0.005 <= np.mean(false) <= 0.08


@pytest.mark.parametrize("control", [-1, 3])
def test_refuses_a_control_that_is_no_column(control):
    with pytest.raises(InvalidInputError, match=r"control must be in 0\.\.2"):
        wilcoxon_holm(np.ones((4, 3)), control)


def test_refuses_names_and_tables_without_a_pair():
    with pytest.raises(InvalidTypeError, match="index of a column"):
        wilcoxon_holm(np.ones((4, 3)), "a")
    with pytest.raises(InvalidInputError, match="two systems"):
        wilcoxon_holm([[1.0, NAN], [NAN, 1.0]])

"""Comparisons of members: their areas, ranks and votes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.base import Evidence, Ranked, auc_of


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 30))
def test_areas_are_those_of_scikit_learn(seed, n, q):
    rng = np.random.default_rng(seed)
    normal, others = rng.integers(0, 5, (n, 3)), rng.integers(0, 5, (q, 3))
    truth = np.repeat([1, 0], [n, q])
    expected = [roc_auc_score(truth, column) for column in np.vstack([normal, others]).T]
    np.testing.assert_allclose(auc_of(normal, others), expected)
    np.testing.assert_array_equal(Ranked(others).below(normal), auc_of(normal, others))
    # to the bit what ranks of all rows together give
    ranks = rankdata(np.vstack([normal, others]), axis=0)[:n].sum(axis=0)
    np.testing.assert_array_equal(auc_of(normal, others), (ranks - n * (n + 1) / 2) / (n * q))


def test_ranks_do_not_mind_how_far_a_member_is_ahead():
    near = Evidence(np.array([[0.6], [0.7], [0.71]]), np.ones(1))
    far = Evidence(np.array([[0.6], [0.7], [1.0]]), np.ones(1))
    np.testing.assert_array_equal(near.by_rank(), far.by_rank())
    assert far.by_value()[2] > near.by_value()[2]


def test_votes_weigh_comparisons_and_ties_share_a_rank():
    auc = np.array([[0.9, 0.5], [0.6, 0.5], [0.8, 0.9]])
    np.testing.assert_allclose(Evidence(auc, np.array([1.0, 0.0])).by_rank(), [1, 1 / 3, 2 / 3])
    np.testing.assert_allclose(Evidence(auc, np.array([0.0, 2.0])).by_rank(), [0.5, 0.5, 1.0])


@pytest.mark.parametrize(
    ("auc", "vote"),
    [
        (np.ones(3), np.ones(1)),
        (np.ones((3, 2)), np.ones(3)),
        (np.ones((3, 2)), np.zeros(2)),
        (np.ones((3, 2)), np.array([2.0, -1.0])),
        (np.full((3, 1), np.nan), np.ones(1)),
    ],
)
def test_tables_that_do_not_fit_are_refused(auc, vote):
    with pytest.raises(InvalidInputError, match="Evidence needs"):
        Evidence(auc, vote)

"""Blocks of time: whole, in order, apart by the purge, and used wherever rows are held out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse import FusedDetector
from ocfuse.detectors import KNN
from ocfuse.exceptions import InvalidInputError
from ocfuse.groups import Groups
from ocfuse.streaming import blocks


@given(n=st.integers(8, 60), n_blocks=st.integers(2, 6), purge=st.integers(0, 5))
def test_blocks_are_stretches_of_about_equal_length(n, n_blocks, purge):
    groups = blocks(n, n_blocks, purge)
    sizes = np.bincount(groups.label)
    assert (np.diff(groups.label) >= 0).all()
    assert len(sizes) == n_blocks
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.slow
@given(seed=st.integers(0, 200), purge=st.integers(0, 6))
def test_withheld_rows_are_those_near_in_time(seed, purge):
    """Against the definition, for rows in any order and two runs."""
    rng = np.random.default_rng(seed)
    run = np.repeat([0, 1], 20)
    order = rng.permutation(40)[:30]
    groups = blocks(run, 3, purge).take(order)
    fold = groups.folds(3)
    withheld = groups.withheld(fold)
    for i, row in enumerate(order):
        for f in range(int(fold.max()) + 1):
            held = order[fold == f]
            near = (np.abs(held - row) <= purge) & (run[held] == run[row])
            assert withheld[i, f] == near.any()


def test_labels_alone_withhold_their_own_fold_only():
    groups = Groups(np.array([0, 0, 1, 2]))
    fold = np.array([0, 0, 1, 0])
    np.testing.assert_array_equal(groups.withheld(fold)[:, 0], fold == 0)


def walk(n, seed=0):
    """A slow random walk: neighbours in time are alike."""
    return np.cumsum(np.random.default_rng(seed).normal(size=(n, 2)), axis=0)


def test_held_out_scores_know_no_neighbour_in_time():
    X = walk(160)
    detectors = [
        FusedDetector([KNN(1)], fusion="sum", negatives=None).fit(X, np.ones(160), groups)
        for groups in (None, blocks(160, 4, 0), blocks(160, 4, 10))
    ]
    blind, blocked, purged = (d.pool_.out_of_fold_scores_.mean() for d in detectors)
    assert blind > blocked > purged
    # distances to the nearest row that may be known, by hand
    groups = blocks(160, 4, 10)
    withheld = groups.withheld(groups.label)
    E = detectors[2].encoder_.transform(X)
    D = np.linalg.norm(E[:, None] - E[None], axis=2)
    D[withheld[:, groups.label].T] = np.inf
    out_of_fold = np.empty(160)
    out_of_fold[detectors[2].training_rows_] = detectors[2].pool_.out_of_fold_scores_[:, 0]
    # the member's scale depends on what it learned, the order does not
    for f in range(4):
        of_fold = groups.label == f
        order = np.argsort(-D.min(axis=1)[of_fold], kind="stable")
        assert (np.diff(out_of_fold[of_fold][order]) >= -1e-9).all()


def test_fusion_and_threshold_go_by_the_purge():
    """A copy of the run that may not be learned at all leaves nothing to learn from."""
    X = walk(60)
    with pytest.raises(Exception, match="purge"):
        FusedDetector([KNN(1)], fusion="sum", negatives=None).fit(X, None, blocks(60, 2, 60))


def test_the_order_of_rows_does_not_matter():
    X, groups = walk(120), blocks(120, 4, 5)
    order = np.random.default_rng(1).permutation(120)
    one = FusedDetector("light", random_state=0).fit(X, np.ones(120), groups)
    other = FusedDetector("light", random_state=0).fit(X[order], np.ones(120), groups.take(order))
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))
    np.testing.assert_array_equal(one.training_scores_[order], other.training_scores_)


@pytest.mark.parametrize("given", [{"n_blocks": 1}, {"purge": -1}, {"n_blocks": 2.5}])
def test_unusable_numbers_are_refused(given):
    with pytest.raises(InvalidInputError, match="whole number"):
        blocks(10, **given)


def test_groups_of_another_length_are_refused():
    with pytest.raises(InvalidInputError, match="groups must name"):
        FusedDetector("light").fit(walk(30), groups=blocks(29))

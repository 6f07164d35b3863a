"""Folds by group, names and seeds of members."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocfuse.detectors import GMM, KNN, KPCA, LOF, OneClassGP
from ocfuse.detectors.members import copy_members, givers_first, group_folds, name_members


@settings(deadline=None, max_examples=100)
@given(
    groups=st.lists(st.integers(0, 12), min_size=2, max_size=80).filter(lambda g: len(set(g)) > 1),
    n_folds=st.integers(2, 6),
)
def test_folds_keep_groups_whole_and_are_balanced(groups, n_folds):
    groups = np.array(groups)
    fold = group_folds(groups, len(groups), n_folds)
    assert all(len(set(fold[groups == g])) == 1 for g in set(groups))
    sizes = np.bincount(fold)
    assert len(sizes) == min(n_folds, len(set(groups)))
    assert sizes.min() > 0
    # greedy: no fold is larger than another by more than the largest group
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()


@settings(deadline=None, max_examples=30)
@given(groups=st.lists(st.integers(0, 9), min_size=10, max_size=60), shift=st.integers(1, 9))
def test_names_of_groups_do_not_matter(groups, shift):
    groups = np.array([*groups, 0, 1])
    renamed = (groups + shift) % 10
    np.testing.assert_array_equal(
        group_folds(groups, len(groups), 4), group_folds(renamed, len(groups), 4)
    )


def test_seeds_reach_nested_parameters():
    pipeline = make_pipeline(StandardScaler(), IsolationForest())
    members = name_members([pipeline, IsolationForest(random_state=3)])
    first, second = (dict(copy_members(members, 1)) for _ in range(2))
    seed = first["pipeline"].get_params()["isolationforest__random_state"]
    assert isinstance(seed, int)
    assert second["pipeline"].get_params()["isolationforest__random_state"] == seed
    assert first["isolationforest"].random_state == 3
    assert pipeline.get_params()["isolationforest__random_state"] is None


def test_detectors_that_leave_something_go_first():
    members = name_members([KNN(5), OneClassGP(), LOF(30), GMM(1), KPCA()])
    names = [name for name, _ in givers_first(members)]
    assert names.index("kpca") < names.index("oneclassgp")
    assert names.index("lof") < names.index("knn")

"""Folds by group, names and seeds of members."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocfuse.detectors import GMM, KNN, KPCA, LOF, OneClassGP, Whitened
from ocfuse.detectors.members import (
    copy_members,
    finite_scores,
    givers_first,
    lowest_score,
    name_members,
    seeded,
)
from ocfuse.exceptions import InvalidInputError
from ocfuse.groups import group_folds


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


def test_one_stream_of_seeds_gives_each_its_own():
    stream = np.random.RandomState(0)
    given = IsolationForest()
    first, second = seeded(given, stream), seeded(given, stream)
    assert first.random_state != second.random_state
    assert seeded(given, 5).random_state == seeded(given, 5).random_state
    assert given.random_state is None
    assert seeded(IsolationForest(random_state=7), 5).random_state == 7


def test_what_has_no_seed_is_only_cloned():
    given = StandardScaler(with_mean=False)
    copy = seeded(given, 0)
    assert copy is not given
    assert copy.get_params() == given.get_params()


@pytest.mark.parametrize(
    "finite",
    [[-3.0, -1.0], [5.0], [0.0], [1e-200, 2e-200], [-1e12, 3.0], [-1e308, 1e308], [1e308]],
)
def test_minus_infinity_counts_as_far_below_all_others(finite):
    out_of_fold = np.array([*finite, -np.inf])
    lowest = lowest_score(out_of_fold)
    assert np.isfinite(lowest)
    spread = max(finite) / 2 - min(finite) / 2
    if max(map(abs, finite)) < 1e300:
        assert lowest <= min(finite) - 1999.0 * spread
        assert lowest < min(finite)
    np.testing.assert_array_equal(finite_scores(out_of_fold, lowest), [*finite, lowest])


def test_minus_infinity_for_all_rows_is_refused():
    with pytest.raises(InvalidInputError, match="finite score"):
        lowest_score(np.full(4, -np.inf))


def test_detectors_that_leave_something_go_first():
    members = name_members([KNN(5), OneClassGP(), LOF((10, 30)), Whitened(KPCA()), GMM(1), KPCA()])
    names = [name for name, _ in givers_first(members)]
    assert names.index("kpca") < names.index("oneclassgp")
    assert names.index("whitened") < names.index("oneclassgp")
    assert names.index("lof") < names.index("knn")

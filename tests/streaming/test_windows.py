"""Windows of samples: causal features; blocks of time, apart by the purge, that are held out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse import FusedDetector
from ocfuse.detectors import KNN
from ocfuse.exceptions import InvalidInputError
from ocfuse.groups import Groups
from ocfuse.streaming import Windows, blocks


@pytest.fixture(name="X")
def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) + 1e4
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_values_are_those_of_a_fit_to_the_window():
    X = np.random.default_rng(1).normal(size=(40, 2))
    features = Windows((5, 12)).transform(X)
    last = X[-12:]
    expected = [
        *last[-5:].mean(axis=0),
        *np.polyfit(np.arange(5), last[-5:], 1)[0],
        *last[-5:].std(axis=0),
        *last.mean(axis=0),
        *np.polyfit(np.arange(12), last, 1)[0],
        *last.std(axis=0),
    ]
    np.testing.assert_allclose(features[-1], expected, rtol=1e-10)


def test_gaps_are_left_out_of_a_window():
    x = np.array([0.0, 1.0, np.nan, 3.0, 4.0, np.nan])[:, np.newaxis]
    level, slope, spread = Windows((6,)).transform(x)[-1]
    assert (level, slope) == pytest.approx((2.0, 1.0))
    assert spread == pytest.approx(np.std([0, 1, 3, 4]))


def test_no_features_where_most_of_a_window_is_missing():
    x = np.array([0.0, 1.0, np.nan, np.nan, np.nan, 5.0])[:, np.newaxis]
    features = Windows((4,)).transform(x)
    assert np.isnan(features[:3]).all()  # younger than the window
    assert not np.isnan(features[3]).any()  # half of it is there
    assert np.isnan(features[4:]).all()


@settings(max_examples=30, deadline=None)
@given(n_channels=st.integers(1, 3), at=st.integers(29, 79), seed=st.integers(0, 99))
def test_one_by_one_is_the_same_to_the_bit(n_channels, at, seed):
    X = np.random.default_rng(seed).normal(size=(80, n_channels)) * 1e3
    windows = Windows((10, 30))
    whole = windows.transform(X)
    np.testing.assert_array_equal(windows.slide(X[at - 29 : at + 1])[0], whole[at])


def test_the_future_does_not_matter(X):
    windows = Windows((4, 9))
    np.testing.assert_array_equal(windows.transform(X)[:50], windows.transform(X[:50]))


def test_a_new_run_starts_with_empty_windows(X):
    windows = Windows((4, 9))
    together = windows.transform(X, np.repeat(["a", "b"], 40))
    np.testing.assert_array_equal(together[40:], windows.transform(X[40:]))


def test_blocks_of_the_computation_do_not_matter(X):
    windows = Windows((4, 9))
    np.testing.assert_array_equal(windows.slide(X, max_values=60), windows.slide(X))


def test_infinity_is_a_gap():
    x = np.arange(8.0)[:, np.newaxis]
    gap, overflow = x.copy(), x.copy()
    gap[5], overflow[5] = np.nan, np.inf
    windows = Windows((4,))
    np.testing.assert_array_equal(windows.transform(gap), windows.transform(overflow))


def test_names_follow_the_columns():
    names = Windows((3, 4)).names(["a", "b"])
    assert names[:3] == ["a level 3", "b level 3", "a slope 3"]
    X = np.column_stack([np.zeros(5), np.arange(5.0)])
    last = dict(zip(names, Windows((3, 4)).transform(X)[-1], strict=True))
    assert last["b slope 3"] == last["b slope 4"] == 1
    assert last["b level 3"] == 3
    assert last["a level 4"] == last["a spread 3"] == 0


@pytest.mark.parametrize("lengths", [(), (2,), (10, 10), (5.0,), (True,), "ab"])
def test_unusable_lengths_are_refused(lengths):
    with pytest.raises(InvalidInputError, match="lengths of windows"):
        Windows(lengths)


def test_a_run_in_pieces_is_refused():
    with pytest.raises(InvalidInputError, match="follow each other"):
        Windows((3,)).transform(np.zeros((4, 1)), ["a", "b", "a", "b"])


@pytest.mark.parametrize("X", [np.zeros(5), np.zeros((5, 0)), [["a"]]])
def test_unusable_samples_are_refused(X):
    with pytest.raises(InvalidInputError, match="Samples must"):
        Windows((3,)).transform(X)


def test_a_gap_elsewhere_changes_no_bit():
    X = np.random.default_rng(7).normal(size=(60, 2))
    gap = X.copy()
    gap[0] = np.nan
    windows = Windows((7, 12))
    np.testing.assert_array_equal(windows.transform(gap)[20:], windows.transform(X)[20:])
    alone = windows.slide(X[40:52])
    np.testing.assert_array_equal(alone[0], windows.transform(X)[51])


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

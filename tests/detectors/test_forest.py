"""Forest: its trees, scores like scikit-learn's, out-of-fold ones by trees without the row."""

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest

from ocfuse import kernels
from ocfuse.detectors.base import N_FOLDS, interleaved_folds, out_of_fold_scores
from ocfuse.detectors.forest import Forest, average_length, grow_trees
from ocfuse.detectors.gram import Gram
from ocfuse.exceptions import InvalidInputError


def normal(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def check_node(trees, t, values, rows, node, depth):
    """Check a node of a tree and all below: cuts part rows, leaves tell how long the path was."""
    width = trees.lengths.shape[1]
    right = np.zeros(len(rows), dtype=bool)
    if node < width:
        right = values[rows, trees.features[t, node]] > trees.thresholds[t, node]
    if not right.any() or right.all():
        below = width // 2**depth
        first = node * below - width
        expected = depth + average_length(np.array([len(rows)]))[0]
        assert (trees.lengths[t, first : first + below] == expected).all()
        assert len(rows) <= 1 or 2**depth == width or (values[rows] == values[rows[0]]).all()
        return
    for side, child in ((~right, 2 * node), (right, 2 * node + 1)):
        check_node(trees, t, values, rows[side], child, depth + 1)


@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 1), (3, 2), (40, 1), (200, 300), (257, 4)])
@pytest.mark.parametrize("levels", [1, 2, 9, None])
@pytest.mark.parametrize("rows_per_tree", [5, 256])
def test_trees_part_their_rows(n, m, levels, rows_per_tree):
    X = normal(n, m)
    if levels is not None:
        X = np.floor(levels / (1 + np.exp(-X)))
    forest = Forest(6, rows_per_tree=rows_per_tree, random_state=3).fit_gram(Gram(X))
    r = min(n, rows_per_tree)
    assert forest.drawn_.shape == (6, r)
    assert forest.trees_.lengths.shape[1] <= 2 ** np.ceil(np.log2(max(r, 2)))
    for t, rows in enumerate(forest.drawn_):
        assert len(np.unique(rows)) == r
        check_node(forest.trees_, t, X.astype(np.float32), rows, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [None, 3])
def test_scores_are_those_of_scikit_learn_on_average(levels):
    X, new = normal(300, 6), 2 * normal(100, 6, seed=1)
    if levels is not None:
        X, new = (np.floor(levels / (1 + np.exp(-rows))) for rows in (X, new))
    ours = np.mean([Forest(random_state=s).fit(X).score_samples(new) for s in range(8)], axis=0)
    theirs, other = (
        np.mean([scikit_learn(X, seed).score_samples(new) for seed in seeds], axis=0)
        for seeds in (range(4), range(4, 8))
    )
    # as near to theirs as theirs are to each other
    assert np.abs(ours - theirs).mean() < 1.2 * np.abs(theirs - other).mean()
    assert abs((ours - 0.5 * (theirs + other)).mean()) < 0.005


def scikit_learn(X, seed):
    return IsolationForest(n_estimators=100, max_samples=256, random_state=seed).fit(X)


def test_columns_that_vary_are_equally_likely_and_places_uniform():
    X = normal(50, 8)
    X[:, [1, 4, 5]] = 7.0
    X[:, 0] = np.arange(50) % 2  # constant in small nodes, not at the root
    trees = grow_trees(X, np.tile(np.arange(50), (5000, 1)), np.random.default_rng(0))
    drawn, counts = np.unique(trees.features[:, 1], return_counts=True)
    assert list(drawn) == [0, 2, 3, 6, 7]
    assert abs(counts - 1000).max() < 4 * np.sqrt(5000 * 0.2 * 0.8)
    column = trees.features[:, 1] == 3
    low, high = X[:, 3].min(), X[:, 3].max()
    places = (trees.thresholds[column, 1] - low) / (high - low)
    assert kstest(places, "uniform").pvalue > 1e-3


def test_one_column_of_many_that_varies_is_found():
    X = np.zeros((30, 4000))
    X[:, 1234] = np.arange(30)
    trees = grow_trees(X, np.tile(np.arange(30), (3, 1)), np.random.default_rng(0))
    assert (trees.features[:, 1] == 1234).all()


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**31 - 1), st.sampled_from([1e-30, 1e-3, 1.0, 1e6]), st.integers(1, 8))
def test_neighbours_in_single_precision_are_parted(seed, unit, levels):
    # Few levels in single precision: thresholds fall on values and between neighbours.
    steps = np.nextafter(np.float32(unit), np.float32(np.inf)) - np.float32(unit)
    X = unit + float(steps) * np.random.default_rng(seed).integers(0, levels, size=(60, 3))
    forest = Forest(5, random_state=seed).fit_gram(Gram(X))
    for t, rows in enumerate(forest.drawn_):
        check_node(forest.trees_, t, X.astype(np.float32), rows, 1, 0)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31 - 1), st.integers(1, 20), st.integers(1, 6), st.integers(0, 70))
def test_kernel_and_twin_follow_the_same_paths(seed, n_trees, m, q):
    rng = np.random.default_rng(seed)
    X = rng.integers(4, size=(40, m)) * 10.0 ** rng.integers(-3, 4)
    trees = Forest(n_trees, rows_per_tree=8, random_state=seed).fit_gram(Gram(X)).trees_
    rows = np.vstack([rng.normal(size=(q, m)), X, np.full((1, m), 1e150), np.full((1, m), -1e40)])
    np.testing.assert_array_equal(trees.follow(rows), trees._by_numpy(rows))
    np.testing.assert_array_equal(trees.follow(rows[::3]), trees._by_numpy(rows)[::3])
    if kernels.kernel is not None:
        kernels.kernel.use_baseline(True)
        np.testing.assert_array_equal(trees.follow(rows), trees._by_numpy(rows))
        kernels.kernel.use_baseline(False)
    assert trees.follow(rows[:0]).shape == (0, n_trees)


def test_average_length_is_the_mean_over_random_trees():
    assert list(average_length(np.array([0, 1, 2]))) == [0.0, 0.0, 1.0]
    harmonic = np.log(255) + np.euler_gamma
    assert average_length(np.array([256]))[0] == pytest.approx(2 * harmonic - 2 * 255 / 256)


@pytest.mark.slow
def test_batch_equals_one_by_one_to_the_last_bit():
    forest = Forest(random_state=0).fit(normal(300, 4))
    rows = 3 * normal(1000, 4, seed=1)
    single = np.concatenate([forest.score_samples(row[None]) for row in rows[:50]])
    np.testing.assert_array_equal(forest.score_samples(rows)[:50], single)


@pytest.mark.slow
def test_out_of_fold_scores_ask_only_trees_that_have_not_drawn_the_row():
    X = normal(600, 3)
    forest = Forest(40, random_state=0).fit_gram(gram := Gram(X))
    out_of_fold = out_of_fold_scores(forest, gram, ())
    lengths = forest.trees_.follow(X)
    usual = average_length(np.array([256]))[0]
    for i in (0, 17, 599):
        unseen = [t for t in range(40) if i not in forest.drawn_[t]]
        assert 0 < len(unseen) < 40
        expected = -(2 ** -(lengths[i, unseen].mean() / usual))
        assert out_of_fold[i] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "n_trees"), [(100, 40), (256, 30), (50, 1)])
def test_few_rows_are_judged_by_forests_of_their_folds(n, n_trees):
    forest = Forest(n_trees, random_state=0).fit_gram(gram := Gram(normal(n, 3)))
    again = clone(forest).set_params(random_state=forest.seed_)
    expected = out_of_fold_scores(again, gram, interleaved_folds(n, N_FOLDS), by_fold=True)
    np.testing.assert_array_equal(out_of_fold_scores(forest, gram, ()), expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", [120, 420, 900])
def test_out_of_fold_scores_are_like_those_of_fresh_rows(n):
    rng = np.random.default_rng(n)
    gaps, alarms = [], []
    for seed in range(2):
        forest = Forest(random_state=seed, false_alarm_rate=0.1)
        X, fresh = rng.normal(size=(n, 5)), rng.normal(size=(2000, 5))
        forest.fit(X)
        scores = forest.score_samples(fresh)
        gaps.append((out_of_fold_scores(forest, Gram(X), ()).mean() - scores.mean()) / scores.std())
        alarms.append((scores < forest.offset_).mean())
    assert abs(np.mean(gaps)) < 0.2
    assert 0.05 < np.mean(alarms) < 0.14


@pytest.mark.slow
def test_random_state_fixes_everything():
    X = normal(300, 3)
    first, second, other = (Forest(20, random_state=s).fit(X) for s in (5, 5, 6))
    np.testing.assert_array_equal(first.score_samples(X), second.score_samples(X))
    assert first.offset_ == second.offset_
    assert (first.score_samples(X) != other.score_samples(X)).any()


@pytest.mark.parametrize("huge", [1e39, 1e200])
def test_huge_values_stay_finite(huge):
    X = normal(60, 3)
    rows = [[huge, -huge, 0.0], [0.0, 0.0, 0.0]]
    far, near = Forest(20, random_state=0).fit(X).score_samples(rows)
    assert far < near
    scores = Forest(10, random_state=0).fit(np.vstack([X, rows])).score_samples(rows)
    assert np.isfinite(scores).all()


@pytest.mark.slow
def test_equal_rows():
    forest = Forest(random_state=0).fit(np.full((30, 2), 7.0))
    assert np.isfinite(forest.score_samples([[7.0, 7.0], [8.0, 8.0]])).all()


def test_one_row_of_a_fold_is_enough():
    part, query = Gram(normal(2, 5)).fold(np.array([0]), np.array([1]))
    np.testing.assert_array_equal(Forest().fit_gram(part).score_query(query), [-0.5])


@pytest.mark.slow
def test_saved_forest_holds_no_tree_of_scikit_learn_and_gives_the_same_bits():
    X = normal(300, 4)
    forest = Forest(random_state=0).fit(X)
    data = skops.io.dumps(forest)
    types = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("ocfuse.") for name in types)
    loaded = skops.io.loads(data, trusted=types)
    np.testing.assert_array_equal(loaded.score_samples(X), forest.score_samples(X))


@pytest.mark.parametrize("feature", [-1, 4, 2**31 - 1])
def test_forged_features_are_refused(feature):
    X = normal(50, 4)
    forest = Forest(5, random_state=0).fit(X)
    forest.trees_.features[0, 1] = feature
    with pytest.raises(InvalidInputError, match="features of the trees must be in"):
        forest.score_samples(X)


@pytest.mark.parametrize("name", ["features", "thresholds"])
def test_tables_cut_short_are_refused(name):
    X = normal(50, 4)
    forest = Forest(5, random_state=0).fit(X)
    setattr(forest.trees_, name, getattr(forest.trees_, name)[:2])
    with pytest.raises(IndexError):
        forest.score_samples(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number"),
        ({"rows_per_tree": 1}, "rows_per_tree must be a whole number"),
        ({"max_samples": 1}, "max_samples must be a whole number"),
        ({"false_alarm_rate": 0.0}, "false_alarm_rate must be a number"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(InvalidInputError, match=message):
        Forest(**params).fit(normal(20, 2))

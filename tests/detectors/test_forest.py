"""Forest: scikit-learn's scores, honest ones by trees that have not drawn the row."""

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import IsolationForest

from ocfuse import kernels
from ocfuse.detectors.base import N_FOLDS, interleaved_folds, out_of_fold_scores
from ocfuse.detectors.forest import Forest, average_length
from ocfuse.detectors.gram import Gram
from ocfuse.exceptions import InvalidInputError


def normal(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def theirs(forest, X):
    rows = min(forest.rows_per_tree, len(X))
    return IsolationForest(
        n_estimators=forest.n_trees, max_samples=rows, random_state=forest.random_state
    ).fit(X)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (40, 1), (200, 300), (257, 4), (1500, 7)])
@pytest.mark.parametrize("rows_per_tree", [5, 256])
def test_scores_equal_scikit_learn(n, m, rows_per_tree):
    X, new = normal(n, m), 2 * normal(700, m, seed=1)
    forest = Forest(10, rows_per_tree=rows_per_tree, random_state=3).fit(X)
    rows = np.vstack([X, new])
    np.testing.assert_allclose(
        forest.score_samples(rows), theirs(forest, X).score_samples(rows), rtol=0, atol=1e-12
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**31 - 1), st.sampled_from([1e-30, 1e-3, 1.0, 1e6]), st.integers(1, 8))
def test_values_on_the_thresholds_go_where_theirs_go(seed, unit, levels):
    # Few levels in single precision: thresholds fall on values and between neighbours.
    steps = np.nextafter(np.float32(unit), np.float32(np.inf)) - np.float32(unit)
    X = unit + float(steps) * np.random.default_rng(seed).integers(0, levels, size=(60, 3))
    forest = Forest(10, random_state=seed).fit_gram(Gram(X))
    thresholds = np.unique(forest.trees_.thresholds)
    rows = np.vstack([X, np.repeat(thresholds[:, None], 3, axis=1)])
    ours = forest.score_query(forest.reference_.query(rows))
    np.testing.assert_allclose(ours, theirs(forest, X).score_samples(rows), rtol=0, atol=1e-12)


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
    model = theirs(forest, X)
    for i in (0, 17, 599):
        unseen = [t for t in range(40) if i not in model.estimators_samples_[t]]
        lengths = []
        for t in unseen:
            tree = model.estimators_[t].tree_
            leaf = tree.apply(X[[i]].astype(np.float32))
            depth = tree.compute_node_depths()[leaf] - 1
            lengths.append(depth + average_length(tree.n_node_samples[leaf]))
        usual = average_length(np.array([256]))[0]
        assert out_of_fold[i] == pytest.approx(-(2 ** -(np.mean(lengths) / usual)), abs=1e-12)


@pytest.mark.parametrize(("n", "n_trees", "n_small"), [(100, 40, 10), (256, 30, 8), (50, 1, 1)])
def test_few_rows_are_judged_by_folds_of_smaller_forests(n, n_trees, n_small):
    forest = Forest(n_trees, random_state=0).fit_gram(gram := Gram(normal(n, 3)))
    small = clone(forest).set_params(n_trees=n_small)
    expected = out_of_fold_scores(small, gram, interleaved_folds(n, N_FOLDS), by_fold=True)
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

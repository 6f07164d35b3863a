"""KNN and LOF against scikit-learn, ALP against a plain loop over its formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from ocfuse.detectors.gram import Gram
from ocfuse.detectors.neighbours import ALP, KNN, LOF
from ocfuse.exceptions import InvalidInputError

SHAPES = [(60, 1), (200, 3), (150, 40), (1500, 4)]


def table(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m)) * np.linspace(0.5, 3.0, m)


@pytest.mark.parametrize(("n", "m"), SHAPES)
@pytest.mark.parametrize("k", [1, 5, 30])
def test_knn_equals_scikit_learn(n, m, k):
    X, new = table(n, m), table(25, m, seed=1)
    distances, _ = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(new)
    largest = KNN(k).fit(X).score_samples(new)
    mean = KNN(k, method="mean").fit(X).score_samples(new)
    np.testing.assert_allclose(largest, -distances[:, -1], rtol=1e-9)
    np.testing.assert_allclose(mean, -distances.mean(axis=1), rtol=1e-9)


@pytest.mark.parametrize("method", ["largest", "mean"])
def test_knn_leave_one_out_equals_refits(method):
    X = table(30, 3)
    detector = KNN(4, method=method)
    gram = Gram(X)
    left_out = detector.fit_gram(gram)._leave_one_out(gram)
    refits = [
        KNN(4, method=method).fit(np.delete(X, i, axis=0)).score_samples(X[i : i + 1])[0]
        for i in range(len(X))
    ]
    np.testing.assert_allclose(left_out, refits, rtol=1e-12)


@pytest.mark.parametrize(("n", "m"), SHAPES)
@pytest.mark.parametrize("k", [1, 10, 30])
def test_lof_equals_scikit_learn(n, m, k):
    X, new = table(n, m), np.vstack([table(25, m, seed=1), 10 * table(5, m, seed=2)])
    theirs = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(X)
    gram = Gram(X)
    ours = LOF(k).fit_gram(gram)
    # k = 1 has pairs of rows that are close by chance: the floor is made for them
    if k > 1:
        (factor,) = ours.factors_
        assert (factor.density * factor.floor < 1).all()
        np.testing.assert_allclose(ours.score_samples(new), theirs.score_samples(new), rtol=1e-8)
        np.testing.assert_allclose(
            ours._leave_one_out(gram), theirs.negative_outlier_factor_, rtol=1e-8
        )
    assert np.isfinite(ours.score_samples(new)).all()


def test_lof_of_several_counts_is_the_mean_from_one_graph():
    X, new = table(90, 3), table(20, 3, seed=1)
    gram = Gram(X)
    query = gram.query(new)
    several = LOF((10, 40, 20)).fit_gram(gram)
    np.testing.assert_allclose(
        several.score_query(query),
        np.mean([LOF(k).fit(X).score_samples(new) for k in (10, 20, 40)], axis=0),
        rtol=1e-12,
    )
    assert several.n_neighbors_ == 40
    assert gram.counts["distances"] == query.counts["distances"] == 1
    assert LOF((10, 40)).fit(X[:8]).n_neighbors_ == 7
    np.testing.assert_array_equal(
        LOF([10, 20]).fit(X).score_samples(new), LOF((10, 20)).fit(X).score_samples(new)
    )


def test_lof_beside_duplicates_is_finite_and_ordered():
    rng = np.random.default_rng(0)
    cloud = rng.normal(size=(100, 2))
    X = np.vstack([cloud, np.full((60, 2), 3.0)])
    detector = LOF(20).fit(X)
    steps = np.array([0.0, 0.05, 0.3, 1.0, 3.0, 10.0])
    scores = detector.score_samples(3.0 + np.column_stack([steps, steps]))
    assert scores[0] == pytest.approx(-1.0)
    assert (np.diff(scores) < 0).all()
    # the typical reach is at most 100 times the least
    assert scores[3] > -10 * 100
    assert np.abs(detector.score_samples(cloud)).max() < 10


def test_lof_of_equal_rows():
    detector = LOF(5).fit(np.ones((20, 3)))
    scores = detector.score_samples([[1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 9.0]])
    assert scores[0] == pytest.approx(-1.0)
    assert np.isfinite(scores).all()
    assert (np.diff(scores) < 0).all()
    assert detector.predict([[1.0, 1.0, 1.0]])[0] == 1


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(2, 40),
    m=st.integers(1, 4),
    decimals=st.integers(0, 2),
    k=st.integers(1, 50),
)
def test_batch_equals_one_by_one_with_ties(seed, n, m, decimals, k):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)).round(decimals)
    new = rng.normal(size=(15, m)).round(decimals)
    for detector in (KNN(k), KNN(k, method="mean"), LOF(k)):
        detector.fit(X)
        batch = detector.score_samples(new)
        single = np.concatenate([detector.score_samples(row[None]) for row in new])
        np.testing.assert_allclose(batch, single, rtol=1e-12, atol=1e-12)
        assert np.isfinite(batch).all()


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000), factor=st.sampled_from([1e-6, 0.1, 37.0, 1e8]))
def test_unit_of_features_moves_knn_and_leaves_lof(seed, factor):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(10, 3))
    knn, scaled_knn = KNN().fit(X), KNN().fit(factor * X)
    np.testing.assert_allclose(
        factor * knn.score_samples(new), scaled_knn.score_samples(factor * new), rtol=1e-9
    )
    lof, scaled_lof = LOF().fit(X), LOF().fit(factor * X)
    np.testing.assert_allclose(
        lof.score_samples(new), scaled_lof.score_samples(factor * new), rtol=1e-9
    )


@pytest.mark.parametrize("detector", [KNN(), LOF()])
def test_order_of_rows_does_not_matter(detector):
    X, new = table(80, 3), table(10, 3, seed=1)
    scores = detector.fit(X).score_samples(new)
    shuffled = detector.fit(X[::-1]).score_samples(new)
    np.testing.assert_allclose(scores, shuffled, rtol=1e-12)


@pytest.mark.parametrize("detector", [KNN(30), LOF(30)])
def test_two_rows_are_enough(detector):
    detector.fit([[0.0], [1.0]])
    assert detector.n_neighbors_ == 1
    assert np.isfinite(detector.score_samples([[0.0], [0.5], [7.0]])).all()


@pytest.mark.parametrize("detector", [KNN(30), LOF(30)])
def test_one_row_of_a_fold_is_enough(detector):
    part, query = Gram(np.array([[0.0], [1.0]])).fold(np.array([0]), np.array([1]))
    scores = detector.fit_gram(part).score_query(query)
    assert np.isfinite(scores).all()
    assert detector.score_samples([[0.0]]) > scores


def test_false_alarm_rate_holds_on_fresh_rows():
    X, new = table(1000, 4), table(4000, 4, seed=1)
    for detector in (KNN(false_alarm_rate=0.1), LOF(false_alarm_rate=0.1)):
        alarms = (detector.fit(X).predict(new) == -1).mean()
        assert 0.07 < alarms < 0.13


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (KNN(0), "n_neighbors must be a whole number of at least 1. Got n_neighbors=0"),
        (LOF(2.5), "n_neighbors must be a whole number"),
        (LOF((10, 0)), "n_neighbors must be a whole number of at least 1. Got n_neighbors=0"),
        (LOF(()), "n_neighbors must hold at least one number"),
        (KNN(method="median"), "method must be 'largest' or 'mean'. Got method='median'"),
        (KNN(false_alarm_rate=0), "false_alarm_rate must be"),
    ],
)
def test_wrong_parameters_are_refused(detector, message):
    with pytest.raises(InvalidInputError, match=message):
        detector.fit(table(20, 2))


def test_one_copy_more_does_not_make_all_others_outliers():
    """With k copies a row has no reach of its own; with one fewer it has."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    queries = np.random.default_rng(1).normal(size=(20, 3))
    scores = [
        LOF(10).fit(np.vstack([X, np.zeros((copies, 3))])).score_samples(queries)
        for copies in (10, 11)
    ]
    assert np.abs(scores[0] - scores[1]).max() < 1.0


def sorted_distances(x, rows):
    distances = [float(np.sqrt(((x - row) ** 2).sum())) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (distances[i], i))
    return [distances[i] for i in order], order


def linear_weights(size):
    return [2 * (size + 1 - i) / (size * (size + 1)) for i in range(1, size + 1)]


def plain_alp(X, new, k, n_local, leave_out=False):
    """Follow the published description step by step."""
    iqr = np.subtract(*np.percentile(X, [75, 25], axis=0))
    unit = np.where(iqr > 0, iqr, 1.0)
    X, new = X / unit, new / unit
    own = [sorted_distances(X[i], np.delete(X, i, axis=0))[0][:k] for i in range(len(X))]
    scores = []
    for position, x in enumerate(new):
        d, order = sorted_distances(x, X)
        if leave_out:
            at = order.index(position)
            del d[at], order[at]
        proximities = []
        for i in range(k):
            weights = linear_weights(n_local)
            local = sum(w * own[order[j]][i] for j, w in enumerate(weights))
            ratio = 1.0 if d[i] == local == 0 else (np.inf if local == 0 else d[i] / local)
            proximities.append(1 / (1 + ratio))
        proximities.sort(reverse=True)
        scores.append(sum(w * lp for w, lp in zip(linear_weights(k), proximities, strict=True)))
    return np.array(scores)


@pytest.mark.parametrize(("n", "m"), [(20, 1), (60, 3), (45, 60)])
def test_alp_equals_the_plain_loop(n, m):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(n, m)) * np.linspace(1, 50, m), rng.normal(size=(12, m)) * 20
    k, n_local = int(5.5 * np.log(n)), int(6 * np.log(n))
    detector = ALP().fit(X)
    assert (detector.n_neighbors_, detector.n_local_) == (min(k, n - 1), min(n_local, n - 1))
    expected = plain_alp(X, new, detector.n_neighbors_, detector.n_local_)
    np.testing.assert_allclose(detector.score_samples(new), expected, rtol=1e-10)


def test_alp_leave_one_out_equals_the_plain_loop():
    X = np.random.default_rng(1).normal(size=(40, 2))
    gram = Gram(X)
    detector = ALP(6, n_local=9).fit_gram(gram)
    expected = plain_alp(X, X, 6, 9, leave_out=True)
    np.testing.assert_allclose(detector._leave_one_out(gram), expected, rtol=1e-10)


def test_alp_of_duplicates_and_constant_columns():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, size=(80, 2)).astype(float)
    X = np.column_stack([X, np.full(80, 5.0)])
    new = np.vstack([X[:10], [[1.0, 1.0, 6.0], [8.0, 8.0, 5.0]]])
    detector = ALP(5, n_local=7).fit(X)
    scores = detector.score_samples(new)
    # equal distances may come in another order: the sum over them is the same
    np.testing.assert_allclose(scores, plain_alp(X, new, 5, 7), rtol=1e-10)
    assert scores[:10].min() > scores[10:].max()


def test_unit_of_each_feature_does_not_matter_to_alp():
    rng = np.random.default_rng(3)
    X, new, units = rng.normal(size=(100, 3)), rng.normal(size=(20, 3)), np.array([1e-6, 1, 1e6])
    np.testing.assert_allclose(
        ALP().fit(X).score_samples(new), ALP().fit(X * units).score_samples(new * units), rtol=1e-9
    )


def test_scores_of_alp_lie_between_0_and_1_in_every_batch(monkeypatch):
    rng = np.random.default_rng(4)
    X, new = rng.normal(size=(300, 2)), 5 * rng.normal(size=(40, 2))
    detector = ALP().fit(X)
    batch = detector.score_samples(new)
    assert ((batch >= 0) & (batch <= 1)).all()
    single = np.concatenate([detector.score_samples(row[None]) for row in new])
    np.testing.assert_allclose(batch, single, rtol=1e-13)
    monkeypatch.setattr(ALP, "values_at_once", 1)
    np.testing.assert_allclose(batch, detector.score_samples(new), rtol=1e-13)


def test_false_alarm_rate_of_alp_holds_on_fresh_rows():
    rng = np.random.default_rng(5)
    detector = ALP(false_alarm_rate=0.1).fit(rng.normal(size=(1000, 3)))
    assert 0.07 < (detector.predict(rng.normal(size=(3000, 3))) == -1).mean() < 0.13


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows_are_enough_for_alp(n):
    X = np.arange(2.0 * n).reshape(n, 2)
    assert np.isfinite(ALP().fit(X).score_samples([[0.0, 0.0], [99.0, -99.0]])).all()


@pytest.mark.parametrize("detector", [ALP(0), ALP(n_local=-3), ALP(n_neighbors="all")])
def test_wrong_parameters_of_alp_are_refused(detector):
    with pytest.raises(InvalidInputError, match="must be a whole number of at least 1"):
        detector.fit(np.zeros((20, 2)))


def test_one_row_of_a_fold_is_enough_for_alp():
    part, query = Gram(np.array([[0.0], [1.0]])).fold(np.array([0]), np.array([1]))
    assert np.isfinite(ALP().fit_gram(part).score_query(query)).all()

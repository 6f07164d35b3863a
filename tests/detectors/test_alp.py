"""ALP against a plain loop over its formula."""

import numpy as np
import pytest

from ocfuse.detectors.gram import Gram
from ocfuse.detectors.neighbours import ALP
from ocfuse.exceptions import InvalidInputError


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
def test_equals_the_plain_loop(n, m):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(n, m)) * np.linspace(1, 50, m), rng.normal(size=(12, m)) * 20
    k, n_local = int(5.5 * np.log(n)), int(6 * np.log(n))
    detector = ALP().fit(X)
    assert (detector.n_neighbors_, detector.n_local_) == (min(k, n - 1), min(n_local, n - 1))
    expected = plain_alp(X, new, detector.n_neighbors_, detector.n_local_)
    np.testing.assert_allclose(detector.score_samples(new), expected, rtol=1e-10)


def test_leave_one_out_equals_the_plain_loop():
    X = np.random.default_rng(1).normal(size=(40, 2))
    gram = Gram(X)
    detector = ALP(6, n_local=9).fit_gram(gram)
    expected = plain_alp(X, X, 6, 9, leave_out=True)
    np.testing.assert_allclose(detector._leave_one_out(gram), expected, rtol=1e-10)


def test_duplicates_and_constant_columns():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, size=(80, 2)).astype(float)
    X = np.column_stack([X, np.full(80, 5.0)])
    new = np.vstack([X[:10], [[1.0, 1.0, 6.0], [8.0, 8.0, 5.0]]])
    detector = ALP(5, n_local=7).fit(X)
    scores = detector.score_samples(new)
    # equal distances may come in another order: the sum over them is the same
    np.testing.assert_allclose(scores, plain_alp(X, new, 5, 7), rtol=1e-10)
    assert scores[:10].min() > scores[10:].max()


def test_unit_of_each_feature_does_not_matter():
    rng = np.random.default_rng(3)
    X, new, units = rng.normal(size=(100, 3)), rng.normal(size=(20, 3)), np.array([1e-6, 1, 1e6])
    np.testing.assert_allclose(
        ALP().fit(X).score_samples(new), ALP().fit(X * units).score_samples(new * units), rtol=1e-9
    )


def test_scores_lie_between_0_and_1_in_every_batch(monkeypatch):
    rng = np.random.default_rng(4)
    X, new = rng.normal(size=(300, 2)), 5 * rng.normal(size=(40, 2))
    detector = ALP().fit(X)
    batch = detector.score_samples(new)
    assert ((batch >= 0) & (batch <= 1)).all()
    single = np.concatenate([detector.score_samples(row[None]) for row in new])
    np.testing.assert_allclose(batch, single, rtol=1e-13)
    monkeypatch.setattr("ocfuse.detectors.neighbours.BLOCK", 1)
    np.testing.assert_allclose(batch, detector.score_samples(new), rtol=1e-13)


def test_false_alarm_rate_holds_on_fresh_rows():
    rng = np.random.default_rng(5)
    detector = ALP(false_alarm_rate=0.1).fit(rng.normal(size=(1000, 3)))
    assert 0.07 < (detector.predict(rng.normal(size=(3000, 3))) == -1).mean() < 0.13


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows(n):
    X = np.arange(2.0 * n).reshape(n, 2)
    assert np.isfinite(ALP().fit(X).score_samples([[0.0, 0.0], [99.0, -99.0]])).all()


def test_one_row_of_a_fold_is_enough():
    part, query = Gram(np.array([[0.0], [1.0]])).fold(np.array([0]), np.array([1]))
    assert np.isfinite(ALP().fit_gram(part).score_query(query)).all()


@pytest.mark.parametrize("detector", [ALP(0), ALP(n_local=-3), ALP(n_neighbors="all")])
def test_wrong_parameters_are_refused(detector):
    with pytest.raises(InvalidInputError, match="must be a whole number of at least 1"):
        detector.fit(np.zeros((20, 2)))

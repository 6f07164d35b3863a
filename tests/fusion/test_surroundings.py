"""The local scale: drawn to the global one, and global far from all normals."""

import pickle

import numpy as np

from ocfuse.fusion import local_scale
from ocfuse.fusion.local_scale import LocalScale


def _normals(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = np.column_stack([X[:, 0], rng.normal(size=n)])
    return X, (Z - Z.mean(axis=0)) / Z.std(axis=0)


def test_formula_at_one_point():
    X, Z = _normals(60)
    scale = LocalScale(X, Z, n_neighbors=4, shift_prior=7.0, scale_prior=2.0)
    x = np.array([[0.3, -0.2]])
    r = np.sqrt(((X - x) ** 2).sum(axis=1))
    near = np.argsort(r)[:4]
    K = np.exp(-(r[near] ** 2) / (2 * scale.width**2))
    m = K @ Z[near] / K.sum()
    mean, sd = scale.at(x)
    np.testing.assert_allclose(mean[0], K.sum() * m / (K.sum() + 7.0))
    variance = (K @ (Z[near] - m) ** 2 + 2.0) / (K.sum() + 2.0)
    np.testing.assert_allclose(sd[0] ** 2, variance)


def test_width_reaches_the_neighbours_of_half():
    X, Z = _normals(200)
    scale = LocalScale(X, Z, 5, 60.0, 3.0)
    r = np.sort(np.sqrt(((X[:, None] - X) ** 2).sum(axis=2)), axis=1)[:, 5]
    assert scale.width == np.quantile(r, 0.5)


def test_follows_the_normals_nearby_and_is_global_far_away():
    X, Z = _normals()
    scale = LocalScale(X, Z, 20, 5.0, 3.0)
    mean, sd = scale.at(np.array([[1.0, 0.0], [-1.0, 0.0], [1e3, 0.0]]))
    assert mean[0, 0] > 0.5
    assert mean[1, 0] < -0.5
    assert sd[0, 0] < 0.7
    np.testing.assert_array_equal(mean[2], 0.0)
    np.testing.assert_array_equal(sd[2], 1.0)


def test_few_rows_have_few_neighbours_and_none_is_allowed():
    X, Z = _normals(30)
    assert LocalScale(X, Z, 20, 60.0, 3.0).k == 3
    mean, sd = LocalScale(X, Z, 0, 60.0, 3.0).at(X)
    assert not mean.any()
    assert (sd == 1).all()
    assert LocalScale(X[:1], Z[:1], 20, 60.0, 3.0).k == 0


def test_duplicates_and_batches():
    X, Z = np.zeros((50, 3)), np.random.default_rng(1).normal(size=(50, 2))
    mean, sd = LocalScale(X, Z, 20, 60.0, 3.0).at(np.zeros((1, 3)))
    assert np.isfinite(mean).all()
    assert (sd > 0).all()
    X, Z = _normals()
    scale = LocalScale(X, Z, 20, 60.0, 3.0)
    together = scale.at(X)
    for alone, row in zip(zip(*together, strict=True), X, strict=True):
        np.testing.assert_array_equal(np.vstack(scale.at(row[None])), np.vstack(alone))


def test_the_prior_is_learned_from_context():
    """Means that differ between contexts are trusted; where they do not the prior stays."""
    rng = np.random.default_rng(0)
    X, context = rng.normal(size=(400, 2)), rng.random((400, 1))
    noise = rng.normal(size=(400, 2))
    by_context = (noise + 3 * np.sign(context - 0.5)) / np.sqrt(10)
    rows = np.hstack([X, 3 * context])
    plain = LocalScale(rows, noise, 20, 60.0, 3.0, n_context=1)
    told = LocalScale(rows, by_context, 20, 60.0, 3.0, n_context=1)
    assert plain.shift_prior > 10
    # variance 1 within a context, 9 between them, and some neighbours across the border
    assert 1 / 9 < told.shift_prior < 2 / 9
    assert LocalScale(rows, by_context, 20, 60.0, 3.0).shift_prior == 60.0


def test_many_normals_are_searched_with_the_same_answer(monkeypatch):
    X, Z = _normals(2600)
    points = _normals(50, seed=3)[0]
    searched = LocalScale(X, Z, 20, 60.0, 3.0)
    monkeypatch.setattr(local_scale, "MOST_COMPARED", 5000)
    compared = LocalScale(X, Z, 20, 60.0, 3.0)
    # the width is told by fewer rows
    np.testing.assert_allclose(searched.width, compared.width, rtol=0.1)
    searched.width = compared.width
    for found, expected in zip(searched.at(points), compared.at(points), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(
        np.vstack(searched.at(points[7:8])), np.vstack([part[7] for part in searched.at(points)])
    )


def test_the_search_is_made_again_and_not_saved():
    X, Z = _normals(2100)
    scale = LocalScale(X, Z, 20, 60.0, 3.0)
    again = pickle.loads(pickle.dumps(scale))
    assert not [name for name in vars(again) if name.startswith("_")]
    np.testing.assert_array_equal(again.at(X[:9]), scale.at(X[:9]))

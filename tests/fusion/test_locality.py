"""Variability measures and the locality function."""

import numpy as np
import pytest
from sklearn.base import clone

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.locality import (
    LOCALITY_ROWS,
    VARIABILITIES,
    Locality,
    NearNormals,
    density_ratio,
    local_dimension,
    score_variance,
    trace_ratio,
)
from ocfuse.nearest.exact import neighbours, own_neighbours, representative_rows

every_measure = pytest.mark.parametrize("name", VARIABILITIES)


def surroundings(distances, index=None, X=None, Z=None, radii=None):
    distances = np.array(distances, dtype=float)
    index = np.zeros(distances.shape, dtype=int) if index is None else np.array(index)
    blank = np.zeros((1, 1))
    return NearNormals(
        distances,
        index,
        blank if X is None else X,
        blank if Z is None else Z,
        np.ones(1) if radii is None else np.array(radii),
    )


def uneven(seed=0, n=200):
    """Scores that vary on the right only."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    Z = 0.5 + rng.normal(size=(n, 3)) * np.where(X[:, :1] > 0, 0.5, 0.01)
    return X, Z


def test_score_variance_by_hand():
    Z = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]])
    near = surroundings([[1, 2], [1, 2]], [[0, 1], [1, 2]], Z=Z)
    np.testing.assert_allclose(score_variance(near), [0.5, (1 + 2.25) / 2])


def test_trace_ratio_by_hand():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0]])
    near = surroundings([[1, 2]], [[0, 1]], X=X)
    np.testing.assert_allclose(trace_ratio(near), 1.0 / X.var(axis=0).sum())
    assert trace_ratio(surroundings([[0, 0]], [[0, 0]], X=np.ones((2, 2)))) == 0.0


def test_density_ratio_by_hand():
    near = surroundings([[1, 3], [0, 0], [1, 1]], [[0, 1], [2, 2], [2, 2]], radii=[1.0, 3.0, 0.0])
    np.testing.assert_allclose(density_ratio(near), [1.0, 1.0, np.finfo(float).max])


def test_local_dimension_by_hand():
    near = surroundings([[1, 2, 4], [0, 2, 4], [0, 0, 0], [3, 3, 3]])
    expected = [3 / (np.log(4) + np.log(2)), 2 / np.log(2), 0.0, 0.0]
    np.testing.assert_allclose(local_dimension(near), expected)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_local_dimension_finds_the_dimension(dimension):
    rng = np.random.default_rng(dimension)
    X = np.zeros((3000, 8))
    X[:, :dimension] = rng.uniform(size=(3000, dimension))
    locality = Locality(variability="lid", n_neighbors=60).fit(X, X[:, :1])
    assert np.median(locality.levels_) == pytest.approx(dimension, rel=0.15)


def test_density_ratio_is_one_where_the_density_is_even():
    X = np.arange(100.0).reshape(-1, 1)
    locality = Locality(variability="density-ratio", n_neighbors=4).fit(X, X)
    assert np.median(locality.levels_) == 1.0
    assert locality.measure([[500.0]]) > 100


@every_measure
def test_norm_is_p_at_the_median_and_within_its_limits(name):
    X, Z = uneven()
    locality = Locality(variability=name).fit(X, Z)
    fresh = uneven(seed=1, n=400)[0]
    norms = locality.norms(fresh, 3.0)
    assert 0.3 < np.median(locality.rank(fresh)) < 0.7
    np.testing.assert_allclose(norms, 1.0 + 2.0 * 4.0 ** (1.0 - 2.0 * locality.rank(fresh)))
    assert 1.0 + 2.0 / 4.0 <= norms.min() < norms.max() <= 1.0 + 2.0 * 4.0


@every_measure
def test_more_variability_never_gives_a_larger_norm(name):
    X, Z = uneven()
    locality = Locality(variability=name).fit(X, Z)
    order = locality.measure(X).argsort(kind="stable")
    assert (np.diff(locality.norms(X, 2.0)[order]) <= 1e-12).all()
    turned = clone(locality).set_params(kappa=0.25).fit(X, Z)
    assert (np.diff(turned.norms(X, 2.0)[order]) >= -1e-12).all()


def test_norm_is_smaller_where_the_scores_vary():
    X, Z = uneven()
    left, right = Locality().fit(X, Z).norms([[-0.7, 0.0], [0.7, 0.0]], 2.0)
    assert left > 2.0 > right


@pytest.mark.parametrize("p", [1.0, 1.0001, 2.0, 1e6, np.inf])
def test_kappa_one_is_p_to_the_bit(p):
    X, Z = uneven()
    assert (Locality(kappa=1.0).fit(X, Z).norms(X, p) == p).all()
    assert (Locality(kappa=1).fit(X, Z).norms(X, p) == p).all()


@pytest.mark.parametrize(("p", "limit"), [(1.0, (1 + 1 / 31)), (1e9, 100), (np.inf, 100)])
def test_norms_are_clipped(p, limit):
    X, Z = uneven()
    np.testing.assert_array_equal(Locality().fit(X, Z).norms(X, p), limit)


@every_measure
def test_even_data_have_the_norm_everywhere(name):
    X, Z = np.zeros((20, 2)), np.full((20, 3), 0.4)
    locality = Locality(variability=name).fit(X, Z)
    np.testing.assert_array_equal(locality.norms(X, 2.0), 2.0)


@every_measure
@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows(name, n):
    X, Z = uneven(n=n)
    locality = Locality(variability=name).fit(X, Z)
    assert np.isfinite(locality.norms(X, 2.0)).all()
    if n == 1:
        assert locality.norms(X, 2.0) == 2.0


@every_measure
def test_a_point_does_not_depend_on_the_others(name):
    X, Z = uneven()
    locality = Locality(variability=name).fit(X, Z)
    one_by_one = np.concatenate([locality.measure(x[np.newaxis]) for x in X])
    np.testing.assert_array_equal(one_by_one, locality.measure(X))


def test_default_number_of_neighbours():
    X, Z = uneven(n=200)
    assert Locality().fit(X, Z).k_ == np.ceil(2.5 * np.log(200))
    assert Locality().fit(X[:7], Z[:7]).k_ == 5
    assert Locality().fit(X[:4], Z[:4]).k_ == 3
    assert Locality(n_neighbors=9).fit(X, Z).k_ == 9


def test_own_measure():
    X, Z = uneven()

    def spread(near):
        return near.distances[:, -1]

    locality = Locality(variability=spread, n_neighbors=3).fit(X, Z)
    np.testing.assert_allclose(locality.levels_, np.sort(own_neighbours(X, 3)[0][:, -1]))


def test_many_rows_are_represented_by_some():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(LOCALITY_ROWS + 1000, 2))
    locality = Locality().fit(X, X)
    assert len(locality.X_) == LOCALITY_ROWS
    rows = representative_rows(len(X), 50)
    assert len(np.unique(rows)) == 50
    np.testing.assert_array_equal(rows, representative_rows(len(X), 50))


@pytest.mark.parametrize("m", [2, 40])
def test_neighbours_exclude_oneself_but_not_ones_double(m):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, m))
    X[1] = X[0]
    distances, index = own_neighbours(X, 4)
    assert not (index == np.arange(60)[:, np.newaxis]).any()
    assert distances[0, 0] == 0.0
    assert index[0, 0] == 1
    assert (np.diff(distances, axis=1) >= 0).all()
    others = np.delete(np.arange(60), 7)
    np.testing.assert_allclose(distances[7], neighbours(X[7:8], X[others], 4)[0][0])


@pytest.mark.parametrize(
    ("locality", "message"),
    [
        (Locality(kappa=0.0), "kappa must be a number in"),
        (Locality(kappa=-1), "kappa must be a number in"),
        (Locality(kappa=np.inf), "kappa must be"),
        (Locality(kappa="4"), "kappa must be a number in"),
        (Locality(variability="entropy"), "'score-variance', 'density-ratio', 'lid'"),
        (Locality(n_neighbors=0), "n_neighbors must be a positive integer"),
    ],
)
def test_wrong_parameters_are_refused(locality, message):
    X, Z = uneven()
    with pytest.raises(InvalidInputError, match=message):
        locality.fit(X, Z)


@pytest.mark.parametrize("levels", [3, 10**6])
def test_neighbours_are_those_of_a_stable_sort(levels):
    rng = np.random.default_rng(0)
    X, points = rng.integers(0, levels, (200, 2)) * 1.0, rng.integers(0, levels, (50, 2)) * 1.0
    distances, index = neighbours(points, X, 7)
    D = np.sqrt(((points[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_array_equal(index, D.argsort(axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :7])

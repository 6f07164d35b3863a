"""Distances, kernels, neighbours: right, shared, and independent of who asked before."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone

from ocfuse.detectors import gram as module
from ocfuse.detectors.base import interleaved_folds, out_of_fold_scores
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram, Reference
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.views import Compression, Whitening
from ocfuse.nearest import index as search

WIDTHS = (1.0, 0.5, 0.25)
VIEWS = (Whitening, Compression)


def rows(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def nine_members():
    members = [kind(width=w) for w in WIDTHS for kind in (SVDD, OneClassGP, KPCA)]
    return sorted(members, key=lambda member: member.fit_rank)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 30),
    m=st.integers(1, 5),
    offset=st.sampled_from([0.0, 1e5]),
)
@settings(max_examples=50, deadline=None)
def test_scale_is_the_mean_squared_distance_of_pairs(seed, n, m, offset):
    X = rows(n, m, seed) + offset
    assert Reference(X).scale == pytest.approx(np.mean(pdist(X, "sqeuclidean")), rel=1e-9)


@pytest.mark.parametrize(
    "X", [np.full((7, 3), 0.1), np.array([[2.0, 3.0]]), np.full((2, 1), 1e-300)]
)
def test_rows_without_spread_have_scale_one(X):
    assert Reference(X).scale == 1.0


def test_squared_distances():
    X, Q = rows(40, 6) + 1e4, rows(9, 6, 1) + 1e4
    gram = Gram(X)
    np.testing.assert_allclose(gram.squared_distances, cdist(X, X, "sqeuclidean"), atol=1e-10)
    np.testing.assert_allclose(
        gram.query(Q).squared_distances, cdist(Q, X, "sqeuclidean"), atol=1e-10
    )
    np.testing.assert_array_equal(gram.squared_distances, gram.squared_distances.T)
    assert not gram.squared_distances.diagonal().any()


@pytest.mark.parametrize("width", [1e-3, 0.125, 0.3, 0.7, 1.0, 1.5, 2.0, 7.3, 100.0])
def test_kernel_is_the_exponential_to_rounding(width):
    query = Gram(rows(50, 4)).query(rows(20, 4, 1))
    expected = np.exp(query.squared_distances * (-1.0 / (width * query.reference.scale)))
    np.testing.assert_allclose(query.kernel(width), expected, rtol=1e-15, atol=1e-300)


@pytest.mark.parametrize("order", list(permutations(WIDTHS)))
def test_widths_asked_before_change_no_bit_and_cost_no_exponential(order):
    X = rows(30, 3)
    gram = Gram(X)
    found = {width: gram.kernel(width) for width in order}
    assert gram.counts["exp"] == gram.counts["distances"] == 1
    for width in WIDTHS:
        np.testing.assert_array_equal(found[width], Gram(X).kernel(width))


def test_rows_far_beyond_double_range_stay_finite():
    gram = Gram(rows(10, 3) * 1e200)
    query = gram.query(np.full((1, 3), -1e308))
    assert np.isfinite(gram.kernel(1.0)).all()
    assert np.isfinite(query.kernel(1.0)).all()
    assert np.isfinite(query.neighbours(3)[0]).all()


def test_neighbours_are_exact_sorted_and_sliced():
    X, Q = rows(60, 12), rows(8, 12, 1)
    query = Gram(X).query(Q)
    distances, index = query.neighbours(10)
    exact = cdist(Q, X)
    np.testing.assert_array_equal(index, np.argsort(exact, axis=1)[:, :10])
    np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :10], rtol=1e-13)
    fewer = query.neighbours(4)
    np.testing.assert_array_equal(fewer[1], index[:, :4])
    assert query.counts["distances"] == 1
    assert query.neighbours(1000)[0].shape == (8, 60)


def test_neighbours_of_training_rows_leave_the_row_itself_out():
    X = np.repeat(rows(20, 3), 2, axis=0)
    distances, index = Gram(X).neighbours(100)
    assert index.shape == (40, 39)
    np.testing.assert_array_equal(index[:, 0], np.arange(40) ^ 1)
    np.testing.assert_array_equal(distances[:, 0], 0.0)
    assert Gram(X[:1]).neighbours(3)[0].shape == (1, 0)


@pytest.mark.parametrize("levels", [None, 4])
def test_tree_blocks_and_matrix_give_the_same_neighbours(monkeypatch, levels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) if levels is None else rng.integers(levels, size=(300, 3))
    found = []
    monkeypatch.setattr(module, "kernel", None)
    for tree_rows, kept, most in (
        (2, 2**18, 2**24),
        (10**9, 2**18, 2**24),
        (10**9, 4000, 2**24),
        (10**9, 4000, 4000),
    ):
        monkeypatch.setattr(Reference, "tree_rows", tree_rows)
        monkeypatch.setattr(module, "MOST_KEPT", kept)
        monkeypatch.setattr(module, "MOST_DISTANCES", most)
        gram = Gram(X)
        found.append((*gram.neighbours(7), *gram.query(X[:50] + 0.1).neighbours(7)))
        assert (gram.reference.tree is None) == (tree_rows > 2)
        assert gram.counts["distances"] == (tree_rows > 2 and kept > 4000)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_many_rows_are_searched_in_cells_that_are_kept(monkeypatch):
    monkeypatch.setattr(search, "MOST_ROWS", 400)
    monkeypatch.setattr(module, "MOST_DISTANCES", 1)
    X = np.random.default_rng(0).normal(size=(500, 3))
    gram = Gram(X)
    found = gram.query(X + 0.1).neighbours(5)
    for rows in (X[:400], np.vstack([X[:400], X[:50]])):
        few = Gram(rows)
        few.neighbours(5)
        assert few.reference.cell_centres is None
    assert gram.reference.cell_centres.shape[1] == 3
    loaded = pickle.loads(pickle.dumps(gram.reference))
    monkeypatch.setattr(module, "centres_of_many", None)
    for one, two in zip(found, loaded.query(X + 0.1).neighbours(5), strict=True):
        np.testing.assert_array_equal(one, two)


def test_neighbours_do_not_depend_on_the_batch():
    X, Q = rows(200, 20), rows(30, 20, 1)
    reference = Reference(X)
    together = reference.query(Q).neighbours(5)
    for i in range(len(Q)):
        alone = reference.query(Q[i : i + 1]).neighbours(5)
        np.testing.assert_array_equal(alone[0][0], together[0][i])
        np.testing.assert_array_equal(alone[1][0], together[1][i])


def test_fold_is_what_the_rows_alone_would_give_at_the_same_scale():
    X = rows(50, 4)
    gram = Gram(X)
    train, test = interleaved_folds(50)[1]
    part, query = gram.fold(train, test)
    alone = Reference(X[train], gram.reference.scale)
    assert part.reference.scale == gram.reference.scale
    for width in WIDTHS:
        np.testing.assert_allclose(part.kernel(width), alone.query(X[train]).kernel(width), 1e-13)
        np.testing.assert_allclose(query.kernel(width), alone.query(X[test]).kernel(width), 1e-13)
    np.testing.assert_array_equal(part.neighbours(5)[1], Gram(X[train]).neighbours(5)[1])
    np.testing.assert_array_equal(query.neighbours(5)[1], alone.query(X[test]).neighbours(5)[1])
    assert gram.counts["distances"] == gram.counts["exp"] == 1


@pytest.mark.parametrize("by_fold", [False, True])
def test_nine_members_compute_distances_and_exponential_once(by_fold):
    X, Q = rows(80, 5), rows(20, 5, 1)
    gram = Gram(X)
    members = [member.fit_gram(gram) for member in nine_members()]
    for member in members:
        out_of_fold_scores(member, gram, interleaved_folds(80), by_fold=by_fold)
    # One factorisation per width serves KPCA and GP; every fold has its own.
    once = {"distances": 1, "exp": 1, "eigh": 3}
    assert dict(gram.counts) == ({**once, "eigh": 15, "cholesky": 12} if by_fold else once)
    query = gram.query(Q)
    for member in members:
        member.score_query(query)
        assert member.reference_ is gram.reference
    assert dict(query.counts) == {"distances": 1, "exp": 1}


def test_members_together_score_as_apart():
    X, Q = rows(80, 5), rows(20, 5, 1)
    gram = Gram(X)
    query = gram.query(Q)
    for member in nine_members():
        together = member.fit_gram(gram).score_query(query)
        apart = clone(member).fit(X).score_samples(Q)
        np.testing.assert_allclose(together, apart, atol=1e-11)


def test_reference_travels_without_what_it_can_build_again():
    reference = Reference(rows(1200, 3))
    query = reference.query(rows(5, 3, 1))
    scores, neighbours = query.kernel(1.0), query.neighbours(4)
    copy = pickle.loads(pickle.dumps(reference))
    assert set(vars(copy)) == {"X", "centre", "scale", "views"}
    again = copy.query(rows(5, 3, 1))
    np.testing.assert_array_equal(again.kernel(1.0), scores)
    np.testing.assert_array_equal(again.neighbours(4)[0], neighbours[0])


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_made_once_and_travel_with_the_rows(view):
    gram = Gram(rows(40, 3))
    query = gram.query(rows(5, 3, 1))
    seen = query.view(view)
    assert gram.view(view) is gram.view(view)
    assert query.view(view) is seen
    assert gram.view(view).reference is seen.reference is gram.reference.view(view)
    copy = pickle.loads(pickle.dumps(gram.reference))
    again = copy.query(query.X).view(view)
    assert again.reference is copy.view(view)
    np.testing.assert_array_equal(again.X, seen.X)
    np.testing.assert_array_equal(again.kernel(1.0), seen.kernel(1.0))


def test_views_are_apart_and_can_follow_each_other():
    gram = Gram(rows(40, 3))
    white, compressed = (gram.view(view) for view in VIEWS)
    assert not np.array_equal(white.X, compressed.X)
    both = compressed.view(Whitening)
    assert both is gram.view(Compression).view(Whitening)
    assert both is not white
    np.testing.assert_array_equal(both.X, Gram(compressed.X).view(Whitening).X)


@pytest.mark.parametrize("view", VIEWS)
def test_view_of_a_fold_has_not_seen_the_rows_tested(view):
    X = rows(40, 3)
    train, test = interleaved_folds(40)[0]
    part, query = Gram(X).fold(train, test)
    alone = Gram(X[train])
    np.testing.assert_array_equal(part.view(view).X, alone.view(view).X)
    np.testing.assert_array_equal(query.view(view).X, alone.query(X[test]).view(view).X)
    np.testing.assert_array_equal(part.view(view).kernel(0.5), alone.view(view).kernel(0.5))


@pytest.fixture(params=[True, False])
def is_compiled(request, monkeypatch):
    if request.param and module.kernel is None:
        pytest.skip("the kernel is not built")
    if not request.param:
        monkeypatch.setattr(module, "kernel", None)


@pytest.mark.usefixtures("is_compiled")
def test_a_gaussian_kernel_compiled_and_by_numpy():
    D = np.random.default_rng(0).exponential(size=(5, 40))
    np.testing.assert_allclose(module.decayed(D, 3.0), np.exp(-3.0 * D), rtol=4e-15)


@pytest.mark.usefixtures("is_compiled")
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_become_squared_distances(order):
    X = np.random.default_rng(0).normal(size=(9, 3))
    norms = (X**2).sum(axis=1)
    D = module.complete(np.array(-2.0 * X @ X.T, order=order), norms, norms)
    expected = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(D, expected, atol=1e-14)
    assert (D >= 0.0).all()

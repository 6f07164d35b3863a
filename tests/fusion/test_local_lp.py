"""Local lp fusion: weights that follow the place, their kernel, anchors and queries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, OcfuseWarning
from ocfuse.fusion import LocalLpFusion, LpFusion, SumRule
from ocfuse.fusion.local_lp import (
    Neighbourhood,
    blend,
    blend_width,
    default_count,
    find_anchors,
    merge_duplicates,
)
from ocfuse.fusion.locality import Locality
from ocfuse.solvers.solve import solve
from tests.fusion.cases import scores

OFF = Locality(kappa=1.0)


def hinge(w, Z, y, c):
    return (c * np.maximum(0, 1 - y * (Z @ w))).sum()


def sides(seed=0, n=400, share=0.2):
    """Each member sees the anomalies of one half of the space, and is noise in the other."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = np.where(rng.random(n) < share, -1.0, 1.0)
    left = X[:, 0] < 0
    Z = rng.uniform(-0.7, 1.0, size=(n, 2))
    seen = np.where(left, 0, 1)
    Z[np.arange(n), seen] = rng.uniform(0.3, 1.0, n) - (y < 0)
    return Z, y, X


@pytest.mark.parametrize("p", [8 / 7, 2.0, 10.0])
@pytest.mark.parametrize("kernel", ["gaussian", "knn"])
@pytest.mark.parametrize("anchors", [1, 5, None])
def test_eta_one_and_kappa_one_is_global_at_every_anchor(p, kernel, anchors):
    Z, y, X = scores()
    c = np.where(y > 0, 1.0, 4.0)
    c /= c.mean()
    world = LpFusion(p, tol=1e-8).fit(Z, y, sample_weight=c)
    model = LocalLpFusion(p, eta=1.0, kernel=kernel, anchors=anchors, locality=OFF, tol=1e-8)
    model.fit(Z, y, X, c)
    best = hinge(world.w_, Z, y, c)
    assert (model.p_ == p).all()
    for w in model.W_:
        assert hinge(w, Z, y, c) == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(model.W_ - world.w_, 0, atol=2e-4)
    np.testing.assert_allclose(model.fuse(Z, X), world.fuse(Z), atol=2e-4)


def test_one_anchor_is_one_weight_vector():
    Z, y, X = scores()
    model = LocalLpFusion(anchors=1, eta=1.0, tol=1e-8).fit(Z, y, X)
    world = LpFusion(p=float(model.p_[0]), tol=1e-8).fit(Z, y)
    np.testing.assert_allclose(model.weights(X), world.weights(X), atol=2e-4)


@given(
    st.floats(0.0, 1.0),
    st.integers(1, 8),
    st.sampled_from(["gaussian", "knn"]),
    st.integers(0, 1000),
)
@settings(deadline=None, max_examples=30)
def test_every_class_keeps_its_weight_and_rows_their_floor(eta, anchors, kernel, seed):
    Z, y, X = scores(seed)
    c = np.random.default_rng(seed).uniform(0.1, 2.0, len(y))
    model = LocalLpFusion(eta=eta, anchors=anchors, kernel=kernel).fit(Z, y, X)
    C = model._local_weights(Neighbourhood(kernel), y, X, c)
    assert (eta * c * (1 - 1e-12) <= C).all()
    for sign in (-1, 1):
        np.testing.assert_allclose(C[:, y == sign].sum(axis=1), c[y == sign].sum())


def test_anchor_problem_is_the_stated_one():
    Z, y, X = scores()
    model = LocalLpFusion(p=1.5, eta=0.4, anchors=4).fit(Z, y, X)
    hood = Neighbourhood()
    for a, w, p in zip(model.anchors_, model.W_, model.p_, strict=True):
        c = np.empty(len(y))
        for sign in (-1, 1):
            rows = y == sign
            r = np.linalg.norm(X[rows] - a, axis=1)
            r_k = np.sort(r)[hood.count(rows.sum()) - 1]
            K = np.exp(-2 * (r / r_k) ** 2)
            c[rows] = 0.6 * rows.sum() * K / K.sum() + 0.4
        best = solve(Z, y, p, c, True, 1e-8).primal
        assert hinge(w, Z, y, c) <= best * (1 + 2e-4)
        assert np.linalg.norm(w, p) <= 1 + 1e-9
    assert (model.gap_ <= 1e-4).all()
    assert model.status_ == ["solved"] * 4


@given(st.integers(0, 1000), st.floats(1.05, 20), st.booleans())
@settings(deadline=None, max_examples=25)
def test_blended_weights_stay_in_the_largest_ball(seed, p, nonneg):
    Z, y, X = scores(seed)
    model = LocalLpFusion(p, anchors=6, nonneg=nonneg).fit(Z, y, X)
    points = np.random.default_rng(seed).normal(size=(50, 3)) * 3
    W = blend(points, model.anchors_, model.width_) @ model.W_
    assert np.linalg.norm(W, model.p_.max(), axis=1).max() <= 1 + 1e-9
    norms = model.local_p(points)
    assert model.p_.min() - 1e-9 <= norms.min() <= norms.max() <= model.p_.max() + 1e-9


def test_p_near_one_selects_in_every_region():
    Z, y, X = sides()
    model = LocalLpFusion(p=1 + 1e-3, eta=0.05, anchors=8, locality=OFF).fit(Z, y, X)
    W = model.W_ / model.W_.sum(axis=1, keepdims=True)
    assert (W.max(axis=1) > 0.99).all()
    assert set(W.argmax(axis=1)) == {0, 1}


def test_p_to_infinity_tends_to_the_sum_rule():
    Z, _, X = scores(d=6, n_anomalies=0)
    Z *= 0.15
    model = LocalLpFusion(np.inf, locality=OFF).fit(Z, X=X)
    np.testing.assert_allclose(model.fuse(Z, X), SumRule().fit(Z).fuse(Z), rtol=1e-9)
    assert (model.local_p(X) == np.inf).all()


def test_locality_pays_where_members_are_good_in_places():
    Z, y, X = sides(0)
    Q, t, XQ = sides(1)
    local = LocalLpFusion(p=8 / 7, eta=0.1).fit(Z, y, X)
    world = LpFusion(p=8 / 7).fit(Z, y)
    auc = roc_auc_score(t, local.fuse(Q, XQ))
    assert auc > 0.95
    assert auc > roc_auc_score(t, world.fuse(Q)) + 0.02
    left, right = local.weights([[-0.8, 0.0], [0.8, 0.0]])
    assert left[0] > 0.8
    assert right[1] > 0.8


def test_random_labels_cannot_be_learned_by_heart():
    rng = np.random.default_rng(0)
    Z, X = rng.uniform(size=(500, 4)), rng.normal(size=(500, 3))
    y = rng.choice([-1.0, 1.0], 500)
    # The paper's problem per sample carries the label in the sign of its weights.
    own = np.array(
        [(z @ solve(z[None], [t], 2.0).w) * t for z, t in zip(Z[:40], y[:40], strict=True)]
    )
    assert (own > 0).all()
    fused = LocalLpFusion(nonneg=False, locality=OFF).fit(Z, y, X).fuse(Z, X)
    assert (fused * y > 0).mean() < 0.65


def test_z_scores_of_normals_teach_nothing_anywhere():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(300, 5)), rng.normal(size=(300, 2))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    with pytest.warns(OcfuseWarning, match="16 of 16|15 of 15"):
        model = LocalLpFusion(eta=1.0, locality=OFF).fit(Z, X=X)
    np.testing.assert_allclose(model.weights(X), 0.2)


def test_default_anchors():
    for n, expected in [(10, 1), (100, 5), (500, 16)]:
        Z, _, X = scores(n=n, n_anomalies=0)
        assert len(LocalLpFusion().fit(Z, X=X).anchors_) == expected


def test_order_of_rows_and_scale_of_features_do_not_matter():
    Z, y, X = scores()
    order = np.random.default_rng(0).permutation(len(Z))
    fused = LocalLpFusion(tol=1e-9).fit(Z, y, X).fuse(Z, X)
    shuffled = LocalLpFusion(tol=1e-9).fit(Z[order], y[order], X[order]).fuse(Z, X)
    np.testing.assert_allclose(shuffled, fused, atol=1e-4)
    scaled = LocalLpFusion(tol=1e-9).fit(Z, y, 1024 * X).fuse(Z, 1024 * X)
    np.testing.assert_allclose(scaled, fused, atol=1e-4)


def test_order_of_members_does_not_matter():
    Z, y, X = scores()
    turned = LocalLpFusion(tol=1e-9).fit(Z[:, ::-1], y, X).weights(X)
    np.testing.assert_allclose(
        turned[:, ::-1], LocalLpFusion(tol=1e-9).fit(Z, y, X).weights(X), atol=1e-4
    )


def test_one_dimension_and_one_member():
    Z, y, X = scores(d=1, n_features=1)
    model = LocalLpFusion().fit(Z, y, X)
    np.testing.assert_allclose(model.fuse(Z, X), Z[:, 0])


@pytest.mark.parametrize("solver", ["interior-point", "frank-wolfe"])
def test_solvers_agree(solver):
    Z, y, X = scores()
    ours = LocalLpFusion(p=1.3, solver=solver).fit(Z, y, X)
    other = LocalLpFusion(p=1.3).fit(Z, y, X)
    np.testing.assert_allclose(ours.fuse(Z, X), other.fuse(Z, X), atol=0.02)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LocalLpFusion(p=0.9), InvalidInputError, "p must be a number in"),
        (LocalLpFusion(eta=1.1), InvalidInputError, "eta must be a number in"),
        (LocalLpFusion(anchors=0), InvalidInputError, "anchors must be a positive integer"),
        (LocalLpFusion(anchors="all"), InvalidInputError, '"query"'),
        (LocalLpFusion(kernel="box"), InvalidInputError, "kernel must be one of"),
        (LocalLpFusion(kernel=3), InvalidTypeError, "Neighbourhood"),
        (LocalLpFusion(tol=-1), InvalidInputError, "tol must be"),
        (LocalLpFusion(solver="cvx"), InvalidInputError, "solver"),
        (LocalLpFusion(locality=Locality(kappa=0)), InvalidInputError, "kappa"),
    ],
)
def test_wrong_parameters_are_refused(model, error, message):
    Z, y, X = scores()
    with pytest.raises(error, match=message):
        model.fit(Z, y, X)


def test_nested_parameters_can_be_set():
    model = LocalLpFusion(locality=Locality(), kernel=Neighbourhood())
    model.set_params(locality__kappa=1.0, kernel__n_neighbors=7)
    assert model.locality.kappa == 1.0
    assert model.kernel.n_neighbors == 7


R = np.array([[1.0, 2.0, 3.0, 4.0]])


def test_gaussian_by_hand():
    K = np.exp(-2.0 * (R / 2.0) ** 2)
    b = np.array([1.0, 1.0, 2.0, 1.0])
    expected = 5.0 * b * K / (b * K).sum()
    np.testing.assert_allclose(Neighbourhood().weigh(R, b, 2, 5.0), expected)


def test_knn_by_hand():
    hood = Neighbourhood("knn")
    b = np.array([1.0, 3.0, 9.0, 9.0])
    np.testing.assert_allclose(hood.weigh(R, b, 2, 4.0), [[1.0, 3.0, 0.0, 0.0]])
    tied = np.array([[1.0, 2.0, 2.0, 4.0]])
    np.testing.assert_allclose(hood.weigh(tied, np.ones(4), 2, 3.0), [[1.0, 1.0, 1.0, 0.0]])


@pytest.mark.parametrize("kernel", ["gaussian", "knn"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_total_is_kept_and_nearer_counts_more(kernel, k):
    rng = np.random.default_rng(0)
    r = np.sort(rng.exponential(size=(5, 6)), axis=1)
    c = Neighbourhood(kernel).weigh(r, np.ones(6), k, 2.5)
    np.testing.assert_allclose(c.sum(axis=1), 2.5)
    assert (np.diff(c, axis=1) <= 1e-15).all()


@pytest.mark.parametrize("kernel", ["gaussian", "knn"])
def test_duplicates_and_far_anchors_stay_finite(kernel):
    hood = Neighbourhood(kernel)
    for r in ([[0.0, 0.0, 0.0]], [[0.0, 0.0, 5.0]], [[1e9, 1e9 + 1, 1e9 + 2]], [[1e-200, 1, 2]]):
        c = hood.weigh(np.array(r, dtype=float), np.ones(3), 2, 1.0)
        assert np.isfinite(c).all()
        assert c.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(hood.weigh(np.zeros((1, 3)), np.ones(3), 2, 3.0), 1.0)


def test_far_from_all_rows_the_gaussian_becomes_global():
    r = 1e6 + np.array([[0.0, 1.0, 2.0]])
    np.testing.assert_allclose(Neighbourhood().weigh(r, np.ones(3), 1, 3.0), 1.0, rtol=1e-4)


def test_scale_does_not_matter():
    rng = np.random.default_rng(0)
    r = rng.exponential(size=(4, 9))
    for hood in (Neighbourhood(), Neighbourhood("knn")):
        first = hood.weigh(r, np.ones(9), 3, 1.0)
        np.testing.assert_allclose(hood.weigh(1e5 * r, np.ones(9), 3, 1.0), first)


def test_counts():
    assert [Neighbourhood().count(n) for n in (3, 50, 100, 400)] == [3, 10, 10, 20]
    assert Neighbourhood(n_neighbors=7).count(100) == 7
    assert Neighbourhood(n_neighbors=7).count(5) == 5
    assert Neighbourhood("knn", 7).support(100) == 7
    assert Neighbourhood("gaussian", 7).support(100) == 28


@pytest.mark.parametrize(
    ("hood", "message"),
    [
        (Neighbourhood("cosine"), "kernel must be one of 'gaussian', 'knn'"),
        (Neighbourhood(n_neighbors=0), "n_neighbors must be a positive integer"),
    ],
)
def test_wrong_neighbourhoods_are_refused(hood, message):
    with pytest.raises(InvalidInputError, match=message):
        hood.check()


def test_default_count():
    assert [default_count(n) for n in (1, 19, 40, 319, 320, 10**6)] == [1, 1, 2, 15, 16, 16]


def test_one_anchor_is_the_weighted_mean():
    X = np.array([[0.0, 0.0], [4.0, 8.0]])
    np.testing.assert_allclose(find_anchors(X, np.array([3.0, 1.0]), 1), [[1.0, 2.0]])


def test_anchors_are_the_centres_of_clusters():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    X = (centres[:, np.newaxis] + rng.normal(size=(3, 50, 2))).reshape(-1, 2)
    found = find_anchors(X, np.ones(len(X)), 3)
    np.testing.assert_allclose(cdist(centres, found).min(axis=1), 0.0, atol=0.6)


def test_no_more_anchors_than_distinct_rows():
    X = np.repeat([[1.0, 2.0], [3.0, 4.0], [-0.0, 0.0], [0.0, -0.0]], 10, axis=0)
    assert len(find_anchors(X, np.ones(len(X)), 8)) == 3


def test_anchors_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    order = rng.permutation(300)
    c = rng.uniform(0.5, 1.0, 300)
    np.testing.assert_array_equal(find_anchors(X, c, 7), find_anchors(X[order], c[order], 7))


def test_duplicates_are_merged_with_their_weight():
    X = np.array([[2.0], [1.0], [2.0], [1.0], [3.0]])
    rows, c = merge_duplicates(X, np.arange(1.0, 6.0))
    found = dict(zip(rows[:, 0], c, strict=True))
    assert found == {1.0: 6.0, 2.0: 4.0, 3.0: 5.0}


def test_many_rows_are_sampled():
    X = np.random.default_rng(0).normal(size=(9000, 3))
    assert find_anchors(X, np.ones(9000), 16).shape == (16, 3)


def test_blend_is_the_softmax_of_distances():
    rng = np.random.default_rng(2)
    X, A = rng.normal(size=(30, 3)) + 5, rng.normal(size=(6, 3)) + 5
    expected = softmax(-cdist(X, A, "sqeuclidean") / 0.7, axis=1)
    np.testing.assert_allclose(blend(X, A, 0.7), expected, rtol=1e-10)


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9, 1e100])
def test_far_from_all_the_nearest_anchor_counts(distance):
    A = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    b = blend(distance * np.array([[1.0, 0.2], [-1.0, -1.0], [0.1, 1.0]]), A, blend_width(A))
    np.testing.assert_allclose(b, [[0, 1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-12)


def test_width_follows_the_spacing():
    A = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert blend_width(A) == pytest.approx(0.5)
    assert blend_width(10 * A) == pytest.approx(50.0)
    assert blend_width(A[:1]) == 1.0
    # At an anchor the next one has e^-2 of its weight.
    b = blend(A[:1], A[:2], 0.5)
    assert b[0, 1] / b[0, 0] == pytest.approx(np.exp(-2))


def test_a_row_has_the_same_bits_alone_and_in_a_batch():
    Z, y, X = scores(n=400)
    model = LocalLpFusion(p=1.5, anchors="query").fit(Z, y, X)
    alone = np.concatenate([model.fuse(Z[i : i + 1], X[i : i + 1]) for i in range(40)])
    np.testing.assert_array_equal(alone, model.fuse(Z, X)[:40])


def test_eta_one_and_kappa_one_is_global():
    Z, y, X = scores()
    model = LocalLpFusion(1.5, eta=1.0, anchors="query", locality=OFF, tol=1e-8).fit(Z, y, X)
    world = LpFusion(1.5, tol=1e-8).fit(Z, y)
    np.testing.assert_allclose(model.fuse(Z, X), world.fuse(Z), atol=2e-4)


@pytest.mark.parametrize("kernel", ["gaussian", "knn"])
def test_an_anchor_and_a_query_at_its_place_agree(kernel):
    Z, y, X = scores()
    # So many neighbours that no row is left out of the local part.
    hood = Neighbourhood(kernel, 30 if kernel == "gaussian" else 12)
    anchored = LocalLpFusion(1.5, kernel=hood, anchors=1, tol=1e-8).fit(Z, y, X)
    asked = LocalLpFusion(1.5, kernel=hood, anchors="query", tol=1e-8).fit(Z, y, X)
    np.testing.assert_allclose(
        asked.weights(anchored.anchors_), anchored.weights(anchored.anchors_), atol=2e-4
    )
    np.testing.assert_array_equal(asked.local_p(anchored.anchors_), anchored.p_)


def test_weights_of_a_problem_add_up_to_those_of_the_classes():
    Z, y, X = scores(n=900, n_anomalies=300)
    c = np.random.default_rng(0).uniform(0.5, 2, 900)
    model = LocalLpFusion(eta=0.3, anchors="query").fit(Z, y, X, c)
    problems = model.problems_
    index, weight = problems._rows(X[:5])
    assert index.shape[1] <= 2 * (256 + 4 * 30)
    for sign in (-1, 1):
        total = np.where(problems.y[index] == sign, weight, 0).sum(axis=1)
        np.testing.assert_allclose(total, problems.c[problems.y == sign].sum())


def test_no_anchors_are_kept():
    Z, y, X = scores()
    model = LocalLpFusion(anchors="query").fit(Z, y, X)
    assert model.anchors_.shape == (0, 3)
    assert model.W_.shape == (0, 4)
    assert model.status_ == []


def test_nothing_to_learn_is_said():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    Z -= Z.mean(axis=0)
    model = LocalLpFusion(eta=1.0, anchors="query", locality=OFF).fit(Z, X=X)
    with pytest.warns(OcfuseWarning, match="4 of 4"):
        np.testing.assert_allclose(model.weights(X[:4]), 1 / 3)

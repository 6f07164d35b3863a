"""Landmarks, how they are chosen, the detectors that use them, and blocks of near rows."""

from copy import copy

import numpy as np
import pytest
import skops.io
from scipy.stats import ks_2samp
from sklearn.base import clone

from ocfuse.detectors.base import out_of_fold_scores
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.landmarks import Blocks, Landmarks, choose_landmarks, squared_distances
from ocfuse.detectors.neighbours import KNN
from ocfuse.detectors.pool import Pool
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.views import Compressed, Whitened
from ocfuse.exceptions import InvalidInputError

GP = [OneClassGP(statistic=statistic) for statistic in ("mean", "variance", "predictive", "ratio")]
every = pytest.mark.parametrize("detector", [KPCA(subspace=20), KPCA(subspace=0.8), *GP])


def rows(n, m=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def method(detector):
    in_blocks = isinstance(detector, OneClassGP) and detector.statistic == "mean"
    return "blocks" if in_blocks else "landmarks"


def through(detector, landmarks, max_samples=50):
    return clone(detector).set_params(landmarks=landmarks, max_samples=max_samples)


@every
def test_all_rows_as_landmarks_are_exact(detector, monkeypatch):
    monkeypatch.setattr("ocfuse.detectors.landmarks.BLOCK_ROWS", 40)
    gram, query = Gram(rows(150)), rows(40, seed=1) * 1.5
    exact = clone(detector).fit_gram(gram)
    approximate = through(detector, 150).fit_gram(gram)
    assert (exact.method_, approximate.method_) == ("exact", method(detector))
    scores = exact.score_query(gram.query(query))
    close = {"rtol": 1e-3, "atol": 1e-3 * scores.std()}
    np.testing.assert_allclose(approximate.score_query(gram.query(query)), scores, **close)
    out_of_fold = out_of_fold_scores(exact, gram, [])
    assert np.corrcoef(out_of_fold_scores(approximate, gram, []), out_of_fold)[0, 1] > 0.99


@every
def test_left_out_scores_are_those_of_the_other_rows_and_the_same_landmarks(detector):
    gram = Gram(rows(120))
    fitted = through(detector, 30).fit_gram(gram)
    if isinstance(fitted, KPCA):
        fitted.set_params(subspace=fitted.n_components_)
    out_of_fold = out_of_fold_scores(fitted, gram, [])
    landmarks = gram.made(Landmarks, 30)
    for i in np.setdiff1d(np.arange(120), landmarks._chosen)[::25]:
        part = Gram(np.delete(gram.X, i, axis=0))
        others = copy(landmarks)
        others._rows, others._sums, others._spectra, others._inverses = part.X, {}, {}, {}
        others._spheres, others._regressions = {}, {}
        others.__dict__.pop("blocks", None)
        part._made[Landmarks, 30] = others
        refitted = clone(fitted).fit_gram(part)
        assert refitted.score_query(part.query(gram.X[i : i + 1]))[0] == pytest.approx(
            out_of_fold[i], rel=1e-5, abs=1e-7
        )


@pytest.mark.parametrize("width", [0.25, 1.0])
def test_the_sphere_of_all_rows_as_landmarks_is_near_the_exact_one(width):
    gram, query = Gram(rows(400)), rows(200, seed=1) * 1.5
    exact = SVDD(width).fit_gram(gram)
    approximate = through(exact, 400).fit_gram(gram)
    scores = exact.score_query(gram.query(query))
    # what rounds the corner of the loss is no less than 0.01
    close = {"rtol": 0.0, "atol": 0.02 * scores.std()}
    np.testing.assert_allclose(approximate.score_query(gram.query(query)), scores, **close)


def test_a_sphere_leaves_rows_out_that_it_has_not_seen(monkeypatch):
    monkeypatch.setattr("ocfuse.detectors.landmarks.MOST_KEPT", 40 * 100)
    gram = Gram(rows(400))
    fitted = through(SVDD(), 40).fit_gram(gram)
    landmarks = gram.made(Landmarks, 40)
    sphere = landmarks.sphere(1.0, 0.1)
    assert len(sphere._support) < 30
    plain = np.setdiff1d(np.arange(400), [*sphere._support, *landmarks._chosen])
    out_of_fold, seen = out_of_fold_scores(fitted, gram, []), fitted.score_query(gram.query(gram.X))
    np.testing.assert_allclose(out_of_fold[plain], seen[plain], atol=1e-6)
    lost = seen[sphere._support] - out_of_fold[sphere._support]
    assert lost.min() > -1e-3
    assert np.mean(lost > 0) > 0.9


@pytest.mark.parametrize("detector", [KPCA(subspace=50), OneClassGP("variance"), SVDD()])
def test_single_precision_is_for_rows_that_need_no_more(detector, monkeypatch):
    gram = Gram(rows(600, 60))
    fitted = through(detector, 100).fit_gram(gram)
    kernels = next(gram.made(Landmarks, 100)._kernels(1.0))
    assert kernels.dtype == np.float32
    monkeypatch.setattr(Landmarks, "least_pivot", 2.0)
    double = Gram(gram.X)
    refitted = clone(fitted).fit_gram(double)
    assert next(double.made(Landmarks, 100)._kernels(1.0)).dtype == np.float64
    query = gram.query(rows(100, 60, seed=1))
    pairs = [
        (fitted.score_query(query), refitted.score_query(query)),
        (out_of_fold_scores(fitted, gram, []), out_of_fold_scores(refitted, double, [])),
    ]
    for single, exact in pairs:
        np.testing.assert_allclose(single, exact, rtol=0, atol=1e-3 * exact.std())


@pytest.mark.parametrize("X", [rows(300, 2), np.vstack([rows(300, 60), [[1e4] * 60]])])
def test_near_landmarks_and_far_rows_need_double_precision(X):
    landmarks = Gram(X).made(Landmarks, 100)
    assert next(landmarks._kernels(1.0)).dtype == np.float64


@every
def test_few_rows_are_learned_from_as_without_landmarks(detector):
    X = rows(50)
    plain, switched = clone(detector).fit(X), through(detector, 20).fit(X)
    assert switched.method_ == "exact"
    np.testing.assert_array_equal(plain.score_samples(X), switched.score_samples(X))
    assert plain.offset_ == switched.offset_


@every
def test_more_rows_are_all_learned_from(detector):
    X = rows(51)
    fitted = through(detector, 20).fit(X)
    assert fitted.method_ == method(detector)
    assert fitted.reference_.n_rows == 20
    moved = X.copy()
    outside = np.setdiff1d(np.arange(51), choose_landmarks(X - X.mean(axis=0), 6.0, 20))
    moved[outside[0]] += 0.5
    assert np.any(through(detector, 20).fit(moved).score_samples(X) != fitted.score_samples(X))


def test_left_out_scores_beyond_the_spare_directions_are_near_those_of_refits():
    gram = Gram(rows(500, 6))
    fitted = KPCA(subspace=20, max_samples=50, landmarks=250).fit_gram(gram)
    out_of_fold = out_of_fold_scores(fitted, gram, [])
    exact = out_of_fold_scores(KPCA(subspace=20).fit_gram(gram), gram, [])
    assert np.abs(out_of_fold - exact).max() < 0.2 * exact.std()


@pytest.mark.parametrize("detector", [KPCA(), OneClassGP(), SVDD(), SVDD(width=0.25)])
@pytest.mark.parametrize("m", [3, 30])
def test_left_out_scores_are_like_fresh_ones(detector, m):
    X, fresh = rows(300, m), rows(2000, m, seed=1)
    gram = Gram(X)
    fitted = through(detector, 150).fit_gram(gram)
    out_of_fold, new = out_of_fold_scores(fitted, gram, []), fitted.score_query(gram.query(fresh))
    assert ks_2samp(out_of_fold, new).statistic < 0.1
    seen = fitted.score_query(gram.query(X))
    assert ks_2samp(out_of_fold, new).statistic <= ks_2samp(seen, new).statistic


@pytest.mark.parametrize("width", [0.25, 1.0])
def test_landmarks_left_out_are_as_far_as_fresh_rows(width):
    # two thirds of the rows are landmarks, and the tails are long: what they lose is most of it
    X = np.random.default_rng(0).standard_t(4, size=(2400, 6))
    gram = Gram(X[:300])
    exact = KPCA(width=width).fit_gram(gram)
    fitted = through(KPCA(width=width), 200).fit_gram(gram)
    own = gram.made(Landmarks, 200)._chosen
    assert len(own) == 200
    fresh = fitted.score_query(fitted.reference_.query(X[300:])).mean()
    left_out = out_of_fold_scores(fitted, gram, [])
    assert left_out.mean() == pytest.approx(fresh, rel=0.15)
    # as the exact kernel has it, landmarks and the other rows alike
    expected = out_of_fold_scores(exact, gram, [])
    others = np.setdiff1d(np.arange(300), own)
    for some in (own, others):
        assert left_out[some].mean() == pytest.approx(expected[some].mean(), rel=0.12)
    assert np.corrcoef(left_out, expected)[0, 1] > 0.98


def test_few_different_rows_are_all_normal_to_landmarks_too():
    X = np.random.default_rng(0).integers(0, 2, size=(300, 3)).astype(float)
    fitted = through(KPCA(), 100).fit_gram(Gram(X))
    assert np.all(fitted.score_query(fitted.reference_.query(X)) == 0.0)


def test_equal_rows_are_one_landmark():
    X = np.repeat(rows(10), 30, axis=0)
    fitted = KPCA(max_samples=50, landmarks=25).fit(X)
    assert fitted.reference_.n_rows == 10
    assert np.isfinite(fitted.score_samples(X)).all()


def test_rows_without_spread():
    X = np.full((80, 2), 0.3)
    for detector in (KPCA(), OneClassGP(), SVDD()):
        fitted = through(detector, 20).fit(X)
        near, far = fitted.score_samples([[0.3, 0.3], [9.0, 9.0]])
        assert near > far
        assert fitted.offset_ <= near


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, np.arange(200) // 10])
def test_members_of_a_pool_score_as_they_do_alone(groups):
    X, Q = rows(200, 4), rows(30, 4, 1)
    kpca = KPCA(max_samples=50, landmarks=40)
    svdd = SVDD(max_samples=50, landmarks=40)
    members = [kpca, Whitened(kpca), Compressed(kpca), KNN(), svdd, Whitened(svdd)]
    pool = Pool(members).fit(X, groups)
    scores = pool.score_samples(Q)
    for j, member in enumerate(members):
        alone = clone(member).fit(X)
        np.testing.assert_allclose(alone.score_samples(Q), scores[:, j], rtol=1e-9)
        each = np.concatenate([alone.score_samples(Q[i : i + 1]) for i in range(5)])
        np.testing.assert_allclose(each, scores[:5, j], rtol=1e-10)
    assert np.isfinite(pool.out_of_fold_scores_).all()


def test_groups_are_held_out_with_their_landmarks():
    X, groups = rows(200, 4), np.arange(200) % 8
    pool = Pool([KPCA(max_samples=50, landmarks=40)]).fit(X, groups)
    others = pool.fold_ != 0
    gram = Gram(X)
    part, query = gram.fold(np.flatnonzero(others), np.flatnonzero(~others))
    expected = KPCA(max_samples=50, landmarks=40).fit_gram(part).score_query(query)
    np.testing.assert_allclose(pool.out_of_fold_scores_[~others, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [lambda kernel: kernel, Whitened, Compressed])
@pytest.mark.parametrize("detector", [KPCA(), SVDD(), OneClassGP()])
def test_a_fold_with_fewer_rows_than_the_switch_goes_the_way_of_the_fit(detector, kind):
    X, groups = rows(64, 4), np.arange(64) % 8
    for most, method in ((60, "landmarks"), (64, "exact")):  # a fold has 48 rows
        member = kind(through(detector, 20, most))
        pool = Pool([member]).fit(X, groups)
        held_out = pool.fold_ == 0
        part, query = Gram(X).fold(np.flatnonzero(~held_out), np.flatnonzero(held_out))
        fold = clone(member).fit_gram(part)
        ways = [getattr(one, "detector_", one).method_ for one in (fold, pool.members_[0][1])]
        assert ways[0] == ways[1]
        assert (ways[0] == "exact") == (method == "exact")
        expected = fold.score_query(query)
        np.testing.assert_allclose(pool.out_of_fold_scores_[held_out, 0], expected, rtol=1e-9)


def test_a_saved_model_scores_alike():
    X = rows(120)
    fitted = Whitened(KPCA(max_samples=50, landmarks=40)).fit(X)
    data = skops.io.dumps(fitted)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(loaded.score_samples(X), fitted.score_samples(X))


def test_a_number_of_landmarks_is_a_count():
    with pytest.raises(InvalidInputError, match="landmarks must be a whole number"):
        KPCA(landmarks=0.5).fit(rows(20))


def test_landmarks_are_chosen_by_leverage_without_chance():
    X = np.vstack([0.01 * rows(600, 2), [[5.0, 5.0], [-5.0, 5.0]]])
    chosen = choose_landmarks(X, 1.0, 30)
    assert 20 <= len(chosen) <= 30
    assert {600, 601} <= set(chosen)
    assert np.all(np.diff(chosen) > 0)
    np.testing.assert_array_equal(chosen, choose_landmarks(X.copy(), 1.0, 30))


def test_equal_rows_are_chosen_once():
    X = np.repeat(rows(10), 30, axis=0)
    np.testing.assert_array_equal(choose_landmarks(X, 6.0, 25), np.arange(0, 300, 30))


def test_the_place_of_the_rows_does_not_matter():
    X = rows(500)
    np.testing.assert_array_equal(choose_landmarks(X + 1e4, 6.0, 40), choose_landmarks(X, 6.0, 40))


def test_distances_keep_the_type_of_the_rows():
    X, Y = rows(20), rows(5, seed=1)
    expected = ((X[:, None] - Y) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(X, Y), expected, atol=1e-12)
    single = squared_distances(X.astype(np.float32), Y.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5)


def saved(model):
    data = skops.io.dumps(model)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


@pytest.mark.parametrize(("n", "most"), [(100, 100), (101, 100), (1000, 100), (999, 70), (2, 1)])
def test_blocks_share_the_rows_evenly(n, most):
    blocks = Blocks(rows(n), 6.0, most)
    sizes = [len(part) for part in blocks.rows]
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks.rows)), np.arange(n))
    assert len(sizes) == -(-n // most)
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= np.log2(len(sizes)) + 1
    np.testing.assert_array_equal(np.diff(blocks.starts), sizes)


def test_a_row_belongs_to_the_block_that_it_was_put_in_alone_or_among_others():
    X = rows(600, 5)
    blocks = Blocks(X, 10.0, 50)
    for j, part in enumerate(blocks.rows):
        np.testing.assert_array_equal(blocks.of(X[part]), j)
    Q = rows(300, 5, seed=1)
    alone = [blocks.of(Q[i : i + 1])[0] for i in range(300)]
    np.testing.assert_array_equal(blocks.of(Q), alone)
    np.testing.assert_array_equal(saved(blocks).of(Q), alone)


def test_rows_of_a_block_are_near_each_other():
    X = rows(1000, 4)
    within = [Gram(X[part]).reference.scale for part in Blocks(X, 8.0, 100).rows]
    assert np.mean(within) < 0.6 * Gram(X).reference.scale


def test_equal_rows_are_parted_too():
    blocks = Blocks(np.full((90, 3), 0.7), 1.0, 20)
    assert len(blocks.parts) == 5
    assert blocks.of(np.full((4, 3), 0.7)).max() < 5

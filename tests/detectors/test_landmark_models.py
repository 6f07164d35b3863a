"""The Gaussian process that is exact within blocks, and the soft sphere of many rows."""

import numpy as np
import pytest
import skops.io
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.svm import OneClassSVM

from ocfuse.detectors.base import interleaved_folds, out_of_fold_scores
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.landmark_models import SoftSphere
from ocfuse.detectors.landmarks import Landmarks
from ocfuse.detectors.pool import Pool
from ocfuse.detectors.views import Whitened

WIDTH, NOISE = 0.5, 0.02


def rows(n, m=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def gp(width=WIDTH, landmarks=30):
    return OneClassGP(width=width, noise=NOISE, max_samples=50, landmarks=landmarks)


def saved(model):
    data = skops.io.dumps(model)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("ocfuse.detectors.landmarks.BLOCK_ROWS", 40)


class ByTheBook:
    """The whole matrix, exact within blocks, and with the landmarks elsewhere."""

    def __init__(self, gram):
        landmarks = gram.made(Landmarks, 30)
        self.chosen, self.basis = landmarks._chosen, landmarks._basis(WIDTH)
        self.blocks, self.query = landmarks.blocks, gram.query
        self.reference = landmarks.reference
        self.block_of = np.empty(gram.n_rows, dtype=int)
        for j, part in enumerate(self.blocks.rows):
            self.block_of[part] = j
        self.phi = self.basis.coordinates(self.far(gram.X))
        self.K = self.against(gram.X, self.block_of)

    def far(self, X):
        return self.reference.query(X).kernel(WIDTH)

    def against(self, X, block_of, far=None):
        far = self.far(X) if far is None else far
        is_near = block_of[:, None] == self.block_of
        between = self.basis.coordinates(far) @ self.phi.T
        return np.where(is_near, self.query(X).kernel(WIDTH), between)

    def mean(self, k, known):
        Kn = self.K[np.ix_(known, known)] + NOISE * np.eye(len(known))
        return k[..., known] @ np.linalg.solve(Kn, np.ones(len(known)))

    def left_out(self, gram):
        far = self.far(gram.X)
        # a landmark is left out as if it were a row that is none
        far[self.chosen, np.arange(len(self.chosen))] = self.basis.predicted
        k = self.against(gram.X, self.block_of, far)
        others = [np.delete(np.arange(gram.n_rows), i) for i in range(gram.n_rows)]
        return np.array([self.mean(k[i], known) for i, known in enumerate(others)])


def test_one_block_is_the_exact_process(monkeypatch):
    monkeypatch.setattr("ocfuse.detectors.landmarks.BLOCK_ROWS", 150)
    gram, query = Gram(rows(150)), rows(40, seed=1) * 1.5
    exact, one = OneClassGP(width=WIDTH, noise=NOISE).fit_gram(gram), gp().fit_gram(gram)
    assert one.method_ == "blocks"
    scores = exact.score_query(gram.query(query))
    np.testing.assert_allclose(one.score_query(gram.query(query)), scores, atol=1e-11)
    out_of_fold = out_of_fold_scores(exact, gram, [])
    np.testing.assert_allclose(out_of_fold_scores(one, gram, []), out_of_fold, atol=1e-11)


def test_scores_and_rows_left_out_are_those_of_the_book():
    gram, Q = Gram(rows(130)), rows(50, seed=1) * 1.5
    fitted, book = gp().fit_gram(gram), ByTheBook(gram)
    assert len(fitted.blocks_.parts) == 4
    expected = book.mean(book.against(Q, fitted.blocks_.of(Q)), np.arange(130))
    np.testing.assert_allclose(fitted.score_query(gram.query(Q)), expected, atol=1e-10)
    out_of_fold = out_of_fold_scores(fitted, gram, [])
    np.testing.assert_allclose(out_of_fold, book.left_out(gram), atol=1e-9)


def test_blocks_are_nearer_to_the_exact_process_than_landmarks_alone():
    gram, Q = Gram(rows(600, 10)), rows(300, 10, seed=1)
    query = gram.query(Q)
    exact = OneClassGP(width=WIDTH, noise=NOISE).fit_gram(gram).score_query(query)
    landmarks = gram.made(Landmarks, 30)
    alone = query.against(landmarks.reference).kernel(WIDTH) @ landmarks.inverse(WIDTH, NOISE).alpha
    in_blocks = gp().fit_gram(gram).score_query(query)
    assert np.abs(in_blocks - exact).mean() < 0.7 * np.abs(alone - exact).mean()


@pytest.mark.slow
def test_rows_left_out_are_like_fresh_ones_whitened_or_not():
    X, fresh = rows(2100, 4), rows(1000, 4, seed=1)
    for member in (gp(), Whitened(gp())):
        gram = Gram(X)
        fitted = member.fit_gram(gram)
        out_of_fold = out_of_fold_scores(fitted, gram, interleaved_folds(len(X)))
        new = fitted.score_query(gram.query(fresh))
        assert ks_2samp(out_of_fold, new).statistic < 0.1


def test_members_share_blocks_and_a_saved_pool_scores_alike():
    X, Q = rows(200, 4), rows(30, 4, 1)
    members = [gp(0.25), gp(1.0), Whitened(gp())]
    pool = Pool(members).fit(X)
    one, two, _ = (member for _, member in pool.members_)
    assert one.blocks_ is two.blocks_
    scores = pool.score_samples(Q)
    for j, member in enumerate(members):
        alone = clone(member).fit(X).score_samples(Q)
        np.testing.assert_allclose(scores[:, j], alone, rtol=1e-10)
    each = np.concatenate([pool.score_samples(Q[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(each, scores, rtol=1e-10)
    np.testing.assert_array_equal(saved(pool).score_samples(Q), scores)


def coordinates(n, m=6, seed=0):
    """Return rows of different lengths below 1."""
    rng = np.random.default_rng(seed)
    phi = np.abs(rng.normal(size=(n, m))) + 0.3
    return phi * (rng.uniform(0.6, 0.95, n) / np.linalg.norm(phi, axis=1))[:, None]


def kernel(phi):
    K = phi @ phi.T
    return K + np.diag(np.maximum(1.0 - K.diagonal(), 0.01))


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5, 0.9])
def test_the_dual_has_the_rest_of_each_row_on_its_diagonal(nu):
    phi = coordinates(300)
    sphere = SoftSphere(phi, nu)
    solver = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(kernel(phi))
    total = solver.dual_coef_.sum()
    centre = solver.dual_coef_[0] @ phi[solver.support_] / total
    np.testing.assert_allclose(sphere.centre, centre, rtol=1e-6)
    assert sphere.level == pytest.approx(-solver.intercept_[0] / total, rel=1e-6)
    np.testing.assert_array_equal(sphere.support, np.sort(solver.support_))


def test_single_precision_moves_little():
    phi = coordinates(2000, 30)
    double, single = SoftSphere(phi, 0.1), SoftSphere(phi.astype(np.float32), 0.1)
    np.testing.assert_allclose(single.centre, double.centre, atol=1e-5)
    assert single.level == pytest.approx(double.level, abs=1e-5)


def test_a_row_that_is_left_out_is_where_a_sphere_without_it_has_it():
    phi = coordinates(400)
    sphere = SoftSphere(phi, 0.1)
    rows = phi[sphere.support] - sphere.middle
    spans = np.einsum("sm,sm->s", rows, np.linalg.solve(sphere.factor @ sphere.factor.T, rows.T).T)
    seen = phi[sphere.support] @ sphere.centre - sphere.level
    left_out = seen - sphere.lost(slice(None), spans, spans)
    expected = []
    for row in sphere.support:
        # the bound of the weights stays that of 400 rows
        others = SoftSphere(np.delete(phi, row, axis=0), 0.1 * 400 / 399)
        expected.append(phi[row] @ others.centre - others.level)
    assert np.abs(left_out - expected).max() < 0.2 * np.abs(seen - expected).max()
    assert np.corrcoef(left_out, expected)[0, 1] > 0.999


@pytest.mark.parametrize(
    "phi",
    [
        np.tile(coordinates(1), (50, 1)),
        np.repeat(coordinates(5), 40, axis=0),
        np.vstack([np.tile([[0.9, 0.0]], (99, 1)), [[0.0, 0.9]]]),
        np.zeros((30, 2)),
    ],
    ids=["one", "five", "one and another", "none"],
)
@pytest.mark.parametrize("nu", [1e-4, 0.1, 0.2, 0.99])
def test_equal_rows_and_hardly_any_outside(phi, nu):
    sphere = SoftSphere(phi, nu)
    solver = OneClassSVM(kernel="precomputed", nu=max(nu, 1 / len(phi)), tol=1e-10)
    total = solver.fit(kernel(phi)).dual_coef_.sum()
    centre = solver.dual_coef_[0] @ phi[solver.support_] / total
    np.testing.assert_allclose(sphere.centre, centre, atol=1e-5)
    spans = np.zeros(len(sphere.support))
    assert np.isfinite(sphere.lost(slice(None), spans, spans)).all()

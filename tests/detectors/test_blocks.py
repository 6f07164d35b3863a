"""Blocks of near rows, and the Gaussian process that is exact within them."""

import numpy as np
import pytest
import skops.io
from scipy.stats import ks_2samp
from sklearn.base import clone

from ocfuse.detectors.base import interleaved_folds, out_of_fold_scores
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.landmarks import Blocks, Landmarks
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

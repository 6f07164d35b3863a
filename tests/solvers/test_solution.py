"""The certificate: every alpha in the box bounds every w in the ball."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ocfuse.solvers.ball import LpBall, lp_norm
from ocfuse.solvers.solution import PRIMAL_FLOOR, certify, relative_gap

NORMS = [1.0, 1.0001, 32 / 31, 4 / 3, 2.0, 10.0, 100.0, 1e4, np.inf]


def random_problem(rng, p, nonneg, shape=()):
    """Return margins, sample weights and a ball, d = 5 and k = 20."""
    A = rng.standard_normal((*shape, 20, 5)) + 0.5
    c = rng.uniform(0.0, 2.0, (*shape, 20)) * (rng.random((*shape, 20)) < 0.8)
    return A, c, LpBall(p, nonneg)


def random_pair(rng, c, ball, d=5):
    """Return a point of the ball and dual variables in the box."""
    w = rng.standard_normal((*c.shape[:-1], d)) * 10.0 ** rng.uniform(-2, 2)
    if ball.nonneg:
        w = np.abs(w)
    w = w / np.maximum(1.0, ball.norm(w))[..., np.newaxis]
    return w, c * rng.uniform(0.0, 1.0, c.shape)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS), st.booleans())
def test_weak_duality(seed, p, nonneg):
    rng = np.random.default_rng(seed)
    A, c, ball = random_problem(rng, p, nonneg)
    w, alpha = random_pair(rng, c, ball)
    primal, dual, gap, _ = certify(A, c, ball, w, alpha)
    assert dual <= primal + 1e-12 * c.sum()
    assert gap >= 0


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("nonneg", [False, True])
def test_duality_fails_outside_the_box_or_the_ball(p, nonneg):
    # The bound is not true of everything: both constraints are needed.
    A, c, ball = np.array([[0.5, 0.1]]), np.array([1.0]), LpBall(p, nonneg)
    best = ball.maximiser(A[0])
    assert certify(A, c, ball, best, 3.0 * c).dual > certify(A, c, ball, best, c).primal + 0.3
    assert certify(A, c, ball, 3.0 * best, c).primal < certify(A, c, ball, best, c).dual - 0.3
    # ... and where one is broken, nothing is certified.
    assert certify(A, c, ball, best, c).gap < 1.0
    assert certify(A, c, ball, best, 3.0 * c).gap == np.inf
    assert certify(A, c, ball, best, -0.1 * c).gap == np.inf
    assert certify(A, c, ball, 3.0 * best, c).gap == np.inf
    assert (certify(A, c, ball, -best, c).gap == np.inf) == nonneg


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("nonneg", [False, True])
def test_equals_the_frank_wolfe_gap_at_the_subgradient(p, nonneg):
    rng = np.random.default_rng(1)
    A, c, ball = random_problem(rng, p, nonneg)
    w, _ = random_pair(rng, c, ball)
    alpha = c * (A @ w < 1.0)
    subgradient = -A.T @ alpha
    vertex = ball.maximiser(-subgradient)
    primal, dual, _, _ = certify(A, c, ball, w, alpha)
    assert primal - dual == pytest.approx(subgradient @ (w - vertex), rel=1e-11)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("nonneg", [False, True])
def test_primal_and_dual_by_plain_loops(p, nonneg):
    rng = np.random.default_rng(2)
    A, c, ball = random_problem(rng, p, nonneg)
    w, alpha = random_pair(rng, c, ball)
    primal = sum(c[i] * max(0.0, 1.0 - float(A[i] @ w)) for i in range(len(c)))
    v = sum(alpha[i] * A[i] for i in range(len(c)))
    v = np.maximum(v, 0.0) if nonneg else v
    q = {1.0: np.inf, np.inf: 1.0}.get(p) or p / (p - 1.0)
    dual = sum(alpha) - lp_norm(v, q)
    got = certify(A, c, ball, w, alpha)
    assert got.primal == pytest.approx(primal, rel=1e-13)
    assert got.dual == pytest.approx(dual, rel=1e-10, abs=1e-10)
    assert got.gap == pytest.approx((primal - dual) / primal, rel=1e-9)


@pytest.mark.parametrize("nonneg", [False, True])
def test_batch_equals_one_by_one(nonneg):
    rng = np.random.default_rng(3)
    p = np.array(NORMS)
    A, c, ball = random_problem(rng, p, nonneg, shape=p.shape)
    w, alpha = random_pair(rng, c, ball)
    batch = certify(A, c, ball, w, alpha)
    for i in range(p.size):
        one = certify(A[i], c[i], LpBall(p[i], nonneg), w[i], alpha[i])
        assert_allclose([field[i] for field in batch], one, rtol=1e-13)


@pytest.mark.parametrize("p", NORMS)
def test_all_sample_weights_zero(p):
    A, zero = np.ones((3, 2)), np.zeros(3)
    assert_array_equal(certify(A, zero, LpBall(p), np.zeros(2), zero), np.zeros(4))


@pytest.mark.parametrize("p", NORMS)
def test_all_fusion_weights_zero(p):
    c = np.array([1.0, 2.0, 0.5])
    primal, dual, gap, _ = certify(np.zeros((3, 2)), c, LpBall(p), np.zeros(2), c)
    assert_array_equal([primal, dual, gap], [3.5, 3.5, 0.0])


def test_gap_does_not_depend_on_the_scale_of_the_weights():
    rng = np.random.default_rng(4)
    A, c, ball = random_problem(rng, 2.0, nonneg=False)
    w, alpha = random_pair(rng, c, ball)
    gap = certify(A, c, ball, w, alpha).gap
    assert gap > 0
    for scale in (1e-9, 1e9):
        scaled = certify(A, scale * c, ball, w, scale * alpha).gap
        assert scaled == pytest.approx(gap, rel=1e-12)


def test_gap_of_a_zero_primal_is_measured_in_the_floor():
    total = 50.0
    gap = relative_gap(np.array(0.0), np.array(-1e-4), np.array(total))
    assert gap == pytest.approx(1e-4 / (PRIMAL_FLOOR * total))


def test_what_is_not_a_number_is_never_certified():
    A, c = np.ones((3, 2)), np.ones(3)
    gap = certify(A, c, LpBall(2.0), np.array([np.nan, 0.0]), c).gap
    assert gap == np.inf

"""Laws of the lp ball: norms, linear maximisation and projection."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ocfuse.lab.paper.algorithm import radial_scaling
from ocfuse.solvers.ball import LpBall, conjugate, lp_norm

NORMS = [1.0, 1.0001, 32 / 31, 8 / 7, 4 / 3, 2.0, 3.0, 4.0, 10.0, 100.0, 1e4, np.inf]

reproducible = settings(derandomize=True, deadline=None, max_examples=150)
norms = st.sampled_from(NORMS) | st.floats(1.0, 50.0)
# Zeros, and both signs of magnitudes over sixteen decades.
entries = st.just(0.0) | st.builds(
    lambda sign, exponent: sign * 10.0**exponent,
    st.sampled_from([-1.0, 1.0]),
    st.floats(-8.0, 8.0),
)


def vectors(n_vectors=1):
    """Draw tuples of vectors of one common length, from 1 to 12."""

    def of_length(d):
        vector = st.lists(entries, min_size=d, max_size=d).map(np.array)
        return st.tuples(*[vector] * n_vectors)

    return st.integers(1, 12).flatmap(of_length)


def inside(direction, p, nonneg, radius=1.0):
    """Return a point of the ball with p-norm `radius` (or 0) along a direction."""
    w = np.maximum(direction, 0.0) if nonneg else direction
    norm = lp_norm(w, p)
    return radius * w / norm if norm > 0 else w


def optimality_error(ball, x, z):
    """Return the largest ``(x - z).(u - z)`` over u in the ball; 0 iff z is nearest to x."""
    residual = x - z
    return (ball.dual_norm(residual) - residual @ z) / max(1.0, np.abs(x).max())


# Norms


@pytest.mark.parametrize("p", NORMS)
def test_conjugate_exponents(p):
    q = conjugate(p)
    assert 1 / p + 1 / q == pytest.approx(1.0, abs=1e-15)
    assert conjugate(q) == pytest.approx(p, rel=1e-10)


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, 3.0, 10.0, np.inf])
def test_norm_agrees_with_numpy(p):
    x = np.random.default_rng(0).standard_normal(7)
    assert lp_norm(x, p) == pytest.approx(np.linalg.norm(x, p), rel=1e-14)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1e8, 1e300])
def test_norm_neither_overflows_nor_underflows(p, scale):
    x = scale * np.array([3.0, -1.0, 0.0, 2.0])
    assert lp_norm(x, p) == pytest.approx(scale * lp_norm(x / scale, p), rel=1e-12)


def test_norm_takes_one_p_per_row():
    X = np.random.default_rng(1).standard_normal((len(NORMS), 5))
    each = [lp_norm(x, p) for x, p in zip(X, NORMS, strict=True)]
    assert_allclose(lp_norm(X, np.array(NORMS)), each, rtol=1e-15)


@pytest.mark.parametrize("p", NORMS)
def test_zero_vectors(p):
    ball, zero = LpBall(p), np.zeros(4)
    assert ball.norm(zero) == 0.0
    assert ball.dual_norm(zero) == 0.0
    assert_array_equal(ball.maximiser(zero), zero)
    assert_array_equal(ball.project(zero), zero)


# Linear maximisation


@pytest.mark.slow
@reproducible
@given(vectors(2), norms, st.booleans())
def test_hoelder(pair, p, nonneg):
    v, direction = pair
    w = inside(direction, p, nonneg)
    assert v @ w <= LpBall(p, nonneg).dual_norm(v) * (1 + 1e-12)


@pytest.mark.slow
@reproducible
@given(vectors(), norms, st.booleans())
def test_maximiser_is_feasible_and_attains_the_dual_norm(single, p, nonneg):
    (v,) = single
    ball = LpBall(p, nonneg)
    w = ball.maximiser(v)
    assert ball.norm(w) <= 1 + 1e-12
    assert not nonneg or w.min() >= 0
    assert v @ w == pytest.approx(ball.dual_norm(v), rel=1e-11)


def test_maximiser_at_the_two_ends():
    v = np.array([0.5, -3.0, 0.0, 2.0])
    assert_array_equal(LpBall(1.0).maximiser(v), [0, -1, 0, 0])
    assert_array_equal(LpBall(np.inf).maximiser(v), [1, -1, 0, 1])
    assert_array_equal(LpBall(1.0, nonneg=True).maximiser(v), [0, 0, 0, 1])
    assert_array_equal(LpBall(np.inf, nonneg=True).maximiser(v), [1, 0, 0, 1])


@pytest.mark.parametrize("p", NORMS)
def test_nothing_to_gain_from_negative_directions_when_nonneg(p):
    ball, v = LpBall(p, nonneg=True), np.array([-1.0, -2.0])
    assert ball.dual_norm(v) == 0.0
    assert_array_equal(ball.maximiser(v), [0.0, 0.0])


def test_maximiser_takes_one_p_per_row():
    V = np.random.default_rng(2).standard_normal((len(NORMS), 5))
    each = [LpBall(p).maximiser(v) for v, p in zip(V, NORMS, strict=True)]
    assert_allclose(LpBall(np.array(NORMS)).maximiser(V), each, rtol=1e-13)


# Projection


@pytest.mark.slow
@reproducible
@given(vectors(), norms, st.booleans())
def test_projection_is_feasible_and_optimal(single, p, nonneg):
    (x,) = single
    ball = LpBall(p, nonneg)
    z = ball.project(x)
    assert ball.norm(z) <= 1 + 1e-13
    assert not nonneg or z.min() >= 0
    assert optimality_error(ball, x, z) <= 1e-11


@pytest.mark.slow
@reproducible
@given(vectors(2), norms, st.booleans(), st.floats(0.0, 1.0))
def test_no_feasible_point_is_nearer(pair, p, nonneg, radius):
    x, direction = pair
    z = LpBall(p, nonneg).project(x)
    other = inside(direction, p, nonneg, radius)
    assert (x - z) @ (other - z) <= 1e-11 * max(1.0, np.abs(x).max())


@pytest.mark.slow
@reproducible
@given(vectors(), norms, st.booleans())
def test_projection_is_idempotent(single, p, nonneg):
    (x,) = single
    ball = LpBall(p, nonneg)
    z = ball.project(x)
    assert_allclose(ball.project(z), z, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@reproducible
@given(vectors(2), norms, st.booleans())
def test_projection_does_not_expand(pair, p, nonneg):
    a, b = pair
    ball = LpBall(p, nonneg)
    moved = np.linalg.norm(ball.project(a) - ball.project(b))
    slack = 1e-11 * max(1.0, np.abs(pair).max())
    assert moved <= np.linalg.norm(a - b) + slack


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("nonneg", [False, True])
def test_points_inside_stay_where_they_are(p, nonneg):
    rng = np.random.default_rng(3)
    for _ in range(20):
        direction = np.abs(rng.standard_normal(6)) if nonneg else rng.standard_normal(6)
        w = inside(direction, p, nonneg, radius=rng.uniform(0.0, 0.999))
        assert_array_equal(LpBall(p, nonneg).project(w), w)


@pytest.mark.parametrize("p", NORMS)
def test_nonneg_projection_is_that_of_the_positive_part(p):
    x = np.array([3.0, -2.0, 0.5, 0.0, -0.1])
    expected = LpBall(p).project(np.maximum(x, 0.0))
    assert_array_equal(LpBall(p, nonneg=True).project(x), expected)


def test_projection_at_p_1_is_soft_thresholding():
    ball = LpBall(1.0)
    assert_array_equal(ball.project(np.array([2.0, 1.5, -0.25])), [0.75, 0.25, 0.0])
    assert_array_equal(ball.project(np.array([-4.0, 1.0])), [-1.0, 0.0])
    # Large entries: the difference of 1/2 between the two must survive.
    assert_array_equal(ball.project(np.array([2.0**40 + 0.5, -(2.0**40)])), [0.75, -0.25])


def test_projection_at_p_2_is_scaling():
    x = np.random.default_rng(4).standard_normal((10, 6)) * 5
    expected = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert_allclose(LpBall(2.0).project(x), expected, rtol=1e-14)


@pytest.mark.parametrize("p", [1e17, np.inf])
def test_projection_at_p_infinite_is_clipping(p):
    x = np.array([2.0, -0.5, -1e9, 1.0, 0.0])
    assert_array_equal(LpBall(p).project(x), [1.0, -0.5, -1.0, 1.0, 0.0])


def test_projection_is_not_radial_scaling():
    x = np.array([2.0, 0.5])
    nearest, scaled = LpBall(4 / 3).project(x), radial_scaling(x[np.newaxis], np.array([4 / 3]))[0]
    assert_allclose(nearest, [0.9775, 0.0718], atol=5e-5)
    assert_allclose(scaled, [0.8961, 0.2240], atol=5e-5)
    assert np.linalg.norm(x - nearest) < np.linalg.norm(x - scaled) - 0.01


@pytest.mark.parametrize(("near", "end"), [(1 + 1e-9, 1.0), (1e12, np.inf)])
def test_projection_is_continuous_at_the_two_ends(near, end):
    x = np.array([2.0, -1.5, 0.9, 0.1, 0.0])
    assert_allclose(LpBall(near).project(x), LpBall(end).project(x), atol=1e-7)


@pytest.mark.parametrize("p", NORMS)
def test_projection_over_eight_decades(p):
    ball = LpBall(p)
    x = 10.0 ** np.arange(-4.0, 5.0) * np.array([1, -1, 1, -1, 1, -1, 1, -1, 1])
    z = ball.project(x)
    assert optimality_error(ball, x, z) <= 1e-12
    assert ball.norm(z) == pytest.approx(1.0, abs=1e-14)
    assert np.all(np.diff(np.abs(z)) >= 0)
    assert_array_equal(np.sign(z)[z != 0], np.sign(x)[z != 0])


@pytest.mark.parametrize("p", NORMS)
def test_projection_of_huge_and_of_barely_outside_points(p):
    ball = LpBall(p)
    assert_allclose(ball.project(np.full(3, 1e308)), np.full(3, 3.0 ** (-1 / p)), rtol=1e-13)
    assert_allclose(ball.project(np.array([1e300, 0.0])), [1.0, 0.0], rtol=1e-15)
    w = inside(np.array([0.3, -0.2, 0.7]), p, nonneg=False)
    assert_allclose(ball.project(w * (1 + 1e-13)), w, rtol=1e-12)


@pytest.mark.parametrize("p", [*NORMS, 1.0000177])
def test_projection_of_equal_entries_at_the_edge_of_rounding(p):
    corner = np.full((1, 8), 8.0 ** (-1 / p))
    X = corner * (1 + 2.0**-52 * np.arange(-4, 40)[:, np.newaxis])
    assert_allclose(LpBall(p).project(X), corner.repeat(len(X), axis=0), rtol=1e-14)


@pytest.mark.parametrize("nonneg", [False, True])
def test_projection_of_a_stack_is_that_of_its_rows(nonneg):
    rng = np.random.default_rng(5)
    p = rng.choice(NORMS, size=(4, 15))
    X = rng.standard_normal((4, 15, 6)) * 10.0 ** rng.uniform(-4, 4, (4, 15, 6))
    stack = LpBall(p, nonneg).project(X)
    rows = [[LpBall(p[i, j], nonneg).project(X[i, j]) for j in range(15)] for i in range(4)]
    assert_allclose(stack, rows, rtol=1e-11, atol=1e-14)


def test_projection_leaves_its_argument_alone():
    x = np.array([3.0, -4.0])
    LpBall(4.0).project(x)
    assert_array_equal(x, [3.0, -4.0])

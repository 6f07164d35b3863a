"""Evidence for docs/errata.md: the printed algorithm does not work."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.paper.algorithm import (
    algorithm_1,
    barrier_gradient,
    barrier_value,
    closed_form_per_sample,
    hinge_gradient,
    initial_weights,
    printed_barrier_gradient,
    radial_scaling,
)
from ocfuse.solvers.ball import LpBall, conjugate, lp_norm

GRID = [32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 10.0, 100.0]


def scores_and_random_labels(n=500, d=16, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, d)), rng.choice([-1.0, 1.0], size=n)


def hinge(S, y, W):
    return np.maximum(0.0, 1.0 - y * np.sum(S * W, axis=1))


def share_of_nan(W):
    return np.isnan(W).any(axis=1).mean()


def with_the_right_sign(w, p, mu):
    """Repair one flaw only: the sign of the printed barrier gradient."""
    return -printed_barrier_gradient(w, p, mu)


# Equation 2: one weight vector per sample


@pytest.mark.parametrize("p", [1.0, *GRID, np.inf])
def test_closed_form_value(p):
    rng = np.random.default_rng(1)
    S = rng.standard_normal((200, 5)) * rng.uniform(0.01, 1.0, (200, 1))
    y = rng.choice([-1.0, 1.0], size=200)
    W = closed_form_per_sample(S, y, p)
    reach = lp_norm(S, conjugate(p))
    assert 0 < np.sum(reach < 1.0) < 200  # both cases occur
    assert lp_norm(W, p).max() <= 1 + 1e-12
    assert_allclose(hinge(S, y, W), np.maximum(0.0, 1.0 - reach), atol=1e-12)


@pytest.mark.parametrize("p", [1.0, *GRID, np.inf])
def test_closed_form_is_not_beaten_by_any_feasible_point(p):
    S, y = scores_and_random_labels(n=100, d=4)
    optimal = hinge(S, y, closed_form_per_sample(S, y, p))
    rng = np.random.default_rng(2)
    for _ in range(200):
        W = rng.standard_normal(S.shape)
        W /= lp_norm(W, p)[:, np.newaxis]
        assert np.all(hinge(S, y, W) >= optimal - 1e-12)


@pytest.mark.parametrize("p", [32 / 31, 2.0, 100.0])
def test_closed_form_learns_random_labels_perfectly(p):
    S, y = scores_and_random_labels()
    W = closed_form_per_sample(S, y, p)
    assert_array_equal(np.sign(np.sum(S * W, axis=1)), y)


def test_closed_form_takes_one_norm_per_sample():
    S, y = scores_and_random_labels(n=len(GRID))
    W = closed_form_per_sample(S, y, GRID)
    each = [closed_form_per_sample(S[[i]], y[[i]], p)[0] for i, p in enumerate(GRID)]
    assert_allclose(W, each, rtol=1e-12)


def test_closed_form_of_a_zero_score():
    assert_array_equal(closed_form_per_sample(np.zeros((1, 3)), [1.0], 2.0), np.zeros((1, 3)))


# Algorithm 1 as printed


@pytest.mark.parametrize("p", GRID)
def test_start_lies_on_the_boundary(p):
    assert_allclose(lp_norm(initial_weights(3, 10, p), p), 1.0, rtol=1e-15)


def test_start_divides_by_zero():
    # d = 4 and p = 2: all weights are 1/2 and the norm is 1 without rounding.
    w, p = initial_weights(1, 4, 2.0), np.array([2.0])
    assert barrier_value(w, p, mu=10.0) == np.inf
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        gradient = printed_barrier_gradient(w, p, mu=10.0)
    assert_array_equal(gradient, np.full((1, 4), -np.inf))


@pytest.mark.parametrize("local_p", [1.1, 1.5, 1.9])
def test_start_lies_outside_the_ball_of_a_smaller_local_norm(local_p):
    w, p = initial_weights(1, 10, 2.0), np.array([local_p])
    assert_allclose(lp_norm(w, p), 10 ** (1 / local_p - 1 / 2))
    with pytest.warns(RuntimeWarning, match="invalid value"):
        value = barrier_value(w, p, mu=1.0)
    assert np.isnan(value).all()


# With d = 16 the start 1/8, 1/4, 1/2 has a norm of exactly 1 in floating point too.
@pytest.mark.parametrize("p", [4 / 3, 2.0, 4.0])
def test_printed_algorithm_gives_nan_in_the_first_epoch(p):
    S, y = scores_and_random_labels(d=16)
    assert share_of_nan(algorithm_1(S, y, p, max_epochs=1)) == 1.0


# Elsewhere the start may round to either side of the boundary: it does not help.
@pytest.mark.parametrize("p", GRID)
@pytest.mark.parametrize("d", [4, 10, 16])
@pytest.mark.parametrize("start", [1.0 - 2**-53, 1.0, 1.0 + 2**-52])
def test_printed_algorithm_gives_nothing_but_nan(p, d, start):
    S, y = scores_and_random_labels(d=d)
    assert share_of_nan(algorithm_1(S, y, p, start=start)) == 1.0


@pytest.mark.parametrize("p", [4 / 3, 2.0, 4.0, 100.0])
def test_printed_algorithm_gives_nan_on_normal_data_too(p):
    S, y = scores_and_random_labels()
    assert share_of_nan(algorithm_1(S, np.ones_like(y), p)) == 1.0


def test_printed_algorithm_runs_without_a_warning():
    S, y = scores_and_random_labels(n=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for p in (1.0, *GRID, np.inf):
            algorithm_1(S, y, p)


@pytest.mark.parametrize("d", [4, 10, 16])
@pytest.mark.parametrize("p", [4 / 3, 2.0, 4.0])
def test_start_inside_still_gives_nan(d, p):
    S, y = scores_and_random_labels(d=d)
    assert share_of_nan(algorithm_1(S, y, p, start=0.9)) == 1.0


# One flaw repaired after the other


@pytest.mark.parametrize("p", [2.0, 4.0])
def test_start_inside_and_right_sign_is_finite_but_not_converged(p):
    S, y = scores_and_random_labels(d=4)
    W = algorithm_1(S, y, p, start=0.9, barrier=with_the_right_sign)
    assert np.isfinite(W).all()
    optimal = hinge(S, y, closed_form_per_sample(S, y, p))
    assert np.mean(hinge(S, y, W) - optimal) > 0.2


def test_right_sign_without_the_signed_power_is_nan():
    S, y = scores_and_random_labels(d=4)
    W = algorithm_1(S, y, 4 / 3, start=0.5, barrier=with_the_right_sign)
    assert share_of_nan(W) == 1.0
    repaired = algorithm_1(S, y, 4 / 3, start=0.5, barrier=barrier_gradient)
    assert np.isfinite(repaired).all()


def test_right_gradient_is_nan_where_the_scaling_lands_on_the_boundary():
    # The fixed step leaves the ball, the scaling puts it on the boundary, and the
    # next barrier gradient divides by zero: an interior method must shorten the step.
    S, y = scores_and_random_labels(d=4)
    W = algorithm_1(S, y, 4 / 3, start=0.9, barrier=barrier_gradient)
    assert share_of_nan(W) == 1.0


# The barrier


@pytest.mark.parametrize("p", GRID)
def test_barrier_gradient_agrees_with_finite_differences(p):
    w = np.array([[0.3, -0.2, 0.15, -0.05]])
    w, norm, step = 0.8 * w / lp_norm(w, p)[:, np.newaxis], np.array([p]), 1e-6
    numeric = [
        (barrier_value(w + step * e, norm, 3.0) - barrier_value(w - step * e, norm, 3.0))[0]
        / (2 * step)
        for e in np.eye(4)
    ]
    assert_allclose(barrier_gradient(w, norm, 3.0)[0], numeric, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("p", [4 / 3, 4.0, 10.0])
def test_printed_barrier_gradient_has_the_wrong_sign_and_an_extra_factor(p):
    w, norm = np.array([[0.3, 0.2, 0.1]]), np.array([p])
    ratio = printed_barrier_gradient(w, norm, 1.0) / barrier_gradient(w, norm, 1.0)
    assert_allclose(ratio, -np.full((1, 3), lp_norm(w, norm)[0] ** (p - 2.0)), rtol=1e-12)
    assert np.all(np.abs(ratio + 1.0) > 0.1)


def test_printed_barrier_gradient_misses_only_the_sign_at_p_2():
    w, norm = np.array([[0.3, -0.2, 0.1]]), np.array([2.0])
    right = barrier_gradient(w, norm, 1.0)
    assert_allclose(printed_barrier_gradient(w, norm, 1.0), -right, rtol=1e-14)


def test_printed_barrier_gradient_drives_to_the_boundary():
    w, norm = np.array([[0.3, 0.2, 0.1]]), np.array([2.0])
    before = barrier_value(w, norm, 1.0)
    assert barrier_value(w - 1e-3 * printed_barrier_gradient(w, norm, 1.0), norm, 1.0) > before
    assert barrier_value(w - 1e-3 * barrier_gradient(w, norm, 1.0), norm, 1.0) < before


def test_power_without_sign():
    w = np.array([[-0.5, 0.5]])
    fractional = printed_barrier_gradient(w, np.array([4 / 3]), 1.0)
    assert_array_equal(np.isnan(fractional), [[True, False]])
    odd = printed_barrier_gradient(w, np.array([3.0]), 1.0)
    assert odd[0, 0] == odd[0, 1] != 0.0
    right = barrier_gradient(w, np.array([3.0]), 1.0)
    assert right[0, 0] == -right[0, 1] != 0.0


def self_concordance_ratio(x, p):
    """Return ``|f'''| / (2 f''^(3/2))`` of ``f(x) = -log(1 - x^p)``.

    A self-concordant function has a ratio of at most 1 everywhere.
    """
    slack = 1.0 - x**p
    P1 = p * x ** (p - 1) / slack
    P2 = p * (p - 1) * x ** (p - 2) / slack
    P3 = p * (p - 1) * (p - 2) * x ** (p - 3) / slack
    return abs(P3 + 3 * P2 * P1 + 2 * P1**3) / (2 * (P2 + P1**2) ** 1.5)


@pytest.mark.parametrize(("p", "ratio"), [(4 / 3, 10.5), (2.0, 0.0212), (4.0, 2887.0)])
def test_self_concordance_ratio_of_the_barrier(p, ratio):
    assert self_concordance_ratio(0.01, p) == pytest.approx(ratio, rel=5e-3)


@pytest.mark.parametrize("p", [4 / 3, 3.0, 4.0])
def test_self_concordance_ratio_grows_like_a_power(p):
    near, nearer = self_concordance_ratio(1e-6, p), self_concordance_ratio(1e-8, p)
    assert nearer / near == pytest.approx(100 ** (p / 2), rel=1e-3)


def test_barrier_is_self_concordant_at_p_2():
    assert max(self_concordance_ratio(x, 2.0) for x in np.linspace(1e-3, 0.999, 500)) <= 1.0


# The other steps


def test_hinge_gradient():
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    w = np.array([[0.1, 0.1], [0.5, 0.5]])
    assert_array_equal(hinge_gradient(w, A), [[-1.0, -2.0], [0.0, 0.0]])


@pytest.mark.parametrize(("p", "is_nearest"), [(4 / 3, False), (2.0, True), (4.0, False)])
def test_radial_scaling_is_the_projection_at_p_2_only(p, is_nearest):
    w, norm = np.array([[2.0, 0.5]]), np.array([p])
    scaled, nearest = radial_scaling(w, norm), LpBall(p).project(w)
    assert np.allclose(scaled, nearest, atol=1e-12) is is_nearest
    assert lp_norm(scaled, norm) == pytest.approx(1.0, abs=1e-15)


def test_radial_scaling_keeps_points_inside():
    w = np.array([[0.2, -0.3]])
    assert_array_equal(radial_scaling(w, np.array([2.0])), w)


def test_input_is_checked():
    with pytest.raises(InvalidInputError, match="y must hold"):
        closed_form_per_sample([[0.5]], [0.0], 2.0)
    with pytest.raises(InvalidInputError, match="p must be in"):
        algorithm_1([[0.5]], [1.0], 0.5)

"""The interior point in NumPy: its linear algebra and its iterates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.interior_point import (
    ComplementarityTargets,
    Iterate,
    Lifted,
    NewtonSystem,
    factorise,
    interior_point,
    iterate_once,
    predictor_targets,
    substitute,
)
from ocfuse.solvers.solution import Status
from tests.solvers.cases import NORMS, make_case


def lifted_case(p, nonneg, seed=0, n_steps=2):
    """Return a lifted block and iterates a few steps away from the start."""
    case = make_case(seed, m=5)
    A = (case.S * case.y[:, np.newaxis])[case.index]
    c = case.c / case.c.sum(axis=1, keepdims=True)
    lifted = Lifted.of(A, c, LpBall(np.full(5, p), nonneg))
    it = Iterate.start(lifted)
    for _ in range(n_steps):
        it, _ = iterate_once(lifted, it)
    return lifted, it


def path_equations(lifted, it):
    """Return the stationarity residuals and the products of the central path."""
    nu, G = lifted.signed, lifted.inverse_p * lifted.radius(it.t) / it.t
    return {
        "w": lifted.total(it.a) - it.z_plus + it.z_minus,
        "t": it.lam - (it.z_plus + nu * it.z_minus) * G - it.y,
        "tau": it.a * it.tau,
        "xi": (1.0 - it.a) * it.xi,
        "s_plus": it.z_plus * it.s_plus,
        "s_minus": it.z_minus * it.s_minus,
        "edge": it.lam * it.sg,
        "y": it.y * it.t,
    }


def moved(lifted, it, d, step):
    """Return it + step d, every slack exact."""
    w, t = it.w + step * d.w, it.t + step * d.t
    m, xi = it.m + step * d.m, it.xi + step * d.xi
    radius = lifted.radius(t)
    return Iterate(
        w, t, m, xi, xi - 1.0 + m, radius - w, lifted.signed * radius + w,
        1.0 - t.sum(axis=1, keepdims=True), it.a + step * d.a, it.z_plus + step * d.z_plus,
        it.z_minus + step * d.z_minus, it.y + step * d.y, it.lam + step * d.lam,
    )  # fmt: skip


@pytest.mark.parametrize("p", NORMS)
def test_newton_direction_against_finite_differences(p, nonneg):
    lifted, it = lifted_case(p, nonneg)
    rng = np.random.default_rng(1)
    targets = ComplementarityTargets(
        *(rng.normal(size=r.shape) * np.abs(r) for r in predictor_targets(it))
    )
    d = NewtonSystem(lifted, it).direction(targets)
    step = 1e-6
    before = path_equations(lifted, moved(lifted, it, d, -step))
    after = path_equations(lifted, moved(lifted, it, d, step))
    slope = {name: (after[name] - before[name]) / (2 * step) for name in after}
    here = path_equations(lifted, it)
    wanted = {
        "w": -here["w"], "t": -here["t"], "tau": targets.tau, "xi": targets.xi,
        "s_plus": targets.s_plus, "s_minus": targets.s_minus, "edge": targets.sg, "y": targets.t,
    }  # fmt: skip
    for name, value in slope.items():
        scale = np.abs(d.lam).max() if name == "t" else 1.0
        assert_allclose(value, wanted[name], atol=2e-5 * max(scale, 1.0), err_msg=name)


@pytest.mark.parametrize("p", NORMS)
def test_iterates_stay_strictly_inside(p, nonneg):
    lifted, it = lifted_case(p, nonneg, n_steps=0)
    for _ in range(6):
        it, _ = iterate_once(lifted, it)
        for name in ("tau", "xi", "s_plus", "s_minus", "sg", "t", "z_plus", "z_minus", "y", "lam"):
            assert (getattr(it, name) > 0).all(), name
        assert ((it.a > 0) & (it.a < 1)).all()
        assert (lifted.ball.norm(it.w) < 1).all()
        assert not nonneg or (it.w > 0).all()


@pytest.mark.slow
def test_few_iterations_whatever_p(nonneg, pure):
    case = make_case(3, d=8, k=50, m=60, pure=pure)
    A = (case.S * case.y[:, np.newaxis])[case.index]
    c = case.c / case.c.sum(axis=1, keepdims=True)
    for p in NORMS:
        outcome = interior_point(A, c, LpBall(np.full(60, p), nonneg), 1e-6, 200)
        assert (outcome.status == Status.SOLVED).all()
        assert outcome.n_iter.mean() < 14
        assert outcome.n_iter.max() < 40


def test_iterations_run_out_with_a_valid_pair():
    case = make_case(4, m=3)
    A = (case.S * case.y[:, np.newaxis])[case.index]
    c = case.c / case.c.sum(axis=1, keepdims=True)
    outcome = interior_point(A, c, LpBall(np.full(3, 2.0)), 1e-9, 2)
    assert (outcome.status == Status.MAX_ITERATIONS).all()
    assert (outcome.n_iter == 2).all()
    assert (outcome.pair.certificate.gap > 1e-9).all()
    assert (outcome.pair.certificate.dual <= outcome.pair.certificate.primal).all()


def test_cholesky_solves_and_survives_singular_matrices():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(4, 9, 6))
    K = B.transpose(0, 2, 1) @ B
    r = rng.normal(size=(4, 6))
    x = substitute(factorise(K), r)
    assert_allclose((K @ x[:, :, np.newaxis])[:, :, 0], r, atol=1e-9)
    K[1, 2, :] = K[1, :, 2] = 0.0  # a column that says nothing
    x = substitute(factorise(K), r)
    assert np.isfinite(x).all()
    assert abs(x[1, 2]) < 1e-50
    rest = [0, 1, 3, 4, 5]
    assert_allclose(K[1][np.ix_(rest, rest)] @ x[1, rest], r[1, rest], atol=1e-9)

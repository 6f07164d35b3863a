"""Agreement with an outside convex solver, cvxpy with Clarabel."""

import contextlib

import numpy as np
import pytest

from ocfuse.solvers import solve
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.solution import certify
from tests.solvers.cases import BACKENDS

pytestmark = pytest.mark.filterwarnings("ignore:pnorm with p=.*is being approximated")
cp = pytest.importorskip("cvxpy", reason="needs the extra: pip install 'ocfuse[rivals]'")

NORMS = [1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 10.0, 100.0, np.inf]


def outside(S, y, p, c, nonneg):
    """Return the optimal value and w by cvxpy, in power cones or else in squares.

    Every p here is a simple fraction, so that the second form is exact too. It
    is there because Clarabel gives up on some of the power cones.
    """
    w = cp.Variable(S.shape[1], nonneg=nonneg)
    loss = cp.sum(cp.multiply(c, cp.pos(1 - cp.multiply(y, S @ w))))
    for approx in (False, True):
        ball = cp.pnorm(w, p, approx=approx) if 1 < p < np.inf else cp.norm(w, p)
        problem = cp.Problem(cp.Minimize(loss), [ball <= 1])
        with contextlib.suppress(cp.SolverError):
            problem.solve(solver=cp.CLARABEL)
        if problem.status == "optimal":
            return problem.value, w.value
    pytest.fail(f"Clarabel does not solve p={p}")


def instance(seed, n, d, pure):
    rng = np.random.default_rng(seed)
    y = np.ones(n) if pure else np.where(rng.random(n) < 0.3, -1.0, 1.0)
    S = rng.normal(size=(n, d)) * 0.6 + np.where(y > 0, 0.6, 0.1)[:, np.newaxis]
    return S, y, rng.uniform(0.0, 2.0, n) * (rng.random(n) < 0.9)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_same_optimum(p, nonneg, pure, backend):
    S, y, c = instance(int(10 * min(p, 1e3)), 60, 5, pure)
    value, w = outside(S, y, p, c, nonneg)
    scale = max(value, 1e-3 * c.sum())
    for solver in ("auto", "interior-point"):
        sol = solve(S, y, p, c, nonneg, 1e-8, solver, backend=backend)
        assert abs(sol.primal - value) <= 2e-6 * scale
        assert sol.dual <= value + 2e-6 * scale
        # and our bound proves theirs, once drawn into the ball
        ball = LpBall(p, nonneg)
        inside = ball.project(w)
        proof = certify(S * y[:, np.newaxis], c, ball, inside, sol.alpha)
        assert proof.gap <= 5e-6

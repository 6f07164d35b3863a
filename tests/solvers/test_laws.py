"""Laws that hold for every problem, on problems that hypothesis thinks up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ocfuse.solvers import Status, solve
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.solution import certify
from tests.solvers.cases import BACKENDS

NORMS = [1.0, 1.0001, 32 / 31, 8 / 7, 2.0, 4.0, 10.0, 100.0, 1e4, np.inf]
TOL = 1e-6

law = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def problems(draw):
    """Return scores, labels, p, weights and the sign constraint."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    values = st.floats(-3, 3, width=32)
    S = draw(arrays(np.float64, (n, d), elements=values)) * 10.0 ** draw(st.integers(-3, 3))
    y = np.where(draw(arrays(np.bool_, n)), 1.0, -1.0)
    c = draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 1e-6, 0.5, 1.0, 7.0])))
    return S, y, draw(st.sampled_from(NORMS)), c, draw(st.booleans())


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("solver", ["auto", "interior-point"])
def test_certificate_holds(backend, solver):
    @law
    @given(problems())
    def check(problem):
        S, y, p, c, nonneg = problem
        sol = solve(S, y, p, c, nonneg, TOL, solver, backend=backend)
        proof = certify(S * y[:, np.newaxis], c, LpBall(p, nonneg), sol.w, sol.alpha)
        assert sol.status is Status.SOLVED
        assert proof.gap <= TOL
        assert proof.dual <= proof.primal + 1e-9 * max(1.0, c.sum())
        assert LpBall(p).norm(sol.w) <= 1 + 1e-12
        assert ((sol.alpha >= 0) & (sol.alpha <= c)).all()
        assert not nonneg or (sol.w >= 0).all()

    check()


def close(a, b, c):
    """Tell whether two certified values may belong to one optimum."""
    return abs(a - b) <= 2 * TOL * max(a, b, 1e-3 * c.sum()) + 1e-12


@pytest.mark.slow
@law
@given(problems(), st.randoms(use_true_random=False))
def test_order_of_samples_and_columns_does_not_matter(problem, random):
    S, y, p, c, nonneg = problem
    rows, columns = list(range(S.shape[0])), list(range(S.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    one = solve(S, y, p, c, nonneg, TOL)
    other = solve(S[rows][:, columns], y[rows], p, c[rows], nonneg, TOL)
    assert close(one.primal, other.primal, c)


@pytest.mark.slow
@law
@given(problems(), st.sampled_from([1e-9, 0.1, 3.0, 1e6]))
def test_scaling_the_weights_scales_the_value(problem, factor):
    S, y, p, c, nonneg = problem
    one, other = solve(S, y, p, c, nonneg, TOL), solve(S, y, p, c * factor, nonneg, TOL)
    assert close(one.primal, other.primal / factor, c)


@pytest.mark.slow
@law
@given(problems(), st.sampled_from([2.0**-30, 0.5, 4.0, 2.0**20]))
def test_scaling_the_weights_by_a_power_of_two_changes_no_bit(problem, factor):
    S, y, p, c, nonneg = problem
    one, other = solve(S, y, p, c, nonneg, TOL), solve(S, y, p, c * factor, nonneg, TOL)
    np.testing.assert_array_equal(one.w, other.w)
    np.testing.assert_array_equal(one.alpha * factor, other.alpha)


@pytest.mark.slow
@law
@given(problems())
def test_flipping_scores_and_labels_changes_nothing(problem):
    S, y, p, c, nonneg = problem
    one, other = solve(S, y, p, c, nonneg, TOL), solve(-S, -y, p, c, nonneg, TOL)
    np.testing.assert_array_equal(one.w, other.w)


@pytest.mark.slow
@law
@given(problems())
def test_larger_scores_only_help(problem):
    # scaling all margins by 2 enlarges the ball in effect: the optimum cannot rise
    S, y, p, c, nonneg = problem
    one, other = solve(S, y, p, c, nonneg, TOL), solve(2 * S, y, p, c, nonneg, TOL)
    assert other.dual <= one.primal + 1e-12


@pytest.mark.slow
@law
@given(problems())
def test_the_sign_constraint_costs(problem):
    S, y, p, c, _ = problem
    assert solve(S, y, p, c, False, TOL).dual <= solve(S, y, p, c, True, TOL).primal + 1e-12


@pytest.mark.slow
@law
@given(problems(), st.integers(0, 11))
def test_splitting_a_sample_changes_nothing(problem, i):
    S, y, p, c, nonneg = problem
    i %= len(y)
    c2 = np.append(c, c[i] / 2)
    c2[i] /= 2
    other = solve(np.vstack([S, S[i]]), np.append(y, y[i]), p, c2, nonneg, TOL)
    assert close(solve(S, y, p, c, nonneg, TOL).primal, other.primal, c)

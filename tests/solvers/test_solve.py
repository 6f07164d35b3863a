"""The public functions: what they promise, at the ends of p and on odd data."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ocfuse.exceptions import ConvergenceWarning
from ocfuse.solvers import Status, solve, solve_batch
from ocfuse.solvers.ball import LpBall, lp_norm
from ocfuse.solvers.solution import certify
from tests.solvers.cases import BACKENDS, GRID, NORMS, make_case


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.mark.parametrize("solver", ["auto", "interior-point"])
@pytest.mark.parametrize("p", NORMS)
def test_one_sample_has_a_closed_form(p, solver, backend):
    # min over the ball of max(0, 1 - s.w) is max(0, 1 - ||s||_q)
    q = np.inf if p == 1 else p / (p - 1) if np.isfinite(p) else 1.0
    for s in ([0.3, -0.2, 0.1], [0.9, 0.8, -0.7], [5.0, 0.0, 0.0]):
        sol = solve([s], [1], p, tol=1e-8, solver=solver, backend=backend)
        assert_allclose(sol.primal, max(0.0, 1.0 - lp_norm(np.array(s), q)), atol=1e-8)


@pytest.mark.parametrize("p", NORMS)
def test_all_active_hinges_have_a_closed_form(p, nonneg, backend):
    rng = np.random.default_rng(0)
    S, y = rng.normal(size=(30, 5)) * 0.1, np.where(rng.random(30) < 0.4, -1.0, 1.0)
    c = rng.random(30)
    ball = LpBall(p, nonneg)
    w = ball.maximiser((c * y) @ S)
    assert (y * (S @ w) <= 1).all()
    sol = solve(S, y, p, c, nonneg=nonneg, tol=1e-9, backend=backend)
    assert_allclose(sol.w, w, atol=1e-12)
    assert sol.solver == "closed-form"
    assert sol.n_iter == 1
    ipm = solve(S, y, p, c, nonneg=nonneg, tol=1e-9, solver="interior-point", backend=backend)
    assert_allclose(ipm.primal, sol.primal, rtol=2e-9)


@pytest.mark.parametrize("solver", ["auto", "interior-point", "frank-wolfe"])
def test_z_scored_normals_teach_nothing(solver, backend):
    # METHOD: with all labels +1 and columns of mean 0, w = 0 is optimal, value n
    S = np.random.default_rng(1).normal(size=(50, 4))
    S -= S.mean(axis=0)
    for p in NORMS:
        sol = solve(S, np.ones(50), p, tol=1e-4, solver=solver, backend=backend)
        assert sol.dual <= 50.0 <= sol.primal + 1e-9
        assert sol.gap <= 1e-4


@pytest.mark.parametrize("p", GRID)
def test_mirrored_negatives_only_double_the_weight(p):
    case = make_case(2, pure=True)
    S = np.vstack([case.S, -case.S])
    y = np.concatenate([np.ones(300), -np.ones(300)])
    double = solve(S, y, p, tol=1e-8)
    once = solve(case.S, np.ones(300), p, tol=1e-8)
    assert_allclose(double.primal, 2 * once.primal, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("p", NORMS)
def test_local_with_every_sample_is_global(p, nonneg, backend):
    # eta = 1 and kappa = 1: every anchor sees all samples with equal weight
    case = make_case(3, n=80)
    index = np.tile(np.arange(80), (3, 1))
    c = np.full((3, 80), 1.0 / 80)
    local = solve_batch(case.S, case.y, index, c, p, nonneg=nonneg, tol=1e-8, backend=backend)
    whole = solve(case.S, case.y, p, nonneg=nonneg, tol=1e-8, backend=backend)
    assert (local.gap <= 1e-8).all()
    assert_allclose(local.primal * 80, whole.primal, rtol=1e-7, atol=1e-6)


def test_coupled_weights_cannot_learn_random_labels():
    # One w per sample reaches 100 % on any labels (test_paper_algorithm.py);
    # one w for all of them does not.
    rng = np.random.default_rng(4)
    S, y = rng.normal(size=(500, 6)), np.where(rng.random(500) < 0.5, -1.0, 1.0)
    for p in (32 / 31, 2.0, 100.0):
        w = solve(S, y, p).w
        assert np.mean(np.sign(S @ w) == y) < 0.65


def test_the_optimum_falls_as_p_grows():
    case = make_case(5)
    values = [solve(case.S, case.y, p, tol=1e-8).primal for p in NORMS]
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert values[0] - values[-1] > 0.01 * values[0]


def test_p_one_and_infinity_are_the_limits(nonneg):
    case = make_case(6)
    for end, near in ((1.0, 1.0 + 1e-9), (np.inf, 1e9)):
        exact = solve(case.S, case.y, end, nonneg=nonneg, tol=1e-8)
        close = solve(case.S, case.y, near, nonneg=nonneg, tol=1e-8)
        assert_allclose(exact.primal, close.primal, rtol=1e-6)
    assert np.abs(solve(case.S, case.y, np.inf).w).max() <= 1.0


ODD = {
    "all zero": np.zeros((9, 3)),
    "constant": np.full((9, 3), 0.4),
    "zero column": np.column_stack([np.linspace(0, 1, 9), np.zeros(9)]),
    "duplicate columns": np.tile(np.linspace(-1, 2, 9)[:, None], (1, 4)),
    "mirrored columns": np.column_stack([np.linspace(-1, 2, 9), -np.linspace(-1, 2, 9)]),
    "duplicate samples": np.tile([[0.5, 1.2, -0.3]], (9, 1)),
    "more columns than samples": np.random.default_rng(0).normal(size=(9, 30)),
    "one column": np.linspace(-2, 2, 9)[:, None],
    "eight decades": np.random.default_rng(1).normal(size=(9, 9)) * np.logspace(-4, 4, 9),
    "separable": np.full((9, 3), 40.0) * np.array([1, 1, 1, 1, 1, 1, -1, -1, -1.0])[:, None],
}


ODD_LABELS = np.array([1, 1, 1, 1, 1, 1, -1, -1, -1.0])
ODD_WEIGHTS = np.array([0, 0, 1, 2, 1e-9, 1, 1, 3, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("labels", ["pure", "mixed"])
@pytest.mark.parametrize("solver", ["auto", "interior-point"])
def test_odd_data_is_solved(name, labels, solver, nonneg, backend):
    # one by one and in a batch: the kernel lays the two out differently
    S, y = ODD[name], np.ones(9) if labels == "pure" else ODD_LABELS
    A, options = S * y[:, np.newaxis], {"solver": solver, "backend": backend}
    m = len(NORMS)
    index, c = np.tile(np.arange(9), (m, 1)), np.tile(ODD_WEIGHTS, (m, 1))
    batch = solve_batch(S, y, index, c, NORMS, nonneg, 1e-6, **options)
    for p, other in zip(NORMS, [batch[i] for i in range(m)], strict=True):
        single = solve(S, y, p, ODD_WEIGHTS, nonneg, 1e-6, **options)
        for sol in (single, other):
            proof = certify(A, ODD_WEIGHTS, LpBall(p, nonneg), sol.w, sol.alpha)
            assert sol.status is Status.SOLVED
            assert proof.gap <= 1e-6
            assert lp_norm(sol.w, p) <= 1 + 1e-12


def test_separable_data_reaches_zero():
    assert solve(ODD["separable"], ODD_LABELS, 2.0).primal == 0.0


def test_no_weight_at_all_is_a_solved_problem(backend):
    sol = solve([[0.3], [0.2]], [1, 1], 2, sample_weight=[0, 0], backend=backend)
    assert (sol.primal, sol.dual, sol.gap, sol.status) == (0.0, 0.0, 0.0, Status.SOLVED)


def test_zero_weight_is_as_good_as_absent(backend):
    case = make_case(7, n=50)
    c = np.ones(50)
    c[20:] = 0.0
    kept = solve(case.S[:20], case.y[:20], 2.0, tol=1e-9, backend=backend)
    masked = solve(case.S, case.y, 2.0, c, tol=1e-9, backend=backend)
    assert_allclose(masked.primal, kept.primal, rtol=1e-8)
    assert (masked.alpha[20:] == 0).all()


@pytest.mark.parametrize("size", [1e6, 1e8])
@pytest.mark.parametrize("p", [1.0, 2.0, 10.0])
def test_one_huge_sample_is_solved(size, p, backend):
    # far beyond the scale of the others: the start has to be in proportion
    case = make_case(11, n=40, d=5)
    S = case.S.copy()
    S[7] *= size
    sol = solve(S, case.y, p, tol=1e-4, solver="interior-point", backend=backend)
    assert sol.status is Status.SOLVED
    assert sol.n_iter < 60


def test_weights_over_many_decades_are_solved_quickly(backend):
    case = make_case(12, n=60, d=5)
    c = 10.0 ** np.random.default_rng(0).uniform(-300, 0, 60)
    sol = solve(case.S, case.y, 2.0, c, tol=1e-8, solver="interior-point", backend=backend)
    assert sol.status is Status.SOLVED
    assert sol.n_iter < 30


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "interior-point", "frank-wolfe"])
def test_a_tiny_weight_on_a_huge_score_still_counts(solver, backend):
    # its hinge is 1e-31 * 1e33 = 100 if w = 1, far from nothing
    S, y, c = np.array([[0.5], [-1e33]]), np.ones(2), np.array([1.0, 1e-31])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sol = solve(S, y, 2.0, c, solver=solver, backend=backend)
    assert sol.primal >= np.sum(c * np.maximum(0, 1 - S @ sol.w)) * (1 - 1e-9)
    if sol.status is Status.SOLVED:
        assert sol.primal <= 1.0 + 1e-4


def extended_gap(A, c, p, W, alpha):
    """Return the relative gaps by the formula, in extended precision."""
    A, c, W, alpha = (x.astype(np.longdouble) for x in (A, c, W, alpha))
    q = (p / (p - 1))[:, np.newaxis].astype(np.longdouble)
    primal = (c * np.maximum(0, 1 - (A @ W[:, :, np.newaxis])[:, :, 0])).sum(axis=1)
    v = np.abs((alpha[:, np.newaxis, :] @ A)[:, 0])
    top = np.maximum(v.max(axis=1, keepdims=True), 1e-300)
    norm = top[:, 0] * ((v / top) ** q).sum(axis=1) ** (1 / q[:, 0])
    return (primal - alpha.sum(axis=1) + norm) / np.maximum(primal, 1e-3 * c.sum(axis=1))


@pytest.mark.parametrize("scale", [1e8, 1e12, 1e14])
@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_no_false_certificate_where_rounding_is_large(scale, tol, backend):
    case = make_case(13, d=8, k=50, m=240)
    S, p = case.S * scale, np.resize(GRID, 240)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        bat = solve_batch(S, case.y, case.index, case.c, p, tol=tol, backend=backend)
    gap = extended_gap((S * case.y[:, np.newaxis])[case.index], case.c, p, bat.W, bat.alpha)
    assert (gap[bat.status == Status.SOLVED] <= tol).all()
    assert scale > 1e8 or bat.n_solved > 200


def test_best_point_is_kept_when_iterations_run_out(backend):
    # auto always makes one Frank-Wolfe step, and must not do worse afterwards
    case = make_case(14, d=8, k=50, m=100)
    arguments, options = (case.S, case.y, case.index, case.c, 2.0), {"backend": backend}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = solve_batch(*arguments, tol=1e-9, max_iter=1, solver="frank-wolfe", **options)
        for limit in (1, 2, 3):
            auto = solve_batch(*arguments, tol=1e-9, max_iter=limit, **options)
            assert (auto.gap <= first.gap * (1 + 1e-9)).all()
            kept = auto.gap >= first.gap * (1 - 1e-9)
            assert kept.any() or limit > 1
            assert {auto.solver[i] for i in np.flatnonzero(kept)} <= {"closed-form", "frank-wolfe"}


@pytest.mark.parametrize("solver", ["auto", "interior-point", "frank-wolfe"])
def test_a_batch_is_as_good_as_its_parts(solver, backend):
    case = make_case(15, m=12)
    p = np.array(([1.1, 1.5] if solver == "frank-wolfe" else [1.0, 8.0]) * 6)
    options = {"solver": solver, "backend": backend, "tol": 1e-2}
    whole = solve_batch(case.S, case.y, case.index, case.c, p, **options)
    for rows in ([3], [7, 2], [11, 10, 9]):
        part = solve_batch(case.S, case.y, case.index[rows], case.c[rows], p[rows], **options)
        assert_allclose(part.W, whole.W[rows], rtol=1e-9, atol=1e-9)
        if backend == "native":
            assert_array_equal(part.W, whole.W[rows])


def test_not_converged_warns_and_returns_the_best_point(backend):
    case = make_case(8)
    with pytest.warns(
        ConvergenceWarning, match=r"max iterations.*gap.*tol=1e-08.*max_iter"
    ) as record:
        sol = solve(case.S, case.y, 8.0, tol=1e-8, solver="frank-wolfe", max_iter=20,
                    backend=backend)  # fmt: skip
    assert record[0].filename == __file__
    assert sol.status is Status.MAX_ITERATIONS
    assert sol.gap > 1e-8
    assert sol.n_iter == 20
    A = case.S * case.y[:, np.newaxis]
    assert_allclose(certify(A, np.ones(300), LpBall(8.0), sol.w, sol.alpha).gap, sol.gap, rtol=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 40 problems.*of problem \d+"):
        solve_batch(case.S, case.y, case.index, case.c, 8.0, tol=1e-8, solver="frank-wolfe",
                    max_iter=3, backend=backend)  # fmt: skip


def test_a_batch_hands_out_single_solutions():
    case = make_case(9, m=6)
    bat = solve_batch(case.S, case.y, case.index, case.c, NORMS[:6], solver="interior-point")
    assert len(bat) == 6
    assert bat.n_solved == 6
    one = bat[4]
    assert_array_equal(one.w, bat.W[4])
    assert (one.status, one.solver) == (Status.SOLVED, "interior-point")
    assert str(one.status) == "solved"
    assert bat.solver == ["interior-point"] * 6

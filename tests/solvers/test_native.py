"""The compiled kernel against its NumPy twin, and what only it can get wrong."""

import concurrent.futures
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ocfuse.solvers import Status, native, solve, solve_batch
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.problem import Problem
from ocfuse.solvers.solution import certify
from tests.solvers.cases import NORMS, make_case, without_kernel

pytestmark = without_kernel

SHAPES = [(1, 1), (1, 7), (2, 3), (3, 50), (5, 4), (7, 33), (8, 50), (13, 20), (33, 40), (64, 200)]
SOLVERS = ["auto", "interior-point", "frank-wolfe"]


@pytest.fixture(params=[False, True], ids=["best", "baseline"])
def instruction_set(request):
    native.kernel.use_baseline(request.param)
    yield native.kernel.instruction_set()
    native.kernel.use_baseline(False)


def both(case, p, **options):
    arguments = (case.S, case.y, case.index, case.c, p)
    return (
        solve_batch(*arguments, backend="native", **options),
        solve_batch(*arguments, backend="numpy", **options),
    )


def check_certificates(case, p, nonneg, answer, tol):
    A = (case.S * case.y[:, np.newaxis])[case.index]
    ball = LpBall(np.broadcast_to(p, len(case.index)).astype(float), nonneg)
    proof = certify(A, case.c, ball, answer.W, answer.alpha)
    assert_allclose(answer.primal, proof.primal, rtol=1e-9, atol=1e-12)
    assert_allclose(answer.dual, proof.dual, rtol=1e-9, atol=1e-9)
    assert (proof.gap[answer.status == Status.SOLVED] <= tol).all()
    assert (ball.norm(answer.W) <= 1 + 1e-12).all()
    assert ((answer.alpha >= 0) & (answer.alpha <= case.c)).all()
    assert not nonneg or (answer.W >= 0).all()


@cache
def answered_by_the_twin(d, k, solver, nonneg, pure):
    """Return a case, how it is to be solved, and the answer, which no instruction set changes."""
    case = make_case(d * k, d=d, k=k, m=13, pure=pure)
    p = np.resize(NORMS if solver != "frank-wolfe" else NORMS[2:5], 13)
    options = {"nonneg": nonneg, "tol": 1e-6 if solver != "frank-wolfe" else 3e-2, "solver": solver}
    arguments = (case.S, case.y, case.index, case.c, p)
    return case, p, options, solve_batch(*arguments, backend="numpy", **options)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "k"), SHAPES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_agrees_with_the_twin(d, k, solver, nonneg, pure, instruction_set):
    case, p, options, slow = answered_by_the_twin(d, k, solver, nonneg, pure)
    tol = options["tol"]
    fast = solve_batch(case.S, case.y, case.index, case.c, p, backend="native", **options)
    check_certificates(case, p, nonneg, fast, tol)
    check_certificates(case, p, nonneg, slow, tol)
    assert_array_equal(fast.status, slow.status)
    scale = np.maximum(slow.primal, 1e-3 * case.c.sum(axis=1))
    assert (np.abs(fast.primal - slow.primal) <= tol * scale).all()
    if solver == "interior-point":
        assert np.abs(fast.n_iter - slow.n_iter).max() <= 3


def test_paper_variant_agrees_step_by_step(nonneg, instruction_set):
    case = make_case(8, d=4, k=30)
    with pytest.warns(match="stopped before"):
        fast, slow = both(case, 2.0, nonneg=nonneg, solver="frank-wolfe-paper", max_iter=50)
    assert_allclose(fast.W, slow.W, atol=1e-9)
    assert_array_equal(fast.n_iter, slow.n_iter)


@pytest.mark.parametrize(("d", "k"), [(6, 25), (16, 300), (64, 200)])
def test_an_answer_depends_on_its_problem_alone(d, k):
    case = make_case(0, d=d, k=k, m=90)
    p = np.resize(NORMS, 90)
    whole = solve_batch(case.S, case.y, case.index, case.c, p, n_threads=1)
    threads = solve_batch(case.S, case.y, case.index, case.c, p, n_threads=2)
    for name in ("W", "alpha", "primal", "dual", "status", "n_iter"):
        assert_array_equal(getattr(whole, name), getattr(threads, name))
    for rows in ([7], [88, 3], list(range(89, -1, -2))):
        part = solve_batch(case.S, case.y, case.index[rows], case.c[rows], p[rows])
        assert_array_equal(part.W, whole.W[rows])
        assert_array_equal(part.alpha, whole.alpha[rows])


def test_several_python_threads_at_once():
    case = make_case(9, m=200)
    expected = solve_batch(case.S, case.y, case.index, case.c, 2.0).W

    def work(_):
        return solve_batch(case.S, case.y, case.index, case.c, 2.0, n_threads=2).W

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for W in pool.map(work, range(16)):
            assert_array_equal(W, expected)


def test_kernel_refuses_what_it_cannot_index():
    A, index, c, p = np.ones((3, 2)), np.array([[0, 3]]), np.ones((1, 2)), np.array([2.0])
    rest = (False, 1e-4, 0, 100, 100, 10.0, False, True, 1)
    with pytest.raises(IndexError, match="outside"):
        native.kernel.solve(A, index, c, p, *rest)
    with pytest.raises(IndexError, match="outside"):
        native.kernel.solve(A, -index, c, p, *rest)
    many = np.tile(index, (500, 1)), np.ones((500, 2)), np.full(500, 2.0)
    with pytest.raises(IndexError, match="outside"):  # also out of another thread
        native.kernel.solve(A, *many, *rest[:-1], 3)
    with pytest.raises(ValueError, match="agree"):
        native.kernel.solve(A, index[:, :1], c, p, *rest)
    with pytest.raises(ValueError, match="at least one"):
        native.kernel.solve(A, index[:, :0], c[:, :0], p, *rest)
    with pytest.raises(ValueError, match="method"):
        native.kernel.solve(A, index * 0, c, p, False, 1e-4, 9, 100, 100, 10.0, False, True, 1)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, -1e300])
@pytest.mark.parametrize("where", [(4, 1), (4, slice(None)), (slice(None), slice(None))])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("method", [0, 1, 2, 3])
def test_nothing_that_overflows_is_called_solved(value, where, d, method, together):
    # The public door refuses what is not finite; the kernel is safe without it.
    A = np.random.default_rng(0).normal(size=(20, d))
    A[where if d > 1 else where[0]] = value
    index, c, p = np.arange(20)[np.newaxis], np.full((1, 20), 0.05), np.array([2.0])
    answer = native.kernel.solve(
        A, index, c, p, False, 1e-4, method, 100, 100, 10.0, False, together, 1
    )
    w, alpha, _, _, status, _, _ = answer
    if status[0] == Status.SOLVED:
        assert np.isfinite(value)
        with np.errstate(all="ignore"):
            assert certify(A, c[0], LpBall(2.0), w[0], alpha[0]).gap <= 1e-4


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory by setrlimit")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer maps more")
def test_threads_that_cannot_start_are_done_without():
    code = (
        "import resource, numpy as np\n"
        "from ocfuse.solvers import native\n"
        "A, index = np.ones((9, 2)), np.zeros((5000, 3), dtype=np.int64)\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, -1))\n"
        "c, p = np.ones((5000, 3)), np.full(5000, 2.0)\n"
        "args = (False, 1e-4, 1, 100, 100, 10.0, False, True, 2000)\n"
        "try:\n"
        "    print('solved', int((native.kernel.solve(A, index, c, p, *args)[4] == 0).sum()))\n"
        "except MemoryError:\n"
        "    print('solved 5000')  # as honest an end\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "solved 5000", run.stderr


def test_what_the_kernel_loses_the_twin_solves(monkeypatch):
    case = make_case(16, m=10)
    expected = solve_batch(case.S, case.y, case.index, case.c, 2.0, tol=1e-6)

    class Forgetful:
        """A kernel that loses every other problem."""

        def solve(self, *arguments):
            answer = native_kernel.solve(*arguments)
            for values, lost in zip(answer, (0, 0, 99, 0, native.LOST, 1, 5), strict=True):
                values[::2] = lost
            return answer

    native_kernel = native.kernel
    monkeypatch.setattr(native, "kernel", Forgetful())
    again = solve_batch(case.S, case.y, case.index, case.c, 2.0, tol=1e-6)
    assert again.n_solved == 10
    assert_allclose(again.primal, expected.primal, rtol=1e-5)
    assert (again.n_iter[::2] > 5).all()
    with pytest.warns(match="numerical trouble"):  # no second try within a limit
        given_up = solve_batch(case.S, case.y, case.index, case.c, 2.0, tol=1e-6, max_iter=150)
    assert (given_up.status[::2] == Status.NUMERICAL_TROUBLE).all()


def test_huge_scores_end_honestly():
    rng = np.random.default_rng(1)
    S, y = rng.normal(size=(60, 4)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    for scale in (1e-200, 1e-8, 1e8):
        assert solve(S * scale, y, 2.0).status is Status.SOLVED


def test_thread_count_never_exceeds_work_or_the_environment(monkeypatch):
    def problem(m, k=50, d=8):
        index = np.zeros((m, k), dtype=int)
        return Problem.from_neighbours(np.ones((1, d)), [1], index, None, 2.0, False)

    monkeypatch.setenv("OMP_NUM_THREADS", " 3")
    assert native.thread_count(problem(10_000), None) == 3
    assert native.thread_count(problem(40), None) == 1
    assert native.thread_count(problem(10_000), 2) == 2
    assert native.thread_count(problem(2, 5000, 16), None) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert native.thread_count(problem(10_000), None) == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert native.thread_count(problem(10_000), None) >= 1


def test_without_the_kernel_the_twin_serves():
    code = (
        "import sys; sys.modules['ocfuse.solvers._native'] = None\n"
        "import ocfuse, ocfuse.solvers as s\n"
        "assert not s.native.is_available()\n"
        "print(s.solve([[0.5], [0.2]], [1, 1], 2).w, s.native.describe())\n"
        "s.solve([[0.5]], [1], 2, backend='native')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "[1.]" in run.stdout
    assert "not built" in run.stdout
    assert "needs the compiled kernel" in run.stderr

"""The compiled kernel, where the installation could build it."""

from importlib import import_module
from types import ModuleType

import numpy as np

from ocfuse.solvers.batched import solve_numpy
from ocfuse.solvers.method import MANY_SAMPLES, SolverSettings, patience
from ocfuse.solvers.problem import Problem
from ocfuse.solvers.solution import BatchSolution, Status, relative_gap
from ocfuse.system.threads import allowed_threads

kernel: ModuleType | None

reason = "not built"
try:
    kernel = import_module("ocfuse.solvers._native")
except ModuleNotFoundError:  # no compiler at installation: the NumPy twin serves
    kernel = None
except ImportError as error:  # built, but for another system
    kernel, reason = None, f"cannot be loaded ({error})"

#: The kernel's mark for a problem that it lost to rounding.
LOST = 3


def is_available() -> bool:
    """Return whether the compiled kernel was built."""
    return kernel is not None


def describe() -> str:
    """Return one line that says which kernel runs."""
    if kernel is None:
        return (
            f"{reason}; the NumPy twin serves, several times slower "
            "(install a C++ compiler and reinstall ocfuse from its sources)"
        )
    return f"C++, {kernel.instruction_set()}"


def thread_count(problem: Problem, n_threads: int | None) -> int:
    """Return how many threads to use: no more than asked for, and than the work is worth.

    By default as many as allowed, see `allowed_threads`.
    """
    if n_threads is None:
        n_threads = allowed_threads()
    # So many gathered margins make starting a thread worth while.
    work = problem.n_problems * problem.n_samples * problem.n_columns // 12_800
    return max(1, min(n_threads, problem.n_problems, work))


def rides_together(problem: Problem) -> bool:
    """Return whether problems of this shape are solved one per vector lane.

    Larger ones fill the lanes by themselves (measured: the margins of four problems must stay
    in a core's own cache). The number of problems plays no part, so that an answer does not
    depend on it.
    """
    k = problem.n_samples
    return k <= 256 and k * problem.n_columns <= 8192


def solve_native(
    problem: Problem, settings: SolverSettings, n_threads: int | None, together: bool
) -> BatchSolution:
    """Solve every problem in the compiled kernel; what it cannot, NumPy tries again."""
    assert kernel is not None
    W, alpha, primal, dual, status, method, n_iter = kernel.solve(
        problem.A, problem.index, problem.c, problem.p, problem.nonneg,
        settings.tol, int(settings.method),
        settings.interior_point_limit, settings.frank_wolfe_limit,
        patience(problem.n_samples, problem.n_columns, settings.tol),
        problem.n_samples >= MANY_SAMPLES, together,
        thread_count(problem, n_threads),
    )  # fmt: skip
    answer = BatchSolution(
        W, alpha, primal, dual, relative_gap(primal, dual, problem.total), status, n_iter, method
    )
    unsolved = np.flatnonzero(status != Status.SOLVED)
    if unsolved.size and settings.may_retry:
        answer.improve(unsolved, solve_numpy(problem.take(unsolved), settings))
    status[status == LOST] = Status.NUMERICAL_TROUBLE
    return answer

"""`solve` and `solve_batch`: check, choose the kernel, solve, warn."""

import warnings
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.exceptions import ConvergenceWarning, InvalidInputError
from ocfuse.solvers.batched import solve_numpy
from ocfuse.solvers.method import Method, SolverSettings
from ocfuse.solvers.native import is_available, rides_together, solve_native
from ocfuse.solvers.problem import Problem, check_max_iter, check_tol
from ocfuse.solvers.solution import BatchSolution, Solution, Status

Solver = Literal["auto", "interior-point", "frank-wolfe", "frank-wolfe-paper"]
Backend = Literal["auto", "native", "numpy"]


def solve(
    S: ArrayLike,
    y: ArrayLike,
    p: float,
    sample_weight: ArrayLike | None = None,
    nonneg: bool = False,
    tol: float = 1e-4,
    solver: Solver = "auto",
    *,
    max_iter: int | None = None,
    backend: Backend = "auto",
) -> Solution:
    """Learn one weight vector for the columns of a score matrix.

    Solves ``min_w sum_i c_i max(0, 1 - y_i s_i.w)`` subject to ``||w||_p <= 1`` and, with
    `nonneg`, ``w >= 0``, to a proven relative gap.

    Parameters
    ----------
    S : array-like of shape (n, d)
        Scores, one column per detector.
    y : array-like of shape (n,)
        Labels, +1 for normal and -1 for anomaly.
    p : float
        Norm of the constraint, from 1 (sparse weights) to inf (nearly equal weights).
    sample_weight : array-like of shape (n,), optional
        Weights c, not negative; all ones by default.
    nonneg : bool, default=False
        Whether weights must be ``>= 0``.
    tol : float, default=1e-4
        Relative gap to reach, as defined in `Solution`.
    solver : {"auto", "interior-point", "frank-wolfe", "frank-wolfe-paper"}
        The method. "auto" uses the closed form if there is one, Frank-Wolfe if it is fast, and
        else the interior-point method.
    max_iter : int, optional
        Most iterations of each method; None is 200 for the interior-point method and 10,000 for
        Frank-Wolfe.
    backend : {"auto", "native", "numpy"}, default="auto"
        The compiled kernel, or the same algorithm in NumPy. "auto" uses the kernel if it is built.

    Returns
    -------
    Solution
        Weights, dual certificate, gap and status.

    Warns
    -----
    ConvergenceWarning
        If the gap is larger than `tol`; the best point found is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.solvers import solve
    >>> S = np.array([[0.9, 0.2], [0.8, 0.1], [0.1, 0.3]])
    >>> sol = solve(S, y=[1, 1, -1], p=2)
    >>> sol.w.round(3), str(sol.status)
    (array([1., 0.]), 'solved')
    """
    problem = Problem.from_scores(S, y, p, sample_weight, nonneg)
    settings = SolverSettings.of(solver, check_tol(tol), check_max_iter(max_iter))
    solution = _run(problem, settings, backend, 1, False)[0]
    if solution.status is not Status.SOLVED:
        warnings.warn(
            f"The solver {solution.solver!r} stopped with status {str(solution.status)!r} at "
            f"relative gap {solution.gap:.2g}, for tol={settings.tol:g}. The best point is "
            f"returned. {_advice(settings)}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution


def solve_batch(
    S: ArrayLike,
    y: ArrayLike,
    index: ArrayLike,
    sample_weight: ArrayLike | None,
    p: ArrayLike,
    nonneg: bool = False,
    tol: float = 1e-4,
    solver: Solver = "auto",
    *,
    max_iter: int | None = None,
    n_threads: int | None = None,
    backend: Backend = "auto",
) -> BatchSolution:
    """Learn one weight vector per neighbourhood, each with its own norm.

    Problem l is that of `solve` on the rows ``index[l]`` of `S` and `y`, with the weights
    ``sample_weight[l]`` and the norm ``p[l]``. Its solution does not depend on the other problems,
    nor on the number of threads.

    Parameters
    ----------
    S : array-like of shape (n, d)
        Scores, one column per detector, shared by all problems.
    y : array-like of shape (n,)
        Labels, +1 for normal and -1 for anomaly.
    index : array-like of shape (m, k)
        Rows of `S` that form each problem.
    sample_weight : array-like of shape (m, k) or None
        Weights, not negative; None for all ones. Zero leaves a sample out.
    p : float or array-like of shape (m,)
        Norm of the constraint, from 1 to inf.
    nonneg : bool, default=False
        Whether weights must be ``>= 0``.
    tol : float, default=1e-4
        Relative gap to reach, as defined in `Solution`.
    solver : {"auto", "interior-point", "frank-wolfe", "frank-wolfe-paper"}
        The method, as in `solve`.
    max_iter : int, optional
        Most iterations of each method, as in `solve`.
    n_threads : int, optional
        Threads of the compiled kernel. None takes OMP_NUM_THREADS if it is set, else the number of
        cores that this process may use.
    backend : {"auto", "native", "numpy"}, default="auto"
        The compiled kernel, or the same algorithm in NumPy. "auto" uses the kernel if it is built.

    Returns
    -------
    BatchSolution
        Weights, dual certificates, gaps and statuses.

    Warns
    -----
    ConvergenceWarning
        If some gap is larger than `tol`; the best points found are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.solvers import solve_batch
    >>> S = np.array([[0.9, 0.2], [0.8, 0.1], [0.1, 0.3], [0.2, 0.7]])
    >>> bat = solve_batch(S, np.ones(4), [[0, 1], [2, 3]], None, p=[1, 1])
    >>> bat.W.round(3)
    array([[1., 0.],
           [0., 1.]])
    """
    problem = Problem.from_neighbours(S, y, index, sample_weight, p, nonneg)
    settings = SolverSettings.of(solver, check_tol(tol), check_max_iter(max_iter))
    answer = _run(problem, settings, backend, _check_threads(n_threads), rides_together(problem))
    if answer.n_solved < len(answer):
        unsolved = np.flatnonzero(answer.status != Status.SOLVED)
        worst = unsolved[np.argmax(answer.gap[unsolved])]
        warnings.warn(
            f"{unsolved.size} of {len(answer)} problems stopped before tol={settings.tol:g}; the "
            f"largest relative gap is {answer.gap[worst]:.2g}, of problem {worst}, with status "
            f"{str(Status(int(answer.status[worst])))!r}. The best points are returned. "
            f"{_advice(settings)}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return answer


def _run(
    problem: Problem,
    settings: SolverSettings,
    backend: Backend,
    n_threads: int | None,
    together: bool,
) -> BatchSolution:
    if backend not in ("auto", "native", "numpy"):
        raise InvalidInputError(f'backend must be "auto", "native" or "numpy". Got {backend!r}.')
    if backend == "native" and not is_available():
        raise InvalidInputError(
            'backend="native" needs the compiled kernel, which was not built. '
            'Install a C++ compiler and ocfuse from its sources, or use backend="numpy".'
        )
    if backend == "numpy" or not is_available():
        return solve_numpy(problem, settings)
    return solve_native(problem, settings, n_threads, together)


def _advice(settings: SolverSettings) -> str:
    """Return what to do about a gap that stayed open."""
    if settings.max_iter is not None:
        return "Raise max_iter or tol."
    if settings.method is Method.AUTO:
        return "Raise tol, or bring the scores to one scale."
    return "Use solver='auto', or raise tol."


def _check_threads(n_threads: int | None) -> int | None:
    if n_threads is None:
        return None
    if isinstance(n_threads, bool) or not isinstance(n_threads, int | np.integer) or n_threads < 1:
        raise InvalidInputError(
            f"n_threads must be a positive integer or None. Got n_threads={n_threads!r}."
        )
    return int(n_threads)

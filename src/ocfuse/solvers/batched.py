"""Many problems at once in plain NumPy: the reference, and what runs without a compiler."""

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.frank_wolfe import frank_wolfe
from ocfuse.solvers.interior_point import interior_point
from ocfuse.solvers.method import MANY_SAMPLES, Forecast, Method, SolverSettings, patience
from ocfuse.solvers.problem import Problem
from ocfuse.solvers.solution import BatchSolution, BestPairs, Status


def solve_numpy(problem: Problem, settings: SolverSettings) -> BatchSolution:
    """Solve every problem, block by block."""
    m, k, d = problem.n_problems, problem.n_samples, problem.n_columns
    answer = BatchSolution.empty(m, k, d)
    size = max(1, 2**24 // (8 * k * d))  # bytes of gathered margins
    for begin in range(0, m, size):
        rows = np.arange(begin, min(begin + size, m))
        _solve_block(problem.take(rows), rows, settings, answer)
    return answer


def _solve_block(
    block: Problem, rows: NDArray[np.intp], settings: SolverSettings, answer: BatchSolution
) -> None:
    A = block.gather()
    scale = np.where(block.total > 0, block.total, 1.0)
    c = block.c / scale[:, np.newaxis]
    # A sample whose hinge can never exceed this share of the weight changes nothing, and would
    # still shorten the steps of the interior point.
    absent = c * (1.0 + np.abs(A).sum(axis=2)) < 1e-30
    if absent.any():
        A, c = np.where(absent[:, :, np.newaxis], 0.0, A), np.where(absent, 0.0, c)
    outcome, method = _run(A, c, block.ball(), settings)
    pair = outcome.pair
    answer.W[rows] = pair.w
    answer.alpha[rows] = np.minimum(pair.alpha * scale[:, np.newaxis], block.c)
    answer.primal[rows] = pair.certificate.primal * scale
    answer.dual[rows] = pair.certificate.dual * scale
    answer.gap[rows] = pair.certificate.gap
    answer.status[rows] = outcome.status
    answer.n_iter[rows] = outcome.n_iter
    answer.method[rows] = method


def _run(
    A: FloatArray, c: FloatArray, ball: LpBall, settings: SolverSettings
) -> tuple[BestPairs, NDArray[np.int8]]:
    tol, limit = settings.tol, settings.frank_wolfe_limit
    method = np.full(A.shape[0], settings.method, dtype=np.int8)
    if settings.method is Method.INTERIOR_POINT:
        return interior_point(A, c, ball, tol, settings.interior_point_limit), method
    if settings.method is not Method.AUTO:
        paper = settings.method is Method.FRANK_WOLFE_PAPER
        return frank_wolfe(A, c, ball, tol, limit, paper=paper), method
    m, k, d = A.shape
    forecast = Forecast(patience(k, d, tol), k >= MANY_SAMPLES, np.ones(m))
    outcome = frank_wolfe(A, c, ball, tol, limit, forecast=forecast)
    left = np.flatnonzero(outcome.status != Status.SOLVED)
    method[outcome.n_iter > 1] = Method.FRANK_WOLFE
    if left.size:
        limit = settings.interior_point_limit
        second = interior_point(A[left], c[left], ball.take(left), tol, limit)
        improved = outcome.update(left, second.pair, tol)
        unsolved = outcome.status[left] != Status.SOLVED
        outcome.status[left[unsolved]] = second.status[unsolved]
        outcome.n_iter[left] += second.n_iter
        method[left[improved]] = Method.INTERIOR_POINT
    return outcome, method

"""Certified solvers for lp-constrained hinge fusion: arrays in, weights out."""

from ocfuse.solvers.dispatch import solve, solve_batch
from ocfuse.solvers.solution import BatchSolution, Solution, Status

__all__ = ["BatchSolution", "Solution", "Status", "solve", "solve_batch"]

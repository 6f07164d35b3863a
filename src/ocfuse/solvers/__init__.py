"""Certified solvers for lp-constrained hinge fusion: arrays in, weights out."""

from ocfuse.solvers.solution import BatchSolution, Solution, Status
from ocfuse.solvers.solve import solve, solve_batch

__all__ = [
    "BatchSolution",
    "Solution",
    "Status",
    "solve",
    "solve_batch",
]

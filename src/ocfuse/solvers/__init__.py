"""Certified solvers for lp-constrained hinge fusion: arrays in, weights out.

`solve` treats one problem and `solve_batch` many of one shape; each solution carries a
certificate that is recomputed from the returned weights. It must not know detectors, rows or
scikit-learn.
"""

from ocfuse.solvers.solution import BatchSolution, Solution, Status
from ocfuse.solvers.solve import solve, solve_batch

__all__ = [
    "BatchSolution",
    "Solution",
    "Status",
    "solve",
    "solve_batch",
]

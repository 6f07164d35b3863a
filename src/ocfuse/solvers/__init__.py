"""Solvers for the hinge loss with an lp-norm constraint, with certificates.

`solve` solves one problem, `solve_batch` many of the same shape; each solution has a certificate
that is recomputed from the returned weights. It must not know detectors, rows or scikit-learn.
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

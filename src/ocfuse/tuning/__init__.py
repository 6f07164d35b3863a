"""Search for settings by a criterion on out-of-fold scores, with or without anomalies.

A `Search` fits candidate members and fusions and keeps the best by a `Criterion`. It must not
know the estimator that uses the result, nor tables: it is given encoded rows.
"""

from ocfuse.tuning.criteria import (
    RPAU,
    Criterion,
    LabelledAUC,
    PseudoNegativeAUC,
    Stability,
    make_criterion,
)
from ocfuse.tuning.search import Search

__all__ = [
    "RPAU",
    "Criterion",
    "LabelledAUC",
    "PseudoNegativeAUC",
    "Search",
    "Stability",
    "make_criterion",
]

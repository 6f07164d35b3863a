"""Search for settings with a criterion on out-of-fold scores, with or without anomalies.

A `Search` fits candidate normalisers and fusions, and chooses the best with a `Criterion`. It must
not know the estimator that uses the result, nor tables: it gets encoded rows.
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

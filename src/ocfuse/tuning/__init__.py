"""Settings chosen by a criterion on held-out scores, with or without anomalies."""

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

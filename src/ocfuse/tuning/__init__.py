"""Settings chosen by a criterion on held-out scores, with or without anomalies."""

from ocfuse.tuning.areas import LabelledAUC, PseudoNegativeAUC
from ocfuse.tuning.criterion import Criterion
from ocfuse.tuning.named import make_criterion
from ocfuse.tuning.rpau import RPAU
from ocfuse.tuning.search import Search
from ocfuse.tuning.stability import Stability

__all__ = [
    "RPAU",
    "Criterion",
    "LabelledAUC",
    "PseudoNegativeAUC",
    "Search",
    "Stability",
    "make_criterion",
]

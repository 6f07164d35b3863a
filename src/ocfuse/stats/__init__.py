"""Statistical tests whether systems differ over many data sets.

Tables have data sets in rows and systems in columns; higher is better, NaN is a missing result,
and rank 1 is the best. This package must not know the systems, nor how results were measured.
"""

from ocfuse.stats.ranks import critical_difference, mean_ranks
from ocfuse.stats.tests import (
    Comparison,
    Friedman,
    PairComparison,
    SkillingsMack,
    compare,
    friedman,
    skillings_mack,
    wilcoxon_holm,
    wins,
)

__all__ = [
    "Comparison",
    "Friedman",
    "PairComparison",
    "SkillingsMack",
    "compare",
    "critical_difference",
    "friedman",
    "mean_ranks",
    "skillings_mack",
    "wilcoxon_holm",
    "wins",
]

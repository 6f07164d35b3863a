"""Whether one system is better than others over many data sets, or only lucky.

Every table has data sets in rows and systems in columns, higher is better, NaN marks a gap, and
rank 1 is the best. It must not know what the systems are, nor how their figures were measured.
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

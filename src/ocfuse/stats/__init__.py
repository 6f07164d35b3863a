"""Whether one system is better than others over many data sets, or only lucky.

One rule for every table: data sets in rows, systems in columns, higher is
better, NaN for a gap. Rank 1 is the best.
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

"""Whether one system is better than others over many data sets, or only lucky."""

from ocfuse.stats.omnibus import SkillingsMack, skillings_mack
from ocfuse.stats.paired import Comparison, compare, wins
from ocfuse.stats.ranks import critical_difference, mean_ranks

__all__ = [
    "Comparison",
    "SkillingsMack",
    "compare",
    "critical_difference",
    "mean_ranks",
    "skillings_mack",
    "wins",
]

"""Rival methods of the paper's tables, reconstructed where their text is not public.

Each docstring says what the authors published and what is ours; published figures stand in
the tables beside ours, never instead of them. A rival must not know the experiment it is
compared in, nor its data sets.
"""

from ocfuse.lab.rivals.boosted import BoostedSVM
from ocfuse.lab.rivals.dynamic import DynamicEnsemble
from ocfuse.lab.rivals.filtered import FilteredEnsemble
from ocfuse.lab.rivals.swarm import GeneticAverage, SwarmAverage

__all__ = [
    "BoostedSVM",
    "DynamicEnsemble",
    "FilteredEnsemble",
    "GeneticAverage",
    "SwarmAverage",
]

"""Rival methods of the paper's tables, reconstructed where their text is not public.

Each docstring says what the authors published and what is reconstructed; tables show published
figures beside measured ones, never instead of them. A rival must not know the experiment that
compares it, nor its data sets.
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

"""Rivals of the paper's tables that run: reconstructed where their text is not public.

Each docstring says what its authors have published and what is ours. The figures that
they have published themselves stand in the tables beside ours, never instead of them.
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

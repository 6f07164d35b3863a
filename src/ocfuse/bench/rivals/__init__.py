"""Rivals of the paper's tables that run: reconstructed where their text is not public.

Each docstring says what its authors have published and what is ours. The figures that
they have published themselves stand in the tables beside ours, never instead of them.
"""

from ocfuse.bench.rivals.boosted import BoostedSVM
from ocfuse.bench.rivals.dynamic import DynamicEnsemble
from ocfuse.bench.rivals.filtered import FilteredEnsemble
from ocfuse.bench.rivals.genetic import GeneticAverage
from ocfuse.bench.rivals.swarm import SwarmAverage

__all__ = [
    "BoostedSVM",
    "DynamicEnsemble",
    "FilteredEnsemble",
    "GeneticAverage",
    "SwarmAverage",
]

"""One-class detectors, and pools that fit and score them together.

A detector learns from normal rows of numbers and returns one score per row, higher for more
normal rows; the members of a pool share distances, kernels and neighbours. It must not know
how scores are normalised or fused, nor where the rows come from.
"""

from ocfuse.detectors.forest import Forest
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.marginal import Marginal
from ocfuse.detectors.members import from_pyod
from ocfuse.detectors.mixture import GMM
from ocfuse.detectors.neighbours import ALP, KNN, LOF
from ocfuse.detectors.pool import Pool, make_pool
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.views import Compressed, Mahalanobis, Whitened

__all__ = [
    "ALP",
    "GMM",
    "KNN",
    "KPCA",
    "LOF",
    "SVDD",
    "Compressed",
    "Forest",
    "Mahalanobis",
    "Marginal",
    "OneClassGP",
    "Pool",
    "Whitened",
    "from_pyod",
    "make_pool",
]

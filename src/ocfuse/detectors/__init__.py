"""One-class detectors, and pools that fit and score them together."""

from ocfuse.detectors.adapters import from_pyod
from ocfuse.detectors.alp import ALP
from ocfuse.detectors.compressed import Compressed
from ocfuse.detectors.forest import Forest
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.marginal import Marginal
from ocfuse.detectors.mixture import GMM
from ocfuse.detectors.neighbours import KNN, LOF
from ocfuse.detectors.pools import Pool, make_pool
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.whitened import Mahalanobis, Whitened

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

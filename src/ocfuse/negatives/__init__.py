"""Pseudo-anomalies: rows unlike the normals, when no anomaly is known."""

from ocfuse.negatives.base import Generator
from ocfuse.negatives.diagnosis import Diagnosis, diagnose
from ocfuse.negatives.gauss import Gauss
from ocfuse.negatives.mirror import Mirror
from ocfuse.negatives.mixture import Mixture, make_negatives
from ocfuse.negatives.pcshuffle import PCShuffle
from ocfuse.negatives.shuffle import Shuffle
from ocfuse.negatives.swap import Swap
from ocfuse.negatives.uniform import Uniform

__all__ = [
    "Diagnosis",
    "Gauss",
    "Generator",
    "Mirror",
    "Mixture",
    "PCShuffle",
    "Shuffle",
    "Swap",
    "Uniform",
    "diagnose",
    "make_negatives",
]

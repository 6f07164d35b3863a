"""Pseudo-anomalies: rows unlike the normals, when no anomaly is known."""

from ocfuse.negatives.base import Generator
from ocfuse.negatives.diagnosis import Diagnosis, diagnose
from ocfuse.negatives.generators import (
    Gauss,
    Mirror,
    Mixture,
    PCShuffle,
    Shuffle,
    Swap,
    Uniform,
    make_negatives,
)

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

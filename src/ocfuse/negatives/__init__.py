"""Pseudo-negatives: artificial anomalies, for data without labelled anomalies.

A generator makes pseudo-negatives from standardised normal rows, and `diagnose` measures whether
they show differences between members. This package must not know detectors or fusions.
"""

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

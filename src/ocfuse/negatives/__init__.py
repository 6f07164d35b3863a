"""Pseudo-anomalies: rows unlike the normal ones, for when no anomaly is known.

A generator draws rows from standardised normal rows, and `diagnose` shows whether such rows
tell members apart. It must not know detectors or fusions: rows in, rows out.
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

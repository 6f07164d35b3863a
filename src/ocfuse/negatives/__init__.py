"""Pseudo-anomalies: rows unlike the normals, when no anomaly is known."""

from ocfuse.negatives.base import Generator
from ocfuse.negatives.mirror import Mirror
from ocfuse.negatives.mixture import Mixture, make_negatives
from ocfuse.negatives.shuffle import Shuffle
from ocfuse.negatives.uniform import Uniform

__all__ = ["Generator", "Mirror", "Mixture", "Shuffle", "Uniform", "make_negatives"]

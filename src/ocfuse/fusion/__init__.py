"""Fusion: a matrix of member scores in, one score per row and the weights out.

A fusion learns from normalised scores, labels and, if it needs them, the encoded rows. It must
not know the detectors that the scores come from, nor how the fused score is thresholded.
"""

from ocfuse.fusion.cascade import CascadeFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.labelled import LabelledFusion
from ocfuse.fusion.local_lp import LocalLpFusion
from ocfuse.fusion.lp import LeastSquaresFusion, LpFusion
from ocfuse.fusion.named import make_fusion
from ocfuse.fusion.rules import (
    AverageOfMaximum,
    MajorityVote,
    MaxRule,
    MedianRule,
    MinRule,
    ProductRule,
    SingleBest,
    SumRule,
    TrimmedMean,
)
from ocfuse.fusion.trust import TrustFusion

__all__ = [
    "AverageOfMaximum",
    "CascadeFusion",
    "CompetenceFusion",
    "LabelledFusion",
    "LeastSquaresFusion",
    "LocalLpFusion",
    "LpFusion",
    "MajorityVote",
    "MaxRule",
    "MedianRule",
    "MinRule",
    "ProductRule",
    "SingleBest",
    "SumRule",
    "TrimmedMean",
    "TrustFusion",
    "make_fusion",
]

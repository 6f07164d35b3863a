"""Fusions combine a matrix of member scores to one score per row, with weights of members.

A fusion learns from normalised scores, labels and, if it needs them, the encoded rows. It must not
know which detectors gave the scores, nor the threshold of the fused score.
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

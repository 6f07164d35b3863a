"""Fusions and score matrices that the tests of this folder share."""

import numpy as np

from ocfuse.fusion import (
    AverageOfMaximum,
    CascadeFusion,
    CompetenceFusion,
    LabelledFusion,
    LeastSquaresFusion,
    LocalLpFusion,
    LpFusion,
    MajorityVote,
    MaxRule,
    MedianRule,
    MinRule,
    ProductRule,
    SingleBest,
    SumRule,
    TrimmedMean,
    TrustFusion,
)
from ocfuse.fusion.locality import Locality
from ocfuse.fusion.stacking import StackedFusion

RULES = [
    SumRule(),
    ProductRule(),
    MaxRule(),
    MinRule(),
    MedianRule(),
    MajorityVote(),
    TrimmedMean(),
    AverageOfMaximum(),
]
LEARNED = [
    LpFusion(p=1.5),
    LpFusion(p=4.0, nonneg=False),
    LeastSquaresFusion(p=4 / 3),
    LocalLpFusion(p=8 / 7),
    LocalLpFusion(p=3.0, anchors=3, kernel="knn", nonneg=False),
    LocalLpFusion(anchors="query", locality=Locality(variability="lid")),
    CascadeFusion(),
    StackedFusion(),
    SingleBest(),
    CompetenceFusion(),
    CompetenceFusion(p=3.0, locality=Locality()),
    TrustFusion(),
    LabelledFusion(LpFusion(p=3.0)),
]
ALL = RULES + LEARNED


def name_of(fusion):
    """A short test name."""
    return repr(fusion).replace("\n", "").replace(" ", "")


def scores(seed=0, n=120, d=4, n_anomalies=20, n_features=3):
    """Scores of normals in about [0, 1] and of some anomalies below, with features.

    The members are not equally good, and the first is good on one side only.
    """
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n - n_anomalies, 1.0, -1.0)
    X = rng.normal(size=(n, n_features))
    X[y < 0] *= 3.0
    Z = rng.uniform(0.2, 1.0, size=(n, d))
    depth = rng.uniform(0.3, 1.2, size=d) * (1 + np.arange(d)) / d
    Z[y < 0] -= depth * rng.uniform(0.5, 1.5, size=(n_anomalies, 1))
    Z[(y < 0) & (X[:, 0] < 0), 0] -= 1.0
    return Z, y, X

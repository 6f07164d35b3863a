"""The fusion that is used when none is asked for."""

import numpy as np
from sklearn.base import clone

from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.labelled import LabelledFusion, default_share
from ocfuse.tuning.crossfit import ScoredRows


def default_fusion(rows: ScoredRows) -> BaseFusion:
    """Return the competence fusion, with classifiers beside it if anomalies are known."""
    return CompetenceFusion() if rows.learns_pseudo else LabelledFusion(CompetenceFusion())


def with_one_share(fusion: BaseFusion, rows: ScoredRows) -> BaseFusion:
    """Settle how much labels count, once for all folds: else their scores would differ in scale."""
    if not isinstance(fusion, LabelledFusion) or fusion.share is not None:
        return fusion
    share = default_share(int(rows.known.sum()))
    settled: BaseFusion = clone(fusion).set_params(share=share)
    return settled


def has_anomalies_in_two_folds(rows: ScoredRows) -> bool:
    """Tell whether known anomalies are left when those of one fold are held out."""
    return len(np.unique(rows.fold[rows.known])) > 1

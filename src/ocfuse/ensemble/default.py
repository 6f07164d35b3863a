"""The fusion that is used when none is asked for."""

from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.local import LocalLpFusion
from ocfuse.tuning.crossfit import ScoredRows


def default_fusion(rows: ScoredRows) -> BaseFusion:
    """Return the competence fusion, or the local lp fusion if anomalies are known."""
    has_real = (rows.y < 0).any() and not rows.has_pseudo
    return LocalLpFusion(p=8 / 7) if has_real else CompetenceFusion()

"""Criteria by the area under the ROC curve, against made-up or real anomalies."""

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.metrics import auc
from ocfuse.tuning.criterion import Criterion
from ocfuse.tuning.crossfit import ScoredRows
from ocfuse.tuning.splits import Judged


class PseudoNegativeAUC(Criterion):
    """Judge by the AUC of normals against pseudo-negatives, both held out.

    A weak signal where the pseudo-negatives are found by all members, or by none.

    Examples
    --------
    >>> from ocfuse.tuning import PseudoNegativeAUC
    >>> PseudoNegativeAUC()
    PseudoNegativeAUC()
    """

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows without pseudo-negatives."""
        if not rows.has_pseudo:
            raise InvalidInputError(
                "PseudoNegativeAUC needs pseudo-negatives. Got negatives=None. Use "
                'tune="labels" with real anomalies, tune="rpau" or tune="stability" with '
                "normals alone."
            )

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the AUC."""
        return _auc(parts, [part.rows.fold < 0 for part in parts]), 0.0


class LabelledAUC(Criterion):
    """Judge by the AUC of normals against labelled anomalies, both held out.

    Examples
    --------
    >>> from ocfuse.tuning import LabelledAUC
    >>> LabelledAUC()
    LabelledAUC()
    """

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows without labelled anomalies."""
        if not _is_labelled(rows).any():
            raise InvalidInputError(
                "LabelledAUC needs labelled anomalies: rows with y = -1. Got none. Use "
                'tune="pseudo-negatives", tune="rpau" or tune="stability" without.'
            )

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the AUC."""
        return _auc(parts, [_is_labelled(part.rows) for part in parts]), 0.0


def _is_labelled(rows: ScoredRows) -> NDArray[np.bool_]:
    return (rows.y < 0) & (rows.fold >= 0)


def _auc(parts: list[Judged], anomalous: list[NDArray[np.bool_]]) -> float:
    """Return the AUC of all normals against the chosen anomalies of all parts."""
    y = np.concatenate([part.rows.y for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    chosen = (y > 0) | np.concatenate(anomalous)
    return auc(y[chosen], scores[chosen])

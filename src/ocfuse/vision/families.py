"""Families of members on one scale, joined by how well each sees made-up defects."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ocfuse.fusion.evidence import auc_of
from ocfuse.scores import make_normaliser
from ocfuse.vision.features import FloatArray, IntArray

#: A family that sees no defect at all still counts a little, if all others are as blind.
LEAST = 1e-3
#: Share of the highest competence from which on families count alike, and how fast weights
#: fall below it.
ALIKE, STEEPNESS = 0.9, 10


class FamilyFusion(BaseEstimator):  # type: ignore[misc]
    """Weighted mean of the scores of families, each on the scale of its held-out normals.

    The competence of a family is ``2 AUC - 1``, not below 0, at telling normals
    from made-up defects, both unknown to it, averaged over the kinds of
    defects. Families whose competence is within a tenth of the highest count
    alike: made-up defects cannot tell them apart. Below that the weight falls
    with the tenth power.

    Attributes
    ----------
    normaliser_ : ZScore
        The scale of each family.
    areas_ : ndarray of shape (d, kinds)
        Areas under the ROC curves.
    competence_ : ndarray of shape (d,)
        Competences, the largest 1.
    weights_ : ndarray of shape (d,)
        Weights, adding up to 1.
    """

    def fit(self, held_out: FloatArray, defects: FloatArray, kind: IntArray) -> "FamilyFusion":
        """Learn scales and weights.

        Parameters
        ----------
        held_out : ndarray of shape (n, d)
            Scores of normals by families that have not seen them.
        defects : ndarray of shape (q, d)
            Scores of made-up defects, likewise.
        kind : ndarray of shape (q,)
            Number of the kind of each defect.

        Returns
        -------
        FamilyFusion
            The fusion.
        """
        self.normaliser_: Any = make_normaliser("z-score").fit(held_out)
        kinds = np.unique(kind)
        areas = [auc_of(held_out, defects[kind == k]) for k in kinds]
        self.areas_ = np.column_stack(areas)
        competence = np.maximum(2.0 * self.areas_ - 1.0, 0.0).mean(axis=1) + LEAST
        self.competence_ = competence / competence.max()
        trust = np.minimum(self.competence_ / ALIKE, 1.0) ** STEEPNESS
        self.weights_ = trust / trust.sum()
        return self

    def normalised(self, scores: FloatArray) -> FloatArray:
        """Return the scores of the families on one scale, shape (n, d)."""
        return np.asarray(self.normaliser_.transform(scores))

    def fuse(self, scores: FloatArray) -> FloatArray:
        """Return the fused scores, shape (n,): 0 for a typical normal."""
        return np.asarray((self.normalised(scores) * self.weights_).sum(axis=1))

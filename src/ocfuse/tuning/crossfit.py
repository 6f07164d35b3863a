"""Fused scores of training rows from a fusion that has not seen them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ocfuse.exceptions import EqualWeightsWarning
from ocfuse.fusion.base import BaseFusion

FloatArray: TypeAlias = NDArray[np.float64]
LabelArray: TypeAlias = NDArray[np.int64]

#: Scores are kept within this where weights are learned, for the solver's sake. Where
#: rows are scored nothing is clipped.
FARTHEST = 1e6


@dataclass(frozen=True)
class ScoredRows:
    """Rows with honest member scores, as the fusion learns from them.

    Parameters
    ----------
    S : ndarray of shape (n, d)
        Member scores; no row was seen by the member that scored it.
    y : ndarray of shape (n,)
        +1 or -1.
    X : ndarray of shape (n, m)
        Encoded features.
    fold : ndarray of shape (n,)
        Fold in which a row is held out; -1 for pseudo-negatives, which never are.
    """

    S: FloatArray
    y: LabelArray
    X: FloatArray
    fold: LabelArray

    def take(self, chosen: NDArray[np.bool_]) -> "ScoredRows":
        """Return the chosen rows."""
        names = [field.name for field in fields(self)]
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def only(self, members: Sequence[int] | NDArray[np.intp]) -> "ScoredRows":
        """Return the rows with the scores of some members only."""
        return replace(self, S=self.S[:, members])

    @property
    def has_pseudo(self) -> bool:
        """Tell whether there are pseudo-negatives."""
        return bool((self.fold < 0).any())

    def weights(self) -> FloatArray:
        """Return weights that balance normals and anomalies; they sum to 1."""
        c = np.zeros(len(self.y))
        labels = np.unique(self.y)
        for label in labels:
            c[self.y == label] = 1.0 / (len(labels) * np.sum(self.y == label))
        return c


def fit_fusion(rows: ScoredRows, normaliser: Any, fusion: BaseFusion) -> tuple[Any, BaseFusion]:
    """Return a normaliser fitted on the normals and a fusion fitted on all rows."""
    normaliser = fit_normaliser(rows, normaliser)
    return normaliser, fit_weights(rows, normaliser.transform(rows.S), fusion)


def fit_normaliser(rows: ScoredRows, normaliser: Any) -> Any:
    """Return a normaliser fitted on the normals."""
    return clone(normaliser).fit(rows.S[rows.y > 0])


def fit_weights(rows: ScoredRows, Z: FloatArray, fusion: BaseFusion) -> BaseFusion:
    """Return a fusion fitted on all rows, whose normalised scores are Z."""
    return clone(fusion).fit(  # type: ignore[no-any-return]
        np.clip(Z, -FARTHEST, FARTHEST), rows.y, rows.X, rows.weights()
    )


def crossfitted_scores(rows: ScoredRows, normaliser: Any, fusion: BaseFusion) -> FloatArray:
    """Fuse every row by a normaliser and a fusion learned from the other folds.

    Pseudo-negatives are learned from in every fold, and get NaN.
    """
    fused = np.full(len(rows.y), np.nan)
    for f in np.unique(rows.fold[rows.fold >= 0]):
        held_out = rows.fold == f
        with warnings.catch_warnings():  # the fit on all rows says it once
            warnings.simplefilter("ignore", EqualWeightsWarning)
            fitted_normaliser, fitted_fusion = fit_fusion(rows.take(~held_out), normaliser, fusion)
        Z = fitted_normaliser.transform(rows.S[held_out])
        fused[held_out] = fitted_fusion.fuse(Z, rows.X[held_out])
    return fused

"""Rows to learn from beside rows to judge by, and what a fusion makes of them."""

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import OcfuseWarning
from ocfuse.fusion.base import BaseFusion
from ocfuse.tuning.crossfit import ScoredRows, fit_normaliser, fit_weights

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """Rows that a fusion has scored without having seen them.

    Parameters
    ----------
    learned : ScoredRows
        What the normaliser and the fusion have learned from.
    rows : ScoredRows
        The others.
    fusion : fusion
        The fitted fusion.
    scores : ndarray of shape (n,)
        Its scores of `rows`.
    """

    learned: ScoredRows
    rows: ScoredRows
    fusion: BaseFusion
    scores: FloatArray


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to judge by.

    Parameters
    ----------
    learned : ScoredRows
        Rows to learn from.
    rows : ScoredRows
        Rows to judge by.
    """

    learned: ScoredRows
    rows: ScoredRows

    def scaled(self, normaliser: Any) -> "ScaledSplit":
        """Bring all member scores to one scale, which many fusions then share."""
        fitted = fit_normaliser(self.learned, normaliser)
        return ScaledSplit(self, fitted.transform(self.learned.S), fitted.transform(self.rows.S))


@dataclass(frozen=True)
class ScaledSplit:
    """A split with its scores on one scale.

    Parameters
    ----------
    split : Split
        The rows.
    Z_learned, Z : ndarray
        Normalised scores of the rows to learn from and of those to judge by.
    """

    split: Split
    Z_learned: FloatArray
    Z: FloatArray

    def judged(self, fusion: BaseFusion) -> Judged:
        """Learn the weights, and score the rows to judge by."""
        with warnings.catch_warnings():  # the fit on all rows says it once
            warnings.simplefilter("ignore", OcfuseWarning)
            fitted = fit_weights(self.split.learned, self.Z_learned, fusion)
        rows = self.split.rows
        return Judged(self.split.learned, rows, fitted, fitted.fuse(self.Z, rows.X, rows.context))


def fold_splits(rows: ScoredRows) -> list[Split]:
    """Hold every row out once: pseudo-negatives too, which go to the folds in turn."""
    fold = rows.fold.copy()
    pseudo = np.flatnonzero(fold < 0)
    folds = np.unique(fold[fold >= 0])
    fold[pseudo] = folds[np.arange(len(pseudo)) % len(folds)]
    return [Split(rows.take((fold != f) & rows.kept(f)), rows.take(fold == f)) for f in folds]

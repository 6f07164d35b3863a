"""Rows to learn from beside rows to judge by, and families of members."""

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.detectors.pool import Pool
from ocfuse.exceptions import OcfuseWarning
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.crossfit import ScoredRows, fit_normaliser, fit_weights


@dataclass(frozen=True)
class Judged:
    """Rows that a fusion has scored without having seen them."""

    learned: ScoredRows  # what the normaliser and the fusion have learned from
    rows: ScoredRows  # the others
    fusion: BaseFusion
    scores: FloatArray  # of the others


@dataclass(frozen=True)
class JudgedSplit:
    """Rows to learn from and rows to judge by."""

    learned: ScoredRows
    rows: ScoredRows

    def scaled(self, normaliser: Any) -> "ScaledSplit":
        """Bring all member scores to one scale, which many fusions then share."""
        fitted = fit_normaliser(self.learned, normaliser)
        return ScaledSplit(self, fitted.transform(self.learned.S), fitted.transform(self.rows.S))


@dataclass(frozen=True)
class ScaledSplit:
    """A split with its scores on one scale."""

    split: JudgedSplit
    Z_learned: FloatArray  # of the rows to learn from
    Z: FloatArray  # of those to judge by

    def judged(self, fusion: BaseFusion) -> Judged:
        """Learn the weights, and score the rows to judge by."""
        with warnings.catch_warnings():  # the fit on all rows says it once
            warnings.simplefilter("ignore", OcfuseWarning)
            fitted = fit_weights(self.split.learned, self.Z_learned, fusion)
        rows = self.split.rows
        return Judged(self.split.learned, rows, fitted, fitted.fuse(self.Z, rows.X, rows.context))


def fold_splits(rows: ScoredRows) -> list[JudgedSplit]:
    """Hold every row out once: pseudo-negatives too, which go to the folds in turn."""
    fold = rows.fold.copy()
    pseudo = np.flatnonzero(fold < 0)
    folds = np.unique(fold[fold >= 0])
    fold[pseudo] = folds[np.arange(len(pseudo)) % len(folds)]
    return [JudgedSplit(rows.take((fold != f) & rows.kept(f)), rows.take(fold == f)) for f in folds]


def family(name: str) -> str:
    """Return what comes before the last "-" of a member's name, or the name."""
    return name.rpartition("-")[0] or name


def best_of_each(names: list[str], verdicts: list[tuple[float, float]]) -> list[str]:
    """Return, in their order, the names with the best verdict of their family.

    Of equal ones the middle one is kept, see `middle_best`.
    """
    families: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        families.setdefault(family(name), []).append(j)
    best = [own[middle_best([verdicts[j] for j in own])] for own in families.values()]
    return [names[j] for j in sorted(best)]


def middle_best(verdicts: Sequence[tuple[float, float]]) -> int:
    """Return the place of the best verdict, of equal ones the middle (the earlier of two).

    Grids begin with extremes, the narrowest width or the fewest directions. Where a
    criterion cannot tell settings apart, neither end of the grid should win for it.
    """
    best = max(verdicts)
    places = [j for j, verdict in enumerate(verdicts) if verdict == best]
    return places[(len(places) - 1) // 2]


def keep_columns(rows: ScoredRows, names: list[str], kept: list[str]) -> ScoredRows:
    """Return the rows with the scores of some members only."""
    return rows.only([names.index(name) for name in kept])


def keep_members(pool: Pool, kept: list[str]) -> Pool:
    """Return a fitted pool with some of its members only; the pool itself stays."""
    smaller: Pool = copy(pool)
    columns = [pool.names_.index(name) for name in kept]
    smaller.members_ = [pool.members_[j] for j in columns]
    smaller.names_ = [pool.names_[j] for j in columns]
    smaller.out_of_fold_scores_ = np.ascontiguousarray(pool.out_of_fold_scores_[:, columns])
    smaller.lowest_ = {name: low for name, low in pool.lowest_.items() if name in kept}
    return smaller

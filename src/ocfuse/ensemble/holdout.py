"""Fused scores of training rows from parts that have not seen them."""

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.detectors.groups import Groups
from ocfuse.ensemble.labels import ANOMALY
from ocfuse.ensemble.learning import Learned, Table
from ocfuse.ensemble.rows import canonical_order, spread_folds
from ocfuse.exceptions import InvalidInputError, MemberError, OcfuseWarning
from ocfuse.progress import silent
from ocfuse.tuning.crossfit import crossfitted_scores

FloatArray: TypeAlias = NDArray[np.float64]

#: Folds in which everything is learned again.
N_REFITS = 5
#: That is done with fewer rows than this many per column, and up to so many rows:
#: standardising by the rows themselves then makes them look nearer than fresh ones.
ROWS_PER_COLUMN, MOST_REFIT_ROWS = 3, 1000
#: Anomalies from which on every fold has some left to learn from.
FEWEST_REFIT_ANOMALIES = 2 * N_REFITS


def held_out_scores(table: Table, learned: Learned) -> FloatArray:
    """Return a fused score for every row of the table, by parts that have not seen it.

    Members, normaliser and fusion never have. With few rows for the columns the
    encoder has not either: everything is then learned again in folds.
    """
    if _needs_refits(table, learned):
        # A part may be too small for a member, a group or a category: then the way below.
        with suppress(InvalidInputError, MemberError):
            return _refitted_scores(table, learned)
    scores = np.empty(len(table))
    learned.recipe.progress("fusion", "held-out scores", 0, 1)
    fused = crossfitted_scores(learned.scored, *learned.parts)
    learned.recipe.progress("fusion", "held-out scores", 1, 1)
    real = fused[learned.scored.fold >= 0]
    scores[np.concatenate([learned.rows, learned.anomalies])] = real
    if len(learned.trimmed):
        left_out = table.take(learned.trimmed)
        encoded = learned.encoder.transform(left_out.X)
        order = canonical_order(encoded)
        scores[learned.trimmed[order]] = learned.score(encoded[order], left_out.take(order).context)
    return scores


def _needs_refits(table: Table, learned: Learned) -> bool:
    """Tell whether the encoder matters, and whether folds of everything can be learned."""
    n_groups = None if table.groups is None else len(np.unique(table.groups.label))
    return is_refitted(learned.training.shape, len(learned.anomalies), n_groups) and bool(
        np.ptp(learned.training) > 0
    )


def is_refitted(shape: tuple[int, ...], n_anomalies: int, n_groups: int | None) -> bool:
    """Tell whether everything is learned again in folds, as far as numbers tell.

    Parameters
    ----------
    shape : tuple of int
        Rows that are learned as normal, and columns.
    n_anomalies : int
        Number of labelled anomalies.
    n_groups : int or None
        Number of groups, if there are groups.

    Returns
    -------
    bool
        Whether it is; gaps and rows that are all equal may prevent it.
    """
    n, m = shape
    return (
        n < ROWS_PER_COLUMN * m
        and n <= MOST_REFIT_ROWS
        and (n_groups is None or n_groups > N_REFITS)
        and (n_anomalies == 0 or n_anomalies >= FEWEST_REFIT_ANOMALIES)
    )


def _refitted_scores(table: Table, learned: Learned) -> FloatArray:
    scores = np.empty(len(table))
    order = canonical_order(learned.encoder.transform(table.X), *table.keys())
    fold = _folds(table, order)
    groups = Groups(fold) if table.groups is None else table.groups
    withheld = groups.withheld(fold)
    recipe = replace(learned.settled(), progress=silent)
    count = int(fold.max()) + 1
    for f in range(count):
        learned.recipe.progress("fusion", "held-out fits", f, count)
        held_out = order[fold[order] == f]
        with warnings.catch_warnings():  # the fit on all rows says it once
            warnings.simplefilter("ignore", OcfuseWarning)
            part = Learned(table.take(np.flatnonzero(~withheld[:, f])), recipe)
        if part.pool.names_ != learned.pool.names_:
            raise MemberError("A member that learned from all rows failed on a part of them.")
        rows = table.take(held_out)
        scores[held_out] = part.score(part.encoder.transform(rows.X), rows.context)
    learned.recipe.progress("fusion", "held-out fits", count, count)
    return scores


def _folds(table: Table, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the fold of every row of the table."""
    if table.groups is None:
        return spread_folds(order, table.y == ANOMALY, N_REFITS)
    fold = np.empty(len(table), dtype=np.intp)
    fold[order] = table.groups.take(order).folds(N_REFITS)
    return fold

"""Members that differ by one setting, and the best of each such family."""

from collections.abc import Sequence
from copy import copy

import numpy as np

from ocfuse.detectors.pools import Pool
from ocfuse.tuning.crossfit import ScoredRows


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
    smaller.honest_scores_ = np.ascontiguousarray(pool.honest_scores_[:, columns])
    smaller.lowest_ = {name: low for name, low in pool.lowest_.items() if name in kept}
    return smaller

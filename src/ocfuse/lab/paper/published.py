"""The figures printed in the paper (arXiv 2411.06406), and what such figures must obey.

Sets in rows, systems in columns, percent, higher is better, NaN where the paper
reports nothing: as `ocfuse.stats` takes tables. Facts only; what is wrong with
some of them is in `docs/errata.md`.

The tables are "rpau", "pseudo-negative" and "comparison" on the ten UCI sets D1
to D10 (measures "auc" and "gmean"), "liranomaly" by type of anomaly ("auc"),
"hsr" ("auc", "auc_pr") and "solvers", how many times faster the interior point
method is than Frank-Wolfe at a precision and a norm ("speedup"). `PUBLISHED_SETS`
is its table of data sets.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError


@dataclass(frozen=True)
class PublishedSet:
    """A row of the paper's table of data sets; `features` is None where none is printed."""

    name: str
    samples: int
    normals: int
    features: int | None


#: The table of data sets. Those of D11 are videos, those of D12 frames.
PUBLISHED_SETS = {
    "D1": PublishedSet("Banknotes", 1372, 762, 4),
    "D2": PublishedSet("Ionosphere", 351, 225, 34),
    "D3": PublishedSet("Vote", 435, 267, 16),
    "D4": PublishedSet("Glass", 214, 76, 9),
    "D5": PublishedSet("Iris", 150, 50, 4),
    "D6": PublishedSet("Breast Cancer Wisconsin", 699, 458, 9),
    "D7": PublishedSet("Wine", 178, 71, 13),
    "D8": PublishedSet("Australia", 690, 383, 14),
    "D9": PublishedSet("Haberman", 306, 225, 3),
    "D10": PublishedSet("Hepatitis", 155, 123, 19),
    "D11": PublishedSet("Toyota HSR", 121, 61, None),
    "D12": PublishedSet("LiRAnomaly", 37076, 31642, None),
}


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """One measure of one table of the paper.

    Attributes
    ----------
    name, measure : str
        Which table, and what it measures.
    sets, systems : tuple of str
        Names of the rows and of the columns.
    mean, std : ndarray of shape (n_sets, n_systems)
        What is printed; NaN where nothing is.
    ranks : ndarray of shape (n_systems,)
        Printed mean ranks, 1 the best; NaN for systems that are not ranked.
    copies : ndarray of shape (n_systems,)
        How often a system counts in those ranks: 0 if it has no results, and 2
        for the detectors of "liranomaly", as only then the ranks follow.
    p_value : float or None
        Printed p-value of Skillings and Mack's test.
    """

    name: str
    measure: str
    sets: tuple[str, ...]
    systems: tuple[str, ...]
    mean: FloatArray
    std: FloatArray
    ranks: FloatArray
    copies: NDArray[np.int64]
    p_value: float | None

    def cell(self, set_name: str, system: str) -> tuple[float, float | None] | None:
        """Return mean and standard deviation of one cell, None where nothing is printed."""
        at = _place("set_name", set_name, self.sets), _place("system", system, self.systems)
        mean, std = float(self.mean[at]), float(self.std[at])
        return None if np.isnan(mean) else (mean, None if np.isnan(std) else std)

    def column(self, system: str) -> FloatArray:
        """Return the means of one system on all sets."""
        column: FloatArray = self.mean[:, _place("system", system, self.systems)]
        return column

    def ranked(self) -> FloatArray:
        """Return the means that the printed ranks and p-value are about."""
        table: FloatArray = np.repeat(self.mean, self.copies, axis=1)
        return table


def published_table(name: str, measure: str = "auc") -> PublishedTable:
    """Return one measure of one table of the paper.

    Parameters
    ----------
    name : {"rpau", "pseudo-negative", "comparison", "liranomaly", "hsr", "solvers"}
        Which table.
    measure : {"auc", "gmean", "auc_pr", "speedup"}, default="auc"
        Which of its measures; see `published_measures`.

    Returns
    -------
    PublishedTable
        Means, standard deviations, and ranks and p-value if printed.

    Examples
    --------
    >>> from ocfuse.lab.paper.published import published_table
    >>> published_table("rpau").cell("D4", "KPCA")
    (65.77, 9.1)
    >>> published_table("comparison", "gmean").cell("D3", "RAEOCSVM") is None
    True
    """
    known = published_measures()
    if name not in known:
        raise InvalidInputError(f"name must be one of {', '.join(known)}. Got name={name!r}.")
    if measure not in known[name]:
        raise InvalidInputError(
            f"measure of table {name} must be one of {', '.join(known[name])}. "
            f"Got measure={measure!r}."
        )
    table = _figures()[name]
    figures = table["measures"][measure]
    mean = np.array(figures["mean"], dtype=np.float64)
    nothing = np.full(mean.shape, np.nan)
    return PublishedTable(
        name,
        measure,
        tuple(table["sets"]),
        tuple(table["systems"]),
        mean,
        np.array(figures.get("std", nothing), dtype=np.float64),
        np.array(figures.get("ranks", nothing[0]), dtype=np.float64),
        np.array(figures.get("copies", [1] * len(table["systems"])), dtype=np.int64),
        figures.get("p_value"),
    )


def published_measures() -> dict[str, tuple[str, ...]]:
    """Return the names of all tables, each with its measures.

    Returns
    -------
    dict
        Tuples of measures by name of table.
    """
    return {name: tuple(table["measures"]) for name, table in _figures().items()}


@cache
def _figures() -> dict[str, Any]:
    text = files("ocfuse.lab.paper").joinpath("published.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)["tables"]
    return tables


def _place(what: str, name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise InvalidInputError(f"{what} must be one of {', '.join(names)}. Got {name!r}.")
    return names.index(name)


@dataclass(frozen=True)
class Contradiction:
    """A cell of the paper whose AUC and G-mean cannot come from the same scores.

    Attributes
    ----------
    table, set_name, system : str
        Where it is printed.
    auc, gmean : float
        What is printed, percent.
    """

    table: str
    set_name: str
    system: str
    auc: float
    gmean: float


@dataclass(frozen=True)
class BestOfAll:
    """A printed "Single-best" that is better than every printed member.

    Attributes
    ----------
    table, set_name : str
        Where it is printed.
    single : float
        AUC of "Single-best", percent.
    member : float
        AUC of the best of the four members, percent.
    """

    table: str
    set_name: str
    single: float
    member: float


def auc_below_gmean(
    auc: ArrayLike, gmean: ArrayLike, *, whole: float = 100.0, rounding: float = 0.0
) -> NDArray[np.bool_]:
    """Mark where the AUC is smaller than the square of the G-mean allows.

    At any threshold the ROC curve passes through (1 - TNR, TPR) and never
    falls, so AUC >= TPR * TNR = G^2. For means over repetitions too, because
    the mean of squares is at least the square of the mean.

    Parameters
    ----------
    auc, gmean : array_like
        Figures of the same shape; nothing is marked where one is NaN.
    whole : float, default=100.0
        What a perfect system gets: 100 for percent, 1 for fractions.
    rounding : float, default=0.0
        How far a figure may be from the exact one; 0.005 for two decimals.

    Returns
    -------
    ndarray of bool
        True where no scores can have both figures.

    Examples
    --------
    >>> from ocfuse.lab.paper.published import auc_below_gmean
    >>> auc_below_gmean([92.2, 92.2], [97.88, 90.0])
    array([ True, False])
    """
    area, mean = np.asarray(auc, dtype=np.float64), np.asarray(gmean, dtype=np.float64)
    if area.shape != mean.shape:
        raise InvalidInputError(
            f"auc and gmean must have one shape. Got {area.shape} and {mean.shape}."
        )
    least = np.maximum(mean - rounding, 0.0) ** 2 / whole
    # sums over thresholds and over ranks differ in their last digits
    is_below: NDArray[np.bool_] = area + rounding < least - 1e-9 * whole
    return is_below


def published_contradictions() -> list[Contradiction]:
    """List the cells of the paper that break AUC >= G^2, rounding allowed for.

    Returns
    -------
    list of Contradiction
        In the order of the tables.
    """
    found = []
    for name, measures in published_measures().items():
        if not {"auc", "gmean"} <= set(measures):
            continue
        auc, gmean = published_table(name, "auc"), published_table(name, "gmean")
        is_below = auc_below_gmean(auc.mean, gmean.mean, rounding=0.005)
        found += [
            Contradiction(
                name, auc.sets[i], auc.systems[j], float(auc.mean[i, j]), float(gmean.mean[i, j])
            )
            for i, j in np.argwhere(is_below)
        ]
    return found


def published_single_above_members() -> list[BestOfAll]:
    """List where the printed AUC of "Single-best" is above those of all four members.

    If it is one of the four, picked anew in every repetition, its mean can be above all
    of theirs only as far as their order changes between repetitions. Gaps of many
    deviations are not explained by that.

    Returns
    -------
    list of BestOfAll
        In the order of the tables.
    """
    found = []
    for name in ("rpau", "pseudo-negative"):
        table = published_table(name, "auc")
        single = table.column("Single-best")
        member = np.max([table.column(family) for family in ("GMM", "SVDD", "GP", "KPCA")], axis=0)
        # both are rounded to two decimals
        found += [
            BestOfAll(name, table.sets[i], float(single[i]), float(member[i]))
            for i in np.flatnonzero(single > member + 0.01)
        ]
    return found


def worst_average_precision(n_positive: int, n_negative: int) -> float:
    """Return the average precision of the worst order: all negatives first.

    With P positives after N negatives the i-th positive is found at precision
    i / (N + i), so the mean over them is 1 - (N / P)(H_{N+P} - H_N) with the
    harmonic numbers H. No figure on such a test set can be lower.

    Parameters
    ----------
    n_positive, n_negative : int
        Sizes of the two classes; at least one positive.

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> from ocfuse.lab.paper.published import worst_average_precision
    >>> round(worst_average_precision(60, 7), 3)
    0.744
    """
    if n_positive < 1 or n_negative < 0:
        raise InvalidInputError(
            "n_positive must be at least 1 and n_negative at least 0. "
            f"Got {n_positive} and {n_negative}."
        )
    found = np.arange(1, n_positive + 1)
    return float(np.mean(found / (n_negative + found)))

"""The figures printed in the paper (arXiv 2411.06406), as data.

Sets in rows, systems in columns, percent, higher is better, NaN where the paper
reports nothing: as `ocfuse.stats` wants tables. Facts only; what is wrong with
some of them is in `docs/errata.md`.

The tables are "rpau", "pseudo-negative" and "comparison" on the ten UCI sets D1
to D10 (measures "auc" and "gmean"), "liranomaly" by type of anomaly ("auc"),
"hsr" ("auc", "auc_pr") and "solvers", how many times faster the interior point
method is than Frank-Wolfe at a precision and a norm ("speedup").
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError

FloatArray = NDArray[np.float64]


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
    >>> from ocfuse.bench.published import published_table
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
    return _build(name, measure, table["sets"], table["systems"], table["measures"][measure])


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
    text = files("ocfuse.bench").joinpath("published.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)["tables"]
    return tables


def _build(
    name: str, measure: str, sets: list[str], systems: list[str], figures: dict[str, Any]
) -> PublishedTable:
    mean = _array(figures["mean"])
    nothing = np.full(mean.shape, np.nan)
    return PublishedTable(
        name,
        measure,
        tuple(sets),
        tuple(systems),
        mean,
        _array(figures["std"]) if "std" in figures else nothing,
        _array(figures["ranks"]) if "ranks" in figures else nothing[0],
        np.array(figures.get("copies", [1] * len(systems)), dtype=np.int64),
        figures.get("p_value"),
    )


def _array(figures: list[Any]) -> FloatArray:
    """Return an array with NaN for null."""
    return np.array(figures, dtype=np.float64)


def _place(what: str, name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise InvalidInputError(f"{what} must be one of {', '.join(names)}. Got {name!r}.")
    return names.index(name)

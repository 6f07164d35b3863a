"""Cells in which our figure and the printed one are far apart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ocfuse.bench.beside import Beside, mean_of, table_beside
from ocfuse.bench.consistency import auc_below_gmean
from ocfuse.bench.hindsight import Bounds
from ocfuse.bench.summary import summarise, system_of, table_names
from ocfuse.bench.systems import CRITERIA, FAMILIES

#: How many standard deviations are far.
FAR = 2.0
#: Least standard deviation, in points: the printed ones of 0.0 are implausible on tests
#: with 5 to 76 normals (errata, point 26).
FLOOR = 0.5
MEASURES = ("auc", "gmean")
ENDS = ("lowest", "highest")


@dataclass(frozen=True)
class Difference:
    """One cell of ours and of the paper, with what may explain that they differ.

    Parameters
    ----------
    measure, set_name, system, group : str
        Which cell; the system by its name in the registry.
    ours, paper : float
        The two figures, in %.
    std : float
        Pooled deviation of one repetition, at least `FLOOR`.
    oracle : float
        Our G-mean at the best threshold in hindsight.
    auc_std : float
        Difference of the two AUC of the cell in pooled deviations; NaN if none is printed.
    is_contradictory : bool
        The printed AUC is below the square of the printed G-mean.
    lowest, highest : float
        AUC of the worst and the best candidate of a member's family, or of all; in hindsight.
    linear : float
        AUC of a linear combination of the members with weights fitted on the test.
    members : float
        Mean AUC of our members less that of the printed ones, tuned alike; NaN for others.
    """

    measure: str
    set_name: str
    system: str
    group: str
    ours: float
    paper: float
    std: float
    oracle: float
    auc_std: float
    is_contradictory: bool
    lowest: float
    highest: float
    linear: float
    members: float

    @property
    def difference(self) -> float:
        """Ours less the printed figure."""
        return self.ours - self.paper

    @property
    def is_far(self) -> bool:
        """More than two deviations apart."""
        return abs(self.difference) > FAR * self.std


def pooled(ours: float, paper: float) -> float:
    """Return the deviation of two figures: root mean square of what is there, or the floor.

    Parameters
    ----------
    ours, paper : float
        Deviations, NaN if unknown.

    Returns
    -------
    float
        At least `FLOOR`.

    Examples
    --------
    >>> from ocfuse.bench.deviations import pooled
    >>> pooled(3.0, 1.0) == 5.0**0.5, pooled(2.0, float("nan")), pooled(0.1, 0.0)
    (True, 2.0, 0.5)
    """
    there = [std for std in (ours, paper) if not math.isnan(std)]
    square = sum(std**2 for std in there) / max(len(there), 1)
    return max(math.sqrt(square), FLOOR)


def differences(
    results: Sequence[dict[str, Any]], bounds: Mapping[tuple[str, str], float] | None = None
) -> list[Difference]:
    """Return every cell that both we and the paper have, each once.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.
    bounds : dict, default=None
        What `run_hindsight` returns.

    Returns
    -------
    list of Difference
        Table by table; a system that is in two tables with the same figure is listed once.
    """
    found: dict[tuple[Any, ...], Difference] = {}
    strength = _strength(results)
    for name in table_names(results):
        for cell in _table_differences(results, name, dict(bounds or {}), strength):
            place = cell.measure, cell.system, cell.set_name, cell.paper
            found.setdefault(place, cell)
    return list(found.values())


def _table_differences(
    results: Sequence[dict[str, Any]],
    name: str,
    bounds: Bounds,
    strength: Mapping[tuple[str, str], float],
) -> list[Difference]:
    both = {m: table_beside(results, name, m) for m in MEASURES}
    oracle = summarise(results, name, "best_gmean")
    named = system_of(results, name)
    cells = []
    for measure in MEASURES:
        table = both[measure]
        for j, row in enumerate(table.ours.systems):
            system, group = named[row]
            for i, set_name in enumerate(table.ours.sets):
                if not math.isnan(table.difference[i, j]):
                    cells.append(
                        Difference(
                            measure,
                            set_name,
                            system,
                            group,
                            *_figures(table, i, j),
                            oracle=float(oracle.mean[i, j]),
                            auc_std=_auc_std(both["auc"], i, j),
                            is_contradictory=_contradicts(both, i, j),
                            **_hindsight(bounds, set_name, system, group),
                            members=strength.get((set_name, _criterion(system)), math.nan),
                        )
                    )
    return cells


def _figures(table: Beside, i: int, j: int) -> tuple[float, float, float]:
    std = pooled(float(table.ours.std[i, j]), float(table.paper_std[i, j]))
    return float(table.ours.mean[i, j]), float(table.paper[i, j]), std


def _auc_std(table: Beside, i: int, j: int) -> float:
    ours, paper, std = _figures(table, i, j)
    return (ours - paper) / std


def _contradicts(both: Mapping[str, Beside], i: int, j: int) -> bool:
    auc, gmean = (both[measure].paper[i, j] for measure in MEASURES)
    return bool(auc_below_gmean(auc, gmean, rounding=0.005))


def _hindsight(bounds: Bounds, set_name: str, system: str, group: str) -> dict[str, float]:
    """Return what bounds a system: candidates of its family, or of all for the single best."""
    families = list(FAMILIES.values())
    if group == "member":
        families = [FAMILIES[system.split()[0]]]
    ends = [bounds.get((set_name, f"{name} {end}")) for name in families for end in ENDS]
    there = [value for value in ends if value is not None and group in ("member", "single")]
    linear = bounds.get((set_name, f"linear {_criterion(system)}"), math.nan)
    return {
        "lowest": min(there, default=math.nan),
        "highest": max(there, default=math.nan),
        "linear": linear if group in ("local", "global", "rule") else math.nan,
    }


def _criterion(system: str) -> str:
    """Return by what the members of a system were chosen; "" if by nothing of the paper's."""
    if system.startswith("Non-pure"):
        return CRITERIA["Non-pure"]
    return next((by for words, by in CRITERIA.items() if system.endswith(words)), "")


def _strength(results: Sequence[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Return, by set and criterion, how far our four members are above the printed ones."""
    found: dict[tuple[str, str], float] = {}
    words = {"rpau": "RPAU", "pseudo-negative": "pseudo-negative"}
    for name in table_names(results):
        if name in words:
            both = table_beside(results, name, "auc")
            kept = [j for j, row in enumerate(both.ours.systems) if row in FAMILIES]
            for i, set_name in enumerate(both.ours.sets):
                found[set_name, CRITERIA[words[name]]] = mean_of(both.difference[i, kept])
    return found

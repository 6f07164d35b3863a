"""Cells in which our figure and the printed one are far apart, and the likely reason."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ocfuse.lab.paper.beside import (
    GLASS,
    Beside,
    Records,
    mean_of,
    summarise,
    system_of,
    table_beside,
    table_names,
)
from ocfuse.lab.paper.experiment import Bounds
from ocfuse.lab.paper.published import auc_below_gmean
from ocfuse.lab.paper.systems import CRITERIA, FAMILIES

#: How many standard errors, or deviations, are far.
FAR = 2.0
#: Repetitions behind a printed mean.
PRINTED_REPETITIONS = 10
#: Least standard deviation, in points: the printed ones of 0.0 are implausible on tests
#: with 5 to 76 normals (errata, point 26).
FLOOR = 0.5
#: Measures of the paper's tables, and how they are called.
MEASURES = {"auc": "AUC", "gmean": "G-mean"}
#: G-means by the rule that sets the threshold, all fixed beforehand but the last, in words.
THRESHOLDS = {
    "gmean": "5 % of validation normals",
    "gmean_10": "10 %",
    "gmean_20": "20 %",
    "gmean_30": "30 %",
    "gmean_equal": "equal errors on validation",
    "gmean_validation": "best on validation",
    "best_gmean": "best in hindsight",
}


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
    error : float
        Standard error of the difference of the two means.
    at : dict
        Our G-mean by the rule that sets the threshold, as `measure` names them.
    auc_errors : float
        Difference of the two AUC of the cell in standard errors; NaN if none is printed.
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
    error: float
    at: Mapping[str, float]
    auc_errors: float
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
    def oracle(self) -> float:
        """Our G-mean at the best threshold in hindsight."""
        return self.at["best_gmean"]

    @property
    def is_far(self) -> bool:
        """More than two standard errors apart."""
        return abs(self.difference) > FAR * self.error

    @property
    def is_far_out(self) -> bool:
        """More than two deviations of one repetition apart, a much wider yardstick."""
        return abs(self.difference) > FAR * self.std


def pooled(ours: float, paper: float) -> float:
    """Return the deviation of two figures: root mean square of what is known, or the floor.

    Examples
    --------
    >>> from ocfuse.lab.paper.deviations import pooled
    >>> pooled(3.0, 1.0) == 5.0**0.5, pooled(2.0, float("nan")), pooled(0.1, 0.0)
    (True, 2.0, 0.5)
    """
    there = [std for std in (ours, paper) if not math.isnan(std)]
    square = sum(std**2 for std in there) / max(len(there), 1)
    return max(math.sqrt(square), FLOOR)


def differences(
    results: Records, bounds: Mapping[tuple[str, str], float] | None = None
) -> list[Difference]:
    """Return every cell that both we and the paper have, each once, table by table.

    A system that is in two tables with the same figure is listed once.
    """
    found: dict[tuple[Any, ...], Difference] = {}
    strength = _strength(results)
    for name in table_names(results):
        for cell in _table_differences(results, name, dict(bounds or {}), strength):
            place = cell.measure, cell.system, cell.set_name, cell.paper
            found.setdefault(place, cell)
    return list(found.values())


def _table_differences(
    results: Records,
    name: str,
    bounds: Bounds,
    strength: Mapping[tuple[str, str], float],
) -> list[Difference]:
    both = {m: table_beside(results, name, m) for m in MEASURES}
    at = {rule: summarise(results, name, rule).mean for rule in THRESHOLDS}
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
                            at={rule: float(mean[i, j]) for rule, mean in at.items()},
                            auc_errors=_auc_errors(both["auc"], i, j),
                            is_contradictory=_contradicts(both, i, j),
                            **_hindsight(bounds, set_name, system, group),
                            members=strength.get((set_name, _criterion(system)), math.nan),
                        )
                    )
    return cells


def _figures(table: Beside, i: int, j: int) -> tuple[float, float, float, float]:
    std = pooled(float(table.ours.std[i, j]), float(table.paper_std[i, j]))
    error = std * math.sqrt(1.0 / max(table.ours.counts[i, j], 1) + 1.0 / PRINTED_REPETITIONS)
    return float(table.ours.mean[i, j]), float(table.paper[i, j]), std, error


def _auc_errors(table: Beside, i: int, j: int) -> float:
    ours, paper, _, error = _figures(table, i, j)
    return (ours - paper) / error


def _contradicts(both: Mapping[str, Beside], i: int, j: int) -> bool:
    auc, gmean = both["auc"].paper[i, j], both["gmean"].paper[i, j]
    return bool(auc_below_gmean(auc, gmean, rounding=0.005))


def _hindsight(bounds: Bounds, set_name: str, system: str, group: str) -> dict[str, float]:
    """Return what bounds a system: candidates of its family, or of all for the single best."""
    families = list(FAMILIES.values())
    if group == "member":
        families = [FAMILIES[system.split()[0]]]
    ends = [
        bounds.get((set_name, f"{name} {end}"))
        for name in families
        for end in ("lowest", "highest")
    ]
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


def _strength(results: Records) -> dict[tuple[str, str], float]:
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


@dataclass(frozen=True)
class Reason:
    """A reason with a short name; the first that applies to a difference is given."""

    key: str
    text: str
    applies: Callable[[Difference], bool]


def _is_below(cell: Difference) -> bool:
    return cell.difference < 0


def _is_auc(cell: Difference) -> bool:
    return cell.measure == "auc"


def _is_threshold(cell: Difference) -> bool:
    """Return whether our scores have the printed G-mean at another threshold."""
    if _is_auc(cell):
        return False
    reached = cell.paper <= cell.oracle + FAR * cell.error
    is_auc_level = math.isnan(cell.auc_errors) or abs(cell.auc_errors) <= FAR
    return reached if _is_below(cell) else is_auc_level


def _follows_auc(cell: Difference) -> bool:
    return (
        not _is_auc(cell)
        and abs(cell.auc_errors) > FAR
        and (cell.auc_errors > 0) == (cell.difference > 0)
    )


#: In this order; the last one fits everything.
REASONS = (
    Reason(
        "contradiction",
        "The printed AUC is below the square of the printed G-mean: the two are not of the same "
        "scores (errata, point 24).",
        lambda cell: cell.is_contradictory,
    ),
    Reason(
        "glass",
        "Not reproducible: no class or plain group of classes has the printed figures of simple "
        "detectors either (errata, point 25).",
        lambda cell: cell.set_name == GLASS,
    ),
    Reason(
        "quoted",
        "The printed figure is quoted from another paper, with its own splits; our system is a "
        "reconstruction from an abstract.",
        lambda cell: cell.group == "rival",
    ),
    Reason(
        "threshold",
        "Threshold: the paper does not say how it is set; ours is fixed on validation normals for "
        "5 % false alarms. A threshold on our scores, known afterwards, gives the printed figure.",
        _is_threshold,
    ),
    Reason(
        "as the AUC",
        "The AUC of the cell differs in the same direction: see there.",
        _follows_auc,
    ),
    Reason(
        "neighbours",
        "Number of neighbours, which is not printed: the columns have two or three values and "
        "many rows are equal, so that 20 neighbours say little. 50 neighbours give the printed "
        "figure.",
        lambda cell: _is_auc(cell) and (cell.system, cell.set_name) == ("LOF", "D3"),
    ),
    Reason(
        "duplicates",
        "Many rows are equal, which makes LOF unstable; which way cannot be told.",
        lambda cell: _is_auc(cell) and (cell.system, cell.set_name) == ("LOF", "D6"),
    ),
    Reason(
        "weaker than any candidate",
        "The printed member is more than a deviation worse than the worst of our candidates of its "
        "family, of the printed grid: settings that are not printed, or another implementation.",
        lambda cell: (
            _is_auc(cell) and cell.group == "member" and cell.paper < cell.lowest - cell.std
        ),
    ),
    Reason(
        "another candidate",
        "Within a deviation of what our candidates of the printed grid have: the criterion, whose "
        "formula is reconstructed, chose another one.",
        lambda cell: (
            _is_auc(cell) and cell.lowest - cell.std <= cell.paper <= cell.highest + cell.std
        ),
    ),
    Reason(
        "better than any candidate",
        "Unknown: better than the best of our candidates of the printed grid, known afterwards.",
        lambda cell: _is_auc(cell) and cell.paper > cell.highest + cell.std,
    ),
    Reason(
        "beyond weights",
        "Unknown, but not a matter of one vector of weights: a linear combination of our members "
        "with weights fitted on the test itself stays more than a deviation below it.",
        lambda cell: _is_auc(cell) and _is_below(cell) and cell.linear + cell.std < cell.paper,
    ),
    Reason(
        "weights",
        "Weights: a linear combination fitted on the test comes within a deviation. The paper has "
        "no formula of its locality or its criteria, nor how many anomalies are known.",
        lambda cell: _is_auc(cell) and _is_below(cell) and cell.linear + cell.std >= cell.paper,
    ),
    Reason(
        "stronger members",
        "Our members are stronger: the four, tuned alike, have a higher mean AUC than the printed.",
        lambda cell: (
            _is_auc(cell)
            and cell.group in ("local", "global", "rule")
            and not _is_below(cell)
            and cell.members > 0
        ),
    ),
    Reason("unknown", "Unknown.", lambda cell: True),
)


def reason_of(cell: Difference) -> Reason:
    """Return the first reason that fits."""
    return next(reason for reason in REASONS if reason.applies(cell))


def evidence(cell: Difference) -> str:
    """Return the figures that the reason rests on, in words; empty if there are none."""
    parts = []
    if cell.measure == "gmean":
        parts.append(f"best threshold {cell.oracle:.1f}")
    elif not math.isnan(cell.lowest):
        parts.append(f"candidates {cell.lowest:.1f} to {cell.highest:.1f}")
    elif not math.isnan(cell.linear):
        parts.append(f"weights fitted on the test {cell.linear:.1f}")
        if cell.difference > 0 and not math.isnan(cell.members):
            parts.append(f"members {cell.members:+.1f}")
    return ", ".join(parts)

"""The most likely reason why a figure differs, by rules that are stated as data."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ocfuse.bench.deviations import FAR, Difference
from ocfuse.bench.summary import GLASS


@dataclass(frozen=True)
class Reason:
    """A reason, and when it is given.

    Parameters
    ----------
    key : str
        Short name.
    text : str
        What is said.
    applies : callable
        Takes a difference and tells whether the reason fits; the first that fits is given.
    """

    key: str
    text: str
    applies: Callable[[Difference], bool]


def _is_below(cell: Difference) -> bool:
    return cell.difference < 0


def _is_fusion(cell: Difference) -> bool:
    return cell.group in ("local", "global", "rule")


def _is_auc(cell: Difference) -> bool:
    return cell.measure == "auc"


def _is_under(cell: Difference) -> bool:
    return cell.paper < cell.lowest - cell.std


def _top(cell: Difference) -> float:
    return cell.highest + cell.std


def _is_threshold(cell: Difference) -> bool:
    """Tell whether our scores have the printed G-mean at another threshold."""
    if _is_auc(cell):
        return False
    reached = cell.paper <= cell.oracle + FAR * cell.std
    is_auc_level = math.isnan(cell.auc_std) or abs(cell.auc_std) <= FAR
    return reached if _is_below(cell) else is_auc_level


def _follows_auc(cell: Difference) -> bool:
    return (
        not _is_auc(cell)
        and abs(cell.auc_std) > FAR
        and (cell.auc_std > 0) == (cell.difference > 0)
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
        lambda cell: _is_auc(cell) and cell.group == "member" and _is_under(cell),
    ),
    Reason(
        "another candidate",
        "Within a deviation of what our candidates of the printed grid have: the criterion, whose "
        "formula is reconstructed, chose another one.",
        lambda cell: _is_auc(cell) and cell.lowest - cell.std <= cell.paper <= _top(cell),
    ),
    Reason(
        "better than any candidate",
        "Unknown: better than the best of our candidates of the printed grid, known afterwards.",
        lambda cell: _is_auc(cell) and cell.paper > _top(cell),
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
            _is_auc(cell) and _is_fusion(cell) and not _is_below(cell) and cell.members > 0
        ),
    ),
    Reason("unknown", "Unknown.", lambda cell: True),
)


def reason_of(cell: Difference) -> Reason:
    """Return the first reason that fits.

    Parameters
    ----------
    cell : Difference
        A cell.

    Returns
    -------
    Reason
        The reason; the last of them if no other fits.
    """
    return next(reason for reason in REASONS if reason.applies(cell))


def evidence(cell: Difference) -> str:
    """Return the figures that the reason rests on, in words.

    Parameters
    ----------
    cell : Difference
        A cell.

    Returns
    -------
    str
        Empty if there are none.
    """
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

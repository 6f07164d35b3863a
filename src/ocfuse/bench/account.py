"""The account in numbers: what agrees, what does not, and what the claims come to."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from ocfuse.bench.contrasts import CONTRASTS, contrast_sheet, measured, printed
from ocfuse.bench.deviations import FAR, FLOOR, MEASURES, Difference
from ocfuse.bench.index import checks
from ocfuse.bench.limits import limit_lines, limit_sheets
from ocfuse.bench.published import published_table
from ocfuse.bench.ranking import Ranking
from ocfuse.bench.reasons import REASONS, evidence, reason_of
from ocfuse.bench.sheet import Cell, Sheet, number
from ocfuse.bench.summary import GLASS, summarise
from ocfuse.stats import mean_ranks

Records = Sequence[dict[str, Any]]

MEASURE_NAMES = {"auc": "AUC", "gmean": "G-mean"}
GROUPS = {
    "local": "local fusion (Pure, Non-pure)",
    "global": "global fusion (previous work)",
    "member": "members (GMM, SVDD, GP, KPCA)",
    "rule": "sum rule",
    "single": "single best",
    "detector": "LOF, isolation forest, ALP",
    "rival": "quoted rivals",
}
#: Systems whose G-mean has something to do with the paper's threshold.
OWN = tuple(group for group in GROUPS if group != "rival")


def deviation_sheets(cells: Sequence[Difference]) -> list[Sheet]:
    """Return the reasons with their counts, and the cells that are far off.

    Parameters
    ----------
    cells : sequence of Difference
        All cells.

    Returns
    -------
    list of Sheet
        Two tables.
    """
    far = [(cell, reason_of(cell)) for cell in cells if cell.is_far]
    counts = Counter((reason.key, cell.measure) for cell, reason in far)
    summary: list[list[Cell]] = [
        [reason.key, *(str(counts[reason.key, m]) for m in MEASURES), reason.text]
        for reason in REASONS
        if any(counts[reason.key, m] for m in MEASURES)
    ]
    rows: list[list[Cell]] = [
        [
            cell.set_name,
            cell.system,
            MEASURE_NAMES[cell.measure],
            number(cell.ours),
            number(cell.paper),
            number(cell.difference, sign="+"),
            number(abs(cell.difference) / cell.std, 1),
            reason.key,
            evidence(cell),
        ]
        for cell, reason in far
    ]
    header = ["set", "system", "measure", "ours", "paper", "difference", "deviations", "reason"]
    return [
        Sheet("reasons", "Reasons", ["reason", "AUC", "G-mean", "in words"], summary),
        Sheet("deviations", "Cells", [*header, "evidence"], rows),
    ]


def agreement_sheet(cells: Sequence[Difference]) -> Sheet:
    """Return how many cells agree, by the kind of system, without Glass.

    Parameters
    ----------
    cells : sequence of Difference
        All cells.

    Returns
    -------
    Sheet
        The table.
    """
    rows: list[list[Cell]] = []
    kept = [cell for cell in cells if cell.set_name != GLASS]
    for measure in MEASURES:
        for group, words in GROUPS.items():
            found = [c for c in kept if (c.measure, c.group) == (measure, group)]
            if found:
                gaps = [cell.difference for cell in found]
                rows.append(
                    [
                        MEASURE_NAMES[measure],
                        words,
                        str(len(found)),
                        str(sum(not cell.is_far for cell in found)),
                        number(fmean(gaps), sign="+"),
                        number(fmean(map(abs, gaps))),
                    ]
                )
    header = ["measure", "systems", "cells", "within two deviations"]
    header += ["mean difference", "mean absolute difference"]
    return Sheet("agreement", "Agreement with the printed figures, without Glass", header, rows)


def account_page(results: Records, cells: Sequence[Difference]) -> tuple[str, list[Sheet]]:
    """Return the sentences of the account, as Markdown, and its sheets.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.
    cells : sequence of Difference
        All cells.

    Returns
    -------
    tuple
        Markdown, and a list of Sheet.
    """
    sheets = [agreement_sheet(cells)]
    sheets += [
        contrast_sheet(results, measure, f"Claims about pairs, {words}")
        for measure, words in MEASURE_NAMES.items()
    ]
    sheets += limit_sheets(results)
    lines = [
        *_agreement(cells),
        *_places(results),
        _solvers(results),
        *_thresholds(cells),
        *_members(cells),
        *_beyond(cells),
        *limit_lines(results),
        *checks(results),
    ]
    return "\n".join(f"- {line}" for line in lines if line), sheets


def _agreement(cells: Sequence[Difference]) -> list[str]:
    parts = []
    for measure, words in MEASURE_NAMES.items():
        found = [c for c in cells if c.measure == measure and c.set_name != GLASS]
        near = sum(not cell.is_far for cell in found)
        parts.append(f"{near} of {len(found)} in {words}")
    far = sum(cell.is_far for cell in cells if cell.set_name == GLASS)
    glass = sum(cell.set_name == GLASS for cell in cells)
    return [
        f"Cells within {FAR:g} standard deviations, without Glass: {', '.join(parts)}. Deviation: "
        "root mean square of ours and of the printed one, each of one repetition, at least "
        f"{FLOOR} points.",
        f"On Glass {far} of {glass} cells are further off." if glass else "",
    ]


def _places(results: Records) -> list[str]:
    """Tell the mean rank of Pure2 among the paper's systems, printed and ours."""
    lines = []
    for name in ("rpau", "pseudo-negative"):
        for measure, words in MEASURE_NAMES.items():
            ranking = Ranking(summarise(results, name, measure), published_table(name, measure))
            control = ranking.control()
            if control is not None:
                at = ranking.systems.index(control)
                ours, theirs = mean_ranks(ranking.table), mean_ranks(ranking.printed_table)
                lines.append(
                    f"Mean rank of {control}, {name}, {words}, of {len(ours)} systems: printed "
                    f"{_place(theirs, at)}; ours {_place(ours, at)}, first {ranking.best}."
                )
    return lines


def _place(ranks: Any, at: int) -> str:
    return f"{ranks[at]:.2f} (place {1 + int(np.sum(ranks < ranks[at]))})"


def _solvers(results: Records) -> str:
    """Tell how far the two solvers of one problem are apart."""
    contrast = next(c for c in CONTRASTS if c.question == "solver")
    gaps = []
    for first, second in (printed(contrast, "auc"), measured(results, contrast, "auc")):
        apart = np.abs(first - second)
        gaps.append(f"{np.nanmax(apart):.2f}" if not np.isnan(apart).all() else "unknown")
    return (
        "Largest difference in AUC between the two solvers of the same problem (Pure1 and Pure2 "
        f"with RPAU, without Glass): printed {gaps[0]}, ours {gaps[1]}."
    )


def _thresholds(cells: Sequence[Difference]) -> list[str]:
    found = [c for c in cells if c.measure == "gmean" and c.group in OWN and c.set_name != GLASS]
    if not found:
        return []
    fixed = fmean(abs(cell.difference) for cell in found)
    oracle = fmean(abs(cell.oracle - cell.paper) for cell in found)
    nearer = sum(abs(c.oracle - c.paper) < abs(c.difference) for c in found)
    return [
        f"The printed G-mean is on average {fixed:.1f} points from ours at the threshold fixed for "
        f"5 % false alarms and {oracle:.1f} from ours at the best threshold in hindsight; it is "
        f"nearer to the latter in {nearer} of {len(found)} cells (without Glass and quoted rivals)."
    ]


def _members(cells: Sequence[Difference]) -> list[str]:
    found = [
        c
        for c in cells
        if (c.measure, c.group) == ("auc", "member") and not math.isnan(c.lowest)
        if c.set_name != GLASS
    ]
    if not found:
        return []
    under = sum(cell.paper < cell.lowest for cell in found)
    return [
        f"Of {len(found)} printed AUC of members, {under} are below that of the worst of our "
        "candidates of the family, all of the printed grid; mean of ours less the printed ones "
        f"{fmean(cell.difference for cell in found):+.1f} points."
    ]


def _beyond(cells: Sequence[Difference]) -> list[str]:
    found = [
        c for c in cells if c.measure == "auc" and not math.isnan(c.linear) and c.set_name != GLASS
    ]
    if not found:
        return []
    above = Counter(cell.set_name for cell in found if cell.paper > cell.linear + cell.std)
    where = ", ".join(f"{name} ({n})" for name, n in above.items()) or "none"
    return [
        f"Of {len(found)} printed AUC of fusions, {sum(above.values())} are more than a deviation "
        "above a linear combination of our four members with weights fitted on the test itself, "
        "which fusions of these members with one vector of weights can hardly pass (local ones "
        f"might): {where}."
    ]

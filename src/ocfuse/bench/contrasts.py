"""The paper's claims about pairs of systems, asked of its figures and of ours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.published import published_table
from ocfuse.bench.sheet import GAP, Cell, Sheet, number, p_value
from ocfuse.bench.summary import GLASS, summarise
from ocfuse.stats import compare

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """Whether the first system is better than the second.

    Parameters
    ----------
    question : str
        What it is about.
    table : str
        Where the two stand.
    first, second : str
        The systems.
    """

    question: str
    table: str
    first: str
    second: str


LOCAL, FUSION = "local against global weights", "fusion against its parts"
CONTRASTS = (
    Contrast(LOCAL, "comparison", "Pure2 RPAU", "Previous RPAU"),
    Contrast(LOCAL, "comparison", "Pure2 pseudo-negative", "Previous pseudo-negative"),
    Contrast(LOCAL, "comparison", "Non-pure2", "Previous Non-pure"),
    Contrast(LOCAL, "comparison", "Pure2 RPAU, signed", "Previous RPAU, signed"),
    Contrast(
        LOCAL, "comparison", "Pure2 pseudo-negative, signed", "Previous pseudo-negative, signed"
    ),
    Contrast(LOCAL, "comparison", "Non-pure2, signed", "Previous Non-pure, signed"),
    Contrast(FUSION, "rpau", "Pure2 (interior point)", "Sum rule"),
    Contrast(FUSION, "pseudo-negative", "Pure2 (interior point)", "Sum rule"),
    Contrast(FUSION, "rpau", "Pure2 (interior point)", "Single-best"),
    Contrast(FUSION, "pseudo-negative", "Pure2 (interior point)", "Single-best"),
    Contrast(FUSION, "comparison", "Non-pure2", "Sum rule Non-pure"),
    Contrast(FUSION, "comparison", "Non-pure2", "Single-best Non-pure"),
    *(
        Contrast("fusion against common detectors", "rpau", "Pure2 (interior point)", name)
        for name in ("LOF", "IF", "ALP")
    ),
    Contrast("known anomalies", "comparison", "Non-pure2", "Pure2 RPAU"),
    Contrast("criterion", "comparison", "Pure2 pseudo-negative", "Pure2 RPAU"),
    Contrast("solver", "comparison", "Pure2 RPAU", "Pure1 RPAU"),
    Contrast("weights of any sign", "comparison", "Pure2 RPAU, signed", "Pure2 RPAU"),
    Contrast("our default", "comparison", "FusedDetector()", "Pure2 RPAU"),
    Contrast("our default", "comparison", "FusedDetector() with labels", "Non-pure2"),
)


def contrast_sheet(results: Sequence[dict[str, Any]], measure: str, title: str) -> Sheet:
    """Return what the printed figures and ours say about every contrast.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.
    measure : {"auc", "gmean"}
        What is compared.
    title : str
        Of the sheet.

    Returns
    -------
    Sheet
        The table; Glass is left out on both sides.
    """
    rows: list[list[Cell]] = [
        [
            contrast.question,
            _words(contrast),
            *_outcome(*printed(contrast, measure)),
            *_outcome(*measured(results, contrast, measure)),
        ]
        for contrast in CONTRASTS
    ]
    side = ("mean difference", "won/level/lost", "p")
    header = ["question", "systems", *(f"paper: {s}" for s in side), *side]
    note = (
        "Over the sets without Glass, on both sides. p: Wilcoxon's test of this pair alone, not "
        "corrected for the number of pairs."
    )
    return Sheet(f"contrasts-{measure}", title, header, rows, note)


def printed(contrast: Contrast, measure: str) -> tuple[FloatArray, FloatArray]:
    """Return the printed figures of the two systems without Glass; none if one is ours."""
    table = published_table(contrast.table, measure)
    if not {contrast.first, contrast.second} <= set(table.systems):
        return np.array([]), np.array([])
    kept = np.array([name != GLASS for name in table.sets])
    return table.column(contrast.first)[kept], table.column(contrast.second)[kept]


def measured(
    results: Sequence[dict[str, Any]], contrast: Contrast, measure: str
) -> tuple[FloatArray, FloatArray]:
    """Return our figures of the two systems without Glass."""
    ours = summarise(results, contrast.table, measure)
    first, second = ours.columns([contrast.first, contrast.second])[ours.is_reproducible].T
    return first, second


def _words(contrast: Contrast) -> str:
    where = "" if contrast.table == "comparison" else f" ({contrast.table})"
    return f"{contrast.first} against {contrast.second}{where}"


def _outcome(first: FloatArray, second: FloatArray) -> list[Cell]:
    if np.isnan(first - second).all():
        return [GAP] * 3
    found = compare(first, second)
    return [
        number(found.mean_difference, sign="+"),
        f"{found.wins}/{found.ties}/{found.losses}",
        p_value(found.p_value),
    ]

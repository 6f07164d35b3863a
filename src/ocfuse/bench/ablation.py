"""The paper's table of solver speeds, beside the benchmark of our solvers."""

import json
import math
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

from ocfuse.bench.sheet import GAP, Cell, Sheet

#: Which methods are timed against the interior point, by their names in the benchmark.
METHODS = {"paper": "Frank-Wolfe as the paper has it", "strong": "Frank-Wolfe, strong"}


def ablation_sheets(path: Path) -> list[Sheet]:
    """Return the ratios of times, one sheet for each Frank-Wolfe; none without a file.

    Parameters
    ----------
    path : Path
        ``ablation.json`` of the benchmark of the solvers.

    Returns
    -------
    list of Sheet
        Time of Frank-Wolfe over that of the interior point, by norm and tolerance.
    """
    if not path.is_file():
        return []
    data: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))["data"]
    settings = {name: cells for name, cells in data.items() if _is_grid(cells)}
    return [_sheet(settings, method, words) for method, words in METHODS.items()]


def _sheet(settings: dict[str, list[dict[str, Any]]], method: str, words: str) -> Sheet:
    cells = {(name, c["p"], c["tol"]): c for name, found in settings.items() for c in found}
    first = next(iter(settings.values()))
    rows: list[list[Cell]] = [
        [
            _norm(cell["p"]),
            f"{cell['tol']:g}",
            f"{cell['printed']:.2f}",
            *(_ratio(cells.get((name, cell["p"], cell["tol"])), method) for name in settings),
        ]
        for cell in first
    ]
    note = (
        "Time over that of the interior point: above 1 the interior point is faster. `>`: a run "
        "was stopped at the limit of iterations, so that it is a lower bound. The paper defines "
        "neither its precision nor its Frank-Wolfe; here it is the certified relative gap."
    )
    header = ["p", "gap", "paper", *settings]
    return Sheet(f"solvers-{method}", words, header, rows, note)


def geometric_ratio(cell: dict[str, Any], method: str) -> tuple[float, bool]:
    """Return a method's time over that of the interior point, and whether it is a lower bound.

    Parameters
    ----------
    cell : dict
        A norm and a tolerance of the benchmark.
    method : str
        "paper" or "strong".

    Returns
    -------
    tuple
        Geometric mean over the instances; True if one of them was stopped.
    """
    logs = [math.log(run[method] / run["interior_point"]) for run in cell["runs"]]
    return math.exp(fmean(logs)), any(run[f"is_{method}_capped"] for run in cell["runs"])


def _ratio(cell: dict[str, Any] | None, method: str) -> str:
    if cell is None:
        return GAP
    ratio, is_bound = geometric_ratio(cell, method)
    return (">" if is_bound else "") + f"{ratio:.2g}"


def _norm(p: float) -> str:
    return str(Fraction(p).limit_denominator(64))


def _is_grid(cells: Any) -> bool:
    return isinstance(cells, list) and bool(cells) and "printed" in cells[0]

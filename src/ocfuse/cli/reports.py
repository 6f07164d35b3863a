"""Reports on the rows of a table."""

from pathlib import Path

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from ocfuse.ensemble.score import Trace
from ocfuse.report.printing import find_browser
from ocfuse.tables import TableDetector


def check_report(path: Path | None) -> None:
    """Refuse before the work is done, not after."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise typer.BadParameter(
            f"there is no folder {path.parent}. Create it first.", param_hint="--report"
        )
    if path.suffix.lower() not in (".html", ".htm", ".pdf"):
        raise typer.BadParameter(
            f"must end in .html or .pdf. Got {path.name}.", param_hint="--report"
        )
    if path.suffix.lower() == ".pdf":
        find_browser()


def write_report(
    model: TableDetector,
    frame: pd.DataFrame,
    name: str,
    path: Path,
    trace: Trace | None = None,
    has_score: NDArray[np.bool_] | None = None,
) -> None:
    """Write a page on the alarms among rows, and why they were raised; see `report`."""
    model.report(frame, name=name, trace=trace, has_score=has_score).save(path)

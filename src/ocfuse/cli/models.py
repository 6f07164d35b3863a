"""The model that a command is given."""

from pathlib import Path

import typer

from ocfuse.exceptions import ModelFileError
from ocfuse.persistence import load
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import RUNS


def load_model(
    path: Path,
    threshold: float | None = None,
    false_alarms: float | None = None,
    gaps: str | None = None,
) -> TableDetector:
    """Return the model that `ocfuse fit` wrote, with what flags ask for."""
    if threshold is not None and false_alarms is not None:
        raise typer.BadParameter("give either --threshold or --false-alarms")
    model = as_table(load(path), path)
    if threshold is not None or false_alarms is not None:
        model.set_threshold(false_alarms, offset=threshold)
    if gaps is not None:
        if model.kind == RUNS:
            raise typer.BadParameter(
                "--gaps is for rows that stand alone. Channels of a stream may be missing at any "
                "time; rows for which too much is missing have no score, and are counted"
            )
        model.detector_.set_gaps(gaps)
    return model


def as_table(model: object, path: Path) -> TableDetector:
    """Return a model that knows the columns of a table, or refuse what a file holds."""
    if not isinstance(model, TableDetector):
        raise ModelFileError(
            f"{path.name} holds a {type(model).__name__}, which knows arrays and not the columns "
            "of a table. Expected a model that `ocfuse fit` or TableDetector.save wrote. "
            "A model of recordings is for ocfuse watch --video."
        )
    return model

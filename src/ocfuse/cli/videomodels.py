"""The model of recordings that a command is given."""

from pathlib import Path

import typer

from ocfuse.exceptions import ModelFileError
from ocfuse.persistence import load
from ocfuse.vision import PictureDetector


def load_detector(
    path: Path, threshold: float | None = None, false_alarms: float | None = None
) -> PictureDetector:
    """Return the model that `ocfuse fit --video` wrote, with the threshold that flags ask for."""
    if threshold is not None and false_alarms is not None:
        raise typer.BadParameter("give either --threshold or --false-alarms")
    model = load(path)
    if not isinstance(model, PictureDetector):
        raise ModelFileError(
            f"{path.name} holds a {type(model).__name__}, which does not know pictures. "
            "Expected a model that `ocfuse fit --video` or PictureDetector.save wrote."
        )
    if threshold is not None or false_alarms is not None:
        model.set_threshold(false_alarms, offset=threshold)
    return model

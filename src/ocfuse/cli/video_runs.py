"""Runs as the user has them: files, folders, trials, and the progress of the task in them."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocfuse.cli.kinds import RECORDED
from ocfuse.exceptions import DatasetWarning, InvalidInputError
from ocfuse.report.words import count
from ocfuse.system.files import PICTURE_ENDINGS, natural
from ocfuse.vision import FrameSource, open_frames
from ocfuse.vision.frames import PictureFiles
from ocfuse.vision.live import is_live_name
from ocfuse.vision.trials import FRAMES, Trial, read_trials

#: Files that are recordings when they lie in a folder of runs.
RECORDINGS = (*RECORDED, ".npy", ".npz")


def find_single(places: Sequence[str], single: bool | None) -> PictureFiles | None:
    """Return pictures that stand alone, each for itself; None if the places hold runs.

    Those of one folder that lie beside each other stand alone, unless there is progress of a
    task for them. Recordings are runs, and so are folders of pictures inside a folder.
    `single` decides otherwise.
    """
    if single is False:
        return None
    paths = [Path(place) for place in places]
    if single is None and not (len(paths) == 1 and _is_flat(paths[0])):
        return None
    for path in paths:
        if not path.is_dir() and path.suffix.lower() not in PICTURE_ENDINGS:
            raise InvalidInputError(
                f"--single is for pictures, each of which stands alone. Got {path}, which is none, "
                "nor a folder of them. Leave --single out."
            )
    found = [open_frames(path) for path in paths]
    files = [path for source in found if isinstance(source, PictureFiles) for path in source.paths]
    return PictureFiles(files, ", ".join(places))


def _is_flat(path: Path) -> bool:
    """Return whether a path is a picture, or a folder of pictures that knows no progress."""
    if not path.is_dir():
        return path.suffix.lower() in PICTURE_ENDINGS and path.exists()
    here = path.absolute()  # "." has no name
    progress = here.with_name(f"{here.name}.progress")
    is_run = (path / "metadata.yaml").is_file() or progress.is_file()
    return not is_run and _has_pictures(path)


def open_run(where: str, topic: str | None = None) -> FrameSource:
    """Return one recording, with the progress in a file beside it, or what is live."""
    path = Path(where)
    if is_live_name(where):
        return open_frames(where)
    if (path / FRAMES).is_dir():
        (trial,) = read_trials(path)
        return _of_trial(trial)
    here = path.absolute()
    beside = here.with_name((here.name if path.is_dir() else path.stem) + ".progress")
    return open_frames(path, topic, read_numbers(beside) if beside.is_file() else None)


def find_runs(places: Sequence[str], topic: str | None = None) -> list[FrameSource]:
    """Return the runs of files and folders; what is live has no end, and is refused."""
    live = [place for place in places if is_live_name(place)]
    if live:
        raise InvalidInputError(
            f"fit learns from recordings, which have an end. Got {live[0]}: a camera, an address "
            "or stdin. Record runs first, one file each: ffmpeg -i ... run.mkv"
        )
    runs = [run for place in places for run in _runs_in(Path(place), topic)]
    if not runs:
        raise InvalidInputError(
            f"There are no recordings in {', '.join(places)}. Expected files that end with "
            f"{', '.join(RECORDINGS)}, or folders of pictures, one per run."
        )
    return runs


def read_numbers(path: Path) -> NDArray[np.float64]:
    """Return the numbers of a file, one per line, or those of a `.npy` file."""
    try:
        if path.suffix.lower() == ".npy":
            numbers = np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
        else:
            numbers = np.array(path.read_text(encoding="utf-8").split(), dtype=np.float64)
    except ValueError as error:
        raise InvalidInputError(f"{path} must hold a number per frame: {error}.") from None
    if not np.isfinite(numbers).all():
        raise InvalidInputError(f"{path} must hold a finite number per frame. Got NaN or infinity.")
    return numbers


def _runs_in(path: Path, topic: str | None) -> list[FrameSource]:
    if not path.is_dir() or (path / "metadata.yaml").is_file() or _has_pictures(path):
        return [open_run(str(path), topic)]
    if any(inner.is_dir() for inner in path.rglob(FRAMES)):
        return [_of_trial(trial) for trial in _training(read_trials(path))]
    inside = sorted(path.iterdir(), key=lambda p: natural(p.name))
    found = [p for p in inside if p.suffix.lower() in RECORDINGS or p.is_dir()]
    return [open_run(str(p), topic) for p in found if not p.name.startswith(".")]


def _training(trials: Sequence[Trial]) -> list[Trial]:
    """Return the normal trials, of those for training if there are any."""
    chosen = [trial for trial in trials if trial.split == "train"] or list(trials)
    normal = [trial for trial in chosen if not trial.anomalies]
    n_left_out = len(chosen) - len(normal)
    if n_left_out:
        warnings.warn(
            f"{count(n_left_out, 'trial')} with anomalies {'is' if n_left_out == 1 else 'are'} "
            "left out.",
            DatasetWarning,
            stacklevel=2,
        )
    return normal


def _has_pictures(folder: Path) -> bool:
    return any(path.suffix.lower() in PICTURE_ENDINGS for path in folder.iterdir())


def _of_trial(trial: Trial) -> FrameSource:
    return open_frames(
        PictureFiles(trial.frames, trial.name, trial.times.tolist()), progress=trial.progress
    )

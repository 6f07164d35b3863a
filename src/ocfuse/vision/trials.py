"""Trials: recorded runs of a robot, read from folders, and kinds of anomalies."""

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import DatasetError, DatasetWarning, InvalidInputError
from ocfuse.system.files import PICTURE_ENDINGS, natural
from ocfuse.system.packages import needed

__all__ = [
    "KINDS",
    "TYPES",
    "Trial",
    "read_trials",
]

#: Type of an anomalous run that is not known.
UNKNOWN = -1
#: Folder of the frames of a run; picture folders beside it are made from it.
FRAMES = "rgb"
#: What names of folders say of the use of runs.
SPLITS = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
}

NORMAL, OCCLUSION, GRASP, DROP, OBSTACLE = range(5)
#: Names of the types, by their numbers.
TYPES = {
    OCCLUSION: "camera occlusion",
    GRASP: "grasp failure",
    DROP: "drop",
    OBSTACLE: "obstacle",
}
#: Kinds of each type; their names are unique over all types.
KINDS = {
    OCCLUSION: ("full", "partial", "hand", "smear"),
    GRASP: ("short", "beyond", "high", "onto"),
    DROP: ("open", "slow", "limp"),
    OBSTACLE: ("block", "bottle", "brick", "ball"),
}


@dataclass
class Trial:
    """One run of a robot.

    Attributes
    ----------
    name : str
        Its folder, relative to the folder that was read.
    split : str
        "train", "validation" or "test".
    frames : list of Path
        Pictures, in their order.
    times : ndarray of shape (n_frames,)
        Seconds.
    progress : ndarray of shape (n_frames,) or None
        Task progress of the controller, in [0, 1].
    joints : ndarray of shape (n_frames, n_columns) or None
        Values of the sensors of the robot.
    joint_names : list of str
        Names of the columns of `joints`.
    anomalies : list of (int, int)
        First and last frame of each anomaly, both included.
    kind : int
        0 for a normal run, 1-4 for the type of anomaly, -1 if unknown.
    subkind : str
        Kind within the type, such as "hand"; "" if there is none.
    annotation : dict
        All annotations of the run.
    """

    name: str
    split: str
    frames: list[Path]
    times: NDArray[np.float64]
    progress: NDArray[np.float64] | None = None
    joints: NDArray[np.float64] | None = None
    joint_names: list[str] = field(default_factory=list)
    anomalies: list[tuple[int, int]] = field(default_factory=list)
    kind: int = NORMAL
    subkind: str = ""
    annotation: dict[str, Any] = field(default_factory=dict)

    def labels(self) -> NDArray[np.int64]:
        """Return +1 for every normal frame and -1 for every anomalous one."""
        signs = np.ones(len(self.frames), dtype=np.int64)
        for first, last in self.anomalies:
            signs[first : last + 1] = -1
        return signs


def read_trials(folder: str | Path, frame_rate: float = 30.0) -> list[Trial]:
    """Read recorded runs.

    Runs are folders with pictures in `rgb` and, optionally, `annotation.json`, `states.parquet`
    (of ocfuse), `joint_state_positions.npy` and `joint_names.npy` (Toyota HSR). Any other folder
    with pictures is a run of one class, which its name or that of a parent folder shows: "normal",
    "occlusion", "grasp", "drop", "obstacle", "type1" to "type4".

    Folders named "train", "validation" and "test" define the split. Without them, normal runs are
    for training and all others for testing.

    Parameters
    ----------
    folder : str or Path
        The folder, or one of the three in it.
    frame_rate : float, default=30.0
        Frames per second, used if times are unknown.

    Returns
    -------
    list of Trial
        The runs, in the order train, validation, test, and by name.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DatasetError(f"There is no folder {root}.")
    trials = [
        trial
        for pictures in _picture_folders(root)
        if (trial := _read(root, pictures, frame_rate)) is not None
    ]
    if not trials:
        raise DatasetError(
            f"There are no runs in {root}. Expected trial_<id>/{FRAMES}/*.jpg, perhaps in train, "
            "validation and test, or folders of pictures that are named after their class."
        )
    order = list(dict.fromkeys(SPLITS.values()))
    return sorted(trials, key=lambda trial: (order.index(trial.split), natural(trial.name)))


def _picture_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders that hold the frames of a run."""
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] != "."]
    if (folder / FRAMES).is_dir():
        yield folder / FRAMES
        return
    if any(_is_picture(path) for path in folder.iterdir()):
        if not inside:
            yield folder
        else:  # such as a plot beside the runs
            _warn(f"Pictures in {folder} lie beside folders; they are left out.")
    for path in inside:
        yield from _picture_folders(path)


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURE_ENDINGS and not path.name.startswith(".")


def _read(root: Path, pictures: Path, frame_rate: float) -> Trial | None:
    """Return the run of a folder of pictures, or None if there are none."""
    frames = [path for path in pictures.iterdir() if _is_picture(path)]
    if not frames:
        _warn(f"{pictures} holds no pictures; the run is left out.")
        return None
    annotation: dict[str, Any] = {}
    if pictures.name == FRAMES:
        folder, frames = pictures.parent, sorted(frames)  # as annotations count them
        annotation = _annotation(folder / "annotation.json")
        anomalies = _anomalies(folder, annotation, len(frames))
        kind = annotation.get("type")
        if kind not in (NORMAL, *TYPES):
            kind = UNKNOWN if anomalies else NORMAL
    else:  # a run of one class
        folder, frames = pictures, sorted(frames, key=lambda path: natural(path.name))
        kind = _class(root, folder)
        anomalies = [] if kind == NORMAL else [(0, len(frames) - 1)]
    trial = Trial(
        name=folder.relative_to(root).as_posix() if folder != root else root.resolve().name,
        split=_split(root, folder, is_normal=kind == NORMAL),
        frames=frames,
        times=np.arange(len(frames)) / frame_rate,
        anomalies=anomalies,
        kind=kind,
        subkind=str(annotation.get("kind", "")),
        annotation=annotation,
    )
    if pictures.name == FRAMES and (folder / "states.parquet").exists():
        _add_states(trial, folder / "states.parquet")
    elif pictures.name == FRAMES and (folder / "joint_state_positions.npy").exists():
        _add_positions(trial, folder)
    return trial


def _names(root: Path, folder: Path) -> list[str]:
    """Return the names of a folder and of those above it up to the root, nearest first."""
    names = [root.resolve().name, *folder.relative_to(root).parts]
    return [name.lower() for name in reversed(names)]


def _split(root: Path, folder: Path, is_normal: bool) -> str:
    known = [SPLITS[name] for name in _names(root, folder) if name in SPLITS]
    return known[0] if known else ("train" if is_normal else "test")


def _class(root: Path, folder: Path) -> int:
    numbered = r"^(?:type|class|anomaly|anomalies|abnormal|a|t)?[ _-]*([1-4])$"
    classes = {  # tried in this order: "abnormal" is not normal
        r"occlu|camera": OCCLUSION,
        r"grasp": GRASP,
        r"drop|gripper|fall": DROP,
        r"obstacle": OBSTACLE,
        r"abnormal|anomal": UNKNOWN,
        r"normal|good|nominal|success": NORMAL,
    }
    for name in _names(root, folder):
        if match := re.match(numbered, name):
            return int(match[1])
        for pattern, kind in classes.items():
            if re.search(pattern, name):
                return kind
    raise DatasetError(
        f"{folder} holds pictures, but its name tells no class. Name it normal, occlusion, "
        f"grasp, drop, obstacle, or type1 to type4; or put the pictures of a run into "
        f"trial_<id>/{FRAMES}."
    )


def _annotation(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DatasetError(f"{file} is no JSON: {error}.") from None
    if not isinstance(content, dict):
        raise DatasetError(f'{file} must hold an object with "Anomalies". Got {content!r:.60}.')
    return content


def _anomalies(folder: Path, annotation: dict[str, Any], n_frames: int) -> list[tuple[int, int]]:
    pairs = annotation.get("Anomalies") or []
    try:
        found = [(int(first), int(last)) for first, last in pairs]
    except (TypeError, ValueError):
        raise DatasetError(
            f'"Anomalies" of {folder} must be pairs of frames. Got {pairs!r:.60}.'
        ) from None
    inside = [(max(a, 0), min(b, n_frames - 1)) for a, b in found if a < n_frames and b >= a]
    if inside != found:
        _warn(f"Anomalies of {folder} lie outside its {n_frames} frames; they are cut.")
    return inside


def _add_states(trial: Trial, file: Path) -> None:
    """Add what a simulated run measured."""
    parquet = needed("pyarrow.parquet", "to read Parquet", "robots")
    try:
        table = parquet.read_table(file)
        columns = {name: table[name].to_numpy() for name in table.column_names}
        trial.times, trial.progress = columns["time"], columns["progress"]
    except (OSError, KeyError, ValueError) as error:
        raise DatasetError(f"{file} cannot be used: {error}.") from None
    about = ("time", "phase", "fraction", "progress")
    trial.joint_names = [name for name in columns if name not in about]
    joints = np.column_stack([columns[name] for name in trial.joint_names])
    trial.joints = joints.astype(np.float64)
    if len(joints) != len(trial.frames):
        raise DatasetError(f"{file} has {len(joints)} rows for {len(trial.frames)} frames.")


def _add_positions(trial: Trial, folder: Path) -> None:
    """Add the joints of a run of the Toyota HSR, if there is a row for every frame."""
    file = folder / "joint_state_positions.npy"
    try:
        joints = np.asarray(np.load(file), dtype=np.float64)
    except (OSError, ValueError) as error:
        _warn(f"{file} cannot be read and is left out: {error}.")
        return
    if joints.ndim != 2 or len(joints) < len(trial.frames):
        _warn(f"{file} has no row for every one of {len(trial.frames)} frames; it is left out.")
        return
    trial.joints = joints[: len(trial.frames)]
    trial.joint_names = _joint_names(folder / "joint_names.npy", joints.shape[1])


def _joint_names(file: Path, n_columns: int) -> list[str]:
    try:
        stored = np.load(file)
        names = [n.decode() if isinstance(n, bytes) else str(n) for n in stored.tolist()]
    except (OSError, ValueError, AttributeError):
        names = []
    return names if len(names) == n_columns else [f"joint_{i}" for i in range(n_columns)]


def _warn(text: str) -> None:
    warnings.warn(text, DatasetWarning, stacklevel=3)


def type_of(kind: str) -> int:
    """Return the type that a kind belongs to; "" is normal.

    Examples
    --------
    >>> type_of("ball")
    4
    """
    return next((number for number, kinds in KINDS.items() if kind in kinds), NORMAL)


def find_kinds(names: Sequence[str]) -> list[str]:
    """Return the kinds for numbers of types and names of kinds, each once, in order.

    Examples
    --------
    >>> find_kinds(["3", "ball"])
    ['open', 'slow', 'limp', 'ball']
    """
    wanted: set[str] = set()
    for name in names:
        if name.isdigit() and int(name) in KINDS:
            wanted.update(KINDS[int(name)])
        elif type_of(name) != NORMAL:
            wanted.add(name)
        else:
            known = "; ".join(f"{number}: {', '.join(kinds)}" for number, kinds in KINDS.items())
            raise InvalidInputError(f"There is no type or kind {name!r}. Choose from {known}.")
    return [kind for kinds in KINDS.values() for kind in kinds if kind in wanted]

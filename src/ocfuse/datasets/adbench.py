"""Load the npz files of ADBench from a folder."""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocfuse.datasets.dataset import Dataset, DatasetInfo, signs
from ocfuse.datasets.formats import look_npz, read_npz
from ocfuse.datasets.store import StoredFile, data_folder
from ocfuse.exceptions import DatasetError, DatasetWarning, unknown_name
from ocfuse.system.files import natural

PAGE = "https://github.com/Minqi824/ADBench"


def load_adbench(name: str) -> Dataset:
    """Load a data set of ADBench.

    Its npz file must be in the folder ``adbench`` of the folder that the
    environment variable OCFUSE_DATA names.

    Parameters
    ----------
    name : str
        Name of the file without its ending, such as "6_cardio".

    Returns
    -------
    Dataset
        ADBench's label 1 (anomaly) becomes y = -1, and 0 becomes +1.
    """
    path = _path(name)
    X, labels, names = read_npz(path, "y")
    classes: NDArray[np.str_] = np.array(labels)
    if not set(labels) <= {"0", "1"}:
        raise DatasetError(f"y of {path} must hold 0 and 1. Got {', '.join(sorted(set(labels)))}.")
    y = signs(classes == "0")
    info = _info(path.stem, len(y), int((y == 1).sum()), X.shape[1])
    return Dataset(info.name, X, y, classes, names, info)


def adbench_infos() -> list[DatasetInfo]:
    """Return the entries of the sets that are in the folder; a damaged one is left out."""
    infos = []
    for path in _files().values():
        try:
            infos.append(_look(path))
        except DatasetError as error:
            warnings.warn(f"A set is left out. {error}", DatasetWarning, stacklevel=3)
    return infos


def adbench_names() -> list[str]:
    """Return the names of the sets that are in the folder, damaged or not."""
    return [f"adbench/{name}" for name in _files()]


def find_adbench(name: str) -> DatasetInfo:
    """Return the entry of a set."""
    return _look(_path(name))


def locate_adbench(name: str) -> str | None:
    """Return the path of a set."""
    path = _files().get(name.removeprefix("adbench/"))
    return None if path is None else str(path)


def fetch_adbench(name: str) -> str:
    """Return the path of a set; there is no download."""
    return str(_path(name))


def _path(name: str) -> Path:
    files = _files()
    short = str(name).removeprefix("adbench/")
    if short in files:
        return files[short]
    if files:
        raise unknown_name("name of an ADBench set", name, files)
    stored = StoredFile(f"adbench/{short}", "adbench", (f"{short}.npz",), None, PAGE)
    return stored.fetch(lambda path: None)


def _files() -> dict[str, Path]:
    folder = data_folder()
    paths = [] if folder is None else (folder / "adbench").glob("*.npz")
    return {path.stem: path for path in sorted(paths, key=lambda path: natural(path.stem))}


def _look(path: Path) -> DatasetInfo:
    (n_rows, n_features), y = look_npz(path, "y")
    return _info(path.stem, n_rows, int((y == 0).sum()), n_features)


def _info(name: str, n_rows: int, n_normals: int, n_features: int) -> DatasetInfo:
    return DatasetInfo(
        name=f"adbench/{name}",
        title=f"ADBench {name}",
        kind="table",
        source=PAGE,
        licence="BSD-2-Clause (ADBench); the sets in it have their own",
        citation="Han, S., Hu, X., Huang, H., Jiang, M. and Zhao, Y. (2022). ADBench: Anomaly "
        "Detection Benchmark. Advances in Neural Information Processing Systems 35.",
        normal_class="0",
        n_rows=n_rows,
        n_normals=n_normals,
        n_features=n_features,
        imputation="as the file has it",
    )

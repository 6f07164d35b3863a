"""Load the ten UCI sets of the paper."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocfuse.datasets.checksum import content_sha256, require_content
from ocfuse.datasets.dataset import Dataset, DatasetInfo, FloatArray, signs
from ocfuse.datasets.store import StoredFile
from ocfuse.datasets.text import numbers, read_text
from ocfuse.datasets.uci_sets import UCI_SETS, UciSet
from ocfuse.exceptions import DatasetError, unknown_name
from ocfuse.optional import slow

Rows = tuple[FloatArray, list[str]]

#: Its copy has the rows of the archive, in order; that of iris has not.
IN_SKLEARN = "wine"


def load_uci(name: str) -> Dataset:
    """Load one of the ten UCI sets of the paper.

    The file is looked for in the folder that the environment variable
    OCFUSE_DATA names (``uci/D1_banknotes.csv``, or the archive's own file),
    then in the cache; it is downloaded from the UCI archive if it is in
    neither. Wherever it comes from, its content is verified.

    Parameters
    ----------
    name : str
        Name such as "banknotes", or number in the paper such as "D1".

    Returns
    -------
    Dataset
        Rows as the paper's counts imply: gaps are NaN, except in "voting",
        where no position is 0.5.

    Examples
    --------
    >>> from ocfuse.datasets import load_uci
    >>> load_uci("wine")
    <Dataset uci/wine: 178 rows (71 normal), 13 features>
    """
    uci_set = find_uci(name)
    X, labels = _rows(uci_set)
    X = np.where(np.isnan(X), uci_set.gap, X)
    classes: NDArray[np.str_] = np.array(labels)
    y = signs(classes == uci_set.normal_class)
    return Dataset(uci_set.info.name, X, y, classes, uci_set.feature_names, uci_set.info)


def uci_infos() -> list[DatasetInfo]:
    """Return the entries of the registry."""
    return [uci_set.info for uci_set in UCI_SETS.values()]


def find_uci(name: str) -> UciSet:
    """Return a set by its name or its number in the paper."""
    found = UCI_SETS.get(uci_name(name) or "")
    if found is None:
        numbered = [uci_set.paper_id for uci_set in UCI_SETS.values()]
        hint = f"The paper numbers them {numbered[0]} to {numbered[-1]}."
        raise unknown_name("name of a UCI set", name, [*UCI_SETS, *numbered], hint)
    return found


def uci_name(name: str) -> str | None:
    """Return our name of a set that is given by name or number; None if it is neither."""
    key = str(name).casefold().removeprefix("uci/")
    by_number = {uci_set.paper_id.casefold(): known for known, uci_set in UCI_SETS.items()}
    return key if key in UCI_SETS else by_number.get(key)


def locate_uci(name: str) -> str | None:
    """Return where the set is: a path, "scikit-learn", or None."""
    uci_set = find_uci(name)
    path = _stored(uci_set).locate()
    if path is None:
        return "scikit-learn" if uci_set.name == IN_SKLEARN else None
    return str(path)


def fetch_uci(name: str) -> str:
    """Have the set here, verified, and return where."""
    _rows(find_uci(name))
    return str(locate_uci(name))


def read_uci(uci_set: UciSet, path: Path) -> Rows:
    """Return values, with NaN for gaps, and classes of a file; verify that they are the right."""
    if path.suffix == ".csv":
        values, labels = _with_header(uci_set, path)
    else:
        values, labels = _as_archived(uci_set, path)
    answered = [[uci_set.answers.get(value, value) for value in row] for row in values]
    X = numbers(answered, uci_set.feature_names, str(path))
    return _verified(uci_set, X, labels, str(path))


def _rows(uci_set: UciSet) -> Rows:
    stored = _stored(uci_set)
    if stored.locate() is None and uci_set.name == IN_SKLEARN:
        X, targets = slow("sklearn.datasets").load_wine(return_X_y=True)
        labels = [str(target + 1) for target in targets]
        return _verified(uci_set, X, labels, "scikit-learn's copy")
    return read_uci(uci_set, stored.fetch(lambda path: read_uci(uci_set, path)))


def _stored(uci_set: UciSet) -> StoredFile:
    names = (uci_set.csv_name, uci_set.member, uci_set.archive)
    return StoredFile(uci_set.info.name, "uci", names, uci_set.url, uci_set.info.source)


def _verified(uci_set: UciSet, X: FloatArray, labels: list[str], origin: str) -> Rows:
    require_content(uci_set.info, content_sha256([(X, labels)]), origin)
    return X, labels


def _with_header(uci_set: UciSet, path: Path) -> tuple[list[list[str]], list[str]]:
    """Return values and classes of a table whose header names our columns."""
    rows = list(csv.reader(read_text(path, path.name).splitlines()))
    expected = [*uci_set.feature_names, "label"]
    if not rows or rows[0] != expected:
        raise DatasetError(
            f"{path} must start with the line {','.join(expected)}. "
            f"Got {','.join(rows[0]) if rows else 'an empty file'}."
        )
    _require_width(rows[1:], len(expected), path)
    return [row[:-1] for row in rows[1:]], [row[-1] for row in rows[1:]]


def _as_archived(uci_set: UciSet, path: Path) -> tuple[list[list[str]], list[str]]:
    """Return values and classes of a file as the archive writes it."""
    lines = read_text(path, uci_set.member).splitlines()
    split = [line.split(uci_set.delimiter) for line in lines if line.strip()]
    rows = [[value.strip() for value in row] for row in split]
    first = 1 if uci_set.has_id else 0
    _require_width(rows, first + len(uci_set.feature_names) + 1, path)
    rows = [row[first:] for row in rows]
    if uci_set.label_first:
        rows = [[*row[1:], row[0]] for row in rows]
    return [row[:-1] for row in rows], [uci_set.classes.get(row[-1], row[-1]) for row in rows]


def _require_width(rows: list[list[str]], width: int, path: Path) -> None:
    if not rows:
        raise DatasetError(f"{path} must hold rows. Got an empty file.")
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise DatasetError(
                f"Each row of {path} must have {width} values. Got {len(row)} in row {number}."
            )

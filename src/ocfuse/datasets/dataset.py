"""Loaded data sets, and their entries in the registry."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray, Int64Array
from ocfuse.validation import ANOMALY, NORMAL


@dataclass(frozen=True)
class DatasetInfo:
    """Entry of a data set in the registry.

    Attributes
    ----------
    name : str
        Name for `load`, such as "uci/banknotes".
    title : str
        Name that the source uses.
    kind : {"table", "sequences"}
        What `load` returns: one `Dataset`, or `Sequence` objects.
    source : str
        Page of the source.
    licence : str
        Licence of the data.
    citation : str
        How to cite the data.
    normal_class : str
        Class that counts as normal.
    n_rows : int
        Number of rows, or of sequences.
    n_normals : int
        Number of normal rows, or of normal sequences.
    n_features : int
        Number of columns.
    encoding : str
        How values were encoded as numbers.
    imputation : str
        Recommended treatment of gaps; `load` returns them as NaN.
    paper_id : str or None
        D1 to D10 in the tables of the paper.
    sha256 : str or None
        Checksum of the content, see `ocfuse.datasets.formats`. None: the file is not verified.
    notes : str
        Further notes for users.
    """

    name: str
    title: str
    kind: Literal["table", "sequences"]
    source: str
    licence: str
    citation: str
    normal_class: str
    n_rows: int
    n_normals: int
    n_features: int
    encoding: str = "numbers as they are"
    imputation: str = "no gaps"
    paper_id: str | None = None
    sha256: str | None = None
    notes: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table whose rows are normal or anomalies.

    Attributes
    ----------
    name : str
        Name in the registry, or of the file.
    X : ndarray of shape (n_rows, n_features)
        Values; NaN where the source has a gap.
    y : ndarray of shape (n_rows,)
        +1 for normal rows and -1 for anomalies.
    labels : ndarray of shape (n_rows,)
        Class of each row as named by the source.
    feature_names : tuple of str
        Names of the columns.
    about : DatasetInfo or None
        Entry of the registry; None for a table of the user.
    """

    name: str
    X: FloatArray
    y: Int64Array
    labels: NDArray[np.str_]
    feature_names: tuple[str, ...]
    about: DatasetInfo | None = None

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        normals = int((self.y == NORMAL).sum())
        return f"<Dataset {self.name}: {rows} rows ({normals} normal), {columns} features>"


@dataclass(frozen=True, eq=False, repr=False)
class Sequence:
    """A recording in time whose rows are normal or anomalies.

    Attributes
    ----------
    name : str
        Name of the recording in the registry.
    X : ndarray of shape (n_steps, n_columns)
        Values.
    y : ndarray of shape (n_steps,)
        +1 for normal rows and -1 for anomalies. Where the source labels whole
        recordings, every row has the label of its recording.
    label : str
        Class of the whole recording as named by the source, or "".
    columns : tuple of str
        Names of the columns.
    time : ndarray of datetime64, or None
        Time of each row, if the source has times.
    is_changepoint : ndarray of bool, or None
        Rows at which the state changes, if the source has them.
    """

    name: str
    X: FloatArray
    y: Int64Array
    label: str
    columns: tuple[str, ...]
    time: NDArray[np.datetime64] | None = None
    is_changepoint: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        steps, columns = self.X.shape
        anomalous = int((self.y == ANOMALY).sum())
        return (
            f"<Sequence {self.name}: {steps} steps ({anomalous} anomalous), {columns} columns"
            f"{', ' + self.label if self.label else ''}>"
        )


def signs(is_normal: NDArray[np.bool_]) -> Int64Array:
    """Return +1 for normal rows and -1 for anomalies."""
    return np.where(is_normal, NORMAL, ANOMALY).astype(np.int64)

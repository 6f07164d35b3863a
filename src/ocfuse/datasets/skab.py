"""Load the runs of the Skoltech anomaly benchmark (SKAB)."""

import csv
from pathlib import Path

import numpy as np

from ocfuse.datasets.dataset import DatasetInfo, Sequence, signs
from ocfuse.datasets.store import StoredFile
from ocfuse.datasets.text import numbers, read_text
from ocfuse.exceptions import DatasetError, unknown_name

FOLDER = "sequences/skab"
PAGE = "https://github.com/waico/SKAB"
#: One anomaly-free run and 34 labelled ones.
RUNS = (
    "anomaly-free/anomaly-free",
    *(f"other/{i}" for i in range(1, 15)),
    *(f"valve1/{i}" for i in range(16)),
    *(f"valve2/{i}" for i in range(4)),
)
COLUMNS = (
    "Accelerometer1RMS",
    "Accelerometer2RMS",
    "Current",
    "Pressure",
    "Temperature",
    "Thermocouple",
    "Voltage",
    "Volume Flow RateRMS",
)
LABELS = ("anomaly", "changepoint")

INFO = DatasetInfo(
    name="skab",
    title="Skoltech Anomaly Benchmark",
    kind="sequences",
    source=PAGE,
    licence="GPL-3.0",
    citation="Katser, I. D. and Kozitsin, V. O. (2020). Skoltech Anomaly Benchmark (SKAB). "
    "Kaggle. https://doi.org/10.34740/KAGGLE/DSV/1693952",
    normal_class="0",
    n_rows=len(RUNS),
    n_normals=1,
    n_features=len(COLUMNS),
    notes="Runs of a water-pump testbed, labelled row by row; one run is free of anomalies. "
    "other/2 has 296 anomalous rows among its first 400.",
)


def load_skab() -> list[Sequence]:
    """Load the 35 runs of the Skoltech anomaly benchmark.

    They must be in the folder ``sequences/skab`` of the folder that the
    environment variable OCFUSE_DATA names, as in the repository of SKAB.

    Returns
    -------
    list of Sequence
        The anomaly-free run first, then those of `other`, `valve1`, `valve2`.
    """
    return [load_run(run) for run in RUNS]


def load_run(run: str) -> Sequence:
    """Load one run, such as "valve1/0"."""
    path = _stored(run).fetch(lambda path: None)
    rows = list(csv.reader(read_text(path, path.name).splitlines(), delimiter=";"))
    is_labelled = run != RUNS[0]
    header = ["datetime", *COLUMNS, *(LABELS if is_labelled else ())]
    if not rows or rows[0] != header or any(len(row) != len(header) for row in rows):
        raise DatasetError(
            f"{path} must have the columns {';'.join(header)} in each row. "
            f"Got {';'.join(rows[0]) if rows else 'an empty file'}."
        )
    table = numbers([row[1:] for row in rows[1:]], header[1:], str(path))
    marks = table[:, len(COLUMNS) :] if is_labelled else np.zeros((len(table), len(LABELS)))
    return Sequence(
        name=f"skab/{run}",
        X=table[:, : len(COLUMNS)],
        y=signs(marks[:, 0] == 0),
        label="",
        columns=COLUMNS,
        time=_times([row[0] for row in rows[1:]], path),
        is_changepoint=marks[:, 1] != 0,
    )


def find_skab(run: str) -> DatasetInfo:
    """Return the entry of the benchmark, also for one run of it."""
    if run:
        _stored(run)
    return INFO


def locate_skab(run: str) -> str | None:
    """Return the path of a run, or the folder of all of them if it is complete."""
    if run:
        path = _stored(run).locate()
        return None if path is None else str(path)
    paths = [_stored(name).locate() for name in RUNS]
    if paths[0] is None or None in paths:
        return None
    return str(paths[0].parents[1])


def fetch_skab(run: str) -> str:
    """Return the path of a run, or of the folder; there is no download."""
    for name in [run] if run else RUNS:
        _stored(name).fetch(lambda path: None)
    return str(locate_skab(run))


def _stored(run: str) -> StoredFile:
    if run not in RUNS:
        raise unknown_name("name of a SKAB run", f"skab/{run}", [f"skab/{known}" for known in RUNS])
    folder, name = run.split("/")
    return StoredFile(f"skab/{run}", f"{FOLDER}/{folder}", (f"{name}.csv",), None, PAGE)


def _times(texts: list[str], path: Path) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    try:
        return np.array(texts, dtype="datetime64[s]")
    except ValueError as error:
        raise DatasetError(f"Column 'datetime' of {path} must hold times: {error}.") from error

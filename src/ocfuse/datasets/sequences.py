"""Load sensor sequences: SKAB and the UCI robot execution failures."""

import csv
from pathlib import Path

import numpy as np

from ocfuse.datasets.dataset import DatasetInfo, Sequence, signs
from ocfuse.datasets.formats import content_sha256, numbers, read_text, require_content
from ocfuse.datasets.store import StoredFile
from ocfuse.exceptions import DatasetError, unknown_name

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

INFO = DatasetInfo(
    name="skab",
    title="Skoltech Anomaly Benchmark",
    kind="sequences",
    source="https://github.com/waico/SKAB",
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

#: Of the robot execution failures.
URL = "https://archive.ics.uci.edu/static/public/138/robot+execution+failures.zip"
ROBOT_COLUMNS = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")


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
    header = ["datetime", *COLUMNS, *(("anomaly", "changepoint") if is_labelled else ())]
    if not rows or rows[0] != header or any(len(row) != len(header) for row in rows):
        raise DatasetError(
            f"{path} must have the columns {';'.join(header)} in each row. "
            f"Got {';'.join(rows[0]) if rows else 'an empty file'}."
        )
    table = numbers([row[1:] for row in rows[1:]], header[1:], str(path))
    marks = table[:, len(COLUMNS) :] if is_labelled else np.zeros((len(table), 2))
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
    return StoredFile(
        f"skab/{run}", f"sequences/skab/{folder}", (f"{name}.csv",), None, INFO.source
    )


def _times(texts: list[str], path: Path) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    try:
        return np.array(texts, dtype="datetime64[s]")
    except ValueError as error:
        raise DatasetError(f"Column 'datetime' of {path} must hold times: {error}.") from error


def _info(
    name: str, title: str, n_rows: int, n_normals: int, sha256: str, normal_class: str = "normal"
) -> DatasetInfo:
    return DatasetInfo(
        name=f"robot-failures/{name}",
        title=f"Robot Execution Failures, {title}",
        kind="sequences",
        source="https://archive.ics.uci.edu/dataset/138",
        licence="CC BY 4.0",
        citation="Lopes, L. and Camarinha-Matos, L. (1998). Robot Execution Failures. UCI "
        "Machine Learning Repository. https://doi.org/10.24432/C5M89N",
        normal_class=normal_class,
        n_rows=n_rows,
        n_normals=n_normals,
        n_features=len(ROBOT_COLUMNS),
        sha256=sha256,
        notes="lp2 and lp3 are the same recordings, and lp5 is nearly lp2 and lp4 together: "
        "three sets, not five.",
    )


INFOS = {
    "lp1": _info(
        "lp1",
        "approach to grasp",
        88,
        21,
        "22f3f94f8456b12fdbc46d72e693929e00a399790507d1b667b15aa1d10f4295",
    ),
    "lp2": _info(
        "lp2",
        "transfer of a part",
        47,
        20,
        "0c250f16a2e66c6c2c94b43631b6bdb4e2581043902ba0f23bf54f366793754f",
    ),
    "lp3": _info(
        "lp3",
        "position after a failed transfer",
        47,
        20,
        "1118f9b5fb6db266209268854a0589c4096569675bf31ef23b30b8c292edf059",
        "ok",
    ),
    "lp4": _info(
        "lp4",
        "approach to ungrasp",
        117,
        24,
        "2beec72b3cefe72c74cc1a7a056f6eb4945f01edb43491e63aa720934656952d",
    ),
    "lp5": _info(
        "lp5",
        "motion with a part",
        164,
        44,
        "642044bf997cc6be61f77e2e2c939f9d61a53dde13cf24a6deb04a3f4121cc1d",
    ),
}


def load_robot_failures(name: str) -> list[Sequence]:
    """Load the recordings of one learning problem of the robot execution failures.

    The file is read from the folder in the environment variable OCFUSE_DATA
    (``sequences/robot_failures/lp1.data``) or from the cache; if it is in neither, it is
    downloaded from the UCI archive. Its content is verified.

    Parameters
    ----------
    name : str
        One of "lp1" to "lp5".

    Returns
    -------
    list of Sequence
        Recordings, each with 15 steps of three forces and three torques.
    """
    info = find_robot_failures(name)
    stored = _stored_archive(info)
    return _read(info, stored.fetch(lambda path: _read(info, path)))


def robot_infos() -> list[DatasetInfo]:
    """Return the entries of the registry."""
    return list(INFOS.values())


def find_robot_failures(name: str) -> DatasetInfo:
    """Return the entry of a learning problem."""
    short = str(name).casefold().removeprefix("robot-failures/")
    if short not in INFOS:
        raise unknown_name("name of a learning problem", name, INFOS)
    return INFOS[short]


def locate_robot_failures(name: str) -> str | None:
    """Return the path of the file if it is here."""
    path = _stored_archive(find_robot_failures(name)).locate()
    return None if path is None else str(path)


def fetch_robot_failures(name: str) -> str:
    """Have the set here, verified, and return where."""
    load_robot_failures(name)
    return str(locate_robot_failures(name))


def _stored_archive(info: DatasetInfo) -> StoredFile:
    names = (_member(info), "robot+execution+failures.zip")
    return StoredFile(info.name, "sequences/robot_failures", names, URL, info.source)


def _member(info: DatasetInfo) -> str:
    return info.name.removeprefix("robot-failures/") + ".data"


def _read(info: DatasetInfo, path: Path) -> list[Sequence]:
    """Parse blocks of a line with the class and 15 lines of values."""
    steps = 15
    lines = [line.split() for line in read_text(path, _member(info)).splitlines() if line.strip()]
    blocks = [lines[i : i + steps + 1] for i in range(0, len(lines), steps + 1)]
    for number, block in enumerate(blocks, start=1):
        widths = [len(line) for line in block]
        if widths != [1] + steps * [len(ROBOT_COLUMNS)]:
            raise DatasetError(
                f"Recording {number} of {path} must be a line with its class and {steps} lines of "
                f"{len(ROBOT_COLUMNS)} values. Got lines of {', '.join(map(str, widths))} values."
            )
    values = [numbers(block[1:], ROBOT_COLUMNS, str(path)) for block in blocks]
    labels = [block[0][0] for block in blocks]
    rows = zip(values, ([label] * steps for label in labels), strict=True)
    require_content(info, content_sha256(rows), str(path))
    return [
        Sequence(
            name=f"{info.name}/{number}",
            X=X,
            y=signs(np.full(steps, label == info.normal_class)),
            label=label,
            columns=ROBOT_COLUMNS,
        )
        for number, (X, label) in enumerate(zip(values, labels, strict=True))
    ]

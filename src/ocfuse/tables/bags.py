"""Tables of the messages of a ROS recording: one topic, a row per message."""

import warnings
from array import array
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.exceptions import TableError, TableWarning
from ocfuse.system.bags import Recording, open_recording, seconds_of
from ocfuse.tables.dataframes import Frame, free_name, listed, pandas
from ocfuse.tables.source import Source

#: Numbers of the longest array whose numbers are columns; longer ones are pictures and scans.
MOST_NUMBERS = 200


class BagTable(Source):
    """The numbers of one topic of a recording, by name, beside the `time` in seconds.

    The time is that of the header, or else that of the recording. A field within a field is
    named by both: `pose.position.x`. Values of an array that belong to the names in the field
    `name`, as those of joints do, are called by these: `position.shoulder`; others by their place.
    Names that only later messages have are an error: nothing is left out unseen.
    """

    def __init__(self, path: Path, topic: str | None, chunk_rows: int) -> None:
        self._recording = open_recording(path)
        known = numeric_topics(self._recording)
        if topic is None and len(known) == 1:
            topic = known[0]
        if topic not in known:
            raise TableError(
                f"{path.name} has numbers in these topics: {', '.join(known) or 'none'}. Got "
                f"topic={topic!r}. Choose one of them."
            )
        self._topic = topic
        head = list(islice(self._rows(), 100))
        names = list(dict.fromkeys(chain.from_iterable(row for _, row in head)))
        self._names = frozenset(names)
        self._time = free_name("time", names)
        n_bytes = None if path.is_dir() else path.stat().st_size
        super().__init__(path.name, [self._time, *names], f"topic {topic}", chunk_rows, n_bytes)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of numbers and text."""
        rows = self._rows(warn=True)
        while chunk := list(islice(rows, self.chunk_rows)):
            for _, row in chunk:
                if not self._names.issuperset(row):
                    new = [name for name in row if name not in self._names]
                    raise TableError(
                        f"{self.name} has messages of {self._topic} with values that none of the "
                        f"first 100 has: {listed(new)}. Record such messages as another topic."
                    )
            cells = [{self._time: time, **row} for time, row in chunk]
            yield pandas().DataFrame(cells, columns=self.columns)
        self.bytes_read = self.n_bytes or 0

    def _rows(self, *, warn: bool = False) -> Iterator[tuple[float, dict[str, Any]]]:
        n_bad = 0
        for recorded, read in self._recording.messages(self._topic):
            try:
                message = read()
            except Exception:  # a damaged message raises whatever it likes
                n_bad += 1
                continue
            yield seconds_of(message, recorded), flat(message)
        if n_bad and warn:
            warnings.warn(
                f"{self.name}: {n_bad:,} messages of {self._topic} cannot be decoded and are left "
                "out.",
                TableWarning,
                stacklevel=2,
            )


def numeric_topics(recording: Recording) -> list[str]:
    """Return the topics whose first message holds numbers, and no picture or scan."""
    found = []
    for topic in sorted(recording.topics):
        for _, read in islice(recording.messages(topic), 1):
            try:
                row = flat(read())
            except Exception:  # of a type that is not known, or damaged
                continue
            if any(isinstance(cell, float) for cell in row.values()):
                found.append(topic)
    return found


def flat(message: Any) -> dict[str, Any]:
    """Return the numbers and texts of a message by name; none if it holds a long array.

    The message is one of a recording, or of a topic that a node of rclpy has subscribed to: both
    have the same names.
    """
    cells: dict[str, Any] = {}
    return cells if _add(message, "", cells) else {}


def _names_of(message: Any) -> tuple[str, ...] | None:
    """Return the fields of a message as rosbags or rclpy has it; None if it is none."""
    if is_dataclass(message):
        return tuple(f.name for f in fields(message))
    if hasattr(message, "get_fields_and_field_types"):
        return tuple(message.get_fields_and_field_types())
    return None


def _add(message: Any, prefix: str, cells: dict[str, Any]) -> bool:
    """Add what a message holds; return whether all its arrays are short."""
    values = {name: getattr(message, name) for name in _names_of(message) or ()}
    names = values.get("name")
    for name, value in values.items():
        if name in ("header", "__msgtype__"):
            continue
        if _names_of(value) is not None:
            if not _add(value, f"{prefix}{name}.", cells):
                return False
        elif isinstance(value, np.ndarray | list | tuple | array):
            if len(value) > MOST_NUMBERS or _is_bytes(value):
                return False
            is_named = isinstance(names, list) and len(names) == len(value)
            for i, cell in enumerate(value):
                key = f"{prefix}{name}.{names[i] if is_named and names else i}"
                if isinstance(cell, int | float | np.number):
                    cells[key] = float(cell)
                elif _names_of(cell) is not None and not _add(cell, f"{key}.", cells):
                    return False
        elif isinstance(value, bool | np.bool_ | str):
            cells[f"{prefix}{name}"] = value if isinstance(value, str) else str(bool(value)).lower()
        elif isinstance(value, int | float | np.number):
            cells[f"{prefix}{name}"] = float(value)
    return True


def _is_bytes(value: Any) -> bool:
    """Return whether an array holds bytes, as pictures do."""
    kind = getattr(value, "typecode", getattr(value, "dtype", None))
    return kind in ("B", np.uint8)

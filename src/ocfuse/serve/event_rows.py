"""The rows around an event as they came: some before it, its first ones, its lowest, some after."""

import csv
import io
import json
import math
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ocfuse.serve.errors import finite, to_json
from ocfuse.serve.event import StoredEvent
from ocfuse.tables.cells import no_formula
from ocfuse.tables.dataframes import free_name, pandas
from ocfuse.tables.judged import JudgedEvent

#: A row as it is kept: "seq", "time", "score", "is_event" and "values".
KeptRow: TypeAlias = dict[str, Any]


class EventRows:
    """Keep the rows around the events of one stream, a bounded number of them.

    Parameters
    ----------
    n_columns : int
        Columns of a row: of wide ones fewer are kept.
    n_reach : int, default=0
        Rows before a row that its score depends on. They are kept, too.

    Examples
    --------
    >>> from ocfuse.serve.event_rows import EventRows
    >>> around = EventRows(1)
    >>> for seq in range(100):
    ...     is_complete = around.add({"seq": seq, "score": 1.0}, is_event=False)
    >>> around.begin(7)
    >>> around.add({"seq": 100, "score": -1.0}, is_event=True)
    False
    >>> event, rows = around.kept()
    >>> event, rows[0]["seq"], rows[-1]
    (7, 40, {'seq': 100, 'score': -1.0, 'is_event': True})
    """

    #: Rows before an event besides those that its first score depends on, its first rows, rows up
    #: to the lowest one besides those that it depends on, and rows after it.
    n_before: ClassVar[int] = 60
    n_first: ClassVar[int] = 60
    n_lowest: ClassVar[int] = 20
    n_after: ClassVar[int] = 20
    #: Values of any of these parts.
    most_cells: ClassVar[int] = 20_000

    def __init__(self, n_columns: int, n_reach: int = 0) -> None:
        most = max(self.most_cells // max(n_columns, 1), 1)
        self._n_first, self._n_after = min(self.n_first, most), min(self.n_after, most)
        self._n_lowest = min(self.n_lowest + n_reach, most)
        self._past: deque[KeptRow] = deque(maxlen=min(self.n_before + n_reach, most))
        self.event: int | None = None
        self._rows: list[KeptRow] = []
        self._worst: list[KeptRow] = []
        self._lowest = float("inf")
        self._left = 0  # rows that are still to be kept as they come

    def begin(self, event: int) -> None:
        """Let the next row be the first of an event."""
        self.event = event
        self._rows, self._worst, self._lowest = list(self._past), [], float("inf")
        self._left = self._n_first

    def end(self) -> None:
        """Let the next row be the first after the event."""
        self._left = self._n_after

    def add(self, row: KeptRow, *, is_event: bool) -> bool:
        """Take the next row of the stream; return whether what is kept is now complete."""
        row = row | {"is_event": is_event}
        self._past.append(row)
        if self.event is None:
            return False
        score = row["score"]
        is_lowest = is_event and score is not None and score < self._lowest
        if is_lowest:
            self._lowest = score
        if self._left:
            self._left -= 1
            self._rows.append(row)
            return not self._left
        if is_lowest:
            self._worst = list(self._past)[-self._n_lowest :]
        return False

    def kept(self) -> tuple[int, list[KeptRow]] | None:
        """Return the event and the rows around it, each once, in their order; None if none is."""
        if self.event is None:
            return None
        known = {row["seq"]: row for row in (*self._rows, *self._worst)}
        return self.event, [known[seq] for seq in sorted(known)]

    def forget(self) -> None:
        """Keep nothing more for the event."""
        self.event, self._rows, self._worst = None, [], []


def packed(rows: Sequence[KeptRow]) -> bytes:
    """Return rows as they are stored: JSON, compressed. Infinite numbers count as gaps."""
    try:
        text = to_json(list(rows))
    except ValueError:
        text = to_json(_known(list(rows)))
    return zlib.compress(text, 1)


def packed_within(rows: Sequence[KeptRow], most_bytes: int) -> tuple[bytes, int]:
    """Return rows as they are stored in at most so many bytes, and how many; the first ones go."""
    kept = list(rows)
    while len(data := packed(kept)) > most_bytes and kept:
        kept = kept[len(kept) // 4 + 1 :]
    return data, len(kept)


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _known(cell) for name, cell in value.items()}
    if isinstance(value, list):
        return [_known(cell) for cell in value]
    return finite(value) if isinstance(value, float) else value


def unpacked(data: bytes) -> list[KeptRow]:
    """Return rows from how they are stored; none if that cannot be read."""
    try:
        rows = json.loads(zlib.decompress(data))
    except (ValueError, zlib.error):
        return []
    return rows if isinstance(rows, list) else []


def kept_row(
    seq: int, time: float, score: float | None, values: Mapping[str, Any] | Sequence[Any]
) -> KeptRow:
    """Return a row as it is kept."""
    return {"seq": seq, "time": finite(time), "score": finite(score), "values": values}


def as_csv(rows: Sequence[KeptRow], names: Sequence[str]) -> str:
    """Return rows as the text of a CSV file; values in a list have the names given.

    What is told of a row has another name where a column of the model is called so.
    """
    named = [_named(row["values"], names) for row in rows]
    columns = list(dict.fromkeys(name for values in named for name in values))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    told = [free_name(name, columns) for name in ("seq", "time", "score", "is_event")]
    writer.writerow(map(no_formula, [*told, *columns]))
    for row, values in zip(rows, named, strict=True):
        about = [row["seq"], row["time"], row["score"], int(row["is_event"])]
        writer.writerow(about + [_cell(values.get(name)) for name in columns])
    return text.getvalue()


def _cell(value: Any) -> Any:
    return no_formula(value) if isinstance(value, str) else value


def stretches(rows: Sequence[KeptRow]) -> list[list[KeptRow]]:
    """Return rows that follow each other without a gap together.

    Examples
    --------
    >>> from ocfuse.serve.event_rows import stretches
    >>> [[row["seq"] for row in part] for part in stretches([{"seq": i} for i in (3, 4, 9)])]
    [[3, 4], [9]]
    """
    found: list[list[KeptRow]] = []
    for row in rows:
        if not found or row["seq"] != found[-1][-1]["seq"] + 1:
            found.append([])
        found[-1].append(row)
    return found


def to_judged(event: StoredEvent, rows: Sequence[KeptRow], names: Sequence[str]) -> JudgedEvent:
    """Return an event with a verdict as models learn from it; values in lists have the names given.

    Rows of a real event count that are of it and below the threshold of then.
    """
    parts = stretches(rows)
    threshold = math.inf if event.threshold is None else event.threshold
    frames = [
        pandas().DataFrame([_named(row["values"], names) for row in part], dtype=object)
        for part in parts
    ]
    low = [np.array([_is_low(row, threshold) for row in part], dtype=bool) for part in parts]
    is_real = event.verdict is not None and event.verdict.kind == "real"
    return JudgedEvent(event.id, is_real, frames, low)


def _is_low(row: KeptRow, threshold: float) -> bool:
    return bool(row["is_event"]) and row["score"] is not None and row["score"] < threshold


def _named(values: Any, names: Sequence[str]) -> dict[str, Any]:
    return values if isinstance(values, dict) else dict(zip(names, values))  # noqa: B905

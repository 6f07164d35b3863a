"""Tables of JSON lines: an object per line, whose names are the columns.

Cells become the text that they have in CSV, so that a table means the same in either: numbers keep
their digits, true and false are words, and null is an empty cell, as is a name that a line does
not have. An object within the object is taken apart: `{"motor": {"speed": 3}}` has a column
`motor.speed`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ocfuse.exceptions import TableError
from ocfuse.system.packages import needed
from ocfuse.tables.dataframes import Frame, listed
from ocfuse.tables.source import Source, to_frame
from ocfuse.tables.text import Lines, kept

#: Endings of files that hold JSON lines.
JSON = (".jsonl", ".ndjson")


class JsonLinesSource(Source):
    """A table of JSON lines in a file or stream, whose first lines name the columns.

    Names that only later lines have are an error: nothing is left out unseen.
    """

    def __init__(self, where: Any, name: str, chunk_rows: int) -> None:
        self._lines = Lines(where, name)
        self._n_head = min(100, chunk_rows)
        lines = iter(self._lines)
        raws: list[bytes] = []
        head = islice(self._objects(kept(lines, raws)), self._n_head)
        columns = list(dict.fromkeys(chain.from_iterable(row for _, row in head)))
        if not columns:
            raise TableError(f"{name} is empty. A line with a JSON object per row is expected.")
        self._stream = None if isinstance(where, Path) else chain(raws, lines)
        self._names = frozenset(columns)
        super().__init__(name, columns, "JSON lines", chunk_rows, self._lines.n_bytes)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of text."""
        lines = iter(self._lines)
        if not isinstance(self._lines.where, Path):
            if self._stream is None:
                raise TableError(f"{self.name} can be read only once. Write it to a file first.")
            lines, self._stream = self._stream, None
        rows = self._objects(lines)
        while chunk := [self._known(*row) for row in islice(rows, self.chunk_rows)]:
            self.bytes_read = self._lines.bytes_read
            yield self._frame(chunk)
        self.bytes_read = self._lines.bytes_read

    def _objects(self, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the number of every line that is not blank, from 1 on, and its cells."""
        for number, text in enumerate(self._lines.decoded(lines, 1), 1):
            if text.strip():
                try:
                    yield number, read_object(text)
                except TableError as error:
                    raise TableError(
                        f"Line {number} of {self._lines.name} cannot be read. {error}"
                    ) from None

    def _known(self, number: int, row: dict[str, str]) -> dict[str, str]:
        new = [name for name in row if name not in self._names]
        if new:
            raise TableError(
                f"Line {number} of {self.name} has values that none of the first {self._n_head} "
                f"lines names: {listed(new)}. Name them in the first line, as null if it has none."
            )
        return row

    def _frame(self, rows: list[dict[str, str]]) -> Frame:
        arrow = needed("pyarrow", "to read tables")
        cells = {name: [row.get(name, "") for row in rows] for name in self.columns}
        return to_frame(arrow.table(cells, arrow.schema([(n, arrow.string()) for n in cells])))


def read_object(text: str) -> dict[str, str]:
    """Return the cells of a row that is a JSON object, by their names.

    Parameters
    ----------
    text : str
        The line.

    Returns
    -------
    dict of str to str
        What the cells say.

    Examples
    --------
    >>> from ocfuse.tables.json_lines import read_object
    >>> read_object('{"flow": 1.50, "state": null, "motor": {"on": true}}')
    {'flow': '1.50', 'state': '', 'motor.on': 'true'}
    """
    try:
        found = _DECODER.decode(text.strip())
    except json.JSONDecodeError as error:
        rest = error.doc[error.pos : error.pos + 20]
        where = (
            f"from character {error.colno} on: {rest!r}"
            if rest
            else "at its end; it may be cut off: copy the file again"
        )
        raise TableError(f"It is no JSON {where}.") from None
    except RecursionError:
        raise TableError("It is no row: its lists or objects are too deep.") from None
    if not isinstance(found, dict):
        raise TableError(
            'It is no JSON object. Expected names and values, such as {"flow": 1.5, "on": true}; a '
            "list of objects becomes such lines by jq -c '.[]'."
        )
    if re.search(r"\\u[dD][89a-fA-F]", text):
        _require_characters(found)
    return _flat(found)


def _flat(row: dict[str, Any]) -> dict[str, str]:
    """Return cells as text, those of an object within the row under both names."""
    cells: dict[str, str] = {}
    for name, value in row.items():
        inner = value if isinstance(value, dict) else None
        parts = [(name, value)] if inner is None else [(f"{name}.{k}", inner[k]) for k in inner]
        for key, cell in parts:
            if key in cells:
                raise TableError(f"It has two values of the name {key!r}: which one is meant?")
            if isinstance(cell, dict | list):
                what = "a list" if isinstance(cell, list) else "objects too deep inside each other"
                raise TableError(
                    f"{key!r} holds {what}. Cells are numbers, text, true, false or null, or in an "
                    "object of such cells: give its values names of their own."
                )
            cells[key] = _WORDS.get(cell, cell)
    return cells


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"It has two values of the name {twice!r}: which one is meant?")
    return found


def _require_characters(row: dict[str, Any]) -> None:
    """Refuse halves of characters, which no text can hold."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise TableError(
            "Its text holds half of a character, such as \\ud83d without \\ude00 behind it."
        ) from None


#: What stands for words of JSON that are no text.
_WORDS: dict[Any, str] = {None: "", True: "true", False: "false"}
_DECODER = json.JSONDecoder(
    parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_to_object
)

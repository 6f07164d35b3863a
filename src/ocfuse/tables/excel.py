"""Tables in workbooks: the sheets of Excel and LibreOffice.

Cells become the text that they have in CSV, so that a table means the same in either: whole
numbers have no decimals, dates are written as 2024-05-01 or 2024-05-01 12:30:00, true and false
are words, and an empty cell is empty.
"""

import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from ocfuse.exceptions import TableError, TableWarning
from ocfuse.system.packages import needed
from ocfuse.tables.dataframes import Frame, listed
from ocfuse.tables.source import Source, to_frame

#: Endings of files that hold workbooks.
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


class ExcelSource(Source):
    """A table in a sheet of a workbook, whose first row that is not empty names the columns."""

    #: Bytes that the parts of a workbook may have, decompressed: a small file could hold any.
    most_bytes: ClassVar[int] = 2**31

    def __init__(self, path: Path, chunk_rows: int, sheet: str | None = None) -> None:
        self._path = path
        self._check_size()
        book = self._open()
        names = list(book.sheet_names)
        if sheet is not None and sheet not in names:
            raise TableError(f"{path.name} has no sheet {sheet!r}. It has {listed(names)}.")
        filled = [name for name in names if name == sheet or (sheet is None and _rows(book, name))]
        if not filled:
            raise TableError(f"{path.name} is empty. A row of column names and rows are expected.")
        self._sheet = filled[0]
        if len(filled) > 1:
            warnings.warn(
                f"{path.name} has several sheets: {listed(filled)}. {self._sheet!r} was read. To "
                "read another, save it as a file, or give open_source(..., sheet=...).",
                TableWarning,
                stacklevel=3,
            )
        rows = _rows(book, self._sheet)
        header = [_text(cell).strip() for cell in rows[0]] if rows else []
        if not any(header):
            raise TableError(f"Sheet {self._sheet!r} of {path.name} has no row of column names.")
        # columns that have no name are called as pandas calls them
        columns = [name or f"Unnamed: {j}" for j, name in enumerate(header)]
        description = f"workbook, sheet {self._sheet}"
        super().__init__(path.name, columns, description, chunk_rows, path.stat().st_size)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of text."""
        arrow = needed("pyarrow", "to read tables")
        rows = _rows(self._open(), self._sheet)
        schema = arrow.schema([(name, arrow.string()) for name in self.columns])
        remaining = iter(rows[1:])
        n_read = 1
        while chunk := list(islice(remaining, self.chunk_rows)):
            n_read += len(chunk)
            self.bytes_read = (self.n_bytes or 0) * n_read // len(rows)
            cells = {name: [_text(row[j]) for row in chunk] for j, name in enumerate(self.columns)}
            yield to_frame(arrow.table(cells, schema))

    def _open(self) -> Any:
        calamine = needed("python_calamine", "to read workbooks", "excel")
        try:
            return calamine.CalamineWorkbook.from_path(str(self._path))
        except (calamine.CalamineError, OSError, ValueError) as error:
            raise TableError(
                f"{self._path.name} cannot be read; it may be cut off, damaged, or protected by a "
                f"password. ({error})"
            ) from error

    def _check_size(self) -> None:
        """Refuse a small file that would take all memory."""
        if zipfile.is_zipfile(self._path):
            with zipfile.ZipFile(self._path) as archive:
                n_bytes = sum(part.file_size for part in archive.infolist())
            if n_bytes > self.most_bytes:
                raise TableError(
                    f"{self._path.name} holds {n_bytes:,} bytes, more than {self.most_bytes:,}, "
                    "which are read at once. Save the sheet as CSV."
                )


def _rows(book: Any, sheet: str) -> list[list[Any]]:
    """Return the rows of a sheet, without empty ones."""
    rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=True)
    return [row for row in rows if any(cell not in ("", None) for cell in row)]


def _text(cell: Any) -> str:
    """Return a cell as CSV has it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime):
        whole_day = (cell.hour, cell.minute, cell.second, cell.microsecond) == (0, 0, 0, 0)
        return str(cell.date() if whole_day else cell)
    return cell.isoformat() if isinstance(cell, date) else str(cell)

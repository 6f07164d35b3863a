"""A table that is read from the start, some rows at a time."""

from collections.abc import Generator, Iterator

from ocfuse.exceptions import TableError
from ocfuse.tables.frames import Frame, pandas, require_distinct

#: Cells of one chunk at most, so that wide tables need no more memory than others.
MOST_CELLS = 2_000_000


class Source:
    """What all tables have in common, wherever they come from.

    Attributes
    ----------
    name : str
        Name to show, such as that of the file.
    columns : list of str
        Names of the columns.
    description : str
        How the table is read, to be shown.
    chunk_rows : int
        Most rows of one chunk; fewer than asked for if the rows are long.
    n_bytes : int or None
        Bytes of the table, if known.
    bytes_read : int
        Bytes read so far.
    """

    def __init__(
        self,
        name: str,
        columns: list[str],
        description: str,
        chunk_rows: int,
        n_bytes: int | None = None,
    ) -> None:
        require_distinct(columns, name)
        self.name = name
        self.columns = columns
        self.description = description
        self.chunk_rows = min(chunk_rows, max(1, MOST_CELLS // max(1, len(columns))))
        self.n_bytes = n_bytes
        self.bytes_read = 0

    def chunks(self) -> Generator[Frame, None, None]:
        """Yield the rows as data frames, in order; the index counts them from 0."""
        n_rows = 0
        for frame in self.frames():
            frame.index = pandas().RangeIndex(n_rows, n_rows + len(frame))
            n_rows += len(frame)
            yield frame
        if n_rows == 0:
            raise TableError(f"{self.name} has column names, but no rows.")

    def read(self) -> Frame:
        """Return all rows."""
        return pandas().concat(list(self.chunks()))

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of at most `chunk_rows` rows; their index does not count."""
        raise NotImplementedError

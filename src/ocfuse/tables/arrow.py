"""Tables in Parquet and Feather files, and what becomes of their types.

A file may be damaged, or forged so that its offsets lead elsewhere in memory. So every batch of
rows is checked as a whole before anything follows an offset of it, and files are read rather than
mapped: nobody can change or cut what has been checked.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ocfuse.exceptions import TableError
from ocfuse.optional import needed
from ocfuse.tables.frames import Frame, pandas
from ocfuse.tables.source import Source

#: What pyarrow raises for files that are damaged or something else; its errors are among these.
DAMAGE = (OSError, ValueError, TypeError, KeyError, NotImplementedError)

#: Bytes of each column of a Parquet file that are read at a time, and of a file that is small.
READ_BUFFER, SMALL_FILE = 1 << 18, 1 << 26


class ParquetSource(Source):
    """A table in a Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    chunk_rows : int
        Most rows of one chunk.

    Attributes
    ----------
    n_rows : int
        Rows of the file.
    """

    def __init__(self, path: Path, chunk_rows: int) -> None:
        self._path = path
        with self._open() as file, _damage_told(path.name):
            columns = list(file.schema_arrow.names)
            self.n_rows = int(file.metadata.num_rows)
        super().__init__(path.name, columns, "Parquet", chunk_rows, path.stat().st_size)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of the types of the file."""
        n_read = 0
        with self._open() as file:
            batches = file.iter_batches(batch_size=self.chunk_rows)
            for batch in _guarded(batches, self.name):
                n_read += batch.num_rows
                self.bytes_read = (self.n_bytes or 0) * n_read // max(self.n_rows, 1)
                if batch.num_rows:
                    yield _to_frame(batch, self.name)

    def _open(self) -> Any:
        parquet = needed("pyarrow.parquet", "to read Parquet files")
        with _damage_told(self._path.name):
            # By default a whole row group is held, and a file may be a single one. In parts a page
            # has the bytes that it claims, two gigabytes perhaps; of a small file, those it has.
            buffer = 0 if self._path.stat().st_size <= SMALL_FILE else READ_BUFFER
            return parquet.ParquetFile(self._path, pre_buffer=False, buffer_size=buffer)


class FeatherSource(Source):
    """A table in a Feather file (version 2, which is Arrow's file format).

    Parameters
    ----------
    path : Path
        The file.
    chunk_rows : int
        Most rows of one chunk.
    """

    def __init__(self, path: Path, chunk_rows: int) -> None:
        self._path = path
        with self._bytes() as content, _damage_told(path.name):
            columns = list(self._open(content).schema.names)
        super().__init__(path.name, columns, "Feather", chunk_rows, path.stat().st_size)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of the types of the file."""
        with self._bytes() as content:
            file = self._open(content)
            n_batches = file.num_record_batches
            for i, batch in enumerate(
                _guarded((file.get_batch(i) for i in range(n_batches)), self.name)
            ):
                for start in range(0, batch.num_rows, self.chunk_rows):
                    yield _to_frame(batch.slice(start, self.chunk_rows), self.name)
                self.bytes_read = (self.n_bytes or 0) * (i + 1) // n_batches

    def _bytes(self) -> Any:
        arrow = needed("pyarrow", "to read Feather files")
        with _damage_told(self._path.name):
            return arrow.OSFile(str(self._path))

    def _open(self, content: Any) -> Any:
        with _damage_told(self._path.name):
            return needed("pyarrow.ipc", "to read Feather files").open_file(content)


def checked(batch: Any) -> Any:
    """Return a batch of rows whose offsets, indices and texts are what they must be.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Rows of somebody who is not trusted.

    Returns
    -------
    pyarrow.RecordBatch
        The same. One of the errors of `DAMAGE` is raised if there is anything wrong with it.
    """
    batch.validate(full=True)
    return batch


def to_frame(table: Any) -> Frame:
    """Return an Arrow table as a data frame whose types depend on the table's types alone.

    pandas would turn integers into floats in those chunks that have gaps.
    """
    for j, field in enumerate(table.schema):
        kind = _plain_type(field.type)
        if kind != field.type:
            table = table.set_column(j, field.name, table.column(j).cast(kind))
    return table.to_pandas(types_mapper=_nullable_type, ignore_metadata=True)


def _plain_type(kind: Any) -> Any:
    """Return the type that a column is brought to, still one of Arrow's."""
    arrow = needed("pyarrow", "to read tables")
    types = arrow.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_decimal(kind):
        return arrow.float64()
    return arrow.timestamp("ms") if types.is_date(kind) else kind


def _nullable_type(kind: Any) -> Any:
    """Return the type of pandas for one of Arrow's, or None for the usual one."""
    pd, name = pandas(), str(kind)
    if name in ("string", "large_string", "string_view"):
        return pd.StringDtype("pyarrow")
    if name == "bool":
        return pd.BooleanDtype()
    whole = {f"{u}int{n}": f"{u.upper()}Int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
    return getattr(pd, f"{whole[name]}Dtype")() if name in whole else None


def _guarded(batches: Any, name: str) -> Iterator[Any]:
    """Yield batches; damage in the midst of a file is told as an error of ours."""
    with _damage_told(name):
        yield from map(checked, batches)


def _to_frame(batch: Any, name: str) -> Frame:
    """Return rows of a file; what no type of pandas can hold is told as an error of ours."""
    with _damage_told(name):
        return to_frame(needed("pyarrow", "to read tables").Table.from_batches([batch]))


@contextmanager
def _damage_told(name: str) -> Iterator[None]:
    """Tell what pyarrow says of a file as an error of ours."""
    try:
        yield
    except TableError:
        raise
    except DAMAGE as error:
        raise TableError(
            f"{name} cannot be read; it may be cut off or damaged. ({error})"
        ) from error

"""Sources of tables: Parquet, Feather, NumPy files and folders; writing Parquet.

A file may be damaged, or forged so that its offsets lead elsewhere in memory. So every batch of
rows is checked as a whole before anything follows an offset of it, and files are read rather than
mapped: nobody can change or cut what has been checked.
"""

import math
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.system.packages import needed
from ocfuse.tables.dataframes import FILE, Frame, listed, numbered_names, pandas, require_distinct

#: What pyarrow raises for files that are damaged or something else; its errors are among these.
DAMAGE = (OSError, ValueError, TypeError, KeyError, NotImplementedError)
#: The same for NumPy.
ARRAY_DAMAGE = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile)


class Source:
    """Base class of opened tables, which are read in chunks.

    Attributes
    ----------
    name : str
        Name to show, such as that of the file.
    columns : list of str
        Names of the columns.
    description : str
        How the table is read, as text.
    chunk_rows : int
        Most rows of one chunk; fewer than requested if the rows are long.
    n_bytes : int or None
        Bytes of the table, if known.
    bytes_read : int
        Bytes read so far.
    """

    #: Cells of one chunk at most, so that wide tables need no more memory than others.
    max_cells: ClassVar[int] = 2_000_000

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
        self.chunk_rows = min(chunk_rows, max(1, self.max_cells // max(1, len(columns))))
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
        """Yield data frames of at most `chunk_rows` rows; their index has no meaning."""
        raise NotImplementedError


class ParquetSource(Source):
    """A table in a Parquet file of `n_rows` rows."""

    def __init__(self, path: Path, chunk_rows: int) -> None:
        self._path = path
        with self._open() as file, _damage_as_error(path.name):
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
        with _damage_as_error(self._path.name):
            # By default a whole row group is held, and a file may be a single one. In parts a page
            # has the bytes that it claims, two gigabytes perhaps; of a small file, those it has.
            buffer = 0 if self._path.stat().st_size <= 2**26 else 2**18
            return parquet.ParquetFile(self._path, pre_buffer=False, buffer_size=buffer)


class FeatherSource(Source):
    """A table in a Feather file (version 2, which is Arrow's file format)."""

    def __init__(self, path: Path, chunk_rows: int) -> None:
        self._path = path
        with self._bytes() as content, _damage_as_error(path.name):
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
        with _damage_as_error(self._path.name):
            return arrow.OSFile(str(self._path))

    def _open(self, content: Any) -> Any:
        with _damage_as_error(self._path.name):
            return needed("pyarrow.ipc", "to read Feather files").open_file(content)


def checked(batch: Any) -> Any:
    """Return an Arrow batch, or raise one of `DAMAGE` if offsets, indices or texts are wrong."""
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
    """Yield batches; damage in the midst of a file becomes an error of ours."""
    with _damage_as_error(name):
        yield from map(checked, batches)


def _to_frame(batch: Any, name: str) -> Frame:
    """Return rows of a file; what no type of pandas can hold becomes an error of ours."""
    with _damage_as_error(name):
        return to_frame(needed("pyarrow", "to read tables").Table.from_batches([batch]))


@contextmanager
def _damage_as_error(name: str) -> Iterator[None]:
    """Turn what pyarrow raises for a file into an error of ours."""
    try:
        yield
    except TableError:
        raise
    except DAMAGE as error:
        raise TableError(
            f"{name} cannot be read; it may be cut off or damaged. ({error})"
        ) from error


class RowsFile:
    """The array of a .npy file, of which rows are read when they are asked for.

    The file is not mapped to memory: one that is cut meanwhile would end the program.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            version = npy.read_magic(file)
            known = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            if version not in known:
                raise ValueError(f"version {version} of the format is not known")
            self.shape, is_fortran, self.dtype = known[version](file)
            self._begin = file.tell()
        if self.dtype.hasobject:
            raise ValueError("it holds objects")
        if self._begin + math.prod(self.shape) * self.dtype.itemsize > path.stat().st_size:
            raise ValueError("it has fewer bytes than its shape tells")
        self._path = path
        # columns one after another: rows are everywhere in the file
        self._whole = np.load(path, allow_pickle=False) if is_fortran or not self.ndim else None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: int | slice) -> NDArray[Any]:
        """Return a row, or rows one after another."""
        if self._whole is not None:
            return np.asarray(self._whole[rows])
        if not isinstance(rows, slice):
            return np.asarray(self[rows : rows + 1][0])
        start, stop, _ = rows.indices(len(self))
        shape = (max(stop - start, 0), *self.shape[1:])
        n_values = math.prod(shape)
        with self._path.open("rb") as file:
            file.seek(self._begin + start * math.prod(self.shape[1:]) * self.dtype.itemsize)
            values = np.fromfile(file, self.dtype, n_values)
        if len(values) < n_values:
            raise ValueError("it was cut off while it was read")
        return values.reshape(shape)


class ArraySource(Source):
    """A table in a .npy or .npz file.

    In a file of several arrays X holds the rows; every other array of one value
    per row, such as labels, is a column under its own name.
    """

    def __init__(self, path: Path, chunk_rows: int) -> None:
        self._rows, self._others = _load(path)
        columns = [*numbered_names(self._rows.shape[1]), *self._others]
        super().__init__(path.name, columns, "NumPy", chunk_rows, path.stat().st_size)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of numbers."""
        names = numbered_names(self._rows.shape[1])
        n_rows = len(self._rows)
        for start in range(0, n_rows, self.chunk_rows):
            chosen = slice(start, start + self.chunk_rows)
            try:
                frame = pandas().DataFrame(np.array(self._rows[chosen]), columns=names)
            except ARRAY_DAMAGE as error:
                raise _damaged(self.name, error) from error
            for name, values in self._others.items():
                frame[name] = values[chosen]
            self.bytes_read = (self.n_bytes or 0) * min(chosen.stop, n_rows) // n_rows
            yield frame


def _damaged(name: str, error: Exception) -> TableError:
    return TableError(f"{name} cannot be read; it may be cut off, or hold objects. ({error})")


def _load(path: Path) -> tuple[Any, dict[str, NDArray[np.generic]]]:
    """Return the rows of a file, and its other arrays of one value per row by name."""
    arrays: dict[str, Any]
    try:
        with path.open("rb") as file:
            is_one = file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX
        if is_one:
            arrays = {"X": RowsFile(path)}
        else:
            with np.load(path, allow_pickle=False) as loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except ARRAY_DAMAGE as error:
        raise _damaged(path.name, error) from error
    if len(arrays) == 1:
        arrays = {"X": next(iter(arrays.values()))}
    if "X" not in arrays:
        raise TableError(
            f"{path.name} must hold the rows as array 'X'. Got {', '.join(arrays) or 'none'}."
        )
    rows = arrays.pop("X")
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise TableError(
            f"{path.name} must hold rows and columns of numbers. "
            f"Got an array of shape {rows.shape} and type {rows.dtype}."
        )
    return rows, {name: array for name, array in arrays.items() if array.shape == rows.shape[:1]}


class FolderSource(Source):
    """The files of a folder one after another, with the same columns.

    A column `file` names the file of every row, unless the files have such a column.
    """

    def __init__(
        self,
        folder: Path,
        files: list[Path],
        open_file: Callable[[Path], Source],
        chunk_rows: int,
    ) -> None:
        self._files = files
        self._open_file = open_file
        self._folder = folder
        first = open_file(files[0])
        n_bytes = sum(file.stat().st_size for file in files)
        description = f"{len(files)} files; the first is {first.description}"
        self._own_columns = first.columns
        columns = list(dict.fromkeys([*first.columns, FILE]))
        super().__init__(folder.name, columns, description, chunk_rows, n_bytes)

    def frames(self) -> Iterator[Frame]:
        """Yield the data frames of the files, the columns in the order of the first file."""
        finished = 0
        for file in self._files:
            part = self._open_file(file)
            self.require_columns(part)
            for frame in part.frames():
                self.bytes_read = finished + part.bytes_read
                if FILE not in self._own_columns:
                    # a run may be a folder of its own
                    is_own = file.parent != self._folder
                    frame = frame.assign(**{FILE: file.parent.name if is_own else file.name})
                yield frame[self.columns]
            finished += file.stat().st_size
            self.bytes_read = finished

    def require_columns(self, part: Source) -> None:
        """Refuse a file with other columns than the first one."""
        missing = [name for name in self._own_columns if name not in part.columns]
        extra = [name for name in part.columns if name not in self._own_columns]
        if missing or extra:
            told = {"missing": missing, "new": extra}
            what = ", ".join(f"{how} are {listed(names)}" for how, names in told.items() if names)
            raise TableError(
                f"{part.name} has other columns than {self._files[0].name}, the first file of "
                f"{self.name}: {what}. Move it out of the folder, or correct it."
            )


class ParquetWriter:
    """Write frames as row groups of Parquet to a file that is open for writing."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.inner: Any = None

    def write(self, frame: Frame) -> None:
        """Write the next rows, with the types of the first ones."""
        pa, pq = (needed(n, "to write Parquet files") for n in ("pyarrow", "pyarrow.parquet"))
        if self.inner is None:
            schema = pa.Schema.from_pandas(frame, preserve_index=False)
            self.inner = pq.ParquetWriter(self.file, schema)
        try:
            table = pa.Table.from_pandas(frame, schema=self.inner.schema, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidInputError(
                f"A column changes its type between rows, which Parquet cannot hold: {error}. "
                "Write CSV instead."
            ) from error
        self.inner.write_table(table)

    def note(self, about: dict[str, str]) -> None:
        """Put words about the rows into the footer, once some were written."""
        self.inner.add_key_value_metadata(about)

    def close(self) -> None:
        """Write the footer."""
        if self.inner is not None:
            try:
                self.inner.close()
            finally:
                # otherwise it tries again when it is thrown away
                self.inner.is_open = False

"""A folder of files that are parts of one table."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ocfuse.exceptions import TableError
from ocfuse.tables.frames import Frame, listed
from ocfuse.tables.names import FILE
from ocfuse.tables.source import Source


class FolderSource(Source):
    """The files of a folder one after another, with the same columns.

    A column `file` names the file of every row, unless the files have such a column.

    Parameters
    ----------
    folder : Path
        The folder.
    files : list of Path
        Its files, in the order to read them.
    open_file : callable
        Makes a `Source` of a file.
    chunk_rows : int
        Most rows of one chunk.
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
                    frame = frame.assign(**{FILE: file.name})
                yield frame[self.columns]
            finished += file.stat().st_size
            self.bytes_read = finished

    def require_columns(self, part: Source) -> None:
        """Refuse a file with other columns than the first one."""
        missing = [name for name in self._own_columns if name not in part.columns]
        extra = [name for name in part.columns if name not in self._own_columns]
        if missing or extra:
            raise TableError(
                f"{part.name} has other columns than {self._files[0].name}, the first file of "
                f"{self.name}: missing are {listed(missing) or 'none'}, new are "
                f"{listed(extra) or 'none'}. Move it out of the folder, or correct it."
            )

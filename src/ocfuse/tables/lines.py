"""Lines of text, from whatever encoding a file has.

UTF-8 with or without a byte order mark, and UTF-16 with one. A line that is
not UTF-8 is read as Windows-1252, as spreadsheets in western Europe write it,
and a warning says so. That is settled line by line, so that it does not depend
on how the file is cut into chunks.
"""

import codecs
import gzip
import sys
import warnings
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ocfuse.exceptions import TableError, TableWarning

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FALLBACK = "cp1252"
#: Bytes of the longest line that is decompressed.
LONGEST_LINE = 2**26
#: How files that are no text begin, and what they are.
NO_TEXT = {
    b"\x1f\x8b": "is compressed. Give it a name that ends in .gz, or decompress it",
    b"PK\x03\x04": "is an archive or a workbook. Save the table as CSV",
    b"PAR1": "is a Parquet file. Give it a name that ends in .parquet",
}


class Lines:
    """The lines of a file or of a stream.

    Parameters
    ----------
    where : Path or binary stream
        A file (also one compressed by gzip), which can be read again and again,
        or anything with `readline`, which is read once.
    name : str
        Name for messages.
    """

    def __init__(self, where: Any, name: str) -> None:
        self.where = where
        self.name = name
        self.n_bytes = where.stat().st_size if isinstance(where, Path) else None
        self.bytes_read = 0
        self._has_warned = False

    def __iter__(self) -> Iterator[str]:
        try:
            if isinstance(self.where, Path):
                yield from self._of_file(self.where)
            else:
                yield from self._decoded(self._counted(self.where))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{self.name} is cut off or damaged ({error}).") from error
        except UnicodeDecodeError as error:
            raise TableError(f"{self.name} is not the UTF-16 that it begins with.") from error
        except OSError as error:
            raise TableError(f"{self.name} cannot be read: {error.strerror or error}.") from error

    def _of_file(self, path: Path) -> Iterator[str]:
        with path.open("rb") as file:
            if path.suffix.lower() != ".gz":
                yield from self._decoded(self._counted(file))
                return
            with gzip.open(file) as plain:
                for line in self._decoded(self._bounded(plain)):
                    self.bytes_read = file.tell()
                    yield line

    def _bounded(self, plain: Any) -> Iterator[bytes]:
        """Yield lines; a small file could hold one that takes all memory."""
        for raw in iter(partial(plain.readline, LONGEST_LINE + 1), b""):
            if len(raw) > LONGEST_LINE:
                raise TableError(
                    f"{self.name} has a line of more than {LONGEST_LINE:,} bytes, which no table "
                    "has. Decompress the file and look at it."
                )
            yield raw

    def _counted(self, stream: Any) -> Iterator[bytes]:
        self.bytes_read = 0
        for raw in iter(stream.readline, b""):
            self.bytes_read += len(raw)
            yield raw

    def _decoded(self, raws: Any) -> Iterator[str]:
        raws = iter(raws)
        first = next(raws, b"")
        if first.startswith(UTF16_MARKS):
            yield from _from_utf16(chain([first], raws))
            return
        first = first.removeprefix(codecs.BOM_UTF8)
        self._require_text(first)
        for number, raw in enumerate(chain([first], raws), start=1):
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                self._warn(number)
                yield raw.decode(FALLBACK, errors="replace")

    def _require_text(self, first: bytes) -> None:
        for start, what in NO_TEXT.items():
            if first.startswith(start):
                raise TableError(f"{self.name} is no text: it {what}.")
        if b"\0" in first:
            raise TableError(
                f"{self.name} holds zero bytes: it is no text, or not in UTF-8. "
                "Save it as CSV in UTF-8."
            )

    def _warn(self, number: int) -> None:
        if not self._has_warned:
            warnings.warn(
                f"{self.name} is not in UTF-8 (line {number}) and is read as Windows-1252. "
                "If letters come out wrong, save it in UTF-8.",
                TableWarning,
                stacklevel=2,
            )
        self._has_warned = True


def standard_input() -> Any:
    """Return the bytes of standard input."""
    return sys.stdin.buffer


def _from_utf16(raws: Iterator[bytes]) -> Iterator[str]:
    """Split at line ends after decoding: their bytes occur within other letters too."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    rest = ""
    for raw in raws:
        *lines, rest = (rest + decoder.decode(raw)).split("\n")
        yield from (line + "\n" for line in lines)
    last = rest + decoder.decode(b"", final=True)
    if last:
        yield last

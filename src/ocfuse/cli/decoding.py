"""Lines of bytes as text, in the encodings that other commands read too."""

import codecs

from ocfuse.exceptions import TableError
from ocfuse.tables.lines import FALLBACK, NO_TEXT, UTF16_MARKS


def require_text(first: bytes) -> None:
    """Refuse input whose first line shows that it is no text that comes line by line."""
    for start, what in NO_TEXT.items():
        if first.startswith(start):
            raise TableError(
                f"The input is no text: it {what.partition('.')[0]}. `ocfuse watch` reads CSV as "
                "it comes. Use `ocfuse score`, or feed it by a pipe, such as zcat."
            )
    if first.startswith(UTF16_MARKS) or b"\0" in first:
        raise TableError(
            "The input is no text in UTF-8: it holds zero bytes, or begins as UTF-16 does. Convert "
            "it, for instance by iconv -f UTF-16 -t UTF-8, or use `ocfuse score`."
        )


def to_text(line: bytes) -> tuple[str, bool]:
    """Return a line without its end, and whether it is in UTF-8; else it is Windows-1252."""
    plain = line.removeprefix(codecs.BOM_UTF8).strip(b"\r\n")
    try:
        return plain.decode(), True
    except UnicodeDecodeError:
        return plain.decode(FALLBACK, errors="replace"), False

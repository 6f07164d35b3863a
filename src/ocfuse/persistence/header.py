"""What a model file says of itself: its first two lines.

A line that names the format, and a line of JSON: format number, versions, length
of what follows, SHA-256 of these and of what follows.
"""

import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ocfuse.exceptions import ModelFileError

MAGIC = b"ocfuse model\n"
#: Formats: 1 names our classes by their modules, 2 by `ocfuse.persistence.registry`.
FORMAT = 2
#: Longest header line that is read.
LONGEST_HEADER = 65_536


@dataclass(frozen=True)
class Header:
    """The second line of a model file.

    Parameters
    ----------
    format : int
        Number of the file format.
    ocfuse, sklearn : str
        Versions that wrote the file.
    size : int
        Bytes that follow the header.
    sha256 : str
        Checksum of the other fields and of these bytes.
    """

    format: int
    ocfuse: str
    sklearn: str
    size: int
    sha256: str

    def checksum(self, payload: bytes) -> str:
        """Return the SHA-256 of the other fields and of what follows the header."""
        others = {name: value for name, value in asdict(self).items() if name != "sha256"}
        digest = hashlib.sha256(json.dumps(others, sort_keys=True).encode())
        digest.update(payload)
        return digest.hexdigest()


@cache
def running(package: str) -> str:
    """Return the version of a package that is running."""
    return version(package)


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return what a model file says of itself, without loading it."""
    source = Path(path)
    if not stat.S_ISREG(mode := source.stat().st_mode) and not stat.S_ISDIR(mode):
        raise ModelFileError(f"{source.name} cannot be read: it is a device or a pipe.")
    with source.open("rb") as file:
        beginning = file.read(len(MAGIC) + LONGEST_HEADER + 1)
    return split(beginning, source)[0]


def sealed(payload: bytes) -> bytes:
    """Return the two lines to write before a payload."""
    unsealed = Header(
        format=FORMAT,
        ocfuse=running("ocfuse"),
        sklearn=running("scikit-learn"),
        size=len(payload),
        sha256="",
    )
    header = replace(unsealed, sha256=unsealed.checksum(payload))
    return MAGIC + json.dumps(asdict(header)).encode() + b"\n"


def split(content: bytes, source: Path) -> tuple[Header, bytes]:
    """Return the header and what follows it."""
    if not content.startswith(MAGIC):
        looks_like = ""
        if not content:
            looks_like = ": it is empty"
        elif content[:1] == b"\x80":
            looks_like = ": it looks like a pickle, which ocfuse never opens"
        elif content[:2] == b"PK":
            looks_like = ": it looks like a zip archive"
        raise ModelFileError(
            f"{source.name} is not an ocfuse model file{looks_like}. "
            "Expected a file that FusedDetector.save wrote."
        )
    line, newline, payload = content[len(MAGIC) :].partition(b"\n")
    if not newline or len(line) > LONGEST_HEADER:
        raise ModelFileError(f"{source.name} is cut off or damaged: its header is not complete.")
    try:
        fields = json.loads(line)
        number = fields["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ModelFileError(f"{source.name} is damaged: its header cannot be read.") from None
    if type(number) is not int or number < 1:
        raise ModelFileError(f"{source.name} is damaged: its format is not a number from 1 on.")
    if number > FORMAT:
        written = fields.get("ocfuse") if _is_version(fields.get("ocfuse")) else "?"
        raise ModelFileError(
            f"{source.name} has format {number}, written by ocfuse {written}. "
            f"This is ocfuse {running('ocfuse')}, which reads formats up to {FORMAT}. "
            "Upgrade ocfuse."
        )
    expected = Header.__annotations__
    complete = {name: type(value) for name, value in fields.items()} == expected
    if not complete or not all(_is_version(fields[name]) for name in ("ocfuse", "sklearn")):
        raise ModelFileError(f"{source.name} is damaged: its header is not complete.")
    return Header(**fields), payload


def check_payload(header: Header, payload: bytes, source: Path) -> None:
    """Refuse what does not follow its header."""
    if len(payload) != header.size:
        raise ModelFileError(
            f"{source.name} is cut off or was added to: {len(payload)} bytes follow the header, "
            f"which promises {header.size}. Copy the file again."
        )
    if header.checksum(payload) != header.sha256:
        raise ModelFileError(
            f"{source.name} was altered: its checksum does not match. Copy the file again."
        )


def _is_version(text: Any) -> bool:
    """Return whether a text is short, and steers no terminal: it is shown to the user."""
    return isinstance(text, str) and len(text) <= 100 and text.isprintable()

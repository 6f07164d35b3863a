"""One file per model, which runs no code when it is loaded.

Layout: a line that names the format, a line of JSON (format number, versions,
length and SHA-256 of what follows), then the object as written by `skops`.
"""

import hashlib
import importlib
import inspect
import json
import os
import uuid
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import skops.io

from ocfuse.exceptions import ModelFileError, ModelVersionWarning, UntrustedTypeError

MAGIC = b"ocfuse model\n"
FORMAT = 1
#: Longest header line that is read.
LONGEST_HEADER = 65_536
PACKAGE = "ocfuse"
#: Packages whose classes are built without being asked for.
KNOWN_PACKAGES = (PACKAGE, "sklearn")


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
        Their checksum.
    """

    format: int
    ocfuse: str
    sklearn: str
    size: int
    sha256: str


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to one file, all or nothing.

    Parameters
    ----------
    model : object
        A fitted detector, or any other estimator of ours.
    path : str or path-like
        Where to write; an existing file is replaced only when the new one is
        complete. The usual ending is ``.ocf``.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    payload = skops.io.dumps(model)
    header = Header(
        format=FORMAT,
        ocfuse=version(PACKAGE),
        sklearn=version("scikit-learn"),
        size=len(payload),
        sha256=hashlib.sha256(payload).hexdigest(),
    )
    target = Path(path)
    line = json.dumps(asdict(header)).encode() + b"\n"
    _write_atomically(target, MAGIC + line + payload)
    return target


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Read a model that `save` wrote; no code of the file is run.

    Only types of ocfuse, scikit-learn, NumPy and SciPy are built. A model with
    members of other types needs their names.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : iterable of str, default=()
        Full names of further types to build, such as ``"mypackage.MyDetector"``.

    Returns
    -------
    object
        The model: it gives the same scores, to the last bit.
    """
    source = Path(path)
    content = source.read_bytes()
    header, payload = _split(content, source)
    _check_payload(header, payload, source)
    allowed = set(trusted)
    untrusted = _untrusted_types(payload, source)
    known = {name for name in untrusted if _is_known_class(name)}
    strangers = sorted(set(untrusted) - known - allowed)
    if strangers:
        raise UntrustedTypeError(
            f"{source.name} holds types that are neither ours nor scikit-learn's: "
            f"{', '.join(strangers)}. Nothing was loaded. If you trust where the file comes "
            f"from, use load(path, trusted={strangers!r})."
        )
    try:
        return skops.io.loads(payload, trusted=sorted(known | (allowed & set(untrusted))))
    except Exception as error:
        raise ModelFileError(
            f"{source.name} cannot be rebuilt by ocfuse {version(PACKAGE)} and scikit-learn "
            f"{version('scikit-learn')}; it was written by ocfuse {header.ocfuse} and scikit-learn "
            f"{header.sklearn}. Use those versions, or train again. ({error})"
        ) from error


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return what a model file says of itself, without loading it."""
    source = Path(path)
    with source.open("rb") as file:
        beginning = file.read(len(MAGIC) + LONGEST_HEADER)
    return _split(beginning, source)[0]


def _write_atomically(target: Path, content: bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one."""
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _split(content: bytes, source: Path) -> tuple[Header, bytes]:
    """Return the header and what follows it."""
    if not content.startswith(MAGIC):
        raise ModelFileError(
            f"{source.name} is not an ocfuse model file{_looks_like(content)}. "
            "Expected a file that FusedDetector.save wrote."
        )
    line, newline, payload = content[len(MAGIC) :].partition(b"\n")
    if not newline or len(line) > LONGEST_HEADER:
        raise ModelFileError(f"{source.name} is cut off or damaged: its header is not complete.")
    return _parse_header(line, source), payload


def _parse_header(line: bytes, source: Path) -> Header:
    try:
        fields = json.loads(line)
        number = int(fields["format"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ModelFileError(f"{source.name} is damaged: its header cannot be read.") from None
    if number > FORMAT:
        raise ModelFileError(
            f"{source.name} has format {number}, written by ocfuse {fields.get('ocfuse', '?')}. "
            f"This is ocfuse {version(PACKAGE)}, which reads formats up to {FORMAT}. "
            "Upgrade ocfuse."
        )
    try:
        header = Header(**fields)
        if not (isinstance(header.size, int) and isinstance(header.sha256, str)):
            raise TypeError
    except TypeError:
        raise ModelFileError(f"{source.name} is damaged: its header is not complete.") from None
    return header


def _check_payload(header: Header, payload: bytes, source: Path) -> None:
    if len(payload) != header.size:
        raise ModelFileError(
            f"{source.name} is cut off or was added to: {len(payload)} bytes follow the header, "
            f"which promises {header.size}. Copy the file again."
        )
    if hashlib.sha256(payload).hexdigest() != header.sha256:
        raise ModelFileError(
            f"{source.name} was altered: its checksum does not match. Copy the file again."
        )
    running = version("scikit-learn")
    if _minor(header.sklearn) != _minor(running):
        warnings.warn(
            f"{source.name} was written with scikit-learn {header.sklearn}; this is {running}. "
            "Members that are scikit-learn's own may score differently.",
            ModelVersionWarning,
            stacklevel=3,
        )


def _minor(number: str) -> list[str]:
    return str(number).split(".")[:2]


def _looks_like(content: bytes) -> str:
    if not content:
        return ": it is empty"
    if content[:1] == b"\x80":
        return ": it looks like a pickle, which ocfuse never opens"
    if content[:2] == b"PK":
        return ": it looks like a zip archive"
    return ""


def _untrusted_types(payload: bytes, source: Path) -> list[str]:
    try:
        return list(skops.io.get_untrusted_types(data=payload))
    except Exception as error:
        raise ModelFileError(f"{source.name} is damaged: {error}") from error


def _is_known_class(name: str) -> bool:
    """Tell whether a name is a class that a module of ours or scikit-learn's defines."""
    module_name, _, class_name = name.rpartition(".")
    if module_name.split(".")[0] not in KNOWN_PACKAGES or not class_name.isidentifier():
        return False
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        return False
    found = vars(module).get(class_name)
    return inspect.isclass(found) and found.__module__ == module_name

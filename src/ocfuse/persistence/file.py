"""Save a model to one file, and load it.

After its header (`ocfuse.persistence.header`) a file holds the object as `skops`
describes it: an archive that is not compressed. Our classes have names of their own in the
description (`ocfuse.persistence.registry`), which do not depend on where they are. Reading it is
our own work (`ocfuse.persistence.build`), as a stranger may have written it.
"""

import errno
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ocfuse.exceptions import (
    InvalidTypeError,
    ModelFileError,
    ModelVersionWarning,
    UntrustedTypeError,
)
from ocfuse.persistence.archive import Archive, with_schema
from ocfuse.persistence.build import PROTOCOL, Builder, Survey, name_classes
from ocfuse.persistence.header import PACKAGE, Header, check_payload, running, sealed, split
from ocfuse.system.files import read_whole, write_atomically
from ocfuse.system.packages import slow

#: Names of types that a message shows at most, and characters of a stranger's text.
MOST_NAMES, LONGEST_TEXT = 20, 200


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
    target = Path(path)
    _check_target(target)
    payload = _to_payload(model, target)
    write_atomically(target, sealed(payload) + payload)
    return target


def check_storable(model: Any) -> None:
    """Refuse a model that `save` could not write, before time is spent on learning.

    Parameters
    ----------
    model : object
        An estimator, fitted or not: its parameters and members must be such that a file
        can hold them.
    """
    _to_payload(model, Path("model"))


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str] | None = (),
    networks: str | os.PathLike[str] | None = None,
) -> Any:
    """Read a model that `save` wrote; no code of the file is run.

    Only classes of ocfuse, common estimators of scikit-learn with their parts, and
    types of NumPy are built. A model with members of other types needs their names.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : iterable of str, default=()
        Full names of further types to build, such as ``"mypackage.MyDetector"``.
        Names that the file does not need are ignored.
    networks : str or path-like, default=None
        Folder with the networks that a detector of pictures was trained with, which are
        not part of the file. None is the folder of the file. No other place is looked at,
        whatever paths the file names.

    Returns
    -------
    object
        The model: it gives the same scores, to the last bit.

    Notes
    -----
    The checksum tells a damaged file, not a forged one. A forged file cannot run code:
    classes are not called, only given their state, and nothing else is executed. The state
    of an estimator of scikit-learn must be what its `fit` leaves (ours look at theirs
    whenever they score), so that scoring does not leave the memory of the model. What a
    forged model says of rows is another matter: see "A file from a stranger" in the
    documentation.

    Seconds and bytes are counted, and are bounded by the size of the file.
    """
    source = Path(path)
    vouched_for = _to_names(trusted)
    folder = source.parent if networks is None else Path(networks)
    header, payload = split(_content(source), source)
    check_payload(header, payload, source)
    with Archive(payload, source) as archive:
        _warn_of_versions(header, source)
        schema, survey = _described(archive, source)
        _refuse_strangers(survey, vouched_for, source)
        try:
            return Builder(archive, survey.n_nodes, folder.absolute()).build(schema)
        except Exception as error:
            raise ModelFileError(
                f"{source.name} cannot be rebuilt by ocfuse {running(PACKAGE)} and scikit-learn "
                f"{running('scikit-learn')}; it was written by ocfuse {header.ocfuse} and "
                f"scikit-learn {header.sklearn}. Use those versions, or train again. "
                f"({_reason(error)})"
            ) from error


def _content(source: Path) -> bytes:
    try:
        return read_whole(source)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise ModelFileError(f"{source.name} cannot be read: {error.strerror}.") from None
        raise


def _check_target(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(
            f"{target} is a folder. Give the name of a file in it, such as {target / 'model.ocf'}."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Create it first.")


def _to_payload(model: Any, target: Path) -> bytes:
    """Return the archive of a model, having seen that it can be rebuilt."""
    try:
        # asked for here alone: to read a model takes none of it
        payload = with_schema(slow("skops.io").dumps(model), name_classes)
        # skops writes a lambda or a local class by its name, without looking it up.
        with Archive(payload, target) as archive:
            schema, survey = _described(archive, target)
            Builder(archive, survey.n_nodes).build(schema)
    except Exception as error:
        raise InvalidTypeError(
            f"{type(model).__name__} cannot be saved: {str(error).rstrip('.')}. Replace lambdas "
            "and local classes by functions and classes that a module defines, and leave out open "
            "files, locks and the like. Nothing was written."
        ) from error
    return payload


def _warn_of_versions(header: Header, source: Path) -> None:
    for package, written, now in (
        (PACKAGE, header.ocfuse, running(PACKAGE)),
        ("scikit-learn", header.sklearn, running("scikit-learn")),
    ):
        if _minor(written) != _minor(now):
            warnings.warn(
                f"{source.name} was written with {package} {written}; this is {now}. "
                f"What {package} computes may score differently.",
                ModelVersionWarning,
                stacklevel=3,
            )


def _minor(number: str) -> list[str]:
    return number.split(".")[:2]


def _to_names(trusted: Iterable[str] | None) -> set[str]:
    names = () if trusted is None else trusted
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidTypeError(f"trusted must be a list of names. Got trusted={trusted!r}.")
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        raise InvalidTypeError(f"trusted must be a list of names. Got trusted={listed!r}.")
    return set(listed)


def _described(archive: Archive, source: Path) -> tuple[Any, Survey]:
    """Return the description of a model, and what it holds."""
    try:
        schema = archive.schema()
        protocol, loader = schema["protocol"], schema["__loader__"]
        survey = Survey.of(schema)
    except Exception as error:
        raise ModelFileError(
            f"{source.name} is damaged: it describes no model. ({_reason(error)})"
        ) from error
    if type(protocol) is not int or protocol != PROTOCOL:
        raise ModelFileError(
            f"{source.name} is described by protocol {_harmless(repr(protocol))} of skops. "
            f"This version of ocfuse reads protocol {PROTOCOL}."
        )
    if loader != "ObjectNode":
        raise ModelFileError(f"{source.name} holds no model. Expected a fitted estimator.")
    return schema, survey


def _refuse_strangers(survey: Survey, vouched_for: set[str], source: Path) -> None:
    strangers = [name for name in survey.strangers if name not in vouched_for]
    if strangers:
        names = [_harmless(name) for name in strangers[:MOST_NAMES]]
        more = f" and {len(strangers) - MOST_NAMES} more" if len(strangers) > MOST_NAMES else ""
        raise UntrustedTypeError(
            f"{source.name} holds types that are neither ours nor known parts of scikit-learn's "
            f"estimators: {', '.join(names)}{more}. Nothing was loaded. If you trust where the "
            f"file comes from, use load(path, trusted={names!r})."
        )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {_harmless(str(error))}"


def _harmless(text: str) -> str:
    """Return what may be shown of a stranger's text, which must not fill, or steer, a terminal."""
    shown = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)

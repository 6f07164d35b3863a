"""Save a model to one file, and load it.

After its header (`ocfuse.persistence.header`) a file holds the object as `skops`
describes it: an archive that is not compressed. Our classes have names of their own in the
description (`ocfuse.persistence.registry`), which do not depend on where they are. Reading it is
our own work (`ocfuse.persistence.build`), as a stranger may have written it.
"""

import errno
import filecmp
import os
import shutil
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
from ocfuse.persistence.build import Builder, Survey, name_classes
from ocfuse.persistence.header import Header, check_payload, running, sealed, split
from ocfuse.system.files import read_whole, write_atomically
from ocfuse.system.log import logger
from ocfuse.system.packages import slow

_log = logger(__name__)


def keep_former(path: str | os.PathLike[str], n: int = 3) -> None:
    """Keep a copy of a model file as model.ocf.1, before a new model replaces it.

    Earlier copies become .2, .3 and so on, at most `n` of them. To go back, move one of them to
    the name of the model; a service that watches the file loads it.

    Parameters
    ----------
    path : str or path-like
        The model file; it does not change.
    n : int, default=3
        Most former models to keep; 0 keeps none.
    """
    target = Path(path)
    if n < 1 or not target.is_file():
        return
    former = [target.with_name(f"{target.name}.{i}") for i in range(1, n + 1)]
    if former[0].is_file() and filecmp.cmp(target, former[0], shallow=False):
        return  # it is kept already: a fit after that has failed
    for older, newer in reversed(list(zip(former[1:], former, strict=False))):
        if newer.is_file():
            os.replace(newer, older)
    beside = target.with_name(f"{target.name}.1.part")
    beside.unlink(missing_ok=True)
    shutil.copy2(target, beside)  # no second name: whoever writes in place would change both
    os.replace(beside, former[0])


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to one file, completely or not at all.

    Parameters
    ----------
    model : object
        A fitted detector, or any other estimator of ocfuse.
    path : str or path-like
        The file, usually with the ending ``.ocf``. An existing file is replaced only when the new
        one is complete.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(
            f"{target} is a folder. Give the name of a file in it, such as {target / 'model.ocf'}."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Create it first.")
    payload = _to_payload(model, target)
    write_atomically(target, sealed(payload) + payload)
    _log.info("wrote %s: %s, %d bytes", target, type(model).__name__, len(payload))
    return target


def check_storable(model: Any) -> None:
    """Raise an error if `save` cannot write a model, before it is fitted.

    Parameters
    ----------
    model : object
        An estimator, fitted or not. A file must be able to hold its parameters and members.
    """
    _to_payload(model, Path("model"))


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str] | None = (),
    networks: str | os.PathLike[str] | None = None,
) -> Any:
    """Read a model that `save` wrote; no code of the file is run.

    Only classes of ocfuse, common estimators of scikit-learn with their parts, and types of NumPy
    are built. For a model with members of other types, give the names of these in `trusted`.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : iterable of str, default=()
        Full names of further types to build, such as ``"mypackage.MyDetector"``.
        Names that the file does not need are ignored.
    networks : str or path-like, default=None
        Folder with the networks that a detector of pictures was trained with, as the file does not
        contain them. None is the folder of the file. Networks are read from this folder only,
        whatever paths the file names.

    Returns
    -------
    object
        The model, with the same scores to the last bit.

    Notes
    -----
    The checksum detects a damaged file, not a forged one. A forged file cannot run code: objects
    are built and given their state, but no code of the file is executed. The state of estimators
    of scikit-learn is checked when loaded, and that of ocfuse when they score, so that scoring
    does not read or write memory outside the model. But a forged model may give wrong scores: see
    "A file from a stranger" in the documentation.

    The time and memory of loading are bounded by the size of the file.
    """
    source = Path(path)
    vouched_for = _to_names(trusted)
    folder = source.parent if networks is None else Path(networks)
    try:
        content = read_whole(source)
    except OSError as error:
        if error.errno == errno.EINVAL:  # a device or a pipe
            raise ModelFileError(f"{source.name} cannot be read: {error.strerror}.") from None
        raise
    header, payload = split(content, source)
    check_payload(header, payload, source)
    with Archive(payload, source) as archive:
        _warn_of_versions(header, source)
        schema, survey = _described(archive, source)
        strangers = [name for name in survey.strangers if name not in vouched_for]
        if strangers:
            raise UntrustedTypeError(_refusal(strangers, source))
        try:
            model = Builder(archive, survey.n_nodes, folder.absolute()).build(schema)
        except Exception as error:
            raise ModelFileError(
                f"{source.name} cannot be rebuilt by ocfuse {running('ocfuse')} and scikit-learn "
                f"{running('scikit-learn')}; it was written by ocfuse {header.ocfuse} and "
                f"scikit-learn {header.sklearn}. Use those versions, or train again. "
                f"({_reason(error)})"
            ) from error
    _log.info("read %s: %s, by ocfuse %s", source, type(model).__name__, header.ocfuse)
    return model


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
    for package, written in (("ocfuse", header.ocfuse), ("scikit-learn", header.sklearn)):
        now = running(package)
        if written.split(".")[:2] != now.split(".")[:2]:
            warnings.warn(
                f"{source.name} was written with {package} {written}; this is {now}. "
                f"What {package} computes may score differently.",
                ModelVersionWarning,
                stacklevel=3,
            )


def _to_names(trusted: Iterable[str] | None) -> set[str]:
    names: Any = () if trusted is None else trusted
    if isinstance(names, Iterable) and not isinstance(names, str):
        names = list(names)
        if all(isinstance(name, str) for name in names):
            return set(names)
    raise InvalidTypeError(f"trusted must be a list of names. Got trusted={names!r}.")


def _described(archive: Archive, source: Path, known: int = 2) -> tuple[Any, Survey]:
    """Return the description of a model by a known protocol of skops, and what it holds."""
    try:
        schema = archive.schema()
        protocol, loader = schema["protocol"], schema["__loader__"]
        survey = Survey.of(schema)
    except Exception as error:
        raise ModelFileError(
            f"{source.name} is damaged: it describes no model. ({_reason(error)})"
        ) from error
    if type(protocol) is not int or protocol != known:
        raise ModelFileError(
            f"{source.name} is described by protocol {_harmless(repr(protocol))} of skops. "
            f"This version of ocfuse reads protocol {known}."
        )
    if loader != "ObjectNode":
        raise ModelFileError(f"{source.name} holds no model. Expected a fitted estimator.")
    return schema, survey


def _refusal(strangers: list[str], source: Path, most: int = 20) -> str:
    names = [_harmless(name) for name in strangers[:most]]
    more = f" and {len(strangers) - most} more" if len(strangers) > most else ""
    return (
        f"{source.name} holds types that are neither ours nor known parts of scikit-learn's "
        f"estimators: {', '.join(names)}{more}. Nothing was loaded. If you trust where the "
        f"file comes from, use load(path, trusted={names!r})."
    )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {_harmless(str(error))}"


def _harmless(text: str, longest: int = 200) -> str:
    """Return what may be shown of a stranger's text, which must not fill, or steer, a terminal."""
    shown = text if len(text) <= longest else text[:longest] + "..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)

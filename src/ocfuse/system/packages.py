"""Optional packages, imported when they are needed."""

import importlib
import json
import shlex
from pathlib import Path
from typing import Any

from ocfuse.exceptions import MissingPackageError


def needed(package: str, purpose: str, extra: str = "tool") -> Any:
    """Return a package or a module of it, or say which extra of ocfuse brings it.

    Parameters
    ----------
    package : str
        Name, such as ``"matplotlib.pyplot"``.
    purpose : str
        What it is for, to follow "is needed".
    extra : str, default="tool"
        The extra that brings it.

    Returns
    -------
    module
        The module.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.split(".")[0]
        if getattr(error, "name", None) == name:  # it is not there
            raise MissingPackageError(
                f"{name} is needed {purpose}. Install it with: {install_line(extra)}"
            ) from None
        raise MissingPackageError(
            f"{name} is needed {purpose}. It is installed, but cannot be imported: {error}. It may "
            f"be too old or damaged. Install what fits with: {install_line(extra)}"
        ) from error


def install_line(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    Installers note where a package came from if it was not from an index (PEP 610). To a clone
    or the file of a wheel the extra is added, as an index may have another version, or none.

    Parameters
    ----------
    extra : str
        Name of the extra, or several with commas.

    Returns
    -------
    str
        A line for a shell.
    """
    # here, as they take time and are for messages alone
    from importlib import metadata  # noqa: PLC0415
    from urllib.request import url2pathname  # noqa: PLC0415

    try:
        told = json.loads(metadata.distribution("ocfuse").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        told = {}
    scheme, _, place = str(told.get("url", "")).partition("://")
    origin = url2pathname(place)
    if scheme != "file" or not Path(origin).exists():
        return f"pip install 'ocfuse[{extra}]'"
    editable = "-e " if told.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}{shlex.quote(f'{origin}[{extra}]')}"


def slow(package: str) -> Any:
    """Return a module that is always there, but takes so long to import that few should pay.

    Members and fusions learn by trees, solvers and distributions of scikit-learn and SciPy that
    scoring does without: with them, `ocfuse score` of a few rows would take half as long again.
    One data set needs scikit-learn; with it, a command that lists data sets would take
    five times as long. A detector that is neither saved nor explained needs no files and pages.
    """
    return importlib.import_module(package)

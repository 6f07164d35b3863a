"""Optional packages, imported when they are needed."""

import importlib
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
    except ImportError:
        name = package.split(".")[0]
        raise MissingPackageError(
            f"{name} is needed {purpose}. Install it with: pip install 'ocfuse[{extra}]'"
        ) from None


def slow(package: str) -> Any:
    """Return a module that is always there, but takes so long to import that few should pay.

    Members and fusions learn by trees, solvers and distributions of scikit-learn and SciPy that
    scoring does without: with them, `ocfuse score` of a few rows would take half as long again.
    One data set needs scikit-learn; with it, a command that lists data sets would take
    five times as long. A detector that is neither saved nor explained needs no files and pages.
    """
    return importlib.import_module(package)

"""Packages that are imported when they are first needed, and why not before."""

import importlib
from typing import Any

from ocfuse.exceptions import MissingPackageError


def needed(package: str, purpose: str) -> Any:
    """Return a package of the extra `tool`, or say that this extra brings it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.split(".")[0]
        raise MissingPackageError(
            f"{name} is needed {purpose}. Install it with: pip install 'ocfuse[tool]'"
        ) from None


def slow(package: str) -> Any:
    """Return a package that is always there, but takes so long to import that few should pay.

    One data set needs scikit-learn; with it, a command that lists data sets would take
    five times as long.
    """
    return importlib.import_module(package)

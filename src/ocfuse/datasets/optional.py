"""Packages of the extra `tool`, imported when they are first needed."""

import importlib
from typing import Any

from ocfuse.exceptions import MissingPackageError


def needed(package: str, purpose: str) -> Any:
    """Return an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.split(".")[0]
        raise MissingPackageError(
            f"{name} is needed {purpose}. Install it with: pip install 'ocfuse[tool]'"
        ) from None

"""Anomaly detection by fusing one-class classifiers.

A `FusedDetector` learns from normal rows, and scores and explains new ones; a `FeatureEncoder`
turns tables with categories and gaps into numbers. Importing this package must not import NumPy or
scikit-learn: public names are resolved on first use.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from ocfuse.encoder import FeatureEncoder
    from ocfuse.ensemble import FusedDetector
    from ocfuse.persistence import load
    from ocfuse.system.progress import show_progress
    from ocfuse.versions import show_versions

__all__ = [
    "FeatureEncoder",
    "FusedDetector",
    "__version__",
    "load",
    "show_progress",
    "show_versions",
]

__version__ = "0.1.0"

#: Imported on first use, so that `import ocfuse` takes no time, and the solvers no scikit-learn.
_LAZY = {
    "FeatureEncoder": "ocfuse.encoder",
    "FusedDetector": "ocfuse.ensemble",
    "load": "ocfuse.persistence",
    "show_progress": "ocfuse.system.progress",
    "show_versions": "ocfuse.versions",
}


def __getattr__(name: str) -> typing.Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})

"""Anomaly detection by fusing one-class classifiers."""

from ocfuse.versions import show_versions

__all__ = ["__version__", "show_versions"]

__version__ = "0.1.0.dev0"

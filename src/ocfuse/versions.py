"""What is installed here: the lines to quote in a bug report."""

import platform
from importlib.metadata import PackageNotFoundError, version

from ocfuse import kernels as rows
from ocfuse.solvers import native


def show_versions() -> None:
    """Print the versions of Python, ocfuse and its dependencies.

    Quote them in a bug report. The last line says whether the C++ kernel was
    built at installation.
    """
    lines = {"Python": platform.python_version(), "platform": platform.platform()}
    for name in ("ocfuse", "numpy", "scipy", "scikit-learn"):
        lines[name] = installed_version(name)
    lines["kernel of rows"] = rows.describe()
    lines["C++ kernel"] = native.describe()
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:<{width}}  {value}")


def installed_version(package: str) -> str:
    """Return a version from the metadata, which imports nothing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

"""What a reader needs to know to repeat a run."""

import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ocfuse.solvers.native import describe

PACKAGES = ("ocfuse", "numpy", "scipy", "scikit-learn", "joblib")


def facts(command: str, packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the command, the date, the machine and the versions.

    Parameters
    ----------
    command : str
        What was typed.
    packages : sequence of str, default=PACKAGES
        Whose versions matter.

    Returns
    -------
    dict
        Texts by name.
    """
    return {
        "command": f"`{command}`",
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()) + " UTC",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "kernel": describe(),
        **{name: _installed(name) for name in packages},
    }


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

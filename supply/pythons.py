"""Find the Pythons of this machine that the package promises to run on."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from supply.pins import project

SERIES = "Programming Language :: Python :: 3."
#: Where pyenv and uv keep theirs.
KEPT = ("~/.pyenv/versions/{}.*/bin/python", "~/.local/share/uv/python/cpython-{}.*/bin/python")
TOLD = "import sys; print('.'.join(map(str, sys.version_info[:2])))"


def promised() -> list[str]:
    """Return the versions of Python in the classifiers, such as "3.12"."""
    found = [line.removeprefix(SERIES) for line in project()["classifiers"] if SERIES in line]
    return [f"3.{minor}" for minor in found]


def at_hand() -> dict[str, Path]:
    """Return an interpreter for every promised version that is here."""
    firsts = {version: next(candidates(version), None) for version in promised()}
    return {version: path for version, path in firsts.items() if path is not None}


def candidates(version: str) -> Iterator[Path]:
    """Yield interpreters of a version: from PATH, then from where pyenv and uv keep them."""
    command = shutil.which(f"python{version}")
    # a shim of pyenv is there, but runs only what its user has chosen
    if command is not None and tell_version(Path(command)) == version:
        yield Path(command)
    for pattern in KEPT:
        place = Path(pattern.format(version)).expanduser()
        yield from sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))))


def tell_version(python: Path) -> str:
    """Return the version that an interpreter tells, nothing if it does not run."""
    command = [str(python), "-c", TOLD]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""

"""What pyproject.toml promises, and what constraints.txt pins."""

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[1]
LOWER_BOUND = re.compile(r"(?P<name>[\w.-]+)(\[.*\])?>=(?P<version>[\w.]+)")


def project() -> dict[str, Any]:
    """Return the table "project" of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def normal(name: str) -> str:
    """Return the name of a package as indexes know it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Return the versions of constraints.txt by package."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {normal(name): version for name, version in pairs}


def lowest(requirements: list[str]) -> list[str]:
    """Return requirements with their lower bounds as the only version.

    Examples
    --------
    >>> lowest(["numpy>=1.24"])
    ['numpy==1.24']
    """
    found = [LOWER_BOUND.fullmatch(requirement) for requirement in requirements]
    if None in found:
        raise ValueError(f"Every requirement must read name>=version. Got {requirements}.")
    return [f"{match['name']}=={match['version']}" for match in found if match is not None]

"""Look whether a release may go out: ``python -m supply.release [TAG REPOSITORY]``.

What tells the version, the day and the address must tell the same. In a workflow the tag must be
that of the version, and the repository the one that the metadata name: nothing is published from
a copy under the name of the original.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from supply.pins import ROOT, project

#: A release: no development version, no local one.
RELEASED = re.compile(r"\d+\.\d+\.\d+")


def main() -> None:
    """Print what does not agree; exit with 1 if anything does not."""
    found = list(disagreements())
    if len(sys.argv) > 1:
        tag, repository = sys.argv[1:]
        found += not_from_here(tag, repository)
    print(*found or [f"Version {version()} may go out."], sep="\n")
    sys.exit(1 if found else 0)


def version(root: Path = ROOT) -> str:
    """Return the version of the package, without importing it."""
    text = (root / "src/ocfuse/__init__.py").read_text()
    return re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)[1]  # type: ignore[index]


def disagreements(root: Path = ROOT) -> Iterator[str]:
    """Yield what tells another version, day or address than the rest."""
    now = version(root)
    if not RELEASED.fullmatch(now):
        yield f"{now} is no version of a release, which reads 1.2.3."
    changes = (root / "CHANGELOG.md").read_text()
    day = re.search(rf"^## \[{re.escape(now)}\] - (\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE)
    if day is None:
        yield f"CHANGELOG.md has no section '## [{now}] - YYYY-MM-DD'."
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    if citation["version"] != now or (day and str(citation["date-released"]) != day[1]):
        yield f"CITATION.cff tells another version or day: {citation['version']}."
    recipe = yaml.safe_load((root / "recipe/recipe.yaml").read_text())
    if recipe["context"]["version"] != now:
        yield f"recipe/recipe.yaml tells another version: {recipe['context']['version']}."
    address = project()["urls"]["Source"]
    for told in (citation["repository-code"], recipe["about"]["repository"]):
        if told != address:
            yield f"pyproject.toml names the repository {address}, another file {told}."


def not_from_here(tag: str, repository: str) -> Iterator[str]:
    """Yield why a tag of a repository must not be published."""
    if tag != f"v{version()}":
        yield f"The tag {tag} is not v{version()}, the version of the package."
    address = project()["urls"]["Source"]
    if repository != address:
        yield (
            f"This is {repository}, and the package says that it comes from {address}. Write the "
            "address into [project.urls] of pyproject.toml, CITATION.cff and recipe/recipe.yaml."
        )


if __name__ == "__main__":
    main()

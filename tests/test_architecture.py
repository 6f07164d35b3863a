"""ARCHITECTURE.md tells the truth: its files exist, and its layers are those that are checked."""

import re
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ocfuse"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def named_files():
    """Return all files and folders of the package that the page names, in full."""
    found = set()
    for paragraph in re.split(r"\n\s*\n|\n(?=\d\. |\| )", TEXT):
        folder = ""
        for word in re.findall(r"`([\w/]+(?:\.py|/))`", paragraph):
            # "`vision/fit.py`, `view.py`": the second is in the folder of the first, if any
            inside = (PACKAGE / folder / word).exists() and "/" not in word.rstrip("/")
            place = f"{folder}{word}" if inside else word
            folder = place[: place.rfind("/", 0, -1) + 1]
            found.add(place)
    return sorted(found - {"src/ocfuse/", "deploy/"})


def test_the_page_names_many_files():
    assert len(named_files()) > 60


@pytest.mark.parametrize("place", named_files())
def test_every_file_that_is_named_exists(place):
    assert (PACKAGE / place).exists()


def test_the_layers_are_those_that_are_checked():
    picture = TEXT.split("```")[1]
    drawn = [line[17:] for line in picture.splitlines() if re.match(r" \w", line)]
    drawn[0] = drawn[0].split("lab:")[0] + " lab"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    checked = [sorted(layer.replace(" ", "").split(":")) for layer in layers]
    assert [sorted(line.split()) for line in drawn] == checked


def test_every_command_and_folder_is_on_the_map():
    folders = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").exists()}
    assert {name for name in folders if not re.search(rf"\b{name}\b", TEXT)} == set()

"""The site holds every page and every public name, and its words agree with the code."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import ocfuse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Made when the site is built.
MADE = {"gallery", "generated", "templates"}
#: What has an `__all__` for other modules, and is nobody's entry.
INTERNAL = {"ocfuse.cli", "ocfuse.ensemble", "ocfuse.persistence"}
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages():
    """Return the pages that people have written, by their names below docs."""
    found = (path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
    return {page.with_suffix("").as_posix() for page in found if page.parts[0] not in MADE}


def listed():
    """Return the pages that stand in a table of contents."""
    names = set()
    for page in pages():
        folder = (DOCS / page).parent
        for block in TOCTREE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
            lines = [line.strip() for line in block.splitlines()]
            entries = [line for line in lines if line and not line.startswith(":")]
            places = [(folder / line).resolve().relative_to(DOCS) for line in entries]
            names |= {place.as_posix() for place in places}
    return names


def test_every_page_stands_in_a_table_of_contents_and_every_entry_is_there():
    there = pages() | {"gallery/index"}
    assert there - listed() == {"index"}
    assert listed() <= there


# -- the reference -------------------------------------------------------


def in_reference():
    """Return the names that the page of the reference lists."""
    return re.findall(r"^   (ocfuse[\w.]*)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.M)


def public_modules():
    """Return the modules that say what they make public."""
    modules = pkgutil.walk_packages(ocfuse.__path__, "ocfuse.")
    specs = {one.name: one.module_finder.find_spec(one.name) for one in modules}
    sources = {name: Path(spec.origin) for name, spec in specs.items()}
    written = {name: path for name, path in sources.items() if path.suffix == ".py"}
    return {name for name, path in written.items() if "\n__all__ = " in path.read_text("utf-8")}


def test_every_public_package_is_in_the_reference():
    missing = public_modules() - INTERNAL - set(in_reference())
    assert not missing, f"list them in docs/api.md: {sorted(missing)}"


@pytest.mark.parametrize("name", in_reference())
def test_every_name_of_the_reference_is_there(name):
    try:
        importlib.import_module(name)
    except ImportError:
        module, _, attribute = name.rpartition(".")
        owner = importlib.import_module(module)
        assert hasattr(owner, attribute)
        assert attribute not in getattr(owner, "__all__", ()), "its package lists it already"

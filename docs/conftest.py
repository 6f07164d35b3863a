"""Pages run in a folder of their own; those about data sets are skipped where there are none."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: Stands in the first line of a page that loads data sets.
MARK = "<!-- needs OCFUSE_DATA -->"


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


#: Where commands stand between the lines of Python, tests/test_tutorials.py runs both in order.
collect_ignore = [
    str(page.relative_to(HERE))
    for folder in ("tutorials", "howto")
    for page in HERE.glob(f"{folder}/*.md")
    if "```console" in _text(page)
]
#: What `make docs` writes beside the pages.
collect_ignore_glob = ["gallery/*", "generated/*"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def pytest_collection_modifyitems(items):
    """Skip pages whose data sets are not here."""
    if os.environ.get("OCFUSE_DATA"):
        return
    skip = pytest.mark.skip(reason="OCFUSE_DATA does not name the folder of the data sets")
    for item in items:
        if HERE in item.path.parents and _text(item.path).startswith(MARK):
            item.add_marker(skip)

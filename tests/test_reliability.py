"""The table of promises: each names a test that exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    line.strip().strip("|").split(" | ")
    for line in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| fault", "| **"))
]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_a_promise_is_shown_by_tests_that_exist(row):
    _, promise, shown = row
    named = NAMED.findall(shown)
    assert promise.strip()
    assert named
    assert NAMED.sub("", shown).strip(" ,") == ""
    assert [name for path, name in named if name not in names_in(path)] == []


def test_the_table_is_read():
    assert len(ROWS) > 30

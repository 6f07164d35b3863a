"""Bytes at the door of tables: those we wrote, those the fuzzer found, and any others."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.hardening.csv_door import knock

CASES = sorted((Path(__file__).parent / "csv").glob("*.csv"))
WORDS = (
    "flow",
    "kind",
    "when",
    "1",
    "2,5",
    "a",
    "",
    '"',
    "NA",
    "sep=;",
    "2024-03-01",
    "\0",
    "é",
    "\ufeff",
)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_known_bytes(path):
    knock(path.read_bytes())


@settings(
    max_examples=60, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=4), max_size=6),
    st.sampled_from([",", ";", "\t", "|", " "]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-8-sig"]),
)
def test_tables_of_any_words(rows, delimiter, end, encoding):
    knock(end.join(delimiter.join(row) for row in rows).encode(encoding))


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.binary(max_size=200))
def test_any_bytes(content):
    knock(content)

"""Warnings are told once each, with the rows of all chunks."""

import json
import uuid
import warnings

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from ocfuse.cli.output import collected, json_line, print_table
from ocfuse.exceptions import RowsWarning, TableWarning


def test_warnings_of_chunks_are_added_up():
    with collected() as notes:
        for chunk in range(3):
            warnings.warn(RowsWarning("Odd", 2, f"row {10 * chunk}"), stacklevel=1)
            warnings.warn("Extra\ncolumn", TableWarning, stacklevel=1)
        warnings.warn(RowsWarning("Even", 1, "row 7"), stacklevel=1)
    assert notes == ["Odd: 6 rows, the first of them row 0.", "Extra column", "Even: row 7."]


def test_no_name_is_cut_off(monkeypatch, capsys):
    monkeypatch.setattr("ocfuse.cli.output._console", lambda: Console(width=40))
    print_table(["name", "here"], [["a-name-of-25-characters-1", "/a/path/of/thirty/characters/x"]])
    shown = capsys.readouterr().out
    assert "a-name-of-25-characters-1" in shown
    assert "".join(line[27:].strip() for line in shown.splitlines()[1:]).endswith("characters/x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pd.NaT, None),
        (pd.NA, None),
        (np.nan, None),
        (b"\xff1", "\\xff1"),
        ("ä".encode(), "ä"),
        (pd.Timestamp("2024-01-01"), "2024-01-01T00:00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_json_of_what_tables_hold(value, expected):
    assert json.loads(json_line({"id": value})) == {"id": expected}

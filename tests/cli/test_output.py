"""Output: warnings once each, flags in place of settings, and no text that steers a terminal."""

import importlib
import inspect
import io
import json
import uuid
import warnings

import numpy as np
import pandas as pd
import pytest
import typer
from rich.console import Console

from ocfuse.cli.options import POOL_NAMES
from ocfuse.cli.output import (
    OTHER,
    SAME,
    collected,
    in_flags,
    json_line,
    print_at_once,
    print_fields,
    print_line,
    print_table,
    warn,
)
from ocfuse.cli.runtime import COMMANDS
from ocfuse.detectors.pool import POOLS
from ocfuse.exceptions import RowsWarning, TableWarning
from ocfuse.lab.bench import app as bench
from ocfuse.lab.paper import run_paper
from ocfuse.lab.paper.tables import write


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


ESCAPES = ["\x1b[2J", "\x9b2J", "\x07", "\r", "\x7f", "\u202e", "\ud800"]


class Terminal(io.StringIO):
    """What somebody looks at."""

    def isatty(self):
        return True


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_text_steers_a_terminal(escape, capsys):
    name = f"flow{escape}x"
    print_table([name], [[name]])
    print_fields([(name, name)])
    print_line(name)
    warn(name)
    shown = "".join(capsys.readouterr())
    assert escape not in shown
    assert shown.count(ascii(escape)[1:-1].replace("\\\\", "\\")) == 6


def test_lines_and_tabs_are_text_but_not_within_a_table(capsys):
    print_line("two\nlines\t.")
    assert capsys.readouterr().out == "two\nlines\t.\n"
    print_table(["a\nb"], [["c\td"]])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["a\\nb", "c\\td"]


def test_data_are_written_out_for_a_terminal_only(monkeypatch, capsys):
    print_at_once("id\x1b[2J\n")
    assert capsys.readouterr().out == "id\x1b[2J\n"
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    print_at_once("id\x1b[2J\n")
    assert terminal.getvalue() == "id\\x1b[2J\n"


def test_column_names_of_a_stranger_do_not_reach_the_terminal(tmp_path, run_command):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a\x1b[31m", "b"])
    frame.to_csv(tmp_path / "n.csv", index=False)
    model = tmp_path / "m.ocf"
    said = [run_command("fit", tmp_path / "n.csv", "-o", model, "--members", "knn-5")]
    said.append(run_command("inspect", model))
    said.append(run_command("explain", model, tmp_path / "n.csv", "--row", "0"))
    frame[["b"]].to_csv(tmp_path / "other.csv", index=False)
    said.append(run_command("score", model, tmp_path / "other.csv"))
    assert [code for code, *_ in said] == [0, 0, 0, 3]
    assert not any("\x1b" in out + err for _, out, err in said)
    assert all("\\x1b[31m" in said[i][1] + said[i][2] for i in (0, 1, 3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say decimal=',' for it.", "Say --decimal ',' for it."),
        ("for instance normal='ok'; all", "for instance --normal 'ok'; all"),
        ("Got label='id='.", "Got --label 'id='."),
        ('or leave them out with drift="drop", or', "or leave them out with --drift drop, or"),
        ("too few for false_alarm_rate=0.01: it", "too few for --false-alarms 0.01: it"),
        ("Raise false_alarm_rate, or", "Raise --false-alarms, or"),
        ("say so with y = +1: otherwise", "say so in a label column (--label): otherwise"),
        (
            "if rows are independent, calibrate without groups.",
            "if rows are independent, leave --group out.",
        ),
        ("comes first: by=['plant', 'machine'], or", "comes first: --by plant,machine, or"),
        ("by=['plant'] has", "--by plant has"),
        ("instance zone='Europe/Berlin'.", "instance --zone 'Europe/Berlin'."),
        ("'m' cannot be both by and direction.", "'m' cannot be in --by and in --high or --low."),
        (
            "'m' cannot be both ignore and limits.",
            "'m' cannot be in --ignore and in --above or --below.",
        ),
        # what is no setting stays: columns, English words
        ("Column 'time' is missing", "Column 'time' is missing"),
        ("column my_label=3", "column my_label=3"),
        ("'decimal=1'", "'decimal=1'"),
    ],
)
def test_settings_become_flags(text, expected):
    assert in_flags(text) == expected


def test_the_flags_exist():
    command = typer.main.get_command(importlib.import_module(COMMANDS["fit"][0]).app)
    flags = {flag for param in command.params for flag in param.opts}
    assert {f"--{name}" for name in SAME} | set(OTHER.values()) <= flags


def test_what_the_help_says_without_the_library_is_true():
    assert set(POOL_NAMES) == set(POOLS)
    defaults = {p.name: p.default for p in bench_parameters()}
    for name, function in (("seeds", run_paper), ("others", write)):
        assert defaults[name] == inspect.signature(function).parameters[name].default


def bench_parameters():
    return typer.main.get_command(bench).commands["paper"].params

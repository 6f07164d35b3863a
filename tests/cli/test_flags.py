"""Advice of the library reaches the command line as flags that exist."""

import importlib
import inspect

import pytest
import typer

from ocfuse.cli.options import POOL_NAMES
from ocfuse.cli.output import OTHER, SAME, in_flags
from ocfuse.cli.runtime import COMMANDS
from ocfuse.detectors.pool import POOLS
from ocfuse.lab.bench import app as bench
from ocfuse.lab.paper import run_paper
from ocfuse.lab.paper.tables import write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say decimal=',' for it.", "Say --decimal ',' for it."),
        ("for instance normal='ok'; all", "for instance --normal 'ok'; all"),
        ("Got label='id='.", "Got --label 'id='."),
        ("too few for false_alarm_rate=0.01: it", "too few for --false-alarms 0.01: it"),
        ("Raise false_alarm_rate, or", "Raise --false-alarms, or"),
        ("say so with y = +1: otherwise", "say so in a label column (--label): otherwise"),
        (
            "if rows are independent, calibrate without groups.",
            "if rows are independent, leave --group out.",
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
    for name, function in (("seeds", run_paper), ("ablation", write)):
        assert defaults[name] == inspect.signature(function).parameters[name].default


def bench_parameters():
    return typer.main.get_command(bench).commands["paper"].params

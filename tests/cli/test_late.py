"""Commands that are imported late: known to the help, and paid for only when called."""

import importlib
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from ocfuse.cli.app import app
from ocfuse.cli.options import TABLES
from ocfuse.cli.runtime import COMMANDS

CODE = (
    "import sys; from ocfuse.cli.app import app; "
    "[app(arguments, standalone_mode=False) for arguments in {!r}]; "
)
CHECK = "assert not {'sklearn', 'scipy', 'matplotlib', 'pandas'} & set(sys.modules)"


def shown_help():
    """Return the help of the command without its frame."""
    return " ".join(CliRunner().invoke(app, ["--help"]).output.replace("│", " ").split())


@pytest.mark.slow
def test_no_help_imports_what_takes_long():
    helps = [[name, "--help"] for name in COMMANDS]
    asked = [["data", "list"], ["--help"], *helps, ["bench", "paper", "--help"]]
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(asked) + CHECK],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage:") == len(asked) - 1


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_all_commands_tells_what_their_own_tells(name):
    module = importlib.import_module(COMMANDS[name][0])
    assert typer.main.get_command(module.app).help.startswith(COMMANDS[name][1])
    assert COMMANDS[name][1] in shown_help()
    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


def test_groups_run():
    shown = CliRunner().invoke(app, ["bench", "paper", "--help"])
    assert shown.exit_code == 0
    assert "--quick" in shown.output


def test_commands_that_may_have_a_table_in_the_file_of_settings():
    options = {
        name: {
            param.name
            for param in typer.main.get_command(
                importlib.import_module(COMMANDS[name][0]).app
            ).params
        }
        for name in COMMANDS
    }
    assert {name for name in COMMANDS if "config" in options[name]} == set(TABLES) & set(COMMANDS)


@pytest.mark.slow
def test_a_missing_package_names_the_extra():
    code = "import sys; sys.modules['pandas'] = None; from ocfuse.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "score", "m", "d"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "Error: pandas is needed for this command. Install it with: pip install 'ocfuse[tool]'\n"
    )


def test_a_wrong_name_is_met_with_the_right_one():
    result = CliRunner().invoke(app, ["scor"])
    assert result.exit_code == 2
    assert "'score'" in result.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ocfuse in", "inspect"),
        ("ocfuse score --fail-on", "--fail-on-anomaly"),
        ("ocfuse fit --win", "--windows"),
        ("ocfuse fit --video a --top", "--topic"),
        ("ocfuse watch m --video a --min-f", "--min-frames"),
    ],
)
def test_shell_completion(words, expected):
    result = CliRunner().invoke(
        app,
        [],
        prog_name="ocfuse",
        env={
            "_OCFUSE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
            "_TYPER_COMPLETE_TESTING": "True",
        },
    )
    assert result.exit_code == 0
    assert result.output.split() == [expected]

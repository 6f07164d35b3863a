"""The command itself: version, help, exit codes, late imports, and life without its extra."""

import importlib
import os
import signal
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import ocfuse
from ocfuse.cli import data as data_module
from ocfuse.cli import main
from ocfuse.cli.app import app, run
from ocfuse.cli.options import TABLES
from ocfuse.cli.runtime import COMMANDS
from ocfuse.system.packages import install_line
from tests.cli.cases import MAIN, process


def command(*arguments, code=MAIN, **environment):
    """Run the console script's function in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"ocfuse {ocfuse.__version__}\n")


def test_the_package_runs_as_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "ocfuse", "--version"], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (f"ocfuse {ocfuse.__version__}\n", "")


def test_help_names_the_groups():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "data" in result.stdout


@pytest.mark.slow
def test_real_process(tmp_path):
    environment = {"OCFUSE_DATA": str(tmp_path), "OCFUSE_CACHE": str(tmp_path)}
    done = command("data", "show", "wine", **environment)
    assert done.returncode == 0
    assert "Aeberhard" in done.stdout
    assert done.stderr == ""
    done = command("data", "show", "wein", **environment)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("Error: name must be a known name. Got 'wein'")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="streams are closed by a POSIX shell")
@pytest.mark.parametrize(
    ("closed", "arguments", "expected"),
    [
        (">&-", ["--version"], (3, "Error: Bad file descriptor\n")),
        ("2>&-", ["data", "show", "wein"], (3, "")),
        (">&- 2>&- <&-", ["data", "show", "wein"], (3, "")),
    ],
)
def test_closed_streams_are_no_internal_error(closed, arguments, expected):
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, "-c", MAIN, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == expected


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_missing_extra(package):
    code = f"import sys; sys.modules[{package!r}] = None; {MAIN}"
    done = command("--version", code=code)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"{package} is needed for the command ocfuse. Install it with: {install_line('tool')}\n"
    )


def test_error_of_ours(monkeypatch, capsys):
    def break_down():
        raise KeyError("surprise")

    monkeypatch.setattr(data_module, "list_datasets", break_down)
    with pytest.raises(SystemExit) as caught:
        run(["data", "list"])
    assert caught.value.code == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Internal error: KeyError: 'surprise'.")
    monkeypatch.setenv("OCFUSE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run(["data", "list"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "/x/y"), "Error: /x/y: Permission denied"),
        (OSError("no way"), "Error: no way"),
        (MemoryError(), "Error: not enough memory."),
    ],
)
def test_errors_of_the_system(monkeypatch, capsys, error, words):
    def break_down():
        raise error

    monkeypatch.setattr(data_module, "list_datasets", break_down)
    with pytest.raises(SystemExit) as caught:
        run(["data", "list"])
    assert caught.value.code == 3
    assert capsys.readouterr().err.startswith(words)


def test_ctrl_c(monkeypatch, capsys):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(data_module, "list_datasets", stop)
    with pytest.raises(SystemExit) as caught:
        run(["data", "list"])
    assert caught.value.code == 130
    assert capsys.readouterr().err == ""


def test_ctrl_c_before_anything_is_there(monkeypatch):
    def stop(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", stop)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130


@pytest.mark.slow
def test_a_reader_that_went_away(plant_folder):
    done = process("score", plant_folder / "model.ocf", plant_folder / "new.csv", "--quiet")
    done.stdout.close()
    assert done.stderr.read() == ""
    assert done.wait() == 141
    done.stderr.close()


def test_sigterm_unwinds_and_its_handler_is_put_back(monkeypatch, capsys):
    before = signal.getsignal(signal.SIGTERM)
    unwound = []

    def be_terminated():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            unwound.append(True)

    monkeypatch.setattr(data_module, "list_datasets", be_terminated)
    with pytest.raises(SystemExit) as caught:
        run(["data", "list"])
    assert caught.value.code == 143
    assert unwound == [True]
    assert signal.getsignal(signal.SIGTERM) == before


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
        f"Error: pandas is needed for this command. Install it with: {install_line('tool')}\n"
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

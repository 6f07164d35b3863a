"""The command itself: version, help, exit codes, and life without its extra."""

import importlib
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import ocfuse
from ocfuse.cli import app as module
from ocfuse.cli import data as data_module
from ocfuse.cli import main
from ocfuse.cli.app import app, run
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
        f"{package} is needed for the command ocfuse. Install it with: pip install 'ocfuse[tool]'\n"
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
    monkeypatch.setenv(module.TRACEBACK_VARIABLE, "1")
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

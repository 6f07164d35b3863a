"""The command itself: version, help, exit codes, and life without its extra."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import ocfuse
from ocfuse.cli import app as module
from ocfuse.cli import data as data_module
from ocfuse.cli.app import app, run

MAIN = "from ocfuse.cli import main; main()"


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

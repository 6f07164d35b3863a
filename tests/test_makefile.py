"""The commands that the documents promise exist."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from supply import install

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", ".ci/run"])
def test_promised_targets_exist(document):
    promised = set(re.findall(r"\bmake ([a-z][a-z-]*)", (ROOT / document).read_text()))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert promised
    assert promised <= targets


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_help_lists_every_target():
    # `make test` runs this test too: the make in here must not feel like a child of it
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    command = [MAKE, "--no-print-directory", "help"]
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [line.split()[0] for line in result.stdout.splitlines()] == phony[1].split()


@pytest.fixture
def planned(tmp_path):
    """Return what tells the commands that make would run in a folder with a space in its name."""
    folder = tmp_path / "a clone"
    (folder / ".venv").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "setup.py"):
        shutil.copy(ROOT / name, folder / name)
    (tmp_path / "python").symlink_to(sys.executable)
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}

    def plan(target, *marks, uv=""):
        for name, text in marks:
            (folder / ".venv" / name).write_text(text)
        command = [
            MAKE,
            "--no-print-directory",
            "-n",
            target,
            f"UV={uv}",
            "PYTHON=../python",
        ]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    plan.finished = f"{folder} {sys.version.split()[0]}\n"
    return plan


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
class TestInstallation:
    def test_the_demo_installs_little(self, planned):
        said = planned("demo")
        assert re.findall(r"-e '(.*)'", said) == [".[tool]"]
        assert said.index("--no-deps") < said.index("ocfuse demo")
        assert "--anew" not in said

    def test_tests_add_the_rest_to_what_the_demo_has(self, planned):
        marks = (".dependencies", planned.finished), (".kernel", "")
        assert "install.py" not in planned("demo", *marks)
        said = planned("test-fast")
        (extras,) = re.findall(r"-e '\.\[(.*)\]'", said)
        assert {"dev", "plot", "rivals", "serve", "tool"} <= set(extras.split(","))
        assert "--no-deps" not in said

    @pytest.mark.parametrize(
        "mark", [(".unfinished", ""), (".dependencies", "/elsewhere 3.11.7\n")]
    )
    def test_an_environment_that_cannot_be_trusted_is_made_anew(self, planned, mark):
        marks = (".dependencies", planned.finished), (".kernel", ""), mark
        assert "environment --anew" in planned("demo", *marks)

    def test_uv_is_used_if_it_is_there(self, planned):
        assert "--uv '/a folder/uv' packages" in planned("demo", uv="/a folder/uv")


def test_an_installer_that_fails_is_heard(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(install, "VENV", tmp_path)
    code = "import sys; print('no such package'); sys.exit(3)"
    assert install.run([sys.executable, "-c", code], "it") == 3
    told = capsys.readouterr()
    assert (told.out, told.err) == ("Installing it ...\n", "no such package\n\n")


def test_a_line_says_how_far_an_installation_is(monkeypatch, tmp_path, capsys):
    (tmp_path / "lib/python3.11/site-packages/numpy-2.dist-info").mkdir(parents=True)
    monkeypatch.setattr(install, "VENV", tmp_path)
    monkeypatch.setattr(install, "PAUSE", 0.001)
    code = "import time; print('Collecting\\n scipy', flush=True); time.sleep(1)"
    assert install.run([sys.executable, "-c", code], "it") == 0
    assert "1 packages so far. scipy\n" in capsys.readouterr().out


@pytest.mark.parametrize("uv", ["", "/bin/uv"])
def test_both_installers_take_the_arguments_of_pip(monkeypatch, uv):
    ran = []
    monkeypatch.setattr(install, "run", lambda command, words: ran.append((command, words)))
    monkeypatch.setattr(sys, "argv", ["", "--uv", uv, "packages", "it", "--no-deps", "-e", "."])
    install.main()
    ((command, words),) = ran
    assert command[-5:] == ["-c", "constraints.txt", "--no-deps", "-e", "."]
    assert words == ("it, by uv" if uv else "it, by pip")
    assert ("uv" in command[0]) == bool(uv)


def test_constraints_name_only_versions():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", pin) for pin in pins)

"""The commands that the documents promise exist."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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


def test_constraints_name_only_versions():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", pin) for pin in pins)

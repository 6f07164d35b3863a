"""Commands import what they need, and no more: counted, as times depend on the machine."""

import json
import os
import subprocess
import sys

import pytest

#: Packages that take long to import, and that no row needs to be scored.
NOT_NEEDED = {
    *("dask", "distributed", "fastapi", "jinja2", "matplotlib", "onnxruntime", "polars", "pyod"),
    *("scipy.cluster", "skops", "torch", "uvicorn", "cv2", "ocfuse.bench", "ocfuse.serve"),
}
RUN = """
import json, sys
from ocfuse.cli.app import run
try:
    run(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps(list(sys.modules)), file=sys.stderr)
"""


def imported(*arguments):
    """Return what a command has imported when it ends."""
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return set(json.loads(told.stderr.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "score", "score --json"])
def test_a_command_starts_without_what_it_does_not_need(plant_folder, tmp_path, command):
    name, *flags = command.split()
    files = [plant_folder / "model.ocf"]
    files += [] if name == "inspect" else [plant_folder / "new.csv", "-o", tmp_path / "s.csv"]
    modules = imported(name, *files, *flags)
    assert "ocfuse.tables" in modules
    assert not NOT_NEEDED & modules


def test_the_help_needs_no_numbers_at_all():
    assert not {"numpy", "sklearn", "pandas"} & imported("score", "--help")

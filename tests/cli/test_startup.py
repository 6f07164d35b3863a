"""Commands import what they need, and no more: counted, as times depend on the machine."""

import json
import os
import subprocess
import sys

import pytest

#: Packages that take long to import, and that no row needs to be scored.
NOT_NEEDED = {
    *("dask", "distributed", "fastapi", "jinja2", "matplotlib", "onnxruntime", "polars", "pyod"),
    *("numpy.f2py", "numpy.testing", "scipy.cluster", "scipy.ndimage", "scipy.optimize"),
    *("scipy.stats", "skops", "torch", "uvicorn", "cv2"),
    *("ocfuse.lab.paper", "ocfuse.serve", "ocfuse.vision"),
}
#: What members and fusions learn by, and what the file of a model that has it needs.
FOR_LEARNING = {
    f"sklearn.{part}"
    for part in (
        *("cluster", "decomposition", "ensemble", "isotonic", "linear_model", "metrics"),
        *("mixture", "model_selection", "neighbors", "pipeline", "preprocessing", "svm", "tree"),
    )
}
#: What only rows need, not what is known of a model.
FOR_ROWS = {"pandas", "pyarrow", "scipy.spatial"}
RUN = """
import json, sys
from ocfuse.cli.app import run
try:
    run(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps(list(sys.modules)), file=sys.stderr)
"""
SAID = "import json, sys; print(json.dumps(list(sys.modules)), file=sys.stderr)"


def imported(*arguments, code=RUN):
    """Return what a command, or other code, has imported when it ends."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return set(json.loads(told.stderr.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "inspect --json", "score", "score --json"])
def test_a_command_starts_without_what_it_does_not_need(plant_folder, tmp_path, command):
    name, *flags = command.split()
    files = [plant_folder / "model.ocf"]
    files += [] if name == "inspect" else [plant_folder / "new.csv", "-o", tmp_path / "s.csv"]
    modules = imported(name, *files, *flags)
    assert "ocfuse.tables" in modules
    assert not (NOT_NEEDED | FOR_LEARNING) & modules
    assert (name == "inspect") is not bool(FOR_ROWS & modules)
    if command == "score":  # it prints no table for the terminal
        assert "rich.table" not in modules


@pytest.mark.slow
def test_the_help_needs_no_numbers_at_all():
    assert not {"numpy", "sklearn", "pandas"} & imported("score", "--help")
    assert not {"numpy", "sklearn", "pandas"} & imported("--help")


def test_the_package_is_imported_without_numbers():
    assert not {"numpy", "sklearn", "pandas"} & imported(code=f"import ocfuse; {SAID}")


@pytest.mark.slow
def test_the_detector_is_imported_without_what_it_learns_by():
    modules = imported(code=f"from ocfuse import FusedDetector; {SAID}")
    assert "sklearn.base" in modules
    assert not FOR_LEARNING & modules
    assert not {"matplotlib", "skops", "ocfuse.tables", "ocfuse.vision"} & modules
    assert not {"ocfuse.persistence", "ocfuse.report", "ocfuse.ensemble.report"} & modules

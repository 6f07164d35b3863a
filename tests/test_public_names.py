"""The public surface is what `__all__` says, and importing it stays light."""

import subprocess
import sys
from types import ModuleType

import pytest

import ocfuse
import ocfuse.datasets
import ocfuse.detectors
import ocfuse.distributed
import ocfuse.ensemble
import ocfuse.fusion
import ocfuse.lab.paper
import ocfuse.lab.rivals
import ocfuse.lab.robot_cell
import ocfuse.negatives
import ocfuse.onnx
import ocfuse.report
import ocfuse.scores
import ocfuse.serve
import ocfuse.solvers
import ocfuse.stats
import ocfuse.streaming
import ocfuse.tables
import ocfuse.tuning
import ocfuse.vision
from ocfuse.system.packages import install_line

PACKAGES = [
    ocfuse,
    ocfuse.lab.paper,
    ocfuse.lab.rivals,
    ocfuse.datasets,
    ocfuse.detectors,
    ocfuse.distributed,
    ocfuse.ensemble,
    ocfuse.fusion,
    ocfuse.negatives,
    ocfuse.onnx,
    ocfuse.report,
    ocfuse.lab.robot_cell,
    ocfuse.scores,
    ocfuse.serve,
    ocfuse.solvers,
    ocfuse.stats,
    ocfuse.streaming,
    ocfuse.tables,
    ocfuse.tuning,
    ocfuse.vision,
]


def visible_names(module: ModuleType) -> set[str]:
    """Public names that are not modules, which any import makes visible."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_all_equals_what_is_visible(module):
    assert all(isinstance(name, str) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__) <= 18
    assert all(hasattr(module, name) for name in module.__all__)
    public = {name for name in module.__all__ if not name.startswith("_")}
    assert visible_names(module) <= public <= set(dir(module))


def test_root_names():
    assert {"FusedDetector", "load", "show_versions"} <= set(ocfuse.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        ocfuse.nonsense  # noqa: B018


def test_solver_names():
    expected = {"BatchSolution", "Solution", "Status", "solve", "solve_batch"}
    assert expected <= set(ocfuse.solvers.__all__)


@pytest.mark.parametrize("module", ["ocfuse", "ocfuse.solvers"])
def test_import_leaves_heavy_packages_alone(module):
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(result.stdout.split())
    assert ("numpy" in loaded) == (module == "ocfuse.solvers")
    assert not loaded & {"sklearn", "pandas", "matplotlib", "joblib", "cvxpy"}


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [("fastapi", "ocfuse.serve", "serve"), ("pydantic", "ocfuse.mcp", "mcp")],
)
def test_a_module_whose_extra_is_missing_names_it(package, module, extra):
    code = f"import sys; sys.modules[{package!r}] = None; import {module}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    told = result.stderr.splitlines()[-1]
    assert told.startswith(f"ocfuse.exceptions.MissingPackageError: {package} is needed")
    assert told.endswith(install_line(extra))

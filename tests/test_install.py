"""The package installs with and without a compiler, and says which."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ocfuse.kernels import kernel
from ocfuse.solvers import native, solve

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "src")

NO_COMPILER = {"CC": "false", "CXX": "false"}
LEFT_OUT = {"OCFUSE_NO_NATIVE": "1"}


def run(*arguments, cwd, **environment):
    """Run this Python, offline, and return what it printed."""
    result = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    return output


def copy_sources(folder):
    """Copy what a clone holds, without what a build has left behind."""
    folder.mkdir()
    ignore = shutil.ignore_patterns("*.so", "*.pyd", "*.egg-info", "__pycache__")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def build_wheel(source, target, **environment):
    """Build a wheel offline; return it unpacked, and what the build said."""
    output = run(
        *("-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", target, source),
        cwd=source,
        **environment,
    )
    (wheel,) = target.glob("ocfuse-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target / "site")
    return target / "site", output


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    source = copy_sources(folder / "clone")
    code = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    run("-c", code, cwd=source, **LEFT_OUT)
    (archive,) = (source / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (unpacked,) = folder.glob("ocfuse-*")
    return unpacked


def test_sdist_holds_the_kernel_sources(sdist):
    files = [path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.[ch]pp")]
    assert files
    assert [path for path in files if not (sdist / path).exists()] == []


needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler here"
)


@needs_compiler
def test_kernel_is_built_where_there_is_a_compiler():
    # without this the other tests would quietly run on the NumPy twin alone
    assert native.is_available(), native.describe()
    assert kernel is not None


@pytest.fixture
def quick_compiler(tmp_path):
    """Return a compiler that optimises nothing, and does not take one kernel of the two."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    script = tmp_path / "quick"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *ocfuse/kernels/*) exit 1;; esac\n'
        f'exec "{compiler}" "$@" -O0 -g0\n'
    )
    script.chmod(0o755)
    return {"CC": str(script), "CXX": str(script)}


@needs_compiler
def test_wheel_with_one_kernel(sdist, tmp_path, quick_compiler):
    """Both take half a minute; that they compile is seen where this package is installed."""
    source = Path(shutil.copytree(sdist, tmp_path / "source"))
    site, output = build_wheel(source, tmp_path / "wheel", **quick_compiler)
    assert "the C++ kernel ocfuse.kernels._native could not be built" in output
    assert "the C++ kernel ocfuse.solvers._native could not be built" not in output
    code = (
        "import ocfuse; from ocfuse.solvers import solve; ocfuse.show_versions()\n"
        "from ocfuse.kernels import kernel; print(kernel)\n"
        "print(ocfuse.__file__, solve([[0.2, 0.1]], [1], 2, backend='native').w.tolist())"
    )
    shown = run("-c", code, cwd=tmp_path, PYTHONPATH=str(site)).splitlines()
    assert str(site) in shown[-1]
    assert str(solve([[0.2, 0.1]], [1], 2).w.tolist()) in shown[-1]
    assert shown[-2] == "None"
    assert "C++ kernel      C++" in shown[-3]


@pytest.mark.parametrize("environment", [NO_COMPILER, LEFT_OUT], ids=["no compiler", "left out"])
def test_wheel_without_kernel(sdist, tmp_path, environment):
    source = Path(shutil.copytree(sdist, tmp_path / "source"))
    site, output = build_wheel(source, tmp_path / "wheel", **environment)
    assert "ocfuse: the C++ kernel" in output
    names = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert not [name for name in names if "_native" in name]
    assert not [name for name in names if name.endswith((".cpp", ".h", ".hpp"))]
    assert {"ocfuse/__init__.py", "ocfuse/py.typed", "ocfuse/solvers/native.py"} <= names

    code = "import ocfuse; print(ocfuse.__file__); ocfuse.show_versions()"
    shown = run("-c", code, cwd=tmp_path, PYTHONPATH=str(site)).splitlines()
    assert Path(shown[0]).is_relative_to(site)
    assert shown[-1].startswith("C++ kernel")
    assert "not built" in shown[-1]

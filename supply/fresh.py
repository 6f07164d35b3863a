"""Install a wheel where nothing else is, in every Python at hand, and use it.

``python -m supply.fresh dist/ocfuse-0.1.0-...whl [PYTHON ...]`` makes an environment for each
Python, installs the best wheel of that folder for it with the newest versions of all that it needs,
asks for the kernels, runs the demo and a slice of the tests. Any Python from 3.11 on runs it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from supply.pins import ROOT
from supply.pythons import at_hand, tell_version

#: Tests that touch the kernels, the estimator, the command and model files, in a minute.
SLICE = (
    "tests/solvers/test_native.py",
    "tests/kernels",
    "tests/nearest",
    "tests/test_encoder.py",
    "tests/cli/test_fit.py",
    "tests/cli/test_score.py",
    "tests/persistence/test_file.py",
)
#: What these tests need beyond the package.
AROUND = ("hypothesis", "numpydoc", "polars", "pytest")
#: The last scikit-learn for Python 3.10 gives pytest what the next pytest refuses.
THEIRS = ("-W", "ignore::pytest.PytestRemovedIn10Warning")
ASK = "from ocfuse import kernels; from ocfuse.solvers import native; "
ASK += "print(native.describe(), kernels.describe(), sep=' and ')"


def main() -> int:
    """Use the wheels in every Python; return 1 if something fails."""
    parser = argparse.ArgumentParser(prog="python -m supply.fresh")
    parser.add_argument("folder", type=Path, help="where the wheels are, such as dist")
    parser.add_argument("pythons", nargs="*", help="interpreters; by default all that are found")
    parser.add_argument("--no-kernels", action="store_true", help="install the wheel for everybody")
    chosen = parser.parse_args()
    pythons = {tell_version(Path(one)): Path(one) for one in chosen.pythons} or at_hand()
    failed = [
        version
        for version, python in pythons.items()
        if not serves(version, python, chosen.folder.resolve(), not chosen.no_kernels)
    ]
    print(f"Pythons: {', '.join(pythons)}. Failed: {', '.join(failed) or 'none'}.")
    return 1 if failed or not pythons else 0


def serves(version: str, python: Path, folder: Path, has_kernels: bool) -> bool:
    """Return whether a Python installs a wheel of a folder and does what it should with it."""
    print(f"Python {version} ({python})", flush=True)
    with tempfile.TemporaryDirectory(prefix="ocfuse-fresh-") as place:
        inside = Path(place) / "venv" / "bin" / "python"
        pip = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        wheels = sorted(folder.glob("ocfuse-*-none-any.whl"))
        one = ("--find-links", folder, "ocfuse[tool]") if has_kernels else (f"{wheels[0]}[tool]",)
        steps = {
            "environment": (python, "-m", "venv", inside.parent.parent),
            "installation": (*pip, "--only-binary", ":all:", *one, *AROUND),
            "demo": (inside.with_name("ocfuse"), "demo"),
            "tests": (inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *THEIRS, *SLICE),
        }
        for name, command in steps.items():
            done = run(command, place)
            if done.returncode:
                print(f"  {name} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
                return False
            if name == "installation":
                told = run((inside, "-c", ASK), place).stdout.strip()
                print(f"  {told}", flush=True)
                if has_kernels != told.startswith("C++"):
                    return False
        print(f"  {done.stdout.strip().splitlines()[-1]}", flush=True)
    return True


def run(command: tuple[object, ...], place: str) -> subprocess.CompletedProcess[str]:
    """Run a command, tests where they are and all others where nothing is."""
    cwd = ROOT if "pytest" in command else place
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=variables | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())

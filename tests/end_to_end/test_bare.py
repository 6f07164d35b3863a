"""The wheel beside nothing but what it requires: no extra is there."""

import os
import subprocess
import sys
from importlib.metadata import distribution

import pytest
from packaging.requirements import Requirement

from ocfuse import __version__

USE = """\
import sys
import numpy as np
import ocfuse
from ocfuse.exceptions import MissingPackageError

X = np.random.default_rng(0).normal(size=(80, 3))
detector = ocfuse.FusedDetector("light", random_state=0).fit(X)
detector.save("model.ocf")
again = ocfuse.load("model.ocf")
assert (again.score_samples(X[:9]) == detector.score_samples(X[:9])).all()
assert again.predict([[0, 0, 0], [9, 9, 9]]).tolist() == [1, -1]
assert np.isfinite(again.explain(X[:2]).score).all()
absent = ("pandas", "matplotlib", "jinja2", "pyarrow", "dask", "av", "fastapi", "pybullet")
assert not [name for name in absent if name in sys.modules]
try:
    again.report(X)
except MissingPackageError as error:
    print(error)
print(ocfuse.__file__, ocfuse.__version__)
"""


def required(name):
    """Return a distribution and all that it needs, without extras, by name."""
    found, waiting = {}, [name]
    while waiting:
        dist = distribution(waiting.pop())
        if dist.name not in found:
            found[dist.name] = dist
            needs = [Requirement(line) for line in dist.requires or ()]
            waiting += [r.name for r in needs if not r.marker or r.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def bare(ocfuse, tmp_path_factory):
    """Return what runs Python where only the wheel is, and what it requires."""
    wheel = ocfuse.folder.parent / "wheel" / "site"
    beside = tmp_path_factory.mktemp("bare")
    dists = required("ocfuse")
    del dists["ocfuse"]
    for dist in dists.values():
        for top in {file.parts[0] for file in dist.files} - {"..", "__pycache__", "bin"}:
            if not (beside / top).exists():
                (beside / top).symlink_to(dist.locate_file(top))
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{wheel}{os.pathsep}{beside}"}

    def run(code, *arguments, cwd):
        return subprocess.run(
            [sys.executable, "-S", "-c", code, *map(str, arguments)],
            cwd=cwd,
            env=variables | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    run.wheel, run.packages = wheel, set(dists)
    return run


def test_it_fits_scores_saves_and_loads(bare, tmp_path):
    assert {"numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "skops"} <= bare.packages
    assert not bare.packages & {"pandas", "pyarrow", "matplotlib", "dask", "fastapi", "pytest"}
    told = bare(USE, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    missing, where = told.stdout.splitlines()
    assert "pip install 'ocfuse[tool]'" in missing
    assert where == f"{bare.wheel}/ocfuse/__init__.py {__version__}"


def test_the_command_names_the_extra(bare, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    told = bare("from ocfuse.cli import main; main()", "fit", "a.csv", cwd=tmp_path)
    assert told.returncode == 2, told.stderr
    assert "pip install 'ocfuse[tool]'" in told.stderr
    assert "Traceback" not in told.stderr

"""Mutated model files, some of those that `make fuzz` loads; and what watches over them."""

import os
import subprocess
import sys

import pytest

from benchmarks.hardening.model_files import ROOT, bad, hunted
from benchmarks.hardening.models import write_models

N_MUTANTS = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


def test_mutants_are_refused_or_loaded(folder):
    found = hunted(folder, 0, N_MUTANTS)
    assert not bad(found)
    assert len(found) == N_MUTANTS
    assert {"refused", "loaded, scores as before"} <= {one["ended"] for one in found}


def test_a_process_that_crashes_names_its_seed(folder, monkeypatch):
    crash = [sys.executable, "-c", "import os; print(7, flush=True); os.abort()"]
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **how: real(crash, **how))
    (one,) = hunted(folder, 0, 9)
    assert (one["ended"], one["seed"]) == ("crash", "7")
    assert bad([one])


ACTS = {
    "os.system": "os.system('true')",
    "subprocess.Popen": "subprocess.Popen(['true'])",
    "open": "open('written', 'w')",
    "socket.__new__": "socket.socket()",
    "import": "import antigravity_of_a_stranger",
    "exec": "exec('x = 1')",
    "pickle.find_class": "pickle.loads(pickle.dumps(os.getcwd))",
}
WATCHED = """
import os, pickle, socket, subprocess
from benchmarks.hardening.guard import Guard
guard = Guard()
with guard.watching() as acts:
    try:
        {act}
    except PermissionError:
        pass
assert acts and acts[0].startswith({name!r}), acts
"""


@pytest.mark.parametrize("name", ACTS)
def test_the_guard_notices(name, tmp_path):
    """In a process of its own: a hook cannot be taken away."""
    code = WATCHED.format(act=ACTS[name], name=name)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert not list(tmp_path.iterdir())

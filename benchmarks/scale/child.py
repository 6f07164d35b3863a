"""Tasks in processes of their own, measured once as long as nothing has changed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.scale.task import Task
from ocfuse.lab.paper.runner import code_digest, definition_key, package_sources
from ocfuse.system.files import write_atomically

FOLDER = Path(benchmarks.__file__).parent
CACHE = FOLDER.parent / ".bench-cache" / "scale"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Lets the allocator of the C library keep what it has, in one heap that never shrinks.
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}
#: Parts of the package that fits and scores depend on.
LEARNING = (
    *("compiled", "detectors", "ensemble", "features.py", "fusion", "nearest"),
    *("negatives", "scores", "solvers", "system", "threads.py", "tuning"),
)
#: What only plans does not change what is measured.
PLANNING = {"memory.py", "plan.py"}
#: How a failure begins that is one of time or memory.
LIMIT = "more than"
Found = dict[str, Any]


def run_task(task: Task, *, again: bool = False) -> Found:
    """Return what a task has measured: stored, or from a process of its own."""
    path = CACHE / f"{_key(task)}.json"
    if path.exists() and not again:
        found: Found = json.loads(path.read_text())
        return found
    keeping = KEEPING if task.warm else {}
    found = run_child("benchmarks.scale.task", [json.dumps(asdict(task))], task.threads, keeping)
    if found.get("failure") == "time":
        found["failure"] = f"{LIMIT} {task.cpu} CPU s"
    print(_line(task, found), flush=True)
    # a crash may be mended; what took too much would take it again
    if found.get("failure", LIMIT).startswith(LIMIT):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"task": asdict(task), **found}, indent=1).encode())
    return found


def run_child(
    module: str, words: Sequence[str], threads: int = 1, more: Mapping[str, str] | None = None
) -> Found:
    """Run a module that prints JSON as its last line, with `more` in its environment."""
    environment = os.environ | dict.fromkeys(THREADS, str(threads)) | dict(more or {})
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        capture_output=True,
        text=True,
        env=environment,
        cwd=FOLDER.parent,
        check=False,
    )
    if done.returncode == -signal.SIGXCPU:
        return {"failure": "time"}
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or ["killed"])[-1][:160]}
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def learning_sources() -> list[Path]:
    """Return the sources that fits and scores depend on."""
    return [path for path in package_sources(LEARNING) if path.name not in PLANNING]


@cache
def code_of(is_ours: bool) -> str:
    """Return a digest of the code that results depend on."""
    paths = [FOLDER / "scale" / name for name in ("data.py", "task.py")]
    packages = ["numpy", "scipy", "scikit-learn"]
    if is_ours:
        paths += [FOLDER / "scale" / "systems.py", *learning_sources()]
    else:
        paths += [FOLDER / "scale" / "rivals.py", FOLDER / "scale" / "ensembles.py"]
        packages += ["pyod"]
    return definition_key(code_digest(paths), *map(version, packages))


def _key(task: Task) -> str:
    is_ours = task.system.startswith("ocfuse")
    return definition_key(json.dumps(asdict(task)), code_of(is_ours))


def _line(task: Task, found: Found) -> str:
    what = f"{task.system}, {task.n:,} x {task.m}"
    if "failure" in found:
        return f"{what}: {found['failure']}"
    fit, peak = found["fit"]["cpu"], found["peak"] / 1e6
    return f"{what}: fit {fit:.2f} CPU s, {peak:,.0f} MB, AUC {found.get('auc', 0):.2f}"

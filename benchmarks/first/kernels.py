"""Part "kernels": CPU seconds to compile the kernels, and how fast they are, before and now."""

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.report import ROOT, Data, Report, Table, Target
from benchmarks.timing import geometric_mean, samples
from ocfuse.nearest import quantised
from ocfuse.nearest.index import NeighbourIndex

#: The last commit whose kernels were bound by pybind11, and what that needs.
BEFORE = "ceb9a73"
TOOLS = ("setuptools==84.2.1", "pybind11==3.1.0")
COMPILATIONS, ROUNDS = 5, 15
CPU_SECONDS = 15.0
#: The most that a task may take of the time it took, as a geometric mean: noise is a few per cent.
SLOWER = 1.03

#: In the place of the compiler: notes what it is called with and its CPU seconds.
TIMED = """
import json, os, subprocess, sys
process = subprocess.Popen(["g++", *sys.argv[1:]])
_, status, used = os.wait4(process.pid, 0)
unit = sys.argv[sys.argv.index("-c") + 1] if "-c" in sys.argv else "linking"
with open(os.environ["OCFUSE_UNITS"], "a") as file:
    file.write(json.dumps([unit, used.ru_utime + used.ru_stime]) + "\\n")
sys.exit(os.waitstatus_to_exitcode(status))
"""

Kernels = dict[str, ModuleType]
Seconds = dict[str, list[float]]


def run(quick: bool) -> Report:
    with tempfile.TemporaryDirectory(prefix="kernels-") as name:
        folder = Path(name)
        compiled = compile_all(folder, 1 if quick else COMPILATIONS)
        speed = measure(folder, 3 if quick else ROUNDS)
    seconds = {
        name: [sum(units) for units in zip(*found.values(), strict=True)]
        for name, found in compiled.items()
    }
    now = median(seconds["now"])
    ratios = {
        build: geometric_mean([row["ratio"] for row in speed if row["build"] == build])
        for build in dict.fromkeys(row["build"] for row in speed)
    }
    differing = sum(not row["same"] for row in speed)
    return Report(
        "The kernels",
        f"`setup.py build_ext` of commit {BEFORE} (bound by pybind11) and of now, in turn, one "
        "compiler at a time; CPU seconds of every call of the compiler. Then the same tasks by "
        "both, in turn, on one thread, by CPU seconds.",
        [
            Target(
                f"both kernels compile within {CPU_SECONDS:.0f} CPU s",
                f"{now:.1f} s",
                now <= CPU_SECONDS,
            ),
            *(
                Target(
                    f"{build}: tasks take no longer (at most {SLOWER:.2f} times, geometric mean)",
                    f"{ratio:.3f}",
                    ratio <= SLOWER,
                )
                for build, ratio in ratios.items()
            ),
            Target("every answer has the same bits", f"{differing} differ", differing == 0),
        ],
        [compilation(compiled, seconds), tasks_table(speed)],
        {"compilation": compiled, "tasks": speed},
    )


def compile_all(folder: Path, repetitions: int) -> dict[str, Seconds]:
    """Build both versions; return the CPU seconds of every translation unit."""
    venv.create(folder / "tools", with_pip=True)
    python = folder / "tools/bin/python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *TOOLS], check=True)
    script = folder / "timed.py"
    script.write_text(TIMED)
    for name in ("before", "now"):
        (folder / name).mkdir()
    archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", str(folder / "before")], input=archive.stdout, check=True)
    for part in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, folder / "now")
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src", folder / "now/src", ignore=ignored)
    found: dict[str, Seconds] = {"before": {}, "now": {}}
    for _ in range(repetitions):
        for name, units in found.items():
            notes = folder / f"{name}.jsonl"
            notes.unlink(missing_ok=True)
            compiler = f"{python} {script}"
            subprocess.run(
                [python, "setup.py", "-q", "build_ext", "--force", "-j", "1", "--build-lib", "lib"],
                cwd=folder / name,
                env=os.environ | {"CC": compiler, "CXX": compiler, "OCFUSE_UNITS": str(notes)},
                stderr=subprocess.DEVNULL,
                check=True,
            )
            took: dict[str, float] = {}
            for unit, cpu in map(json.loads, notes.read_text().splitlines()):
                took[unit] = took.get(unit, 0.0) + cpu
            for unit, cpu in took.items():
                units.setdefault(unit, []).append(cpu)
    return found


def compilation(compiled: dict[str, Seconds], sums: Seconds) -> Table:
    rows = [
        [name, f"`{unit.removeprefix('src/ocfuse/')}`" if "/" in unit else unit, spread(taken)]
        for name, units in compiled.items()
        for unit, taken in [*units.items(), ("**together**", sums[name])]
    ]
    header = ["", "translation unit", "CPU s"]
    return Table("To compile: median (lowest to highest)", header, rows)


def spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def measure(folder: Path, rounds: int) -> list[Data]:
    """Run every task by both versions, for this machine and for every machine."""
    found = []
    for package, tasks in {"solvers": solver_tasks(), "kernels": row_tasks()}.items():
        both = {name: load(folder / name, package) for name in ("before", "now")}
        for baseline in (False, True):
            for kernel in both.values():
                kernel.use_baseline(baseline)
            build = both["now"].instruction_set()
            for task, work in tasks.items():
                old, new = (list(arrays(work(kernel))) for kernel in both.values())
                calls = {name: bound(work, kernel) for name, kernel in both.items()}
                taken = samples(calls, rounds, time.process_time)
                found.append(
                    {
                        "package": package,
                        "build": build,
                        "task": task,
                        "same": all(map(same, old, new)) and len(old) == len(new),
                        "ratio": min(taken["now"]) / min(taken["before"]),
                        "before": taken["before"],
                        "now": taken["now"],
                    }
                )
    return found


def tasks_table(speed: list[Data]) -> Table:
    rows = []
    for package, task in dict.fromkeys((row["package"], row["task"]) for row in speed):
        line = [package, task]
        for row in speed:
            if (row["package"], row["task"]) == (package, task):
                times = [f"{1e6 * min(row[name]):,.1f}" for name in ("before", "now")]
                line += [*times, f"{row['ratio']:.2f}"]
        rows.append(line)
    builds = list(dict.fromkeys(row["build"] for row in speed))
    columns = [f"{build}: {word}" for build in builds for word in ("before", "now", "ratio")]
    return Table(
        "What they compute: microseconds, and now over before",
        ["kernel", "task", *columns],
        rows,
        "The shortest of the rounds. Tasks of one row tell what a call costs.",
    )


def load(folder: Path, package: str) -> ModuleType:
    (path,) = (folder / "lib/ocfuse" / package).glob("_native*")
    spec = importlib.util.spec_from_file_location(f"{folder.name}.{package}._native", path)
    assert spec is not None
    assert spec.loader is not None
    kernel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernel)
    return kernel


Task = Callable[[ModuleType], Any]


def bound(work: Task, kernel: ModuleType) -> Callable[[], Any]:
    return lambda: work(kernel)


def arrays(answer: Any) -> Iterator[np.ndarray]:
    if isinstance(answer, tuple):
        for part in answer:
            yield from arrays(part)
    else:
        yield answer


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


#: Columns, samples, problems: small ones ride together, others fill the lanes by themselves.
SHAPES = [(5, 20, 1), (5, 20, 128), (9, 60, 64), (30, 250, 8), (9, 1000, 8), (40, 500, 4)]
METHODS = {"auto": 0, "interior point": 1, "Frank-Wolfe": 2, "the paper's": 3}


def solver_tasks() -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for d, k, m in SHAPES:
        rng = np.random.default_rng(d * k)
        A = rng.normal(0.7, 1.0, size=(2 * k, d)) * rng.uniform(0.3, 2.0, d)
        index, c = rng.integers(2 * k, size=(m, k)), rng.random((m, k))
        p = rng.choice([32 / 31, 8 / 7, 4 / 3, 2.0, 4.0, 10.0], m)
        for name, method in METHODS.items():
            limits = (1e-2 if name == "the paper's" else 1e-4, method, 100, 200, 10.0)
            given = (A, index, c, p, False, *limits, k >= 64, k <= 256, 1)
            plural = "problem" if m == 1 else "problems"
            tasks[f"{name}: {m} {plural} of {k} x {d}"] = solving(given)
    return tasks


def solving(given: tuple[Any, ...]) -> Task:
    return lambda kernel: kernel.solve(*given)


def row_tasks() -> dict[str, Task]:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 20)), rng.normal(size=(2000, 20))
    D = np.square(X[:, None] - Y).sum(axis=2)
    norms, members = np.square(X).sum(axis=1), (np.arange(len(Y) + 1), np.arange(len(Y)))
    x, y = X.astype(np.float32), Y.astype(np.float32)
    squares = [np.square(rows).sum(axis=1) for rows in (x, y)]
    numbers = [np.arange(len(rows), dtype=np.int32) for rows in (x, y)]
    columns = np.sort(Y.T.copy(), axis=1)
    n_trees, width = 100, 256
    features = rng.integers(20, size=(n_trees, width), dtype=np.int32)
    thresholds = rng.normal(size=(n_trees, width)).astype(np.float32)
    lengths = rng.random((n_trees, width))
    y_squares = np.square(Y).sum(axis=1)
    coded = coded_search()

    def candidates(kernel: ModuleType) -> Any:
        found = kernel.Candidates(norms, 10, 320, 28 * 1.1 * 2.0**-24, 0.0)
        for begin in range(0, len(y), 500):
            some = slice(begin, begin + 500)
            found.add(
                x @ y[some].T, numbers[0], numbers[1][some], squares[0], squares[1][some], False
            )
        return found.nearest(X, Y, members, 10, 1)

    def completed(kernel: ModuleType, n: int) -> Any:
        products = -D[:n]
        kernel.complete(products, y_squares, norms[:n], 1)
        return products

    tasks: dict[str, Task] = {
        "candidates, 300 of 2,000 rows": candidates,
        "nearest_by_codes": lambda kernel: kernel.nearest_by_codes(*coded),
    }
    for n in (300, 1):
        rows = f"{n} rows" if n > 1 else "one row"
        tasks |= {
            f"nearest_by_matrix, {rows}": lambda kernel, n=n: kernel.nearest_by_matrix(
                D[:n], norms[:n], 1e-12, X[:n], Y, 10, 1
            ),
            f"follow 100 trees, {rows}": lambda kernel, n=n: kernel.follow(
                features, thresholds, lengths, X[:n], 1
            ),
            f"tails, {rows}": lambda kernel, n=n: kernel.tails(columns, X[:n], 1),
            f"complete, {rows}": lambda kernel, n=n: completed(kernel, n),
            f"decay, {rows}": lambda kernel, n=n: kernel.decay(D[:n], 0.1, 1),
            f"whole, {rows}": lambda kernel, n=n: kernel.whole(X[:n], 20, 1),
        }
    return tasks


def coded_search() -> tuple[Any, ...]:
    """Return what a search by codes gives to the kernel."""
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(8_700, 12)) @ rng.normal(size=(12, 256))
    rows = factors + 0.01 * rng.normal(size=factors.shape)
    kernel, given = quantised.kernel, []

    class Noting:
        def __getattr__(self, name: str) -> Any:
            def called(*arguments: Any) -> Any:
                given.append((name, arguments))
                return getattr(kernel, name)(*arguments)

            return called

    quantised.kernel = Noting()
    try:
        NeighbourIndex(rows[:8_500]).of(rows[8_500:], 10)
    finally:
        quantised.kernel = kernel
    (arguments,) = [arguments for name, arguments in given if name == "nearest_by_codes"][:1]
    return (*arguments[:-1], 1)

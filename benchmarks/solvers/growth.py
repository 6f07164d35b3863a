"""Part "growth": time and memory as the problems become many, or one becomes long."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.report import Data, Report, Table, Target, number
from benchmarks.solvers.instances import Instance, local, whole
from benchmarks.timing import medians
from ocfuse.solvers import solve, solve_batch

LOCALITIES = (1000, 3000, 10_000, 30_000, 100_000)
SAMPLES, COLUMNS = 50, 8
LENGTHS = (500, 1500, 5000, 15_000, 50_000)
GLOBAL_COLUMNS = 16
NORMS = {"8/7": 8 / 7, "2": 2.0, "100": 100.0}
TOL = 1e-4
ROUNDS = 5
FLAT = 1.3

#: Reads an instance, solves it, and prints how far the memory rose.
CHILD = """
import json, sys
import numpy as np
from ocfuse.solvers import solve, solve_batch

def peak():
    # Unlike getrusage, this does not inherit the peak of the process that started us.
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])

folder, is_local = sys.argv[1], sys.argv[2] == "local"
small = np.eye(3)
solve(small, np.ones(3), 2.0)
empty = peak()
S, y, index, c = (np.load(f"{folder}/{name}.npy") for name in ("S", "y", "index", "c"))
loaded = peak()
if is_local:
    solve_batch(S, y, index, c, 2.0)
else:
    solve(S, y, 2.0, c[0])
print(json.dumps(dict(empty=empty, loaded=loaded, peak=peak())))
"""


def memory(at: Instance) -> dict[str, int]:
    """Return bytes of the input, and of the memory that a fresh process needs around it."""
    is_local = len(at.index) > 1
    with tempfile.TemporaryDirectory() as folder:
        for name in ("S", "y", "index", "c"):
            np.save(Path(folder) / f"{name}.npy", getattr(at, name))
        command = [sys.executable, "-c", CHILD, folder, "local" if is_local else "global"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    size = at.S.nbytes + at.y.nbytes + at.c.nbytes + (at.index.nbytes if is_local else 0)
    return {"input": size, **found, "extra": found["peak"] - found["loaded"]}


def many(sizes: tuple[int, ...], rounds: int) -> dict[str, dict[str, float]]:
    """Return seconds per locality by number of localities, and memory."""
    instances = {str(m): local(m, m, SAMPLES, COLUMNS, False, seed=1) for m in sizes}
    tasks = {
        f"{m}|{solver}": lambda at=at, solver=solver: solve_batch(
            at.S, at.y, at.index, at.c, 2.0, tol=TOL, solver=solver, n_threads=1
        )
        for m, at in instances.items()
        for solver in ("auto", "interior-point")
    }
    taken = medians(tasks, rounds)
    return {
        m: {
            "auto": taken[f"{m}|auto"] / len(at.index),
            "interior point": taken[f"{m}|interior-point"] / len(at.index),
            **memory(at),
        }
        for m, at in instances.items()
    }


def long(sizes: tuple[int, ...], rounds: int) -> dict[str, dict[str, float]]:
    """Return seconds and iterations of one global problem by length and norm, and memory."""
    found = {}
    for n in sizes:
        at = whole(n, GLOBAL_COLUMNS, False, seed=1)
        tasks = {
            f"{solver}, p = {name}": lambda p=p, solver=solver, at=at: solve(
                at.S, at.y, p, at.c[0], tol=TOL, solver=solver
            )
            for solver in ("auto", "interior-point")
            for name, p in NORMS.items()
        }
        iterations = {
            f"iterations, p = {name}": solve(
                at.S, at.y, p, at.c[0], tol=TOL, solver="interior-point"
            ).n_iter
            for name, p in NORMS.items()
        }
        found[str(n)] = {**medians(tasks, rounds), **iterations, **memory(at)}
    return found


def many_table(found: Data) -> Table:
    rows = [
        [
            f"{int(m):,}", number(1e6 * row["auto"]), number(1e6 * row["interior point"]),
            *sizes(row),
        ]
        for m, row in found.items()
    ]  # fmt: skip
    header = ["m", "auto, us each", "interior point, us each", *MEMORY_HEADER]
    note = (
        f"d = {COLUMNS}, k = {SAMPLES}, p = 2, tol {TOL:g}, CPU time of `solve_batch` on one "
        "thread per locality, checking of the input included. As many rows of scores as "
        f"localities. {MEMORY_NOTE} The answer with its certificates (alpha, m x k) is part of it."
    )
    return Table("Many localities", header, rows, note)


def long_table(found: Data) -> Table:
    rows = [
        [
            f"{int(n):,}",
            *(number(1e3 * row[f"auto, p = {name}"]) for name in NORMS),
            *(
                f"{number(1e3 * row[f'interior-point, p = {name}'])} "
                f"({row[f'iterations, p = {name}']})"
                for name in NORMS
            ),
            *sizes(row),
        ]
        for n, row in found.items()
    ]
    header = [
        "n", *(f"auto, p = {name}, ms" for name in NORMS),
        *(f"interior point, p = {name}, ms (iterations)" for name in NORMS), *MEMORY_HEADER,
    ]  # fmt: skip
    note = (
        f"d = {GLOBAL_COLUMNS}, tol {TOL:g}, CPU time of `solve`, checking of the input "
        f"included. {MEMORY_NOTE}"
    )
    return Table("One long problem", header, rows, note)


MEMORY_HEADER = ["input, MB", "peak above the loaded input, MB", "whole process, MB"]
MEMORY_NOTE = "Memory is that of a fresh process that loads the input and solves once."


def sizes(row: Data) -> list[str]:
    return [f"{row[key] / 2**20:.1f}" for key in ("input", "extra", "peak")]


def run(quick: bool) -> Report:
    rounds = 3 if quick else ROUNDS
    many_sizes = LOCALITIES[:3] if quick else LOCALITIES
    long_sizes = LENGTHS[:3] if quick else LENGTHS
    data = {"many": many(many_sizes, rounds), "long": long(long_sizes, rounds)}
    return Report(
        "Growth",
        "Medians of interleaved repetitions, one thread.",
        targets(data["many"]),
        [many_table(data["many"]), long_table(data["long"])],
        data,
    )


def targets(found: Data) -> list[Target]:
    rows = list(found.values())
    ratio = max(row["auto"] for row in rows) / min(row["auto"] for row in rows)
    first, *_, last = found
    return [
        Target(
            f"flat time per locality from m = {int(first):,} to {int(last):,} (within {FLAT})",
            f"slowest over fastest {ratio:.2f}",
            ratio <= FLAT,
        )
    ]

"""Part "throughput": problems per second, and how many times faster than others.

Times are CPU times of `solve_batch` on one thread, the checking of input
included, medians of interleaved repetitions; two threads are measured in wall
time.
"""

import time
from collections.abc import Callable
from itertools import cycle
from statistics import median

import numpy as np

from benchmarks.report import Data, Report, Table, Target, number
from benchmarks.solvers.instances import Instance, local
from benchmarks.solvers.rivals import Array, Conic, Parametrised, conic, rebuilt
from benchmarks.timing import Task, medians, samples
from ocfuse.solvers import native, solve_batch

#: d, k and the number of problems in a call.
SHAPES = ((4, 20, 8000), (8, 50, 4000), (16, 100, 1600), (32, 100, 600), (64, 200, 120))
NORMS = {"32/31": 32 / 31, "2": 2.0, "10": 10.0, "100": 100.0}
TOLERANCES = (1e-4, 1e-6)
SOLVERS = ("auto", "interior-point")
RATES_WANTED = {(8, 50): 30_000, (16, 100): 10_000}
RATIOS_WANTED = {"rebuilt": 200, "parametrised": 80, "core": 8}
RIVAL_SHAPE = (8, 50, 2000)
N_RIVAL = 8
ROUNDS = 7
MARGIN_OF_AGREEMENT = 1e-4


def instance(d: int, k: int, m: int, quick: bool) -> Instance:
    return local(4000, max(40, m // 10) if quick else m, k, d, False, seed=d)


def batch(
    at: Instance, p: float, tol: float, solver: str, backend: str = "auto", n_threads: int = 1
) -> Task:
    """Return a call of `solve_batch`, to be timed."""
    return lambda: solve_batch(
        at.S, at.y, at.index, at.c, p, False, tol, solver, n_threads=n_threads, backend=backend
    )


def rates(quick: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Return problems per second by shape, solver and tolerance, and norm."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for d, k, m in SHAPES:
        at = instance(d, k, m, quick)
        tasks = {
            f"{solver}, {tol:g}|{name}": batch(at, p, tol, solver)
            for solver in SOLVERS
            for tol in TOLERANCES
            for name, p in NORMS.items()
        }
        shape: dict[str, dict[str, float]] = {}
        for key, seconds in medians(tasks, 3 if quick else ROUNDS).items():
            way, name = key.split("|")
            shape.setdefault(way, {})[name] = len(at.index) / seconds
        found[f"({d}, {k})"] = shape
    return found


def rates_table(found: Data) -> Table:
    rows = [
        [shape, way, *(f"{rate:,.0f}" for rate in by_norm.values())]
        for shape, ways in found.items()
        for way, by_norm in ways.items()
    ]
    header = ["(d, k)", "solver, tol", *(f"p = {name}" for name in NORMS)]
    return Table("Problems per second and core", header, rows)


class Others:
    """The same local problems for the other solvers, one after another."""

    def __init__(self, at: Instance, p: float, tol: float | None) -> None:
        self.p, self.tol = p, tol
        rows = at.index[:N_RIVAL]
        self.data = [
            (at.y[index, np.newaxis] * at.S[index], c / c.sum())
            for index, c in zip(rows, at.c, strict=False)
        ]
        self.parametrised = Parametrised(rows.shape[1], at.S.shape[1], p)
        self.conics = [conic(A, c, p) for A, c in self.data]
        self.cores: list[float] = []

    def tasks(self) -> dict[str, Task]:
        """Return the ways to be timed; every call takes the next problem."""
        one, two, three = cycle(self.data), cycle(self.data), cycle(self.conics)
        return {
            "rebuilt": lambda: rebuilt(*next(one), self.p, self.tol),
            "parametrised": lambda: self.parametrised.solve(*next(two), self.tol),
            "core and its setup": lambda: self.core(next(three)),
        }

    def core(self, problem: Conic) -> None:
        """Run Clarabel alone, and note the CPU seconds without its setup."""
        solver = problem.solver(self.tol)
        begin = time.process_time()
        solver.solve()
        self.cores.append(time.process_time() - begin)

    def optima(self) -> Array:
        """Return the optima by each way, shape (ways, problems)."""
        return np.array(
            [
                [rebuilt(A, c, self.p, self.tol) for A, c in self.data],
                [self.parametrised.solve(A, c, self.tol) for A, c in self.data],
                [problem.solver(self.tol).solve().obj_val for problem in self.conics],
            ]
        )


def against_cvxpy(quick: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Return seconds per problem by norm, Clarabel's tolerance and way."""
    at = instance(*RIVAL_SHAPE, quick)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, p in NORMS.items():
        for tol in (1e-6, None):
            others = Others(at, p, tol)
            require_agreement(at, others)
            ours = {solver: batch(at, p, 1e-6, solver) for solver in SOLVERS}
            taken = medians({**ours, **others.tasks()}, 3 if quick else ROUNDS)
            for solver in SOLVERS:
                taken[solver] /= len(at.index)
            taken["core"] = median(others.cores)
            found.setdefault(name, {})["1e-6" if tol else "1e-8, its default"] = taken
    return found


def require_agreement(at: Instance, others: Others) -> None:
    """Stop if the ways do not solve the same problem."""
    answer = solve_batch(at.S, at.y, at.index[:N_RIVAL], at.c[:N_RIVAL], others.p, tol=1e-6)
    ours = answer.primal / at.c[:N_RIVAL].sum(axis=1)
    assert np.allclose(others.optima(), ours, rtol=0, atol=MARGIN_OF_AGREEMENT)


def rivals_table(found: Data) -> Table:
    rows = []
    for name, by_tol in found.items():
        for tol, taken in by_tol.items():
            ways = ["rebuilt", "parametrised", "core and its setup", "core"]
            rows.append(
                [
                    name, tol, number(1e6 * taken["auto"]), number(1e6 * taken["interior-point"]),
                    *(f"{number(1e3 * taken[way])} ms = {taken[way] / taken['auto']:,.0f}x"
                      for way in ways),
                ]
            )  # fmt: skip
    header = [
        "p", "Clarabel's tol", "auto, us", "interior point, us", "cvxpy, rebuilt",
        "cvxpy, parametrised", "Clarabel with its setup", "Clarabel, iterations only",
    ]  # fmt: skip
    d, k, _ = RIVAL_SHAPE
    note = (
        f"d = {d}, k = {k}, ours at tol 1e-6, CPU time per problem, interleaved. Ratios are to "
        "`auto`. cvxpy calls Clarabel with exact power cones (p = 2: a second-order cone), faster "
        "here than its default approximation. The parametrised problem is written once and "
        "obeys cvxpy's rules for parameters (DPP). Clarabel alone gets conic data written by hand; "
        "the last column leaves its setup out too. Its tolerances for gap and feasibility are set "
        "to those named; they are relative to max(1, |objective|), somewhat looser than ours."
    )
    return Table("Against cvxpy and Clarabel", header, rows, note)


def twin_and_builds(quick: bool) -> dict[str, dict[str, float]]:
    """Return seconds per problem of the NumPy twin and of both builds of the kernel."""
    found = {}
    for d, k, m in SHAPES:
        at = instance(d, k, max(m // 4, 100), quick)
        task = batch(at, 2.0, 1e-4, "interior-point")
        tasks = {
            "kernel": task,
            "baseline": with_baseline(task),
            "twin": batch(at, 2.0, 1e-4, "interior-point", "numpy"),
        }
        taken = medians(tasks, 3 if quick else ROUNDS)
        found[f"({d}, {k})"] = {way: seconds / len(at.index) for way, seconds in taken.items()}
    return found


def with_baseline(task: Task) -> Task:
    """Run a task in the kernel's build for every machine."""

    def run_baseline() -> None:
        assert native.kernel is not None
        native.kernel.use_baseline(True)
        try:
            task()
        finally:
            native.kernel.use_baseline(False)

    return run_baseline


def twin_table(found: Data) -> Table:
    rows = [
        [
            shape, number(1e6 * taken["kernel"]),
            f"{number(1e6 * taken['baseline'])} = {number(taken['baseline'] / taken['kernel'])}x",
            f"{number(1e6 * taken['twin'])} = {number(taken['twin'] / taken['kernel'])}x",
        ]
        for shape, taken in found.items()
    ]  # fmt: skip
    assert native.kernel is not None
    header = ["(d, k)", f"{native.kernel.instruction_set()}, us", "baseline, us", "NumPy twin, us"]
    note = "Interior point, p = 2, tol 1e-4, CPU time per problem on one thread."
    return Table("The kernel's builds and the NumPy twin", header, rows, note)


def threads(quick: bool) -> dict[str, dict[str, float]]:
    """Return the best and the median wall seconds with one and with two threads."""
    d, k, m = 8, 50, 20_000
    at = instance(d, k, m, quick)
    tasks = {str(n): batch(at, 2.0, 1e-4, "auto", n_threads=n) for n in (1, 2)}
    taken = samples(tasks, 5 if quick else 3 * ROUNDS, time.perf_counter)
    return {n: {"best": min(seconds), "median": median(seconds)} for n, seconds in taken.items()}


def threads_table(found: Data) -> Table:
    rows = [
        [how, number(1e3 * found["1"][how]), number(1e3 * found["2"][how]),
         number(found["1"][how] / found["2"][how]) + "x"]
        for how in ("best", "median")
    ]  # fmt: skip
    note = "20,000 problems, d = 8, k = 50, p = 2, tol 1e-4; wall time, so a busy machine shows."
    return Table("Threads", ["of repetitions", "one, ms", "two, ms", "speed-up"], rows, note)


def run(quick: bool) -> Report:
    measured: dict[str, Callable[[bool], Data]] = {
        "rates": rates, "rivals": against_cvxpy, "twin": twin_and_builds, "threads": threads
    }  # fmt: skip
    data = {name: measure(quick) for name, measure in measured.items()}
    return Report(
        "Throughput",
        "Local problems, non-pure, signed. CPU time of `solve_batch` on one thread, the checking "
        "of its input included; medians of interleaved repetitions in one process.",
        targets(data),
        [
            rates_table(data["rates"]),
            rivals_table(data["rivals"]),
            twin_table(data["twin"]),
            threads_table(data["threads"]),
        ],
        data,
    )


def targets(data: Data) -> list[Target]:
    found = []
    for (d, k), wanted in RATES_WANTED.items():
        slowest = min(data["rates"][f"({d}, {k})"]["auto, 0.0001"].values())
        found.append(
            Target(
                f"{wanted:,} problems/s/core at (d, k) = ({d}, {k}), tol 1e-4",
                f"{slowest:,.0f} at the slowest p",
                slowest >= wanted,
            )
        )
    names = {
        "rebuilt": "a cvxpy loop that rebuilds",
        "parametrised": "a parametrised cvxpy problem",
        "core": "Clarabel's iterations alone",
    }
    for way, wanted in RATIOS_WANTED.items():
        ratios = [taken["1e-6"][way] / taken["1e-6"]["auto"] for taken in data["rivals"].values()]
        found.append(
            Target(
                f"at least {wanted}x {names[way]}, both at 1e-6",
                f"{min(ratios):,.0f}x to {max(ratios):,.0f}x",
                min(ratios) >= wanted,
            )
        )
    return found

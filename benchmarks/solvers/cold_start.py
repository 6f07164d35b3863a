"""Part "cold_start": what a fresh process waits for."""

import json
import subprocess
import sys
from statistics import median

from benchmarks.report import ROOT, Data, Report, Table, Target

REPETITIONS = 11
PROBLEMS, SAMPLES, COLUMNS = 200, 50, 8
Trace = tuple[float, list[tuple[str, float]]]
IMPORT_LIMIT, FIRST_CALL_LIMIT = 1.0, 0.2

IMPORT = """
import sys, time
begin = time.perf_counter()
import {module}
took = time.perf_counter() - begin
import json
print(json.dumps(dict(seconds=took, sklearn="sklearn" in sys.modules)))
"""

FIRST_CALL = f"""
import time
begin = time.perf_counter()
from ocfuse.solvers import solve_batch
imported = time.perf_counter() - begin
from benchmarks.solvers.instances import local
at = local(2000, {PROBLEMS}, {SAMPLES}, {COLUMNS}, False, 0)
begin = time.perf_counter()
solve_batch(at.S, at.y, at.index, at.c, 2.0)
first = time.perf_counter() - begin
begin = time.perf_counter()
solve_batch(at.S, at.y, at.index, at.c, 2.0)
second = time.perf_counter() - begin
import json
print(json.dumps(dict(imported=imported, first=first, second=second)))
"""


def fresh(code: str) -> Data:
    """Run code in a new interpreter and return the line of JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def traced(module: str) -> Trace:
    """Return the seconds of an import by ``-X importtime``, and its costliest modules."""
    command = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    own: dict[str, float] = {}
    total = 0.0
    for line in done.stderr.splitlines():
        parts = line.removeprefix("import time:").split("|")
        if len(parts) != 3 or not parts[0].strip().isdigit():
            continue
        name = parts[2].strip()
        package = name.split(".")[0]
        own[package] = own.get(package, 0.0) + float(parts[0]) * 1e-6
        is_outermost = parts[2] == f" {name}"
        if is_outermost and package == module.split(".")[0]:
            total += float(parts[1]) * 1e-6
    return total, sorted(own.items(), key=lambda item: -item[1])[:4]


def run(quick: bool) -> Report:
    repetitions = 3 if quick else REPETITIONS
    imports = {
        module: [fresh(IMPORT.format(module=module)) for _ in range(repetitions)]
        for module in ("ocfuse", "ocfuse.solvers")
    }
    traces = {module: [traced(module) for _ in range(repetitions)] for module in imports}
    calls = [fresh(FIRST_CALL) for _ in range(repetitions)]
    rows = [import_row(module, imports[module], traces[module]) for module in imports]
    first, second = ([call[key] for call in calls] for key in ("first", "second"))
    return Report(
        "Cold start",
        f"Every figure is wall time in a fresh process, {repetitions} times; the files are in the "
        "disk cache, and nothing is compiled at run time. `-X importtime` itself slows an import.",
        targets(imports, traces, first),
        [
            Table(
                "Import",
                ["module", "best", "median", "`-X importtime`, best", "its costliest packages"],
                rows,
            ),
            Table(
                f"First `solve_batch`: {PROBLEMS} localities, d = {COLUMNS}, k = {SAMPLES}",
                ["call", "best", "median"],
                [
                    ["first after the import", *best_and_median(first)],
                    ["second", *best_and_median(second)],
                ],
            ),
        ],
        {"imports": imports, "importtime": traces, "calls": calls},
    )


def import_row(module: str, plain: list[Data], trace: list[Trace]) -> list[str]:
    best = min(trace, key=lambda item: item[0])
    packages = ", ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in best[1])
    times = best_and_median([each["seconds"] for each in plain])
    return [f"`{module}`", *times, milliseconds(best[0]), packages]


def best_and_median(seconds: list[float]) -> list[str]:
    return [milliseconds(min(seconds)), milliseconds(median(seconds))]


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms"


def targets(imports: Data, traces: Data, first: list[float]) -> list[Target]:
    slowest = max(median(total for total, _ in trace) for trace in traces.values())
    clean = not any(each["sklearn"] for found in imports.values() for each in found)
    return [
        Target(
            f"`import ocfuse` within {IMPORT_LIMIT:g} s",
            f"{slowest:.2f} s (median, `-X importtime`)",
            slowest <= IMPORT_LIMIT,
        ),
        Target("scikit-learn not imported by it", "not imported" if clean else "imported", clean),
        Target(
            f"first `solve_batch` of {PROBLEMS} localities within {FIRST_CALL_LIMIT:g} s",
            f"{median(first):.4f} s (median)",
            median(first) <= FIRST_CALL_LIMIT,
        ),
    ]

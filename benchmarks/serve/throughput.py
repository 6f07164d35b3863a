"""Part "throughput": requests of one row each, by 1 to 64 clients, against a plain handler."""

import tempfile
from pathlib import Path

from benchmarks.report import Report, Table, Target, number
from benchmarks.serve import plant
from benchmarks.serve.processes import finished, ours, plain, server, start_load

CLIENTS = (1, 8, 64)
SECONDS, QUICK_SECONDS = 20.0, 4.0
TIMES = 5.0
OURS, COROUTINE, THREADS = "ocfuse serve", "plain coroutine", "plain function in threads"


def run(quick: bool) -> Report:
    seconds = QUICK_SECONDS if quick else SECONDS
    with tempfile.TemporaryDirectory() as name:
        model, bodies = plant.write(Path(name))
        commands = {
            OURS: ours(model),
            COROUTINE: plain(model, "coroutine"),
            THREADS: plain(model, "threads"),
        }
        found = {what: measured(words, bodies, seconds) for what, words in commands.items()}
    return Report(
        "Throughput of the service",
        f"The default detector of {plant.N_ROWS:,} rows and {plant.N_COLUMNS} columns scores "
        f"requests of one row each, in JSON, from clients on the same machine that send the next "
        f"request when they have the answer to the last. {seconds:g} s each after a second that "
        "does not count. Servers and the load generator are processes of their own with one "
        "thread of linear algebra each. The plain handlers make a data frame of a request and "
        "call `model.score`; one is a coroutine, the other a function in the threads of FastAPI. "
        "`ocfuse serve` runs as it does by default, with its log.",
        targets(found),
        [table(found)],
        {what: {str(n): one for n, one in by.items()} for what, by in found.items()},
    )


def measured(words: tuple[str, ...], bodies: Path, seconds: float) -> dict[int, dict[str, float]]:
    with server(*words) as (port, _):
        finished(start_load(port, bodies, clients=8, seconds=1.0))
        return {n: finished(start_load(port, bodies, clients=n, seconds=seconds)) for n in CLIENTS}


def targets(found: dict[str, dict[int, dict[str, float]]]) -> list[Target]:
    most = max(CLIENTS)
    best = max(found[what][most]["per second"] for what in (COROUTINE, THREADS))
    times = found[OURS][most]["per second"] / best
    errors = sum(one["errors"] for one in found[OURS].values())
    return [
        Target(
            f"at least {TIMES:g} times the throughput of the better plain handler, {most} clients",
            f"{times:.1f} times",
            times >= TIMES,
        ),
        Target("no errors", f"{errors}", errors == 0),
    ]


def table(found: dict[str, dict[int, dict[str, float]]]) -> Table:
    lines = [
        [
            what,
            str(n),
            number(one["per second"]),
            f"{1e3 * one['p50']:.1f} ms",
            f"{1e3 * one['p99']:.1f} ms",
            str(one["errors"]),
        ]
        for what, by in found.items()
        for n, one in by.items()
    ]
    return Table("By clients", ["server", "clients", "requests/s", "p50", "p99", "errors"], lines)

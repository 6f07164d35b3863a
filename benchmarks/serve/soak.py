"""Part "soak": ten minutes at 80 % of the throughput; memory, errors, latency."""

import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.report import Report, Table, Target, number
from benchmarks.serve import plant
from benchmarks.serve.processes import finished, ours, resident, server, start_load

CLIENTS = 64
SECONDS, QUICK_SECONDS = 600.0, 20.0
LOAD = 0.8
#: Growth of the memory, from the second quarter to the last, that still counts as flat.
FLAT = 0.02
MB = 2**20


def run(quick: bool) -> Report:
    seconds = QUICK_SECONDS if quick else SECONDS
    with tempfile.TemporaryDirectory() as name:
        model, bodies = plant.write(Path(name))
        with server(*ours(model)) as (port, process):
            finished(start_load(port, bodies, clients=CLIENTS, seconds=2.0))
            full = finished(
                start_load(port, bodies, clients=CLIENTS, seconds=min(seconds / 4, 20.0))
            )
            load = start_load(
                port, bodies, clients=CLIENTS, seconds=seconds, rate=LOAD * full["per second"]
            )
            memory = watched(process, load, seconds)
            found = finished(load)
    second, last = quarter(memory, 1), quarter(memory, 3)
    growth = last / second - 1
    return Report(
        "The service under load",
        f"The service of the part on throughput, {seconds:g} s at {100 * LOAD:g} % of its "
        f"throughput, {full['per second']:.0f} requests per second with {CLIENTS} clients. "
        "Requests have their times, and one that is sent late counts from when it should have been "
        "sent. The resident memory is read every second.",
        [
            Target("no errors", f"{found['errors']} of {found['requests']:,}", not found["errors"]),
            Target(
                f"memory grows by at most {100 * FLAT:g} % from the second quarter to the last",
                f"{100 * growth:+.1f} %",
                growth <= FLAT,
            ),
            Target(
                "95 % of the requests that were asked for are answered in time",
                f"{100 * found['per second'] / found['asked per second']:.1f} %",
                found["per second"] >= 0.95 * found["asked per second"],
            ),
        ],
        [
            Table(
                "What was measured",
                ["requests", "per second", "p50", "p99", "worst", "memory", "most memory"],
                [
                    [
                        f"{found['requests']:,}",
                        number(found["per second"]),
                        f"{1e3 * found['p50']:.1f} ms",
                        f"{1e3 * found['p99']:.1f} ms",
                        f"{1e3 * found['worst']:.0f} ms",
                        f"{last / MB:.0f} MB",
                        f"{max(memory) / MB:.0f} MB",
                    ]
                ],
            )
        ],
        {"full": full, "found": found, "memory": memory},
    )


def watched(process: int, load: object, seconds: float) -> list[float]:
    """Return the memory of a process, second by second."""
    memory = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and load.poll() is None:
        memory.append(resident(process))
        time.sleep(1.0)
    return memory


def quarter(memory: list[float], number: int) -> float:
    """Return the median memory in a quarter of the time, counted from 0."""
    size = max(len(memory) // 4, 1)
    return median(memory[number * size : (number + 1) * size])

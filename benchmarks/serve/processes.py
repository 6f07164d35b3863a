"""Servers and the load generator as processes of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Seconds that a server may take to start and to stop.
PATIENCE = 120
SERVE = "from ocfuse.cli import main; main()"


@contextmanager
def server(*words: str) -> Iterator[tuple[int, int]]:
    """Give the port and the process of a server that prints its address as JSON."""
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        address = json.loads(process.stdout.readline())["address"]
        yield int(address.rpartition(":")[2]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def ours(model: Path, *flags: str) -> tuple[str, ...]:
    """Return the words that start our service."""
    return "-c", SERVE, "serve", str(model), "--port", "0", "--json", *flags


def plain(model: Path, kind: str) -> tuple[str, ...]:
    """Return the words that start a plain handler."""
    return "-m", "benchmarks.serve.plain", str(model), kind


def start_load(port: int, bodies: Path, **flags: float) -> "subprocess.Popen[str]":
    """Start the load generator."""
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benchmarks.serve.load", str(port), str(bodies), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finished(load: "subprocess.Popen[str]") -> dict[str, float]:
    """Return what a load generator found."""
    out, _ = load.communicate()
    if load.returncode:
        raise RuntimeError("the load generator failed")
    return json.loads(out)


def resident(process: int) -> float:
    """Return the resident memory of a process, in bytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))

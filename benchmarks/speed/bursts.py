"""Part "bursts": rows that come faster than they are scored, and rows that come slowly."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from websockets.sync.client import connect

from benchmarks.report import Report, Table, Target, spread
from benchmarks.serve.processes import finished, ours, plain, server, start_load
from benchmarks.tables.process import COMMAND, ocfuse
from ocfuse import load
from ocfuse.cli.watch_rows import MOST_ROWS

REPETITIONS, QUICK_REPETITIONS = 5, 2
N_LEARNED, N_COLUMNS = 2_000, 10
#: Rows of a burst; few of them where each is scored alone.
N_ROWS, N_ALONE, QUICK_ROWS = 20_000, 2_000, 600
#: Rows of a slow input, and seconds between them.
N_SLOW, STEP = 100, 0.02
CLIENTS, LOAD_SECONDS = 32, 5.0
N_CHANNELS, N_RUNS, N_SAMPLES = 8, 20, 400
POOLS = ("default", "light")
RATE, SAMPLE_MS = 5_000, 1.5
ONE_BY_ONE = "import ocfuse.cli.watch_rows as rows; rows.MOST_ROWS = 1; "
POST = f"POST by {CLIENTS} clients, default"
PLAIN, SHARE = (
    f"plain HTTP, {CLIENTS} clients: requests per CPU second",
    f"{POST}: share of plain HTTP",
)
#: Figures of every repetition by what was measured.
Found = dict[str, list[float]]


def run(quick: bool) -> Report:
    n = QUICK_ROWS if quick else N_ROWS
    found: Found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, n)
        for pool in POOLS:
            members = () if pool == "default" else ("--members", pool)
            ocfuse("fit", folder / "train.csv", "-o", folder / f"{pool}.ocf", *members)
            ocfuse("fit", folder / "runs", "--stream", "-o", folder / f"{pool}-8.ocf", *members)
        for _ in range(QUICK_REPETITIONS if quick else REPETITIONS):
            for what, figure in measured(folder, n, quick).items():
                found.setdefault(what, []).append(figure)
    return Report(
        "Bursts of rows, and single rows",
        f"Models of {N_LEARNED:,} rows and {N_COLUMNS} columns, by the default pool and by "
        f'"light". `ocfuse watch MODEL - --all --json` reads {n:,} rows from a pipe that is '
        f"always full, and scores up to {MOST_ROWS} at once; one by one, it reads "
        f"{min(n, N_ALONE):,}. The service has {n:,} rows by one WebSocket, a message each, sent "
        f"as fast as it takes them, and requests of one row each from {CLIENTS} clients that wait "
        "for their answers. Rates are rows per CPU second of the command or the service, without "
        "its start; wall time, beside it, shares the machine with who sends. Delays are from "
        f"writing a line to its answer, {N_SLOW} lines, one every {1e3 * STEP:g} ms. A sample has "
        f"{N_CHANNELS} channels; `score_one` is the library alone, `watch` reads and prints, too. "
        "Plain HTTP is a handler of the same server and parser (uvicorn, h11) that has no model, "
        "no framework, and answers always the same: what each of the requests costs at least. "
        f"{len(next(iter(found.values())))} rounds, all in turn.",
        targets(found),
        [
            Table(
                "Median (lowest to highest)",
                ["", "measured"],
                [[what, spread(figures, digits_of(what))] for what, figures in found.items()],
            )
        ],
        dict(found),
    )


def targets(found: Found) -> list[Target]:
    rates = [
        *(f"watch, {pool}: rows per CPU second" for pool in POOLS),
        "WebSocket, default: rows per CPU second",
        f"{POST}: rows per CPU second",
    ]
    result = []
    for what in rates:
        rate = median(found[what])
        result.append(Target(f"{what} >= {RATE:,}", f"{rate:,.0f}", rate >= RATE))
    what = "score_one, default: CPU ms per sample"
    sample = median(found[what])
    result.append(Target(f"{what} <= {SAMPLE_MS:g}", f"{sample:.2f}", sample <= SAMPLE_MS))
    return result


def digits_of(what: str) -> int:
    return 2 if " ms" in what or "share" in what else 0


def write_tables(folder: Path, n: int) -> None:
    """Write rows to learn from and to score, and runs of sensors."""
    rows_of(N_LEARNED, 0).to_csv(folder / "train.csv", index=False)
    rows_of(n, 1).to_csv(folder / "new.csv", index=False)
    (folder / "runs").mkdir()
    for seed in range(N_RUNS):
        run_of(seed).to_csv(folder / "runs" / f"{seed}.csv", index=False)


def rows_of(n: int, seed: int) -> pd.DataFrame:
    """Return rows of numbers that go together."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, 3)) @ np.random.default_rng(9).normal(size=(3, N_COLUMNS))
    noise = 0.3 * rng.normal(size=mixed.shape)
    return pd.DataFrame(mixed + noise, columns=[f"x{j}" for j in range(N_COLUMNS)])


def run_of(seed: int) -> pd.DataFrame:
    """Return a run of sensors that swing."""
    rng = np.random.default_rng(100 + seed)
    t = np.arange(N_SAMPLES)
    swings = np.column_stack([np.sin(t / 20 + 6 * rng.random()), np.cos(t / 31 + 6 * rng.random())])
    X = swings @ np.random.default_rng(9).normal(size=(2, N_CHANNELS))
    noise = 0.2 * rng.normal(size=X.shape)
    return pd.DataFrame(X + noise, columns=[f"c{j}" for j in range(N_CHANNELS)])


def measured(folder: Path, n: int, quick: bool) -> dict[str, float]:
    """Return one figure of everything."""
    found: dict[str, float] = {}
    lines = (folder / "new.csv").read_bytes().splitlines(keepends=True)
    for pool in POOLS:
        model = folder / f"{pool}.ocf"
        for what, words, m in (("watch", "", n), ("watch one by one", ONE_BY_ONE, min(n, N_ALONE))):
            cpu, wall = watch_rates(model, lines[: m + 1], words)
            found[f"{what}, {pool}: rows per CPU second"] = cpu
            found[f"{what}, {pool}: rows per second of wall time"] = wall
        delays = slow_delays(model, lines[: (20 if quick else N_SLOW) + 1])
        found[f"slow input, {pool}: longest delay, ms"] = 1e3 * max(delays)
        found[f"slow input, {pool}: median delay, ms"] = 1e3 * median(delays)
    seconds = 1.0 if quick else LOAD_SECONDS
    found |= service_rates(folder, n, seconds)
    found[PLAIN] = plain_rate(folder, seconds)
    found[SHARE] = found[f"{POST}: rows per CPU second"] / found[PLAIN]
    for pool in POOLS:
        model = folder / f"{pool}-8.ocf"
        found[f"score_one, {pool}: CPU ms per sample"] = sample_ms(model)
        samples = run_of(N_RUNS).to_csv(index=False).encode().splitlines(keepends=True)
        rate, _ = watch_rates(model, samples, ONE_BY_ONE)
        found[f"watch one by one, {pool}: CPU ms per sample"] = 1e3 / rate
    return found


def watch(model: Path, words: str = "") -> "subprocess.Popen[bytes]":
    """Start `ocfuse watch` on a pipe, some Python before it."""
    program = [sys.executable, "-c", words + COMMAND[1], "watch", str(model), "-"]
    return subprocess.Popen(
        [*program, "--all", "--json", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def watch_rates(model: Path, lines: list[bytes], words: str) -> tuple[float, float]:
    """Return rows per CPU second and per second of a burst that follows on its first row."""
    process = watch(model, words)
    process.stdin.write(b"".join(lines[:2]))
    process.stdin.flush()
    process.stdout.readline()
    begin, begin_cpu = time.perf_counter(), cpu_seconds(process.pid)

    def feed() -> None:
        with process.stdin as stdin:
            stdin.write(b"".join(lines[2:]))

    thread = threading.Thread(target=feed)
    thread.start()
    n = len(lines) - 2
    for _ in range(n):
        process.stdout.readline()
    wall, cpu = time.perf_counter() - begin, cpu_seconds(process.pid) - begin_cpu
    thread.join()
    process.stdout.close()
    process.wait()
    return n / cpu, n / wall


def slow_delays(model: Path, lines: list[bytes]) -> list[float]:
    """Return the seconds from writing a line to its answer, lines coming slowly."""
    process = watch(model)
    process.stdin.write(b"".join(lines[:2]))
    process.stdin.flush()
    process.stdout.readline()
    delays = []
    for line in lines[2:]:
        begin = time.perf_counter()
        process.stdin.write(line)
        process.stdin.flush()
        process.stdout.readline()
        delays.append(time.perf_counter() - begin)
        time.sleep(max(STEP - delays[-1], 0.0))
    process.stdin.close()
    process.stdout.close()
    process.wait()
    return delays


def service_rates(folder: Path, n: int, seconds: float) -> dict[str, float]:
    """Return rates of the service: one stream, and many clients."""
    rows = pd.read_csv(folder / "new.csv").to_dict("records")
    messages = [json.dumps({"row": row}) for row in rows]
    bodies = folder / "bodies.jsonl"
    bodies.write_text("".join(json.dumps({"rows": [row]}) + "\n" for row in rows[:512]))
    found: dict[str, float] = {}
    with server(*ours(folder / "default.ocf")) as (port, pid):

        def rates(what: str, send: Callable[[], float]) -> None:
            begin, begin_cpu = time.perf_counter(), cpu_seconds(pid)
            sent = send()
            wall, cpu = time.perf_counter() - begin, cpu_seconds(pid) - begin_cpu
            found[f"{what}, default: rows per CPU second"] = sent / cpu
            found[f"{what}, default: rows per second of wall time"] = sent / wall

        stream_burst(port, messages[:100])
        rates("WebSocket", lambda: stream_burst(port, messages))
        finished(start_load(port, bodies, clients=CLIENTS, seconds=1.0))
        rates(
            f"POST by {CLIENTS} clients",
            # what comes in the second that does not count costs the service as much
            lambda: _all(finished(start_load(port, bodies, clients=CLIENTS, seconds=seconds))),
        )
    return found


def plain_rate(folder: Path, seconds: float) -> float:
    """Return the requests per CPU second of a server that does nothing with them."""
    bodies = folder / "bodies.jsonl"
    with server(*plain(folder / "default.ocf", "bare")) as (port, pid):
        finished(start_load(port, bodies, clients=CLIENTS, seconds=1.0))
        begin = cpu_seconds(pid)
        sent = _all(finished(start_load(port, bodies, clients=CLIENTS, seconds=seconds)))
        return sent / (cpu_seconds(pid) - begin)


def _all(load: dict[str, float]) -> float:
    return load["per second"] * (load["seconds"] + 1.0)


def stream_burst(port: int, messages: list[str]) -> float:
    """Send messages as fast as they are taken; return how many were answered by scores."""
    with connect(f"ws://127.0.0.1:{port}/v1/stream", compression=None, open_timeout=60) as socket:
        socket.recv()  # ready

        def feed() -> None:
            for message in messages:
                socket.send(message)

        thread = threading.Thread(target=feed)
        thread.start()
        answers = [socket.recv() for _ in messages]
        thread.join()
    return float(sum('"score"' in answer for answer in answers))


def sample_ms(model: Path) -> float:
    """Return the CPU milliseconds of a sample that is scored alone."""
    stream = load(model).stream_
    samples = run_of(N_RUNS).to_numpy()
    taken = []
    with warnings.catch_warnings(action="ignore"):
        for sample in np.concatenate([samples[:100], samples]):
            begin = time.process_time()
            stream.score_one(sample)
            taken.append(time.process_time() - begin)
    return 1e3 * float(np.mean(taken[100:]))


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

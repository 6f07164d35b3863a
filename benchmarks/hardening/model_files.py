"""Mutated model files: refused in words, or loaded; never run, never a crash."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.hardening.guard import BYTES, SECONDS
from benchmarks.hardening.models import WEIGHTS, write_models
from benchmarks.hardening.mutations import KINDS
from benchmarks.report import Report, Table, Target, number

ROOT = Path(__file__).parents[2]
GOOD = (
    "refused",
    "loaded, scores as before",
    "loaded, scores otherwise",
    "loaded, refuses to score",
    "loaded, cannot score",
)


def run(quick: bool) -> Report:
    """Load mutants of every kind and count what became of them."""
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        n, step = 500 if quick else 12_000, 2000  # mutants of one process
        found = [
            one
            for first in range(0, n, step)
            for one in hunted(Path(folder), first, min(n, first + step))
        ]
    return report(found)


def hunted(folder: Path, first: int, end: int) -> list[dict[str, Any]]:
    """Return what became of the mutants of some seeds, loaded in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.hardening.hunt", str(folder), str(first), str(end)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    if done.returncode:
        seed = lines[-1] if lines else "none"
        message = f"exit status {done.returncode}: {done.stderr[-2000:]}"
        crash = {"seed": seed, "model": "?", "kind": "?", "ended": "crash", "message": message}
        found.append({**crash, "seconds": 0.0, "mebibytes": 0.0})
    return found


def bad(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those that became what must not be."""
    return [one for one in found if one["ended"] not in GOOD]


def report(found: list[dict[str, Any]]) -> Report:
    """Return the counts."""
    wrong, slowest = bad(found), max(found, key=lambda one: one["seconds"])
    largest = max(found, key=lambda one: one["mebibytes"])
    by_kind = Counter((one["kind"], one["ended"]) for one in found)
    by_model = Counter((one["model"], one["ended"]) for one in found)
    errors = Counter(
        one["message"].split(":")[0] for one in found if one["ended"] == "loaded, cannot score"
    )
    limits = f"{BYTES / 2**30:.0f} GiB and {SECONDS} s"
    return Report(
        "Mutated model files",
        "Small models of every kind are saved, mutated and loaded, and asked for scores if they "
        "load. Kinds: `bytes` is damage as it happens, the others are forged and have a header "
        "that fits: names and sizes of the archive, the description of the model, its arrays. An "
        "audit hook watches for code, processes, files, sockets and imports that no model needs; "
        f"each process may take {limits} for a file. A seed names a mutant.",
        [
            Target("at least 10,000 files", f"{len(found):,}", len(found) >= 10_000),
            Target(
                "no crash, no code, no wrong error, in time",
                ", ".join(f"{one['seed']}: {one['ended']}" for one in wrong) or "none",
                not wrong,
            ),
            Target(
                "the slowest takes less than a second",
                f"{number(slowest['seconds'])} s ({slowest['model']}, seed {slowest['seed']})",
                slowest["seconds"] < 1,
            ),
            Target(
                "the largest takes less than 100 MiB",
                f"{largest['mebibytes']:.0f} MiB ({largest['model']}, seed {largest['seed']})",
                largest["mebibytes"] < 100,
            ),
        ],
        [
            outcomes("By kind of mutation", by_kind, KINDS, GOOD),
            outcomes("By model", by_model, WEIGHTS, GOOD),
            Table(
                "Errors of models that load and cannot score",
                ["error", "files"],
                [[f"`{name}`", str(n)] for name, n in errors.most_common()],
                "Arrays that no longer fit each other, or attributes that are gone.",
            ),
        ],
        {"bad": wrong, "outcomes": dict(Counter(one["ended"] for one in found))},
    )


def outcomes(
    title: str, counts: Counter[tuple[str, str]], names: Iterable[str], ends: Sequence[str]
) -> Table:
    """Return how often the files of each name ended in each way."""
    rows = [[name, *(str(counts[name, ended]) for ended in ends)] for name in names]
    return Table(title, ["", *ends], rows)

"""Forged states of scikit-learn's estimators: refused, or harmless."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any

from benchmarks.hardening.model_files import ROOT, outcomes
from benchmarks.hardening.trials import BYTES, SECONDS
from benchmarks.report import Report, Target

GOOD = ("refused", "loaded, scores", "loaded, cannot score")


def run(quick: bool) -> Report:
    """Try forged states and count what became of them: ``FORGERIES`` of them, or all."""
    n = 500 if quick else int(os.environ.get("FORGERIES", "0"))
    how = f"`FORGERIES={n}` were drawn, every fourth of two places." if n else "All were tried."
    return report(tried(0, n), how)


def tried(seed: int, n: int) -> list[dict[str, Any]]:
    """Return what became of n forgeries that a seed draws, or of all if n is zero."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.hardening.trials", folder, str(seed), str(n)]
        # A forged n_jobs may ask for workers: as many as there are processors, here one.
        environment = {**os.environ, "LOKY_MAX_CPU_COUNT": "1"}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        message = f"exit status {done.returncode}: {done.stderr[-2000:]}"
        found.append({"model": "?", "what": "?", "ended": "crash", "message": message})
    return found


def bad(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those that became what must not be."""
    return [one for one in found if one["ended"] not in GOOD]


def report(found: list[dict[str, Any]], how: str) -> Report:
    """Return the counts."""
    wrong = bad(found)
    by_class = Counter((_owner(one), one["ended"]) for one in found)
    by_way = Counter((_way(one), one["ended"]) for one in found)
    return Report(
        "Forged states",
        "A fitted instance of every estimator of scikit-learn that a model file may name is "
        "saved. Every attribute, and what is in it, is then made longer, shorter, flat, "
        "transposed, of another type, NaN, negative, huge, shared with another, nested, None or "
        "missing, or an object that does not belong there; the file is sealed again, loaded "
        "and asked for everything it can answer, twice, with other bytes in the memory around. "
        f"Each may take {SECONDS} s and {BYTES / 2**30:.0f} GiB, in a process that may die. {how}",
        [
            Target(
                "no crash, no hang, no answer that changes",
                "; ".join(f"{one['model']}, {one['what']}: {one['ended']}" for one in wrong[:9])
                or f"none of {len(found):,}",
                not wrong,
            ),
        ],
        [
            outcomes("By class", by_class, sorted({name for name, _ in by_class}), GOOD),
            outcomes("By what was done", by_way, sorted({name for name, _ in by_way}), GOOD),
        ],
        {"bad": wrong, "outcomes": dict(Counter(one["ended"] for one in found))},
    )


def _owner(one: dict[str, Any]) -> str:
    """Return the class whose state was forged, the first of two."""
    return re.split(r"[:.(\[]", one["what"].removeprefix("sklearn."))[0]


def _way(one: dict[str, Any]) -> str:
    text: str = one["what"]
    if ";" in text:
        return "two places"
    way = text.partition(": ")[2]
    return way if way.startswith("array") else way.split(" ")[0]

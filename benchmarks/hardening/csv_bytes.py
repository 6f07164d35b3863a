"""Bytes at the door of tables, for some minutes: what the fuzzer tried and found.

What it found stays in build/fuzz, and is where the next run begins. ``FUZZ_SECONDS`` is how long.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Report, Table, Target

ROOT = Path(__file__).parents[2]
SECONDS, QUICK = 300, 20
FOUND, KNOWN = "build/fuzz", "tests/hardening/csv"


def run(quick: bool) -> Report:
    """Let the fuzzer loose, and tell its figures."""
    seconds = QUICK if quick else int(os.environ.get("FUZZ_SECONDS", SECONDS))
    (ROOT / FOUND).mkdir(parents=True, exist_ok=True)
    options = ["-max_len=900", "-timeout=60", "-print_final_stats=1", f"-artifact_prefix={FOUND}/"]
    module = [sys.executable, "-m", "benchmarks.hardening.fuzz_csv"]
    done = subprocess.run(
        [*module, FOUND, KNOWN, f"-max_total_time={seconds}", *options],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return report(done.returncode, done.stderr, seconds)


def report(status: int, told: str, seconds: int) -> Report:
    """Return what libFuzzer told at the end."""
    stats = dict(re.findall(r"stat::(\w+): +(\d+)", told))
    covered = re.findall(r"cov: (\d+)", told)
    return Report(
        "Bytes at the door of tables",
        "atheris changes the bytes of tables, guided by the lines of `ocfuse.tables` that they "
        f"reach, for {seconds} s, and gives each to the reader of tables: it is refused in words, "
        "or read the same in chunks of any size. It begins with the tables in "
        f"`{KNOWN}` and with what earlier runs found.",
        [
            Target(
                "no promise is broken",
                "none" if status == 0 else f"exit status {status}: {told[-300:]!r}",
                status == 0,
            )
        ],
        [
            Table(
                "Figures",
                ["", ""],
                [
                    ["inputs tried", stats.get("number_of_executed_units", "?")],
                    ["kept, as they reach something new", stats.get("new_units_added", "?")],
                    ["edges of code reached", covered[-1] if covered else "?"],
                    ["slowest input (whole seconds)", stats.get("slowest_unit_time_sec", "?")],
                    ["most memory of the process (MB)", stats.get("peak_rss_mb", "?")],
                ],
            )
        ],
        {"stats": stats},
    )

"""What a process costs: seconds and the most memory it held."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

COMMAND = ("-c", "from ocfuse.cli import main; main()")


@dataclass(frozen=True)
class Cost:
    """Wall and CPU seconds, and bytes that were resident at most."""

    wall: float
    cpu: float
    peak: int


def ocfuse(*arguments: object) -> Cost:
    """Run the command as its console script does."""
    return python(*COMMAND, *arguments, "--quiet")


def python(*arguments: object, **options: Any) -> Cost:
    """Run a Python of its own, to its end; options are those of `Popen`."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, arguments)], **options)
    # the usage of this one process, where `getrusage` has the most of all there were
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))} ended with {process.returncode}")
    wall = time.perf_counter() - begin
    return Cost(wall, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)

"""Load a model in a process of its own first: what a file does there, it does to nobody else.

A load has a budget (`ocfuse.persistence.archive`), and what compiled code follows is checked
(`ocfuse.persistence.integrity`). This is for programs that must go on whatever a file holds:
the process has limits of the operating system, and may crash.
"""

import importlib
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ocfuse.exceptions import ModelFileError, OcfuseError
from ocfuse.persistence.file import load
from ocfuse.persistence.header import read_header

if sys.platform != "win32":
    import resource

#: Seconds of a processor that a trial may take, and how much longer it may take by the clock.
SECONDS, PATIENCE = 60.0, 4.0
#: Seconds between looks at whether a trial is to be stopped.
LOOK_SECONDS = 0.1
#: Addresses that a trial may take beyond what it begins with: some, and per byte of the file.
#: Packages reserve gigabytes of them when they are first used, of which they fill little.
FEWEST_BYTES, BYTES_PER_BYTE = 2**32, 16
#: What the process runs: it leaves processors to those who need them now.
BEGIN = (
    f"import os, sys; getattr(os, 'nice', abs)(10); from {__name__} import run; run(*sys.argv[1:])"
)
#: One thread is enough to see whether a model works.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",  # nothing is imported from the folder where it runs
}
#: Killed first where the machine runs out of memory.
FIRST_VICTIM = Path("/proc/self/oom_score_adj")


def try_load(
    path: str | os.PathLike[str],
    use: Callable[[Any], object] | None = None,
    *,
    seconds: float = SECONDS,
    n_bytes: int | None = None,
    stop: threading.Event | None = None,
) -> str:
    """Load a model in a process of its own, and use it there.

    Parameters
    ----------
    path : str or path-like
        The file.
    use : function, default=None
        What to do with the model, a function that a module defines: score a row, for
        instance. Errors of ocfuse in it are about the rows, and pass.
    seconds : float, default=60
        Seconds of a processor that all this may take.
    n_bytes : int, default=None
        Bytes of addresses that it may take. None is 4 GiB, and 16 for every byte of the file.
    stop : threading.Event, default=None
        Ends the trial when it is set: the file is then not loaded.

    Returns
    -------
    str
        The SHA-256 of what was loaded: load the file only if it still is that one.
    """
    source = Path(path)
    if n_bytes is None:
        n_bytes = FEWEST_BYTES + BYTES_PER_BYTE * source.stat().st_size
    name = "" if use is None else f"{use.__module__}:{use.__qualname__}"
    process = _started([str(source.absolute()), name, str(seconds), str(n_bytes)])
    told = _answer(source, process, PATIENCE * seconds, stop or threading.Event())
    if "error" in told:
        raise ModelFileError(str(told["error"]))
    return str(told["sha256"])


def _started(arguments: list[str]) -> "subprocess.Popen[bytes]":
    known = [os.path.abspath(folder) for folder in sys.path if folder]
    try:
        return subprocess.Popen(
            [sys.executable, "-c", BEGIN, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(known)},
        )
    except OSError as error:  # the machine has no room for another process
        raise MemoryError(f"no process could be started: {error.strerror}") from error


def _answer(
    source: Path, process: "subprocess.Popen[bytes]", patience: float, stop: threading.Event
) -> dict[str, Any]:
    """Return what the process says, or refuse a file that keeps it from saying anything."""
    end = time.monotonic() + patience
    output = None
    with process:
        while output is None and not stop.is_set() and time.monotonic() < end:
            with suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=LOOK_SECONDS)
        if output is None:
            process.kill()
    if output is None:
        why = "the trial was stopped" if stop.is_set() else f"a trial took over {patience:g} s"
        raise ModelFileError(f"{source.name} was not loaded: {why}.")
    try:
        told: dict[str, Any] = json.loads(output)
    except ValueError:
        raise ModelFileError(
            f"{source.name} was not loaded: a trial in a process of its own ended without an "
            f"answer ({_end(process.returncode)})."
        ) from None
    return told


def _end(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def run(path: str, use: str, seconds: str, n_bytes: str) -> None:
    """Be the process: load and use a model within limits, and tell on standard output."""
    warnings.simplefilter("ignore")
    function = _function(use)
    _limit(float(seconds), int(n_bytes))
    sys.stdout.write(json.dumps(_outcome(Path(path), function)))


def _function(name: str) -> Callable[[Any], object]:
    if not name:
        return lambda model: None
    module, _, function = name.partition(":")
    found: Callable[[Any], object] = getattr(importlib.import_module(module), function)
    return found


def _limit(seconds: float, n_bytes: int) -> None:
    if FIRST_VICTIM.exists():
        FIRST_VICTIM.write_text("1000")
    if sys.platform == "win32":
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = Path("/proc/self/statm")
    if pages.exists():  # elsewhere the limit of memory is not kept, or not known
        now = int(pages.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + n_bytes, now + n_bytes))


def _outcome(path: Path, use: Callable[[Any], object]) -> dict[str, str]:
    try:
        sha256 = read_header(path).sha256
        model = load(path)
    except OcfuseError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{path.name} was not loaded: {type(error).__name__} in a trial."}
    try:
        use(model)
    except OcfuseError as error:
        if isinstance(error, ModelFileError):
            return {"error": str(error)}
    except Exception as error:
        return {"error": f"{path.name} was loaded, but not used: {type(error).__name__}."}
    return {"sha256": sha256}

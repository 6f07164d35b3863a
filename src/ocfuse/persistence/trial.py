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


def try_load(
    path: str | os.PathLike[str],
    use: Callable[[Any], object] | None = None,
    *,
    seconds: float = 60.0,
    patience: float = 4.0,
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
    patience : float, default=4
        How many times longer it may take by the clock, as on a busy machine.
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
        # packages reserve gigabytes of addresses when they are first used, and fill few of them
        n_bytes = 2**32 + 16 * source.stat().st_size
    name = "" if use is None else f"{use.__module__}:{use.__qualname__}"
    process = _started([str(source.absolute()), name, str(seconds), str(n_bytes)])
    answer = _answer(source, process, patience * seconds, stop or threading.Event())
    if "error" in answer:
        raise ModelFileError(str(answer["error"]))
    return str(answer["sha256"])


def _started(arguments: list[str]) -> "subprocess.Popen[bytes]":
    """Start a process that leaves processors to those who need them now."""
    begin = f"import os, sys; getattr(os, 'nice', abs)(10); from {__name__} import run; "
    try:
        return subprocess.Popen(
            [sys.executable, "-c", f"{begin}run(*sys.argv[1:])", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            env=os.environ
            | {
                # one thread is enough to see whether a model works
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
                "MKL_NUM_THREADS": "1",
                "PYTHONSAFEPATH": "1",  # nothing is imported from the folder where it runs
                "PYTHONPATH": os.pathsep.join(os.path.abspath(f) for f in sys.path if f),
            },
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
                output, _ = process.communicate(timeout=0.1)
        if output is None:
            process.kill()
    if output is None:
        why = "the trial was stopped" if stop.is_set() else f"a trial took over {patience:g} s"
        raise ModelFileError(f"{source.name} was not loaded: {why}.")
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        code = process.returncode
        ending = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise ModelFileError(
            f"{source.name} was not loaded: a trial in a process of its own ended without an "
            f"answer ({ending})."
        ) from None
    return answer


def run(path: str, use: str, seconds: str, n_bytes: str) -> None:
    """Be the process: load and use a model within limits, and print what came of it."""
    warnings.simplefilter("ignore")
    module, _, name = use.partition(":")
    function = getattr(importlib.import_module(module), name) if use else lambda model: None
    _limit(float(seconds), int(n_bytes))
    sys.stdout.write(json.dumps(_outcome(Path(path), function)))


def _limit(seconds: float, n_bytes: int) -> None:
    victim = Path("/proc/self/oom_score_adj")
    if victim.exists():  # killed first where the machine runs out of memory
        victim.write_text("1000")
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

"""What loading a file must not do: run, write, fetch, take long or take much."""

import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds for one file, and bytes beyond those that the process has at the beginning.
SECONDS, BYTES = 20, 2**30
#: Acts that no model needs, by the beginning of their names.
FORBIDDEN = (
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.remove",
    "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "os.putenv", "os.kill", "subprocess.", "pty.", "shutil.", "socket.", "ctypes.", "pickle.",
    "marshal.", "urllib.", "http.", "webbrowser.", "code.", "tempfile.",
)  # fmt: skip
#: Packages that building and asking a model may import.
IMPORTED = frozenset({"ocfuse", "sklearn", "numpy", "scipy", "joblib", "pandas", "threadpoolctl"})


class Overtime(BaseException):
    """No error that anybody may catch and go on."""


class Guard:
    """Note every forbidden act of this process, and do not let it happen."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self._armed = False
        sys.addaudithook(self._heard)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Give the list of acts, which is empty at first."""
        self.acts.clear()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        self._armed = True
        try:
            yield self.acts
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._armed and _is_forbidden(event, arguments):
            self._armed = False  # what follows may do the same
            self.acts.append(f"{event} {arguments!r}"[:300])
            raise PermissionError(f"{event} is not what loading a model does")


def limit() -> None:
    """Limit the time and the memory of this process, and have a crash tell where it was."""
    faulthandler.enable()
    signal.signal(signal.SIGALRM, _end)
    limit_memory(BYTES)


def limit_memory(n_bytes: int) -> None:
    """Let this process take no more than so many bytes from now on, nor leave a dump of them."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + n_bytes, now + n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def begin_peak() -> int:
    """Forget the most memory that this process has had, and return what it has, in bytes."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return peak()


def peak() -> int:
    """Return the most memory that this process has had since, in bytes."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def _end(number: int, frame: Any) -> None:
    raise Overtime


def _is_forbidden(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        mode, flags = arguments[1], arguments[2]
        return bool(mode and set(str(mode)) & set("wax+")) or bool(
            flags & (os.O_WRONLY | os.O_RDWR)
        )
    if event == "import":
        return str(arguments[0]).split(".")[0] not in IMPORTED | sys.stdlib_module_names
    if event == "exec":
        return not os.path.exists(arguments[0].co_filename)
    return event.startswith(FORBIDDEN)

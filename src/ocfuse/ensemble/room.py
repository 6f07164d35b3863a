"""How much memory this process may still take."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import resource

#: A limit this large is none.
UNLIMITED = 2**60
#: Where control groups of both versions are, and what they call their limit and its use.
GROUPS = Path("/sys/fs/cgroup")
UNIFIED = ("memory.max", "memory.current")
FORMER = ("memory.limit_in_bytes", "memory.usage_in_bytes")
#: Of what a group uses, files that were read are given back when memory is needed.
GIVEN_BACK = ("inactive_file", "active_file")


def available_bytes() -> int | None:
    """Return the bytes that can still be had: the least of what the system and limits leave.

    The free memory of the machine, the limits of the control groups (as of a
    container) and that of the address space are looked at. None where none of
    them can be read, as on other systems than Linux.
    """
    found = [_of_machine(), *_of_groups(), _of_address_space()]
    known = [room for room in found if room is not None]
    return max(0, min(known)) if known else None


def _of_machine() -> int | None:
    free = _value(Path("/proc/meminfo"), "MemAvailable:")
    return None if free is None else 1024 * free


def _of_groups() -> Iterator[int | None]:
    """Return what every group leaves that this process is in, up to the root."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, name = line.split(":", 2)
            if number == "0":
                folder, files = GROUPS, UNIFIED
            elif "memory" in controllers.split(","):
                folder, files = GROUPS / "memory", FORMER
            else:
                continue
            own = folder / name.strip("/")
            for group in [own, *own.parents][: len(own.parts) - len(folder.parts) + 1]:
                yield _left(group, *files)


def _left(group: Path, limit: str, used: str) -> int | None:
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit
        most = int((group / limit).read_text())
        if most >= UNLIMITED:
            return None
        return most - int((group / used).read_text()) + _given_back(group / "memory.stat")
    return None


def _given_back(stat: Path) -> int:
    """Return the bytes of files; the former version counts those of groups within as a total."""
    found = 0
    for name in GIVEN_BACK:
        total = _value(stat, f"total_{name}")
        found += (_value(stat, name) or 0) if total is None else total
    return found


def _of_address_space() -> int | None:
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= UNLIMITED:
        return None
    used = _value(Path("/proc/self/status"), "VmSize:")
    return None if used is None else limit - 1024 * used


def _value(path: Path, name: str) -> int | None:
    """Return the number that follows a name at the beginning of a line."""
    with suppress(OSError, ValueError):
        for line in path.read_text(encoding="ascii").splitlines():
            words = line.split()
            if words and words[0] == name:
                return int(words[1])
    return None

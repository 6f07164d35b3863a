"""How many bytes of memory this process may still take.

Plans of fits and the features of pictures are both held against this one number.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import resource

#: A limit this large is none.
UNLIMITED = 2**60


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the bytes that can still be had: the least of what the system and limits leave.

    These are the free memory of the machine, the limits of the control groups (as of a
    container or a service) and that of the address space, read in ``proc`` and ``sys`` below the
    root. None where none of these can be read, as on other systems than Linux.
    """
    free = _value(root / "proc/meminfo", "MemAvailable:")
    found = [None if free is None else 1024 * free, *_of_groups(root), _of_address_space(root)]
    known = [left for left in found if left is not None]
    return max(0, min(known)) if known else None


def _of_groups(root: Path) -> Iterator[int | None]:
    """Return what every group leaves that this process is in, up to the root of groups.

    Inside a container the group may have the name that it has outside; limits of groups
    above hold as well.
    """
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            number, controllers, name = line.split(":", 2)
            if number == "0":  # control groups of version 2
                place, limit, used = "", "memory.max", "memory.current"
            elif "memory" in controllers.split(","):  # and of version 1
                place, limit, used = "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            else:
                continue
            inner = Path(name.strip("/"))
            for group in [inner, *inner.parents]:
                yield _of_group(root / "sys/fs/cgroup" / place / group, limit, used)


def _of_group(group: Path, limit: str, used: str) -> int | None:
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit
        left = int((group / limit).read_text())
        if left >= UNLIMITED:
            return None
        left -= int((group / used).read_text())
        for name in ("inactive_file", "active_file"):  # given back when memory is needed
            # version 1 counts files of groups within as a total
            total = _value(group / "memory.stat", f"total_{name}")
            left += (_value(group / "memory.stat", name) or 0) if total is None else total
        return left
    return None


def _of_address_space(root: Path) -> int | None:
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= UNLIMITED:
        return None
    used = _value(root / "proc/self/status", "VmSize:")
    return None if used is None else limit - 1024 * used


def _value(path: Path, name: str) -> int | None:
    """Return the number that follows a name at the beginning of a line."""
    with suppress(OSError, ValueError):
        for line in path.read_text(encoding="ascii").splitlines():
            words = line.split()
            if words and words[0] == name:
                return int(words[1])
    return None

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
#: Where control groups of version 2 and 1 are, and what they call their limit and its use.
VERSION_2 = ("sys/fs/cgroup", "memory.max", "memory.current")
VERSION_1 = ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
#: Of what a group uses, files that were read are given back when memory is needed.
GIVEN_BACK = ("inactive_file", "active_file")


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the bytes that can still be had: the least of what the system and limits leave.

    The free memory of the machine, the limits of the control groups (as of a
    container or a service) and that of the address space are looked at.

    Parameters
    ----------
    root : Path
        Folder in which the system's ``proc`` and ``sys`` are.

    Returns
    -------
    int or None
        The bytes, at least 0; None where none of these can be read, as on other systems
        than Linux.
    """
    found = [_of_machine(root), *_of_groups(root), _of_address_space(root)]
    known = [left for left in found if left is not None]
    return max(0, min(known)) if known else None


def _of_machine(root: Path) -> int | None:
    free = _value(root / "proc/meminfo", "MemAvailable:")
    return None if free is None else 1024 * free


def _of_groups(root: Path) -> Iterator[int | None]:
    """Return what every group leaves that this process is in, up to the root of groups.

    Inside a container the group may have the name that it has outside; limits of groups
    above hold as well.
    """
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            number, controllers, name = line.split(":", 2)
            if number == "0":
                place, *files = VERSION_2
            elif "memory" in controllers.split(","):
                place, *files = VERSION_1
            else:
                continue
            inner = Path(name.strip("/"))
            for group in [inner, *inner.parents]:
                yield _of_group(root / place / group, *files)


def _of_group(group: Path, limit: str, used: str) -> int | None:
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit
        most = int((group / limit).read_text())
        if most >= UNLIMITED:
            return None
        return most - int((group / used).read_text()) + _given_back(group / "memory.stat")
    return None


def _given_back(stat: Path) -> int:
    """Return the bytes of files; version 1 counts those of groups within as a total."""
    found = 0
    for name in GIVEN_BACK:
        total = _value(stat, f"total_{name}")
        found += (_value(stat, name) or 0) if total is None else total
    return found


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

"""Whether there is room in memory for what is to be learned."""

from collections.abc import Iterator
from pathlib import Path

from ocfuse.exceptions import InvalidInputError

#: What a fit needs beside the features: as much as those of so many pictures, and so many bytes
#: at least. Models and their copies are as large as the maps are.
WORKING_PICTURES, LEAST_WORKING = 8000, 100e6
#: By the name of a controller of Linux: the folder of its groups, and in that of one group the
#: files with the limit and the use, and the field of memory.stat that can be given up.
CONTROLLERS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


def require_room(n_pictures: int, n_held: int, bytes_each: float) -> None:
    """Refuse to begin, or to go on, with more features than there is memory for.

    Parameters
    ----------
    n_pictures : int
        All pictures, or those so far if nobody knows how many will come.
    n_held : int
        Those whose features are in memory already.
    bytes_each : float
        What the features of one picture take.
    """
    free, working = free_memory(), working_memory(bytes_each)
    if free is not None and (n_pictures - n_held) * bytes_each + working > free:
        most = max(int((free - working) / bytes_each) + n_held, 0)
        raise InvalidInputError(
            f"The features of {n_pictures:,} pictures take {n_pictures * bytes_each / 1e9:.2f} GB, "
            f"learning {working / 1e9:.2f} GB more, and {free / 1e9:.2f} GB of memory are free: "
            f"enough for about {most:,} pictures. Learn from fewer (every second frame of each "
            "run, say) or at a smaller size of the network's input."
        )


def working_memory(bytes_each: float) -> float:
    """Return what a fit needs beside the features, from the bytes of those of one picture."""
    return max(WORKING_PICTURES * bytes_each, LEAST_WORKING)


def free_memory(root: Path = Path("/")) -> float | None:
    """Return how many bytes of memory can still be had, if the system tells.

    That is what the machine has left, or what a container or service may still take, if that
    is less.
    """
    return min([*_of_machine(root), *_of_limits(root)], default=None)


def _of_machine(root: Path) -> Iterator[float]:
    try:
        yield 1024 * _field(root / "proc/meminfo", "MemAvailable:")
    except (OSError, KeyError, ValueError):
        return


def _of_limits(root: Path) -> Iterator[float]:
    """Yield what is left below the limit of each group that this process is in."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for controller, group in (line.split(":", 2)[1:] for line in lines):
        if controller in CONTROLLERS:
            place, *names = CONTROLLERS[controller]
            # inside a container the group may have the name that it has outside: all above it
            # are looked at, too, as their limits hold as well
            inner = Path(group.lstrip("/"))
            for folder in {inner, *inner.parents}:
                yield from _left(root / place / folder, *names)


def _left(folder: Path, limit: str, use: str, spare: str) -> Iterator[float]:
    try:
        most, used = (float((folder / name).read_text()) for name in (limit, use))
        yield most - used + _field(folder / "memory.stat", spare)
    except (OSError, KeyError, ValueError):  # "max": no limit
        return


def _field(path: Path, name: str) -> float:
    return float(dict(line.split()[:2] for line in path.read_text().splitlines())[name])

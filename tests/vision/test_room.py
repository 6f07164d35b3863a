"""How much memory can still be had: of the machine, or of a container in it."""

import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.vision import room

TWO = {
    "memory.max": "800\n",
    "memory.current": "600\n",
    "memory.stat": "anon 9\ninactive_file 50\n",
}
ONE = {
    "memory.limit_in_bytes": "800\n",
    "memory.usage_in_bytes": "600\n",
    "memory.stat": "inactive_file 7\ntotal_inactive_file 50\n",
}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.fixture
def machine(tmp_path):
    """Return the root of a machine with a megabyte."""
    write(tmp_path / "proc", {"meminfo": "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n"})
    return tmp_path


def test_the_system_tells_its_memory(machine, tmp_path):
    free = room.free_memory()
    assert free is None or free > 1e6
    assert room.free_memory(machine) == 2**20
    assert room.free_memory(tmp_path / "no Linux") is None


@pytest.mark.parametrize(
    ("group", "place", "files"),
    [
        ("0::/", "", TWO),
        ("0::/system.slice/watch.service", "system.slice/watch.service", TWO),
        ("0::/system.slice/watch.service", "system.slice", TWO),
        ("3:cpu,cpuacct:/x\n4:memory:/docker/1f", "memory/docker/1f", ONE),
        ("4:memory:/docker/1f\n0::/", "memory", ONE),
    ],
    ids=["container", "service", "slice", "old group", "old container"],
)
def test_the_limit_of_a_container_counts(machine, group, place, files):
    write(machine / "proc" / "self", {"cgroup": group + "\n"})
    write(machine / "sys/fs/cgroup" / place, files)
    assert room.free_memory(machine) == 250
    write(machine / "sys/fs/cgroup" / place, {next(iter(files)): "9" * 15})
    assert room.free_memory(machine) == 2**20


def test_no_limit_at_all(machine):
    write(machine / "proc" / "self", {"cgroup": "0::/\n"})
    write(machine / "sys/fs/cgroup", TWO | {"memory.max": "max\n"})
    assert room.free_memory(machine) == 2**20


def test_what_learning_takes_grows_with_the_features(monkeypatch):
    """Few small pictures need little, and large ones more than their features."""
    monkeypatch.setattr(room, "free_memory", lambda: 350e6)
    room.require_room(10, 0, 37e3)  # of the default network
    with pytest.raises(InvalidInputError, match=r"0\.00 GB, learning 0\.87 GB more, and 0\.35 GB"):
        room.require_room(10, 0, 109e3)  # with 224 x 224 pixels
    with pytest.raises(InvalidInputError, match="enough for about 1,459 pictures"):
        room.require_room(3400, 0, 37e3)
    room.require_room(3400, 2000, 37e3)

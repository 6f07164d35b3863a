"""How many bytes can still be had: of the machine, or of a container or service in it."""

import resource
import subprocess
import sys

import pytest

from ocfuse.system import memory

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
GROUPS = "sys/fs/cgroup"


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return the root of a machine with a megabyte, where this process has no limit."""
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(memory.resource, "getrlimit", lambda kind: infinite)
    write(tmp_path / "proc/self", {"cgroup": "0::/\n", "status": "VmSize: 3 kB\n"})
    write(tmp_path / "proc", {"meminfo": "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n"})
    return tmp_path


def test_the_system_tells_its_memory(machine):
    found = memory.available_bytes()
    assert found is None or found > 1e6
    assert memory.available_bytes(machine) == 2**20


def test_nothing_is_known_where_nothing_can_be_read(machine):
    assert memory.available_bytes(machine / "no Linux") is None


def test_the_limit_of_the_address_space_counts(machine, monkeypatch):
    monkeypatch.setattr(memory.resource, "getrlimit", lambda kind: (9000, 9000))
    assert memory.available_bytes(machine) == 9000 - 3 * 1024
    code = (
        "import resource; from ocfuse.system.memory import available_bytes as left; "
        "resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9, 4 * 10**9)); print(left())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(found.stdout) < 4 * 10**9


@pytest.mark.parametrize(
    ("group", "place", "files"),
    [
        ("0::/", "", TWO),
        ("0::/system.slice/watch.service", "system.slice/watch.service", TWO),
        ("0::/system.slice/watch.service", "system.slice", TWO),
        ("0::/system.slice/watch.service", "", TWO),
        ("3:cpu,cpuacct:/x\n4:memory:/docker/1f", "memory/docker/1f", ONE),
        ("4:cpu,memory:/docker/1f", "memory/docker/1f", ONE),
        ("4:memory:/docker/1f\n0::/", "memory", ONE),
    ],
    ids=["container", "service", "slice", "root", "old group", "two controllers", "old container"],
)
def test_the_limit_of_a_container_counts(machine, group, place, files):
    write(machine / "proc" / "self", {"cgroup": group + "\n"})
    write(machine / GROUPS / place, files)
    assert memory.available_bytes(machine) == 250
    write(machine / GROUPS / place, {next(iter(files)): "9" * 15})
    assert memory.available_bytes(machine) == 2**20


@pytest.mark.parametrize("limit", ["max\n", str(2**63 - 4096), ""])
def test_a_group_without_a_limit_leaves_everything(machine, limit):
    write(machine / GROUPS, TWO | {"memory.max": limit})
    assert memory.available_bytes(machine) == 2**20


def test_files_that_were_read_are_given_back(machine):
    write(machine / GROUPS, TWO | {"memory.stat": "anon 500\n"})
    assert memory.available_bytes(machine) == 200
    write(machine / GROUPS, {"memory.stat": "anon 500\ninactive_file 120\nactive_file 30\n"})
    assert memory.available_bytes(machine) == 350


def test_an_exhausted_limit_leaves_nothing(machine):
    write(machine / GROUPS, TWO | {"memory.current": "900\n"})
    assert memory.available_bytes(machine) == 0

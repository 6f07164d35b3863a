"""What memory is left, where the system tells."""

import resource
from pathlib import Path

import pytest

from ocfuse.ensemble import room


@pytest.mark.slow
def test_the_limit_of_the_address_space_counts():
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, before[1]))
    try:
        left = room.available_bytes()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert 10**8 < left <= 10**9


def test_nothing_is_known_where_nothing_can_be_read(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "_value", lambda path, name: None)
    monkeypatch.setattr(room, "GROUPS", tmp_path)
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(room.resource, "getrlimit", lambda kind: infinite)
    assert room.available_bytes() is None


@pytest.mark.parametrize("files", [room.UNIFIED, room.FORMER])
def test_a_group_leaves_its_limit_less_its_use_and_files_are_given_back(tmp_path, files):
    limit, used = files
    (tmp_path / limit).write_text("1000\n")
    (tmp_path / used).write_text("700\n")
    assert room._left(tmp_path, *files) == 300
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 120\nactive_file 30\n")
    assert room._left(tmp_path, *files) == 450


def test_files_of_the_groups_within_are_given_back_too(tmp_path):
    for name, content in zip(room.FORMER, ("1000", "700"), strict=True):
        (tmp_path / name).write_text(content)
    (tmp_path / "memory.stat").write_text("inactive_file 0\ntotal_inactive_file 600\n")
    assert room._left(tmp_path, *room.FORMER) == 900


@pytest.mark.parametrize("limit", ["max", str(2**63 - 4096), ""])
def test_a_group_without_a_limit_leaves_everything(tmp_path, limit):
    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text("700")
    assert room._left(tmp_path, *room.UNIFIED) is None
    assert room._left(tmp_path / "absent", *room.UNIFIED) is None


def test_an_exhausted_limit_leaves_nothing(monkeypatch):
    monkeypatch.setattr(room, "_of_groups", lambda: iter([-5]))
    assert room.available_bytes() == 0

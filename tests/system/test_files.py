"""Files are written whole or not at all, and one process at a time writes into a folder."""

import fcntl
import json
import multiprocessing
import os
import socket
import stat
import sys

import pytest

from ocfuse.exceptions import FolderInUseError
from ocfuse.system import files
from ocfuse.system.files import (
    BEGUN_HERE,
    LOCK,
    Holder,
    LineFile,
    folder_lock,
    is_unicode,
    read_whole,
    replacing,
    write_atomically,
)


def test_an_old_file_is_replaced(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch, error):
    target = tmp_path / "a"
    target.write_bytes(b"old")

    def fail(number):
        raise error

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(type(error)):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*none"):
        write_atomically(tmp_path / "none" / "a", b"")


def test_an_error_names_the_file_that_the_user_knows(tmp_path, monkeypatch):
    def fail(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(tmp_path / "a", b"new")
    assert caught.value.filename == str(tmp_path / "a")


def test_a_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", lambda number: synced.append(os.fstat(number).st_mode))
    write_atomically(tmp_path / "a", b"new")
    assert [stat.S_ISDIR(mode) for mode in synced] == [False, True]


def test_leftovers_of_the_dead_are_removed_and_those_of_other_machines_stay(tmp_path):
    dead, elsewhere, theirs = (
        tmp_path / name for name in (f"{BEGUN_HERE}0.part", ".ocfuse-0-1.part", ".x.part")
    )
    for path in (dead, elsewhere, theirs):
        path.write_bytes(b"half")
    with replacing(tmp_path / "slow") as file:
        file.write(b"slow")
        assert not dead.exists()
        write_atomically(tmp_path / "quick", b"quick")  # and takes nothing from the slow one
    assert {path.name for path in tmp_path.iterdir()} == {
        *("slow", "quick", ".ocfuse-0-1.part", ".x.part")
    }


def test_a_file_that_was_taken_for_abandoned_is_begun_again(tmp_path, monkeypatch):
    lock, taken = fcntl.flock, []

    def late(number, how):
        if not taken:  # somebody was quicker
            (part,) = tmp_path.glob(".ocfuse-*.part")
            taken.append(part.unlink())
        lock(number, how)

    monkeypatch.setattr("fcntl.flock", late)
    write_atomically(tmp_path / "a", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b'{"a": 1}\n', b'{"a": 1}\n'),
        (b'{"a": 1}\n{"a": 2, "b', b'{"a": 1}\n'),
        (b'{"a": 1}', b'{"a": 1}\n'),
        (b"pump, bar", b"pump, bar\n"),
        (b"{" * (2**20 + 1), b"{" * (2**20 + 1) + b"\n"),
    ],
)
def test_lines_begin_where_a_whole_one_ended(tmp_path, before, after):
    path = tmp_path / "events"
    path.write_bytes(before)
    file = LineFile(path)
    file.write(b"{}\n")
    file.close()
    assert path.read_bytes() == after + b"{}\n"


def test_lines_go_into_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    file = LineFile(tmp_path / "pipe")
    file.write(b"{}\n")
    assert os.read(reader, 9) == b"{}\n"
    os.close(reader)
    with pytest.raises(BrokenPipeError, match="pipe"):
        file.write(b"{}\n")
    file.close()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    """Also while it is written: a model holds rows of training."""
    target = tmp_path / "a"
    target.write_bytes(b"old")
    target.chmod(mode)
    with replacing(target) as file:
        assert stat.S_IMODE(os.stat(file.name).st_mode) == mode | stat.S_IWUSR
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_a_new_file_has_the_permissions_that_the_user_wants(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_what_is_read_whole_is_a_file_of_bounded_size(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_whole(path) == read_whole(path, 5) == b"12345"
    with pytest.raises(OSError, match="5 bytes, at most 4"):
        read_whole(path, 4)
    with pytest.raises(IsADirectoryError):
        read_whole(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_whole(tmp_path / "none")


def test_text_that_a_file_can_hold():
    assert is_unicode("caf\u00e9 \U0001f600")
    assert not is_unicode("\ud800")


def hold(folder, pipe):
    with folder_lock(folder):
        pipe.send(os.getpid())
        pipe.recv()


def try_often(folder, diary, n):
    """Enter now and then, and note when two are inside."""
    entered = 0
    while entered < n:
        try:
            with folder_lock(folder):
                inside = os.open(diary / "inside", os.O_CREAT | os.O_EXCL)
                os.close(inside)
                (diary / "inside").unlink()
                entered += 1
        except FolderInUseError:
            continue
        except FileExistsError:
            (diary / "crowd").touch()


def started(function, *args):
    child = multiprocessing.get_context("forkserver").Process(target=function, args=args)
    child.start()
    return child


def leave_lock(folder, **changes):
    """Put down what a process leaves that was killed."""
    left = {"token": "x", "host": socket.gethostname(), "pid": 4711, "since": "noon"} | changes
    (folder / LOCK).write_text(json.dumps(left))


def test_nothing_stays(tmp_path):
    with folder_lock(tmp_path) as holder:
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
        assert Holder.of((tmp_path / LOCK).read_bytes()) == holder
    with pytest.raises(KeyboardInterrupt), folder_lock(tmp_path):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_second_one_is_told_of_the_first(tmp_path):
    with folder_lock(tmp_path) as first:
        for _ in range(2):  # to ask does no harm
            with pytest.raises(FolderInUseError, match=rf"process {os.getpid()} of") as caught:
                folder_lock(tmp_path).__enter__()
            assert str(first) in str(caught.value)
            assert "remove" not in str(caught.value)
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    with folder_lock(tmp_path):
        pass


def test_a_killed_process_is_succeeded(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    child = started(hold, tmp_path, theirs)
    try:
        pid = ours.recv()
        with pytest.raises(FolderInUseError, match=rf"process {pid} of"), folder_lock(tmp_path):
            pass
    finally:
        child.kill()
        child.join()
    assert (tmp_path / LOCK).exists()
    with folder_lock(tmp_path) as holder:
        assert Holder.of((tmp_path / LOCK).read_bytes()) == holder
    assert list(tmp_path.iterdir()) == []


def test_what_another_machine_left_is_for_the_user_to_judge(tmp_path):
    leave_lock(tmp_path, host="elsewhere")
    with (
        pytest.raises(
            FolderInUseError,
            match=rf"process 4711 of elsewhere, since noon.*there.*remove .*{LOCK}",
        ),
        folder_lock(tmp_path),
    ):
        pass
    (tmp_path / LOCK).unlink()
    with folder_lock(tmp_path):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": 1}'])
def test_what_cannot_be_read_is_for_the_user_too(tmp_path, content):
    (tmp_path / LOCK).write_text(content)
    with pytest.raises(FolderInUseError, match=r"another process.*remove"), folder_lock(tmp_path):
        pass
    assert (tmp_path / LOCK).read_text() == content


def test_whoever_was_succeeded_leaves_the_lock_alone(tmp_path):
    with folder_lock(tmp_path):
        (tmp_path / LOCK).unlink()  # by hand
        second = folder_lock(tmp_path)
        holder = second.__enter__()
    assert Holder.of((tmp_path / LOCK).read_bytes()) == holder
    second.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


def test_file_systems_without_links_or_locks(tmp_path, monkeypatch):
    def fail(*args):
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    with folder_lock(tmp_path):
        with pytest.raises(FolderInUseError), folder_lock(tmp_path):
            pass
        monkeypatch.setattr(files, "locked", lambda file: None)
        with pytest.raises(FolderInUseError, match="not run here any more"), folder_lock(tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []
    leave_lock(tmp_path)
    with (
        pytest.raises(FolderInUseError, match=r"4711.*not run here any more"),
        folder_lock(tmp_path),
    ):
        pass


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"none.*{LOCK}"), folder_lock(tmp_path / "none"):
        pass


def test_two_are_never_inside(tmp_path):
    folder, diary = tmp_path / "folder", tmp_path / "diary"
    folder.mkdir()
    diary.mkdir()
    leave_lock(folder)
    children = [started(try_often, folder, diary, 40) for _ in range(2)]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert list(diary.iterdir()) == []
    assert list(folder.iterdir()) == []

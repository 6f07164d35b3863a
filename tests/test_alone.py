"""One process at a time in a folder: who has it is told, and what the dead left is taken over."""

import json
import multiprocessing
import os
import socket

import pytest

from ocfuse.exceptions import FolderInUseError
from ocfuse.system import files
from ocfuse.system.files import LOCK, Holder, folder_lock


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

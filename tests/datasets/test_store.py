"""Downloads against a small server of our own: whole, broken, wrong, absent."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from ocfuse.datasets import fetch
from ocfuse.datasets import store as module
from ocfuse.datasets.store import download
from ocfuse.exceptions import DatasetError, DatasetUnavailableError, MissingPackageError
from ocfuse.system import packages

BODY = bytes(range(256)) * 1000


def accept(path):
    """Verify by content."""
    if path.read_bytes() != BODY:
        raise DatasetError(f"expected {len(BODY)} bytes, got {path.stat().st_size} other ones")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "cache" / "set.zip"


@pytest.fixture
def part(target):
    return target.with_name("set.zip.part")


def get(server, target, timeout=60.0):
    download(server.url("set.zip"), target, accept, timeout)


def test_good_file(server, target, part):
    server.body = BODY
    get(server, target)
    assert target.read_bytes() == BODY
    assert server.asked == [None]
    assert not part.exists()


def test_what_is_here_is_not_asked_for(server, target):
    server.body = BODY
    get(server, target)
    get(server, target)
    assert server.asked == [None]


def test_wrong_content_is_removed_and_told(server, target, part):
    server.body = b"something else"
    with pytest.raises(DatasetError, match=r"set.zip sent was removed. expected 256000 bytes, got"):
        get(server, target)
    assert list(target.parent.iterdir()) == []
    server.body = BODY
    get(server, target)
    assert target.read_bytes() == BODY


def test_broken_connection_is_resumed_in_the_same_call(server, target):
    server.body = BODY
    server.faults = {1: "cut", 2: "cut"}
    get(server, target)
    assert target.read_bytes() == BODY
    assert server.asked == [None, "bytes=128000-", "bytes=192000-"]


def test_broken_connection_is_resumed_by_a_later_call(server, target, part):
    server.body = BODY
    server.faults = {1: "cut", 2: "cut", 3: "cut"}
    with pytest.raises(
        DatasetUnavailableError, match=r"of 256000 bytes arrived. A later call goes"
    ):
        get(server, target)
    assert not target.exists()
    kept = part.stat().st_size
    assert kept == 224000
    get(server, target)
    assert target.read_bytes() == BODY
    assert server.asked[-1] == f"bytes={kept}-"


def test_server_that_resumes_nothing(server, target, part):
    server.body = BODY
    server.faults = {1: "cut", "always": "no range"}
    get(server, target)
    assert target.read_bytes() == BODY


def test_part_that_is_already_whole(server, target, part):
    server.body = BODY
    part.parent.mkdir()
    part.write_bytes(BODY)
    get(server, target)
    assert target.read_bytes() == BODY
    assert server.asked == ["bytes=256000-"]


def test_part_of_a_longer_file_is_dropped(server, target, part):
    server.body = BODY
    part.parent.mkdir()
    part.write_bytes(BODY + b"x")
    get(server, target)
    assert target.read_bytes() == BODY
    assert server.asked == ["bytes=256001-", None]


def test_part_of_another_file_is_found_out(server, target, part):
    server.body = BODY
    part.parent.mkdir()
    part.write_bytes(b"y" * 1000)
    with pytest.raises(DatasetError, match="removed"):
        get(server, target)
    get(server, target)
    assert target.read_bytes() == BODY


def test_404(server, target):
    server.faults = {"always": 404}
    with pytest.raises(DatasetUnavailableError, match=r"set.zip cannot be fetched: .* 404 Not Fo"):
        get(server, target)
    assert len(server.asked) == 1
    assert list(target.parent.iterdir()) == []


@pytest.fixture
def pauses(monkeypatch):
    """Return the pauses that were made, without making them."""
    made = []
    monkeypatch.setattr(module.time, "sleep", made.append)
    return made


def test_server_that_fails_is_asked_again_after_a_second(server, target, pauses):
    server.body = BODY
    server.faults = {1: 503}
    get(server, target)
    assert target.read_bytes() == BODY
    assert pauses == [1.0]
    assert len(server.asked) == 2


def test_server_that_fails_for_good_is_asked_twice(server, target, pauses):
    server.faults = {"always": 500}
    with pytest.raises(DatasetUnavailableError, match=r"set.zip cannot be fetched: .* 500 Intern"):
        get(server, target)
    assert len(server.asked) == 2
    assert list(target.parent.iterdir()) == []


def test_failure_of_the_server_keeps_what_has_arrived(server, target, part, pauses):
    server.body = BODY
    server.faults = {1: "cut", 2: 502, 3: 502}
    with pytest.raises(DatasetUnavailableError, match="502"):
        get(server, target)
    assert part.read_bytes() == BODY[:128000]
    get(server, target)
    assert server.asked[-1] == "bytes=128000-"


def test_interruption_keeps_what_has_arrived(server, target, part):
    server.body = BODY

    def interrupt(path):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url("set.zip"), target, interrupt)
    assert part.read_bytes() == BODY
    get(server, target)
    assert server.asked[-1] == "bytes=256000-"


def test_threads_do_not_disturb_each_other(server, target, part):
    """All start at once, over half a file that a break has left; one of them goes on with it."""
    server.body = BODY
    server.faults = {"always": "slow"}
    part.parent.mkdir()
    part.write_bytes(BODY[:1000])
    errors = []
    start = threading.Barrier(4, timeout=60)

    def work():
        start.wait()
        try:
            get(server, target)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]
    assert server.asked.count("bytes=1000-") == 1


CHILD = """
import sys
from pathlib import Path
from ocfuse.datasets.store import download
import pooch
print("ready", flush=True)
sys.stdin.read(1)
download(sys.argv[1], Path(sys.argv[2]), lambda path: None)
"""


@pytest.mark.slow
def test_processes_do_not_disturb_each_other(server, target):
    server.body = BODY
    server.faults = {"always": "slow"}
    arguments = [sys.executable, "-c", CHILD, server.url("set.zip"), str(target)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    children = [subprocess.Popen(arguments, text=True, **pipes) for _ in range(2)]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 2
    for child in children:
        child.stdin.write("x")
        child.stdin.flush()
    told = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], told
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]


def test_folder_that_cannot_be_made(folder, monkeypatch):
    file = folder / "file"
    file.touch()
    monkeypatch.setenv("OCFUSE_CACHE", str(file / "below"))
    with pytest.raises(DatasetUnavailableError) as caught:
        fetch("iris")
    place = file / "below" / "uci"
    assert f"The folder {place} for downloads cannot be made: Not a dir" in str(caught.value)
    assert "OCFUSE_CACHE" in str(caught.value)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_to(server, target):
    target.parent.mkdir(mode=0o500)
    with pytest.raises(DatasetUnavailableError, match=str(target.parent)):
        get(server, target)


def test_timeout(server, target):
    server.faults = {"always": "silent"}
    with pytest.raises(DatasetUnavailableError, match=r"set.zip does not answer in time"):
        get(server, target, timeout=0.1)
    assert len(server.asked) == 3


def test_offline(target, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/set.zip"
        with pytest.raises(DatasetUnavailableError, match=r"set.zip cannot be reached .*network"):
            download(url, target, accept, timeout=1.0)


def test_missing_pooch_names_the_extra(target, monkeypatch):
    monkeypatch.setattr(packages.importlib, "import_module", _refuse)
    with pytest.raises(MissingPackageError, match=r"pooch is needed .*\[tool\]"):
        download("http://127.0.0.1/set.zip", target, accept)


def _refuse(name):
    raise ImportError(name)

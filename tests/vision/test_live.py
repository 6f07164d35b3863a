"""Frames that come while one watches: queue, cameras, addresses, progress."""

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.vision import open_frames
from ocfuse.vision.live import FrameQueue, LatestNumber, StallError
from tests.vision.cases import needs
from tests.vision.framecases import numbered, run_frames, write_video


class Clock:
    """A clock that stands still until it is set, and counts how often it is read."""

    def __init__(self):
        self.now, self.n_reads = 0.0, 0

    def __call__(self):
        self.n_reads += 1
        return self.now

    def wait_for_reads(self, n=2):
        enough = self.n_reads + n
        until(lambda: self.n_reads >= enough)


@pytest.fixture
def clock(monkeypatch):
    """Return the clock that the queue and the progress read."""
    clock = Clock()
    monkeypatch.setattr("ocfuse.vision.live.monotonic", clock)
    return clock


class Camera:
    """Frames of a generator, which are lost if nobody takes them."""

    is_live = True

    def __init__(self, frames):
        self.frames = frames

    def __iter__(self):
        return iter(self.frames)

    def __str__(self):
        return "camera 0"


def test_of_a_file_every_frame_is_taken_however_slowly():
    queue = FrameQueue(numbered(40))
    taken = []
    for frame in queue:
        taken.append(frame.index)
        time.sleep(0.001)  # the reader has time to run ahead
    assert taken == list(range(40))
    assert queue.n_dropped == 0


def test_of_a_camera_the_oldest_frames_are_dropped_and_counted():
    has_given = threading.Event()

    def frames():
        yield numbered(1)[0]
        yield from numbered(30)[1:]
        has_given.set()

    queue = FrameQueue(Camera(frames()))
    taken, gaps = [], []
    for frame in queue:
        has_given.wait(60)  # while the first frame is scored all others come
        taken.append(frame.index)
        gaps.append(frame.n_dropped)
    assert taken[-FrameQueue.live_depth :] == list(range(30))[-FrameQueue.live_depth :]
    assert len(taken) + queue.n_dropped == sum(1 + n for n in gaps) == 30
    assert np.diff(taken).tolist() == [1 + n for n in gaps[1:]]
    assert len(taken) <= 1 + FrameQueue.live_depth


def test_what_breaks_the_source_is_told_after_its_last_frame():
    def breaking():
        yield from numbered(3)
        raise InvalidInputError("unplugged")

    taken = iter(FrameQueue(breaking()))
    assert [next(taken).index for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InvalidInputError, match="unplugged"):
        next(taken)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_queue_can_be_closed_and_its_thread_ends(is_full):
    forever = threading.Event()

    def frames():
        yield from numbered(30 if is_full else 1)
        forever.wait()

    before = set(threading.enumerate())
    queue = FrameQueue(frames())
    for _ in queue:
        threading.Timer(0.05, queue.close).start()
    forever.set()
    until(lambda: set(threading.enumerate()) <= before)


def test_a_camera_that_stalls_is_given_up_and_a_slow_one_is_not(clock):
    forever = threading.Event()

    def frames():
        for frame in numbered(4):
            yield frame
            clock.wait_for_reads()  # the frame was taken
            clock.now += 0.25
            clock.wait_for_reads()  # and the silence was seen
        clock.now += 0.1
        forever.wait()

    def score(frame):
        taken.append(frame.index)
        if len(taken) == 1:
            clock.now += 0.35  # it may take longer than a camera may be silent

    taken, queue = [], FrameQueue(Camera(frames()), timeout=0.3)
    with pytest.raises(StallError, match=r"camera 0 has given no frame for 0\.3 s"):
        list(map(score, queue))
    forever.set()
    assert taken == [0, 1, 2, 3]


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


# -- cameras and addresses ---------------------------------------------------


def test_an_address_is_live_and_read_once(tmp_path):
    needs("av")
    path = write_video(tmp_path / "run.mkv", run_frames(0)[:5])
    source = open_frames(f"file://{path}", progress=lambda: 0.5)
    assert source.is_live
    assert source.is_sequence
    assert [(frame.index, frame.progress) for frame in source] == [(i, 0.5) for i in range(5)]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (77, "camera 77 cannot be opened"),
        ("77", "camera 77 cannot be opened"),
        ("rtsp://127.0.0.1:9/none", "Check the address"),
    ],
)
def test_what_cannot_be_opened(where, reason):
    needs("av")
    with pytest.raises(InvalidInputError, match=reason):
        open_frames(where)


def test_a_file_with_a_number_for_a_name_is_no_camera(tmp_path, monkeypatch):
    needs("av")
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "run.mkv", run_frames(0)[:3]).rename(tmp_path / "0")
    assert not open_frames("0").is_live


def test_a_platform_without_cameras(monkeypatch):
    monkeypatch.setattr("ocfuse.vision.live.sys", SimpleNamespace(platform="plan9"))
    with pytest.raises(InvalidInputError, match="by number on plan9"):
        open_frames(0)


# -- progress ----------------------------------------------------------------


def test_progress_that_has_ended_or_is_old_holds_no_longer(clock):
    reads, writes = os.pipe()
    os.write(writes, b"0.5\n")
    latest = LatestNumber(reads, timeout=0.2)
    assert latest() == 0.5
    clock.now = 0.3
    with pytest.raises(StallError, match=r"has not been told for 0\.2 s"):
        latest()
    os.write(writes, b"0.6\n")
    os.close(writes)
    with pytest.raises(StallError, match="has ended"):
        until(lambda: _ended(latest))


def _ended(latest):
    try:
        latest()
    except StallError as error:
        if "ended" in str(error):
            raise


def test_without_a_timeout_the_last_number_holds_and_is_counted():
    reads, writes = os.pipe()
    os.write(writes, b"0.5\n")
    os.close(writes)
    latest = LatestNumber(reads)
    until(lambda: latest() == 0.5 and latest.n_stale > 0)


def test_the_latest_number_holds():
    reads, writes = os.pipe()
    os.write(writes, b"0.1\n0.25\n")
    latest = LatestNumber(reads)
    assert latest() in (0.1, 0.25)
    os.write(writes, b"0.5\n\n0.7")
    until(lambda: latest() == 0.5)
    os.write(writes, b"5\n")
    until(lambda: latest() == 0.75)
    os.close(writes)


def test_a_garbled_line_is_counted_and_the_last_number_holds():
    reads, writes = os.pipe()
    os.write(writes, b"hi\xffgh\n0.5\nnan\n")
    latest = LatestNumber(reads)
    until(lambda: latest.n_bad == 2)
    assert latest() == 0.5
    os.write(writes, b"high\n0.6\n")
    until(lambda: latest() == 0.6)
    assert latest.n_bad == 3
    os.close(writes)


def test_a_garbled_line_is_no_sign_of_life(clock):
    reads, writes = os.pipe()
    os.write(writes, b"0.5\n")
    latest = LatestNumber(reads, timeout=0.2)
    clock.now = 0.15
    os.write(writes, b"high\n")
    until(lambda: latest.n_bad)
    clock.now = 0.25
    with pytest.raises(StallError, match=r"not been told for 0\.2 s, but 'high'\."):
        latest()
    os.close(writes)


def test_what_gives_no_number_is_not_waited_for():
    reads, writes = os.pipe()
    os.write(writes, 10 * b"high\n")
    end = threading.Timer(60, os.close, [writes])
    end.start()
    latest = LatestNumber(reads)
    assert end.is_alive()
    end.cancel()
    with pytest.raises(InvalidInputError, match=r"a finite number per line\. Got 'high'"):
        latest()
    os.close(writes)


def test_no_number_at_all_is_an_error():
    reads, writes = os.pipe()
    os.close(writes)
    with pytest.raises(InvalidInputError, match="a finite number per line"):
        LatestNumber(reads)()


def test_frames_carry_the_number_that_held_when_they_came():
    """However long they wait for who scores."""
    told, all_read = iter([0.1, 0.2]), threading.Event()

    def progress():
        number = next(told)
        if number == 0.2:
            all_read.set()
        return number

    pictures = [frame.image for frame in numbered(2)]
    taken = []
    for frame in FrameQueue(open_frames(pictures, progress=progress)):
        all_read.wait(60)
        taken.append(frame.progress)
    assert taken == [0.1, 0.2]

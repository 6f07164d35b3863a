"""Live frames from cameras, addresses and stdin, and the progress of the task."""

import math
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import needed
from ocfuse.vision.frames import Frame, FrameWarning, Undecoded, Video

#: Stdin, as FFmpeg names it: it reads it without Python, so that nothing hangs at the end.
STDIN = "pipe:0"
#: Seconds between two looks: at whether to stop, and for a first number.
PAUSE = 0.1


class StallError(InvalidInputError):
    """An input has given nothing for too long."""


class LiveVideo(Video):
    """Frames of a video that can be read once, from front to back.

    FFmpeg finds it at the address, and takes it for `kind`. If it is live, frames that nobody
    takes are lost.
    """

    def __init__(
        self, name: str, address: str, kind: str | None = None, *, is_live: bool = True
    ) -> None:
        self.name, self.address, self.is_live = name, address, is_live
        self.av = needed("av", "to read videos", "video")
        self.container = self._opened(kind)

    def __str__(self) -> str:
        return self.name

    def _open(self) -> Any:
        return self.container  # there is no second time

    def _undecoded(self) -> Iterator[Undecoded]:
        try:
            yield from super()._undecoded()
        except self.av.error.FFmpegError as error:
            raise InvalidInputError(f"{self.name} broke off: {_reason(error)}.") from error

    def _opened(self, kind: str | None) -> Any:
        try:
            container = self.av.open(self.address, format=kind)
        except (self.av.error.FFmpegError, OSError, ValueError) as error:
            raise InvalidInputError(
                f"{self.name} cannot be opened: {_reason(error)}. {_advice(self.address)}"
            ) from error
        if not container.streams.video:
            container.close()
            raise InvalidInputError(f"{self.name} has no video stream.")
        return container


class FrameQueue:
    """Queue of frames that a thread reads ahead while others are scored.

    Of a recording every frame is kept: if the queue is full, reading waits. Of a camera the oldest
    frame is dropped if the queue is full. Dropped frames are counted (`n_dropped`, and in the next
    frame `Frame.n_dropped`); a `FrameWarning` says if most were dropped. The queue can be iterated
    over once.

    Parameters
    ----------
    source : FrameSource
        Source of the frames.
    timeout : float, default=None
        Seconds without a frame after which a `StallError` is raised; None for never.

    Attributes
    ----------
    n_dropped : int
        Number of dropped frames.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.vision import open_frames
    >>> from ocfuse.vision.live import FrameQueue
    >>> source = open_frames(np.zeros((3, 4, 4), dtype=np.uint8))  # or 0, a camera
    >>> [frame.index for frame in FrameQueue(source, timeout=5)]
    [0, 1, 2]
    """

    #: Frames that wait at most: those of a file, and those of a camera.
    depth: ClassVar[int] = 8
    live_depth: ClassVar[int] = 2

    def __init__(self, source: Iterable[Frame], timeout: float | None = None) -> None:
        self.source, self.timeout = source, timeout
        self.is_live = bool(getattr(source, "is_live", False))
        self.n_dropped = self._n_taken = self._n_just_dropped = 0
        self._waiting: deque[Frame] = deque()
        self._changed = threading.Condition()
        self._has_ended = self._is_closed = self._has_warned = False
        self._error: BaseException | None = None

    def close(self) -> None:
        """End the iteration before the next frame; a signal handler may call it."""
        self._is_closed = True

    def __iter__(self) -> Iterator[Frame]:
        # a daemon: a camera that gives no frame must not keep the program
        threading.Thread(target=self._read, daemon=True).start()
        try:
            since = monotonic()
            while not self._is_closed:
                found = self._next()
                if found is not None:
                    self._warn_if_slow()
                    yield found
                    since = monotonic()
                elif self._has_ended and not self._waiting:
                    break
                elif self.timeout is not None and monotonic() - since > self.timeout:
                    raise StallError(
                        f"{self.source} has given no frame for {self.timeout:g} s. Nothing is "
                        "watched any more. Check it and start again, or allow a longer timeout."
                    )
        finally:
            self._is_closed = True
        if self._error is not None:
            raise self._error

    def _warn_if_slow(self) -> None:
        """Warn, once and not before 60 frames, that most are dropped."""
        self._n_taken += 1
        n = self.n_dropped + self._n_taken
        if n < 60 or self._has_warned or 2 * self.n_dropped <= n:
            return
        self._has_warned = True
        warnings.warn(
            f"{self.n_dropped} of the first {n} frames of {self.source} were dropped: they come "
            "faster than they are scored. Events are raised by those that are scored, and so "
            "later. Learn at a smaller size of the pictures or with fewer networks, use more "
            "threads, or let fewer frames come.",
            FrameWarning,
            stacklevel=3,
        )

    def _next(self) -> Frame | None:
        with self._changed:
            if not self._waiting and not self._has_ended:
                self._changed.wait(PAUSE)
            if not self._waiting:
                return None
            # the oldest are dropped, so that all of them were right before this one
            oldest = self._waiting.popleft()
            found = replace(oldest, n_dropped=oldest.n_dropped + self._n_just_dropped)
            self._n_just_dropped = 0
            self._changed.notify_all()
        return found

    def _read(self) -> None:
        try:
            for frame in self.source:
                self._put(frame)
                if self._is_closed:
                    break
        except BaseException as error:  # raised where somebody iterates
            self._error = error
        finally:
            with self._changed:
                self._has_ended = True
                self._changed.notify_all()

    def _put(self, frame: Frame) -> None:
        with self._changed:
            if self.is_live and len(self._waiting) == self.live_depth:
                self._waiting.popleft()
                self.n_dropped += 1
                self._n_just_dropped += 1
            while len(self._waiting) >= self.depth and not self._is_closed:
                self._changed.wait(PAUSE)
            self._waiting.append(frame)
            self._changed.notify_all()


class LatestNumber:
    """Progress of the task, written by a controller as one number per line.

    The latest number is valid until the next one. ``open_frames(0, progress=LatestNumber(0))``
    watches a camera while the controller writes to stdin. Lines without a number are counted and
    ignored; ten of them before the first number are an error.

    Parameters
    ----------
    descriptor : int
        Descriptor of the open file with the lines.
    timeout : float, default=None
        Seconds without a number after which the latest number is no longer valid; it then is not
        valid after the end of the file either. None: it is always valid.

    Attributes
    ----------
    n_stale : int
        How often the last number was used after the end of the file.
    n_bad : int
        Number of lines without a finite number.
    """

    def __init__(self, descriptor: int, timeout: float | None = None) -> None:
        self.descriptor, self.timeout = descriptor, timeout
        self.n_stale = self.n_bad = 0
        self._latest, self._since, self._has_ended = math.nan, math.inf, False
        self._bad = ""
        self._is_there = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        while not self._is_there.wait(PAUSE):
            pass  # a signal can end the wait

    def __call__(self) -> float:
        """Return the number that holds now."""
        if math.isnan(self._latest):
            raise InvalidInputError(
                f"The progress of the task must be a finite number per line. Got {self._bad!r}."
            )
        self.n_stale += self._has_ended
        if self.timeout is None:
            return self._latest
        if self._has_ended:
            raise StallError(
                "What tells the progress of the task has ended. Nothing is watched any more. Keep "
                "the controller running as long as the camera."
            )
        if monotonic() - self._since > self.timeout:
            lately = f", but {self._bad!r}" if self._bad else ""
            raise StallError(
                f"The progress of the task has not been told for {self.timeout:g} s{lately}. "
                "Nothing is watched any more. Let the controller repeat its number, or allow a "
                "longer timeout."
            )
        return self._latest

    def _read(self) -> None:
        rest = b""
        # not by sys.stdin: its lock would be held by this thread when the program ends
        while block := os.read(self.descriptor, 4096):
            *lines, rest = (rest + block).split(b"\n")
            for line in filter(bytes.strip, lines):
                self._take(line)
        if math.isnan(self._latest) and rest.strip():
            self._take(rest)
        self._has_ended = True
        self._is_there.set()

    def _take(self, line: bytes) -> None:
        try:
            number = float(line)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            self._latest, self._since, self._bad = number, monotonic(), ""
        else:
            self.n_bad += 1
            self._bad = line.decode(errors="replace").strip()[:60]
        if not math.isnan(self._latest) or self.n_bad >= 10:
            self._is_there.set()


def is_live_name(where: str) -> bool:
    """Return whether a name stands for what can be read once only; nothing is opened."""
    return where == "-" or "://" in where or (where.isdecimal() and not Path(where).exists())


def open_live(where: str | int) -> LiveVideo:
    """Open a camera by its number, an address, or ``-`` for a video on stdin."""
    if where == "-":
        return LiveVideo("stdin", STDIN, is_live=False)
    if "://" in str(where):
        return LiveVideo(str(where), str(where))
    # how FFmpeg calls cameras
    known = {"linux": ("v4l2", "/dev/video{}"), "darwin": ("avfoundation", "{}")}
    if sys.platform not in known:
        raise InvalidInputError(
            f"Cameras cannot be opened by number on {sys.platform}. Send the video to stdin "
            "instead: ffmpeg ... -f matroska - | ocfuse watch model.ocf --video -"
        )
    kind, address = known[sys.platform]
    return LiveVideo(f"camera {int(where)}", address.format(int(where)), kind)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _advice(address: str) -> str:
    if address == STDIN:
        return (
            "Stdin is read from front to back, as MPEG-TS, Matroska or MJPEG can be: "
            "ffmpeg -i ... -f matroska -"
        )
    if address.startswith("/dev/"):
        there = ", ".join(str(p) for p in sorted(Path("/dev").glob("video*"))) or "none"
        return f"Cameras that are there: {there}."
    return "Check the address."

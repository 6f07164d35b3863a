"""The work of `ocfuse watch --video`."""

import sys
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Protocol

import numpy as np

from ocfuse.cli.codes import ExitCode
from ocfuse.cli.output import warn
from ocfuse.cli.signals import wish_to_stop
from ocfuse.cli.videomarks import AnnotatedVideo, Thumbnails
from ocfuse.cli.videomodels import load_detector
from ocfuse.cli.videoruns import open_run, read_numbers
from ocfuse.cli.videotelling import EventFile, JsonTeller, Records, Summary
from ocfuse.cli.videoview import LiveView
from ocfuse.exceptions import InvalidInputError
from ocfuse.vision import FrameSource, PictureDetector
from ocfuse.vision.live import FrameQueue, LatestNumber, StallError
from ocfuse.vision.watching import FrameWatch, Moment

__all__ = ["ExitCode", "Outputs", "load_detector", "make_watch", "open_watched", "watch_run"]

#: Frames whose latencies the summary is made of.
REMEMBERED = 10_000
#: Seconds that a camera or an address may be silent, unless somebody says otherwise.
LIVE_TIMEOUT = 5.0
#: Frames that the pace in the terminal is taken from.
RECENT = 60


class Observer(Protocol):
    """Who is told of every frame."""

    def see(self, moment: Moment) -> None:
        """Take note of a frame."""


@dataclass(frozen=True)
class Outputs:
    """Files to write.

    Parameters
    ----------
    events : Path or None
        Lines of JSON.
    annotated : Path or None
        Video.
    thumbnails : Path or None
        Folder.
    """

    events: Path | None = None
    annotated: Path | None = None
    thumbnails: Path | None = None


def open_watched(
    detector: PictureDetector,
    where: str,
    topic: str | None,
    progress: str | None,
    timeout: float | None,
) -> FrameSource:
    """Return what is to be watched, with the progress of the task if the detector needs it."""
    source = open_run(where, topic)
    if detector.context_range_ is None:
        if progress is not None:
            raise InvalidInputError(
                "The model learned without the progress of the task. Leave --progress out."
            )
        return source.with_progress(None)
    if progress == "-":
        latest = LatestNumber(sys.stdin.fileno(), patience(source, timeout))
        return source.with_progress(latest)
    if progress is not None:
        return source.with_progress(read_numbers(Path(progress)))
    if source.progress is None:
        raise InvalidInputError(
            f"The model compares frames of the same progress of the task, which {source} does "
            "not tell. Give it by --progress, or learn without it: ocfuse fit --video "
            "... --no-progress."
        )
    return source


def make_watch(
    detector: PictureDetector, leave: float | None, min_frames: int, threads: int | None = None
) -> FrameWatch:
    """Return what turns frames into events, warmed up."""
    for backbone in detector.backbones_.values():
        if threads is not None and "threads" in backbone.get_params():
            backbone.set_params(threads=threads)  # not those of the machine that it was learned on
        backbone.extract([np.zeros((8, 8, 3), dtype=np.uint8)])  # networks are opened late
    return FrameWatch(detector, leave, min_frames)


def patience(source: FrameSource, timeout: float | None) -> float | None:
    """Return the seconds of silence that are borne: of a camera few, of a file any."""
    return LIVE_TIMEOUT if timeout is None and source.is_live else timeout


def watch_run(
    watch: FrameWatch,
    source: FrameSource,
    outputs: Outputs,
    *,
    json: bool,
    show_all: bool,
    quiet: bool,
    timeout: float | None = None,
) -> int:
    """Score all frames, tell whom it concerns, and return the exit code of a signal."""
    queue = FrameQueue(source, patience(source, timeout))
    meter = Meter(watch, source, queue)
    is_seen = not json and not quiet and sys.stdout.isatty()
    thumbnails = None if outputs.thumbnails is None else Thumbnails(watch, outputs.thumbnails)
    records = Records(watch, thumbnails, source.is_live)
    teller = JsonTeller(records, show_all=show_all)
    with wish_to_stop(queue.close) as stop, ExitStack() as stack:
        stack.callback(_conclude, meter, None if is_seen else teller, quiet)
        view = stack.enter_context(LiveView(watch, str(source), meter.words)) if is_seen else None
        observers: list[Observer] = [teller if view is None else view]
        observers += [] if thumbnails is None else [thumbnails]
        if outputs.events is not None:
            observers.append(stack.enter_context(EventFile(records, outputs.events)))
        if outputs.annotated is not None:
            observers.append(stack.enter_context(AnnotatedVideo(watch, outputs.annotated)))
        try:
            _watch_all(watch, queue, observers, meter)
        except StallError as error:
            if view is None:
                teller.stall(error)
            raise
    return stop.code


def _conclude(meter: "Meter", teller: JsonTeller | None, quiet: bool) -> None:
    """Say how it went, when all files are closed."""
    summary = meter.summary()
    if teller is not None:
        teller.end(summary)
    if not quiet:
        warn(str(summary))


class Meter:
    """How fast frames are scored and told.

    Parameters
    ----------
    watch : FrameWatch
        Knows the events.
    source : FrameSource
        Knows frames that could not be decoded, and the progress of the task.
    queue : FrameQueue
        Knows frames that were dropped.
    """

    def __init__(self, watch: FrameWatch, source: FrameSource, queue: FrameQueue) -> None:
        self.watch, self.source, self.queue = watch, source, queue
        self.n_frames = 0
        self.start, self.cpu_start = perf_counter(), process_time()
        self.latencies: deque[float] = deque(maxlen=REMEMBERED)
        self.times: deque[float] = deque(maxlen=RECENT)

    def add(self, taken: float) -> None:
        """Take note of a frame that was taken up at a moment and has been told."""
        self.n_frames += 1
        self.latencies.append(perf_counter() - taken)
        self.times.append(taken)

    def words(self) -> str:
        """Say how fast it goes."""
        span = self.times[-1] - self.times[0] if self.times else 0.0
        rate = (len(self.times) - 1) / span if span else 0.0
        dropped = f"   {self.queue.n_dropped:,} frames dropped" if self.source.is_live else ""
        return f"{rate:.1f} frames/s{dropped}"

    def summary(self) -> Summary:
        """Return the figures of the run so far."""
        seconds, cpu = perf_counter() - self.start, process_time() - self.cpu_start
        milliseconds = 1000 * np.array(self.latencies if self.latencies else [np.nan])
        return Summary(
            frames=self.n_frames,
            events=self.watch.n_events,
            dropped=self.queue.n_dropped,
            skipped=len(getattr(self.source, "skipped_", [])),
            stale=getattr(self.source.progress, "n_stale", 0),
            garbled=getattr(self.source.progress, "n_bad", 0),
            seconds=seconds,
            frames_per_second=self.n_frames / seconds,
            median_ms=float(np.median(milliseconds)),
            p99_ms=float(np.percentile(milliseconds, 99)),
            cpu_ms=1000 * cpu / max(self.n_frames, 1),
        )


def _watch_all(
    watch: FrameWatch, queue: FrameQueue, observers: list[Observer], meter: Meter
) -> None:
    try:
        for frame in queue:
            taken = perf_counter()
            _tell(watch.take(frame), observers)
            meter.add(taken)
    except InvalidInputError:
        _tell(watch.finish(), observers)  # what lasted when the camera was unplugged
        raise
    _tell(watch.finish(), observers)


def _tell(moment: Moment | None, observers: list[Observer]) -> None:
    if moment is not None:
        for observer in observers:
            observer.see(moment)

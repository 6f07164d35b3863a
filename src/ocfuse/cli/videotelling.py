"""Events as lines of JSON, flushed at once, and the words at the end."""

import datetime
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ocfuse.cli.output import in_words, json_line, print_at_once, printable
from ocfuse.cli.videomarks import Thumbnails
from ocfuse.files import LineFile
from ocfuse.report.words import count
from ocfuse.vision.live import StallError
from ocfuse.vision.watching import Alarm, FrameWatch, Moment, Seen


@dataclass(frozen=True)
class Summary:
    """Figures of a run.

    Parameters
    ----------
    frames, events : int
        Frames that were scored, and the events among them.
    dropped : int
        Frames that came while older ones were scored and had to make room.
    skipped : int
        Frames that could not be decoded.
    stale : int
        Frames that were scored with the last progress told, after its source had ended.
    garbled : int
        Lines of the progress of the task that were no number.
    seconds, frames_per_second : float
        From the first frame to the end.
    median_ms, p99_ms : float
        Milliseconds from taking a frame up to having told of it.
    cpu_ms : float
        Processor time per frame of the whole program, decoding included.
    """

    frames: int
    events: int
    dropped: int
    skipped: int
    stale: int
    garbled: int
    seconds: float
    frames_per_second: float
    median_ms: float
    p99_ms: float
    cpu_ms: float

    def __str__(self) -> str:
        text = f"{count(self.frames, 'frame')}, {count(self.events, 'event')}"
        if self.frames:
            text += (
                f", {self.frames_per_second:.1f} frames/s, latency {self.median_ms:.1f} ms "
                f"(p99 {self.p99_ms:.1f} ms)"
            )
        if self.skipped:
            text += f", {self.skipped:,} left out as damaged"
        if self.stale:
            text += f", {self.stale:,} scored after the progress of the task had ended"
        if self.garbled:
            text += f", {count(self.garbled, 'line')} of progress without a number"
        if self.dropped:
            text += f", {self.dropped:,} dropped as they came too fast"
        return text


class Records:
    """What is said of frames and events.

    Parameters
    ----------
    watch : FrameWatch
        Where they come from.
    thumbnails : Thumbnails or None
        Where their pictures are.
    is_live : bool
        Say the time of day.
    """

    def __init__(self, watch: FrameWatch, thumbnails: Thumbnails | None, is_live: bool) -> None:
        self.watch, self.thumbnails, self.is_live = watch, thumbnails, is_live
        self.threshold = float(watch.detector.offset_)

    def lines(self, moment: Moment) -> list[str]:
        """Return the line of an event that has ended, and that of one that is raised."""
        found = [] if moment.ended is None else [self.event(moment.ended)]
        found += [self.alarm(moment.alarm)] if moment.is_new and moment.alarm is not None else []
        return [json_line(record) for record in found]

    def frame(self, seen: Seen, alarm: Alarm | None) -> dict[str, Any]:
        """Return what is said of a frame."""
        return {
            "kind": "frame",
            "frame": seen.frame.index,
            "time": seen.frame.time,
            "score": seen.score,
            "threshold": self.threshold,
            "event": None if alarm is None else alarm.number,
            "members": seen.members,
        }

    def alarm(self, alarm: Alarm) -> dict[str, Any]:
        """Return what is said when an event is raised."""
        raised = self.frame(alarm.raised, alarm) | {"kind": "alarm"}
        return raised | self._start(alarm) | self.now()

    def event(self, alarm: Alarm) -> dict[str, Any]:
        """Return what is said when an event has ended."""
        maps = self.watch.explain(alarm.worst)
        return {
            "kind": "event",
            "event": alarm.number,
            **self._start(alarm),
            "stop": alarm.last.frame.index + 1,
            "stop_time": alarm.last.frame.time,
            "raised": alarm.raised.frame.index,
            "raised_time": alarm.raised.frame.time,
            "worst": alarm.worst.frame.index,
            "score": alarm.worst.score,
            "threshold": self.threshold,
            "members": alarm.worst.members,
            "place": maps.place() if maps.maps.size else None,
            "thumbnail": None if self.thumbnails is None else str(self.thumbnails.path(alarm)),
            **self.now(),
        }

    def _start(self, alarm: Alarm) -> dict[str, Any]:
        return {"start": alarm.start.frame.index, "start_time": alarm.start.frame.time}

    def now(self) -> dict[str, Any]:
        """Return the time of day, if frames are live."""
        if not self.is_live:
            return {}
        return {"at": datetime.datetime.now().astimezone().isoformat(timespec="milliseconds")}


class JsonTeller:
    """Print alarms when they are raised, events when they have ended, and a summary.

    Parameters
    ----------
    records : Records
        What to say.
    show_all : bool
        Print every frame.
    """

    def __init__(self, records: Records, show_all: bool) -> None:
        self.records, self.show_all = records, show_all

    def see(self, moment: Moment) -> None:
        """Print what there is to tell."""
        if self.show_all and moment.seen is not None:
            print_at_once(json_line(self.records.frame(moment.seen, moment.alarm)))
        for line in self.records.lines(moment):
            print_at_once(printable(line))

    def stall(self, error: StallError) -> None:
        """Print which input has died."""
        print_at_once(json_line({"kind": "stall", "reason": in_words(error), **self.records.now()}))

    def end(self, summary: Summary) -> None:
        """Print the figures of the run."""
        print_at_once(json_line({"kind": "summary", **asdict(summary)}))


class EventFile:
    """Append alarms and events to a file, a whole line at a time.

    Parameters
    ----------
    records : Records
        What to say.
    path : Path
        The file.
    """

    def __init__(self, records: Records, path: Path) -> None:
        self.records, self.path = records, path

    def __enter__(self) -> "EventFile":
        self.file = LineFile(self.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def see(self, moment: Moment) -> None:
        """Write what is raised, too: a program that is killed leaves a trace of it."""
        for line in self.records.lines(moment):
            self.file.write(line.encode())

"""`ocfuse watch --video`: alarms as the frames come."""

import sys
from collections import deque
from collections.abc import Callable, Sequence, Sized
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import typer

from ocfuse.cli import model_card
from ocfuse.cli.options import check_flags, refuse_overwriting
from ocfuse.cli.output import in_words, json_line, print_at_once, printable, warn
from ocfuse.cli.pictures import stand_alone, warm_up, watch_pictures
from ocfuse.cli.runtime import ExitCode, Stop, wish_to_stop
from ocfuse.cli.video_output import AnnotatedVideo, LiveView, Thumbnails
from ocfuse.cli.video_runs import open_run, read_numbers
from ocfuse.cli.watch_events import EventFile
from ocfuse.exceptions import InvalidInputError
from ocfuse.notify import Route
from ocfuse.report.words import count
from ocfuse.streaming import StreamTable
from ocfuse.streaming.monitor import OpenRecords, time_of_day
from ocfuse.system.bags import is_recording
from ocfuse.tables.open import STATES, open_source
from ocfuse.vision import FrameSource, PictureDetector
from ocfuse.vision.live import FrameQueue, LatestNumber, StallError, is_live_name
from ocfuse.vision.together import PICTURES, SensorRows, share_rate
from ocfuse.vision.watch import Alarm, FrameWatch, Moment, Repeat, Seen


def watch_recording(
    model: Path,
    video: str,
    topic: str | None,
    progress: str | None,
    beside: str | None,
    *,
    outputs: "Outputs",
    threshold: float | None,
    false_alarms: float | None,
    leave: float | None,
    min_frames: int,
    hold: int | None,
    timeout: float | None,
    single: bool | None,
    threads: int | None,
    fail_on_anomaly: bool,
    show_all: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Score frames as they come, and print the alarms at once."""
    if video == "-" and progress == "-":
        raise typer.BadParameter("stdin can give either the video or the progress")
    refuse_overwriting(
        {"--events": outputs.events, "--annotated": outputs.annotated},
        {"model": model, "recording": video, "progress": progress},
    )
    own = (threshold, false_alarms) if beside is None else (None, None)
    detector = model_card.load_detector(model, *own)
    source = open_watched(detector, video, topic, progress, timeout)
    if stand_alone(detector, source, single):
        of_frames = {"--leave": leave, "--annotated": outputs.annotated, "--progress": progress}
        of_frames |= {"--and": beside, "--hold": hold}
        check_flags("pictures that stand alone", True, {}, of_frames)
        files = (outputs.events, outputs.thumbnails)
        tally = watch_pictures(
            *(detector, source, video, *files), threads=threads, show_all=show_all, quiet=quiet
        )
        if fail_on_anomaly and tally.exceeds(0.0):
            raise typer.Exit(ExitCode.ANOMALIES)
        return
    watch = make_watch(detector, leave, min_frames, threads, hold or 0)
    if beside is not None:
        if threshold is not None and false_alarms is not None:
            raise typer.BadParameter("give either --threshold or --false-alarms")
        sensors = open_beside(detector, source, video, beside, false_alarms, quiet)
        watch = FrameWatch(detector, leave, min_frames, sensors, threshold, hold or 0)
    flags = {"json": json, "show_all": show_all, "quiet": quiet}
    names = {"model": model.stem, "stream": str(source)}
    code = watch_run(watch, source, outputs, **flags, timeout=timeout, names=names)
    if code or (fail_on_anomaly and watch.n_events + watch.n_repeats + watch.n_failures):
        raise typer.Exit(code or ExitCode.ANOMALIES)


@dataclass(frozen=True)
class Summary:
    """Figures of a run."""

    frames: int  # that were scored
    events: int
    repeats: int  # times that the camera began to repeat its picture, or the scene to rest
    dropped: int  # frames that came while older ones were scored
    skipped: int  # frames that could not be decoded
    stale: int  # frames that were scored after the source of the progress had ended
    garbled: int  # lines of the progress of the task that were no number
    sensors: int | None  # sensors beside the camera that failed; None without --and
    without_row: int | None  # frames that were judged by the pictures alone
    without_picture: int | None  # frames that were judged by the sensors alone
    seconds: float  # from the first frame to the end
    frames_per_second: float
    median_ms: float  # from taking a frame up to having reported it
    p99_ms: float
    cpu_ms: float  # processor time per frame of the whole program, decoding included

    def __str__(self) -> str:
        text = f"{count(self.frames, 'frame')}, {count(self.events, 'event')}"
        if self.frames:
            text += (
                f", {self.frames_per_second:.1f} frames/s, latency {self.median_ms:.1f} ms "
                f"(p99 {self.p99_ms:.1f} ms)"
            )
        if self.repeats:
            text += f", the picture stood still {count(self.repeats, 'time')}"
        if self.skipped:
            text += f", {self.skipped:,} left out as damaged"
        if self.stale:
            text += f", {self.stale:,} scored after the progress of the task had ended"
        if self.garbled:
            text += f", {count(self.garbled, 'line')} of progress without a number"
        if self.sensors:
            text += f", {count(self.sensors, 'sensor failure')}"
        if self.without_row:
            text += f", {self.without_row:,} without a score of the sensors, by the pictures alone"
        if self.without_picture:
            text += f", {self.without_picture:,} more without a picture, by the sensors alone"
        if self.dropped:
            text += f", {self.dropped:,} dropped as they came too fast"
        return text


class Records:
    """Records of frames and events, with the time of day, model and stream."""

    def __init__(
        self,
        watch: FrameWatch,
        thumbnails: Thumbnails | None,
        names: dict[str, str] | None = None,
    ) -> None:
        self.watch, self.thumbnails, self.names = watch, thumbnails, names or {}
        self.threshold = watch.threshold
        self._open = OpenRecords()
        self._told: tuple[Moment | None, list[str]] = None, []

    def lines(self, moment: Moment) -> list[str]:
        """Return the lines of what ends and begins, of one moment always the same."""
        if self._told[0] is moment:
            return self._told[1]
        found = [] if moment.ended is None else [self.event(moment.ended)]
        found += [self.alarm(moment.alarm)] if moment.is_new and moment.alarm is not None else []
        found += map(self.repeat, moment.repeats)
        found += [failure.as_dict() | self.now() for failure in moment.failures]
        self._told = moment, [json_line(self._open.take(record)) for record in found]
        return self._told[1]

    def frame(self, seen: Seen, alarm: Alarm | None) -> dict[str, Any]:
        """Return the record of a frame."""
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
        """Return the record of an event that is raised."""
        raised = self.frame(alarm.raised, alarm) | {"kind": "alarm"}
        raised["severity"] = self.severity(alarm.raised)
        return raised | self._start(alarm) | self._both(alarm.raised) | self.now()

    def event(self, alarm: Alarm) -> dict[str, Any]:
        """Return the record of an event that has ended."""
        maps = self.watch.explain(alarm.worst)
        both = self._both(alarm.worst)
        is_seen = not both or PICTURES in both["by"]
        return {
            "kind": "event",
            "state": "interrupted" if alarm.is_interrupted else "end",
            "event": alarm.number,
            **self._start(alarm),
            "stop": alarm.last.frame.index + 1,
            "stop_time": alarm.last.frame.time,
            "raised": alarm.raised.frame.index,
            "raised_time": alarm.raised.frame.time,
            "worst": alarm.worst.frame.index,
            "score": alarm.worst.score,
            "threshold": self.threshold,
            "severity": self.severity(alarm.worst),
            "members": alarm.worst.members,
            "place": maps.place() if maps.maps.size and is_seen else None,
            "thumbnail": None if self.thumbnails is None else str(self.thumbnails.path(alarm)),
            **both,
            **self.now(),
        }

    def repeat(self, repeat: Repeat) -> dict[str, Any]:
        """Return the record of a camera that repeats its picture, or of a scene that rests."""
        return {
            "kind": repeat.kind,
            "state": repeat.state,
            "frame": repeat.frame.index,
            "time": repeat.frame.time,
            "since": repeat.since.index,
            "frames": repeat.n_frames,
            "text": repeat.text,
            **self.now(),
        }

    def _start(self, alarm: Alarm) -> dict[str, Any]:
        return {"start": alarm.start.frame.index, "start_time": alarm.start.frame.time}

    def _both(self, seen: Seen) -> dict[str, Any]:
        """Return which of two models speaks, with the channels; nothing of pictures alone."""
        if self.watch.sensors is None:
            return {}
        readings = [reading.as_dict() for reading in self.watch.readings(seen)]
        return {"by": self.watch.speaking(seen), "row": seen.row, "channels": readings}

    def now(self) -> dict[str, Any]:
        """Return the time of day, model and stream."""
        return {"at": time_of_day(), **self.names}

    def severity(self, seen: Seen) -> float:
        """Return how grave the score of a frame is."""
        return round(self.watch.severity(seen), 2)


class JsonReporter:
    """Print alarms when they are raised, events when they have ended, and a summary."""

    def __init__(self, records: Records, show_all: bool) -> None:
        self.records, self.show_all = records, show_all

    def see(self, moment: Moment) -> None:
        """Print what has happened, and every frame if that is asked for."""
        if self.show_all and moment.seen is not None:
            print_at_once(json_line(self.records.frame(moment.seen, moment.alarm)))
        for line in self.records.lines(moment):
            print_at_once(printable(line))

    def stall(self, error: StallError) -> None:
        """Print which input has died."""
        silence = {"kind": "silent", "state": "begin", "reason": in_words(error)}
        print_at_once(json_line(silence | self.records.now()))

    def end(self, summary: Summary) -> None:
        """Print the figures of the run."""
        print_at_once(json_line({"kind": "summary", **asdict(summary)}))


@dataclass(frozen=True)
class Outputs:
    """Files to write: lines of JSON, a video, and a folder of pictures."""

    events: Path | None = None
    annotated: Path | None = None
    thumbnails: Path | None = None
    #: Where events are told to others.
    routes: Sequence[Route] = ()


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


def open_beside(
    detector: PictureDetector,
    source: FrameSource,
    video: str,
    beside: str,
    false_alarms: float | None,
    quiet: bool,
) -> SensorRows:
    """Return the rows of sensors beside frames, both models at half of the rate."""
    if source.is_live or is_live_name(video):
        raise InvalidInputError(
            f"--and reads rows that were recorded beside a recording. Got {source}, which is live. "
            "Watch each by itself: ocfuse watch joints.ocf, and ocfuse watch camera.ocf --video."
        )
    model, rows, topic = find_beside(video, beside)
    sensors = model_card.load_model(model)
    if not isinstance(sensors, StreamTable):
        raise InvalidInputError(
            f"{model.name} judges rows that stand alone. Expected a model of sensors, by "
            "ocfuse fit --stream."
        )
    reached = share_rate(detector, sensors, false_alarms)
    if not quiet:
        each = f"{detector.threshold_rate_:.3g} + {sensors.threshold_rate_:.3g}"
        warn(f"pictures and sensors together: false alarms {reached:.3g} of frames ({each})")
    table = open_source(rows, topic=topic).read()
    n_frames = len(source) if isinstance(source, Sized) else None
    return SensorRows(detector, sensors, table, rows.name, n_frames)


def find_beside(video: str, beside: str) -> tuple[Path, Path, str | None]:
    """Return model, rows and topic that `--and MODEL[=ROWS]` names, by what is watched."""
    path = Path(video)
    name, _, given = (beside, "", "") if Path(beside).is_file() else beside.partition("=")
    if is_recording(path) and not (given and Path(given).exists()):  # a topic, if any
        return Path(name), path, given or None
    if not given and not (path / STATES).is_file():
        raise InvalidInputError(
            f"There are no rows of sensors in {video}. Expected a trial folder with {STATES}, a "
            f"bag, or --and {name}=rows.csv."
        )
    return Path(name), Path(given) if given else path / STATES, None


def make_watch(
    detector: PictureDetector,
    leave: float | None,
    min_frames: int,
    threads: int | None = None,
    hold: int = 0,
) -> FrameWatch:
    """Return a watch that turns frames into events, warmed up."""
    warm_up(detector, threads)
    return FrameWatch(detector, leave, min_frames, hold=hold)


def patience(source: FrameSource, timeout: float | None) -> float | None:
    """Return the seconds of silence that are borne: of a camera or an address few, else any."""
    return 5.0 if timeout is None and source.is_live else timeout


def watch_run(
    watch: FrameWatch,
    source: FrameSource,
    outputs: Outputs,
    *,
    json: bool,
    show_all: bool,
    quiet: bool,
    timeout: float | None = None,
    names: dict[str, str] | None = None,
) -> int:
    """Score and report all frames; return the exit code of a signal, or 0."""
    queue = FrameQueue(source, patience(source, timeout))
    meter = Meter(watch, source, queue)
    is_seen = not json and not quiet and sys.stdout.isatty()
    thumbnails = None if outputs.thumbnails is None else Thumbnails(watch, outputs.thumbnails)
    records = Records(watch, thumbnails, names)
    reporter = JsonReporter(records, show_all=show_all)
    with wish_to_stop(queue.close) as stop, ExitStack() as stack:
        stack.callback(_conclude, meter, None if is_seen else reporter, quiet)
        view = stack.enter_context(LiveView(watch, str(source), meter.words)) if is_seen else None
        observers: list[Callable[[Moment], None]] = [reporter.see if view is None else view.see]
        observers += [] if thumbnails is None else [thumbnails.see]
        if outputs.events is not None:
            file = stack.enter_context(closing(EventFile(outputs.events, outputs.routes)))
            watch.n_before = file.n_before
            observers.append(partial(_append_events, records, file))
        if outputs.annotated is not None:
            video = stack.enter_context(AnnotatedVideo(watch, outputs.annotated))
            observers.append(video.see)
        try:
            _watch_all(watch, queue, observers, meter, stop)
        except StallError as error:
            if view is None:
                reporter.stall(error)
            raise
    return stop.code


def _append_events(records: Records, file: EventFile, moment: Moment) -> None:
    """Write what is raised, too: a program that is killed leaves a trace of it."""
    for line in records.lines(moment):
        file.write(line)


def _conclude(meter: "Meter", reporter: JsonReporter | None, quiet: bool) -> None:
    """Print the summary, when all files are closed."""
    summary = meter.summary()
    if reporter is not None:
        reporter.end(summary)
    if not quiet:
        warn(str(summary))


class Meter:
    """How fast frames are scored and reported."""

    def __init__(self, watch: FrameWatch, source: FrameSource, queue: FrameQueue) -> None:
        self.watch, self.source, self.queue = watch, source, queue
        self.n_frames = 0
        self.start, self.cpu_start = perf_counter(), process_time()
        self.latencies: deque[float] = deque(maxlen=10_000)  # of the summary
        self.times: deque[float] = deque(maxlen=60)  # of the pace in the terminal

    def add(self, taken: float) -> None:
        """Count a frame that was taken up at a moment and has been reported."""
        self.n_frames += 1
        self.latencies.append(perf_counter() - taken)
        self.times.append(taken)

    def words(self) -> str:
        """Return how fast it goes."""
        span = self.times[-1] - self.times[0] if self.times else 0.0
        rate = (len(self.times) - 1) / span if span else 0.0
        dropped = f"   {self.queue.n_dropped:,} frames dropped" if self.source.is_live else ""
        return f"{rate:.1f} frames/s{dropped}"

    def summary(self) -> Summary:
        """Return the figures of the run so far."""
        seconds, cpu = perf_counter() - self.start, process_time() - self.cpu_start
        rows = self.watch.sensors
        milliseconds = 1000 * np.array(self.latencies if self.latencies else [np.nan])
        return Summary(
            frames=self.n_frames,
            events=self.watch.n_events,
            repeats=self.watch.n_repeats,
            dropped=self.queue.n_dropped,
            skipped=len(getattr(self.source, "skipped_", [])),
            stale=getattr(self.source.progress, "n_stale", 0),
            garbled=getattr(self.source.progress, "n_bad", 0),
            sensors=None if rows is None else self.watch.n_failures,
            without_row=None if rows is None else rows.n_without_row,
            without_picture=None if rows is None else rows.n_without_picture,
            seconds=seconds,
            frames_per_second=self.n_frames / seconds,
            median_ms=float(np.median(milliseconds)),
            p99_ms=float(np.percentile(milliseconds, 99)),
            cpu_ms=1000 * cpu / max(self.n_frames, 1),
        )


def _watch_all(
    watch: FrameWatch,
    queue: FrameQueue,
    observers: list[Callable[[Moment], None]],
    meter: Meter,
    stop: Stop,
) -> None:
    def show(moment: Moment | None) -> None:
        if moment is not None:
            for observe in observers:
                observe(moment)

    try:
        for frame in queue:
            taken = perf_counter()
            for moment in watch.moments(frame):
                show(moment)
            meter.add(taken)
        for moment in () if stop.is_asked else watch.rest():
            show(moment)
    except InvalidInputError:
        show(watch.finish())  # what lasted when the camera was unplugged
        raise
    show(watch.finish())

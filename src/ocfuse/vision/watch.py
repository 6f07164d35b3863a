"""Watching of a task frame by frame: scores, scores of families, and events."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.local_scale import warn_if_far
from ocfuse.streaming import EventTracker
from ocfuse.streaming.channels import ChannelReading
from ocfuse.streaming.events import MAX_UNSCORED, leave_score
from ocfuse.streaming.sensors import SensorEvent
from ocfuse.vision.detector import PictureDetector
from ocfuse.vision.explanation import PictureExplanation
from ocfuse.vision.features import FeatureArray, Features
from ocfuse.vision.fit import N_STEPS, SLOW, Stillness, frame_distance
from ocfuse.vision.frames import Frame
from ocfuse.vision.together import SENSORS, SensorRows

#: Frames in a row below the threshold that raise an event: a tenth of a second.
MIN_FRAMES = 3


@dataclass(frozen=True)
class Seen:
    """A frame that was scored.

    Parameters
    ----------
    frame : Frame
        The frame.
    score : float
        Score of the frame; higher is more normal.
    members : dict of str to float
        Contribution of each family of members to the score, which is their sum; with sensors the
        score of each model; the frame has the lower one.
    features : dict of str to Features
        Features of the frame, by backbone.
    row : int, optional
        Number of the row of sensors that belongs to it.
    """

    frame: Frame
    score: float
    members: dict[str, float]
    features: dict[str, Features]
    row: int | None = None


@dataclass(frozen=True)
class Alarm:
    """An event, open or ended.

    Parameters
    ----------
    number : int
        Number of the event, counted from 1.
    start, raised, worst, last : Seen
        Its first frame, the frame at which it was raised, that with the lowest score, the last.
    is_interrupted : bool
        Whether there were no more frames before it had ended.
    """

    number: int
    start: Seen
    raised: Seen
    worst: Seen
    last: Seen
    is_interrupted: bool = False

    def with_frame(self, seen: Seen) -> "Alarm":
        """Return the event with one more frame."""
        return replace(self, worst=min(self.worst, seen, key=lambda s: s.score), last=seen)


@dataclass(frozen=True)
class Repeat:
    """Begin or end of a time in which a camera repeats its picture, or the scene hardly moves.

    Parameters
    ----------
    state : {"begin", "end", "interrupted"}
        Whether it begins, ends, or there are no more frames.
    frame : Frame
        The frame at which it is reported.
    since : Frame
        The first of the repeated frames.
    n_frames : int
        Number of frames that have repeated it so far.
    kind : {"repeat", "still"}
        Whether the same picture comes again, as from a camera that fails, or other pictures of a
        scene that hardly moves.
    """

    state: str
    frame: Frame
    since: Frame
    n_frames: int
    kind: str = "repeat"

    @property
    def text(self) -> str:
        """The begin or end as text."""
        if self.state == "end":
            return f"the picture moves again from frame {self.frame.index}"
        if self.kind == "still":
            return f"the scene hardly moves since frame {self.since.index}"
        return f"the camera repeats its picture since frame {self.since.index}"


@dataclass(frozen=True)
class Moment:
    """What to report after a frame.

    Parameters
    ----------
    seen : Seen or None
        The frame; None after the last one.
    alarm : Alarm or None
        The open event.
    is_new : bool
        Whether it was raised with this frame.
    ended : Alarm or None
        The event that ended with this frame.
    repeats : sequence of Repeat
        Begin or end of a repeated picture, and of a scene that hardly moves.
    failures : sequence of SensorEvent
        Sensors that fail or work again; "interrupted" after the last frame if they still fail.
    """

    seen: Seen | None
    alarm: Alarm | None = None
    is_new: bool = False
    ended: Alarm | None = None
    repeats: Sequence[Repeat] = ()
    failures: Sequence[SensorEvent] = ()


class RepeatMonitor:
    """Notice when frames that follow each other are more alike than in training.

    Parameters
    ----------
    stillness : Stillness or None
        What training says; None notices nothing.
    """

    def __init__(self, stillness: Stillness | None) -> None:
        self.stillness = stillness
        self._first: Seen | None = None  # of those that are alike
        self._n_repeats = 0
        self._last: Seen | None = None
        self._steps: deque[tuple[float, Frame]] = deque(maxlen=N_STEPS)
        self._still: Frame | None = None  # the first of a scene that hardly moves

    @property
    def is_on(self) -> bool:
        """The camera repeats its picture."""
        return self.stillness is not None and self._n_repeats > self.stillness.most

    @property
    def is_still(self) -> bool:
        """The scene hardly moves."""
        return self._still is not None

    def take(self, seen: Seen) -> list[Repeat]:
        """Take the next frame; return what begins or ends with it."""
        if self.stillness is None:
            return []
        if self._last is not None:
            frame = replace(seen.frame, image=np.empty((0, 0, 3), np.uint8))  # not kept
            self._steps.append((frame_distance(*map(_pooled, (self._last, seen))), frame))
        self._last = seen
        told = [self._repeated(seen, self.stillness), self._rested(seen, self.stillness)]
        return [one for one in told if one is not None]

    def _rested(self, seen: Seen, limits: Stillness) -> Repeat | None:
        """Return the begin or end of a scene that hardly moves."""
        steps = [step for step, _ in self._steps]
        if len(steps) < N_STEPS:
            return None
        middle, since = float(np.median(steps)), self._still
        if since is None:
            # of a picture that repeats the other rule speaks
            if self._n_repeats or not limits.distance < middle < limits.slow:
                return None
            self._still = next(frame for step, frame in self._steps if step < limits.slow)
            return Repeat("begin", seen.frame, self._still, N_STEPS, "still")
        if middle * SLOW < limits.slow:
            return None
        self._still = None
        n = seen.frame.index - since.index
        return Repeat("end", seen.frame, since, n, "still")

    def _repeated(self, seen: Seen, limits: Stillness) -> Repeat | None:
        """Return the begin or end of a repeated picture."""
        first = self._first
        if first is None or frame_distance(*map(_pooled, (first, seen))) > limits.distance:
            n, self._first, self._n_repeats = self._n_repeats, seen, 0
            is_over = first is not None and n > limits.most
            return Repeat("end", seen.frame, first.frame, n) if is_over and first else None
        self._n_repeats += 1
        begins = self._n_repeats - 1 <= limits.most < self._n_repeats
        return Repeat("begin", seen.frame, first.frame, self._n_repeats) if begins else None

    def finish(self) -> list[Repeat]:
        """Return that there are no more frames, for each state that has begun."""
        last, first, still = self._last, self._first, self._still
        told = []
        if last is not None and first is not None and self.is_on:
            told.append(Repeat("interrupted", last.frame, first.frame, self._n_repeats))
        if last is not None and still is not None:
            n = last.frame.index - still.index
            told.append(Repeat("interrupted", last.frame, still, n, "still"))
        return told


def _pooled(seen: Seen) -> FeatureArray:
    pooled: FeatureArray = next(iter(seen.features.values())).pooled[0]
    return pooled


class FrameWatch:
    """Score live frames, and join low scores to events.

    An event is raised after `min_frames` consecutive frames below the threshold. It ends with the
    first score that is not below `leave`, or if more than 10 consecutive frames are missing.
    Alarms within `hold` frames of each other are one event. Frames dropped for lack of time are
    not missing, and not counted. Only a few frames are stored, however many are watched.

    Parameters
    ----------
    detector : PictureDetector
        The fitted detector.
    leave : float, default=None
        The first score that is not below it ends an event. None is the threshold plus a quarter of
        the distance to the usual score.
    min_frames : int, default=3
        Consecutive frames below the threshold after which an event is raised.
    sensors : SensorRows, default=None
        Rows of sensors recorded with the frames. Scores are then joined (`SensorRows.join`).
    threshold : float, default=None
        The threshold. None is that of the detector, and 0 with sensors.
    hold : int, default=0
        An alarm within so many frames after the end of the last one belongs to the same event.

    Attributes
    ----------
    usual : float
        Usual score: the median of normal scores.
    n_events, n_repeats, n_failures : int
        Number of events, of times that the camera began to repeat its picture or the scene hardly
        to move, and of failures of sensors.
    n_before : int
        Number of earlier events, after which events are numbered.
    explains_events : bool
        Whether every frame of an event is explained.

    Examples
    --------
    >>> from ocfuse.vision.watch import FrameWatch
    >>> def watch_task(detector, frames):
    ...     watch = FrameWatch(detector)
    ...     for frame in frames:  # open_frames("run.mp4"), FrameQueue(open_frames(0)), ...
    ...         moment = watch.take(frame)
    ...         if moment.is_new:
    ...             print(f"alarm at {frame.time:.2f} s: {moment.seen.members}")
    ...         if moment.ended:
    ...             print(f"event {moment.ended.number} has ended")
    """

    def __init__(
        self,
        detector: PictureDetector,
        leave: float | None = None,
        min_frames: int = MIN_FRAMES,
        sensors: SensorRows | None = None,
        threshold: float | None = None,
        hold: int = 0,
    ) -> None:
        self.detector, self.sensors = detector, sensors
        known, self.usual = 0.0, 1.0  # of the scale that both models share
        if sensors is None:
            known, self.usual = detector.offset_, float(np.median(detector.normal_scores_))
        self.threshold = float(known if threshold is None else threshold)
        end = leave_score(self.threshold, [self.usual]) if leave is None else leave
        self.tracker = EventTracker(self.threshold, end, min_frames, hold=hold)
        self.repeats = RepeatMonitor(detector.stillness_)
        self.n_repeats = self.n_failures = 0
        self.names = [family.name for family in detector.families_]
        self.n_events = self.n_before = 0
        self.explains_events = False
        self._next = 0
        self._recent: deque[Seen] = deque(maxlen=min_frames)
        self._alarm: Alarm | None = None
        self._explained: tuple[Frame, PictureExplanation] | None = None
        self._has_warned = False
        self._first: Frame | None = None
        self._last: Seen | None = None
        self._failing: dict[tuple[str, str], SensorEvent] = {}

    def take(self, frame: Frame) -> Moment:
        """Score the next frame.

        Parameters
        ----------
        frame : Frame
            A picture, its number, its time and, for a detector fitted with context, the progress
            of the task. Numbers that are left out are missing frames, except for its `n_dropped`.

        Returns
        -------
        Moment
            Its score, the open event, and the event that ended.
        """
        seen = self._scored(frame)
        repeats = self.repeats.take(seen)
        self.n_repeats += sum(repeat.state == "begin" for repeat in repeats)
        return replace(self._followed(seen), repeats=repeats)

    def moments(self, frame: Frame) -> Iterator[Moment]:
        """Score the next frame and, with sensors, those that are missing before it.

        Parameters
        ----------
        frame : Frame
            As in `take`.

        Yields
        ------
        Moment
            What to report after each frame; for a missing frame with the last picture.
        """
        last = self._last
        if self.sensors is not None and last is not None and frame.index > last.frame.index + 1:
            missing = frame.index - last.frame.index
            step = (frame.time - last.frame.time) / missing
            yield from self._without_pictures(last, step, missing - 1)
        yield self.take(frame)

    def rest(self) -> Iterator[Moment]:
        """Score the rows of sensors after the last frame, at the rate of the frames.

        Yields
        ------
        Moment
            As yielded by `moments`.
        """
        first, last = self._first, self._last
        if self.sensors is None or first is None or last is None:
            return
        n_steps = last.frame.index - first.index
        step = (last.frame.time - first.time) / n_steps if n_steps else math.nan
        left = self.sensors.last_time - last.frame.time
        if step > 0 and left > step:
            yield from self._without_pictures(last, step, math.floor(left / step + 1e-6))

    def _without_pictures(self, last: Seen, step: float, count: int) -> Iterator[Moment]:
        """Judge missing frames by the sensors alone; they show the last picture there was."""
        for i in range(1, count + 1):
            time = last.frame.time + i * step
            frame = replace(last.frame, index=last.frame.index + i, time=time, n_dropped=0)
            seen = self._joined(Seen(frame, math.nan, {}, last.features))
            if not math.isnan(seen.score):
                yield self._followed(seen)

    def _followed(self, seen: Seen) -> Moment:
        """Follow events with the next frame."""
        frame = seen.frame
        missing = frame.index - self._next - frame.n_dropped
        for _ in range(min(missing, MAX_UNSCORED + 1)):
            self.tracker.update(np.nan)
        self._next = frame.index + 1
        self._first, self._last = self._first or frame, seen
        self._recent.append(seen)
        failures = [] if self.sensors is None else self.sensors.failures(seen.row)
        for event in failures:
            self._failing.pop((event.kind, event.channel), None)
            if event.state == "begin":
                self.n_failures += 1
                self._failing[event.kind, event.channel] = event
        return replace(self._tracked(seen), failures=failures)

    def _tracked(self, seen: Seen) -> Moment:
        was_on, was_held, before = self.tracker.is_on, self.tracker.is_held, self._alarm
        self.tracker.update(seen.score)
        if not self.tracker.is_on:
            self._alarm = None
            return Moment(seen, ended=before)
        if was_on and before is not None:
            if not self.tracker.is_held:
                for frame in self._recent if was_held else (seen,):
                    before = before.with_frame(frame)
            self._alarm = before
            return Moment(seen, self._alarm)
        self.n_events += 1
        worst = min(self._recent, key=lambda s: s.score)
        self._alarm = Alarm(self.n_before + self.n_events, self._recent[0], seen, worst, seen)
        return Moment(seen, self._alarm, is_new=True, ended=before)

    def finish(self) -> Moment | None:
        """End the run with the last frame, and return what has not ended; None if all has.

        The open event is over if the last score is not below the threshold. Otherwise nobody has
        seen its end, and it is interrupted; so are failing sensors, a repeated picture, and a
        scene that hardly moves.
        """
        ended, self._alarm = self._alarm, None
        self.tracker.finish()
        if ended is not None and self._recent[-1].score < self.threshold:
            ended = replace(ended, is_interrupted=True)
        failures = [replace(event, state="interrupted") for event in self._failing.values()]
        self._failing.clear()
        repeats = self.repeats.finish()
        if ended is None and not repeats and not failures:
            return None
        return Moment(None, ended=ended, repeats=repeats, failures=failures)

    def explain(self, seen: Seen) -> PictureExplanation:
        """Explain the score of a frame; the latest explanation is stored."""
        if self._explained is None or self._explained[0] is not seen.frame:
            found = self.detector.explain(seen.features, self._context(seen.frame))
            self._explained = seen.frame, found
        return self._explained[1]

    def speaking(self, seen: Seen) -> list[str]:
        """With sensors, return the models that score a frame below the threshold."""
        return [name for name, score in seen.members.items() if score < self.threshold]

    def readings(self, seen: Seen) -> list[ChannelReading]:
        """Return the channels behind an alarm of the sensors; else an empty list."""
        if self.sensors is None or SENSORS not in self.speaking(seen):
            return []
        return self.sensors.readings(seen.row)

    def severity(self, seen: Seen) -> float:
        """Return the severity of the score of a frame."""
        if self.sensors is not None:
            return self.sensors.severity(seen.members)
        return float(self.detector.conformal_.severity([seen.score])[0])

    def _joined(self, seen: Seen) -> Seen:
        """Return a frame with its row of sensors, and the score of both."""
        if self.sensors is None:
            return seen
        score, members, row = self.sensors.join(seen.frame, seen.score)
        return replace(seen, score=score, members=members, row=row)

    def _scored(self, frame: Frame) -> Seen:
        backbones = self.detector.backbones_.items()
        features = {name: backbone.extract([frame.image]) for name, backbone in backbones}
        if self.explains_events and self.tracker.is_on:
            # one pass for the score and the places
            found = self.detector.explain(features, self._context(frame))
            self._explained = frame, found
            score, parts = found.score[0], found.contributions[0]
        else:
            raw = self.detector.transform_raw(features, self._context(frame))
            fusion = self.detector.fusion_
            score, parts = fusion.fuse(raw)[0], (fusion.normalised(raw) * fusion.weights_)[0]
        members = dict(zip(self.names, parts.tolist(), strict=True))
        return self._joined(Seen(frame, float(score), members, features))

    def _context(self, frame: Frame) -> list[float] | None:
        learned = self.detector.context_range_
        if learned is None:
            return None
        if frame.progress is None:
            raise InvalidInputError(
                "The detector compares frames of the same progress of the task. Give it with "
                "every frame: open_frames(..., progress=...)."
            )
        if not self._has_warned:
            low, high = learned
            self._has_warned = warn_if_far([frame.progress], low, high, stacklevel=5)
        return [frame.progress]

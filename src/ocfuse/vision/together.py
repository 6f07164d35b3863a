"""Pictures and sensors together: one score of a frame and of the row of the same time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores.threshold import check_rate
from ocfuse.streaming import StreamTable
from ocfuse.streaming.channels import ChannelReading
from ocfuse.streaming.clock import check_times
from ocfuse.streaming.sensors import SensorEvent
from ocfuse.streaming.table import as_times
from ocfuse.tables.dataframes import as_frame
from ocfuse.vision.detector import PictureDetector
from ocfuse.vision.frames import Frame

#: How both models are called in scores and records.
PICTURES, SENSORS = "pictures", "sensors"
#: Column of times of rows by a model that knows no times.
TIME = "time"
#: A row is of a frame if it is not older than so many usual steps of the rows.
LONGEST_AGE = 1.5


def share_rate(pictures: PictureDetector, sensors: StreamTable, rate: float | None = None) -> float:
    """Give each of two models half of a false-alarm rate, and set their thresholds.

    A moment is an alarm if one of both scores below its threshold. However the two depend on
    each other, that is as rare as both rates together (Bonferroni).

    Parameters
    ----------
    pictures : PictureDetector
        The model of pictures.
    sensors : StreamTable
        The model of sensors.
    rate : float, default=None
        Share of normal moments that may raise an alarm; None for that which the model of
        pictures was fitted with.

    Returns
    -------
    float
        What both thresholds together stand for. It is more than `rate` if there are too few
        normal runs, which warnings say.
    """
    whole = pictures.false_alarm_rate if rate is None else rate
    check_rate(whole)
    half = whole / 2
    pictures.set_threshold(half)
    sensors.set_threshold(half)
    return pictures.threshold_rate_ + sensors.threshold_rate_


@dataclass(frozen=True)
class SharedScale:
    """Scores of a model on a scale that several share: 0 is its threshold, 1 its usual score.

    Parameters
    ----------
    offset : float
        Threshold of the model.
    unit : float
        Distance from there to the median of its held-out normal scores.

    Examples
    --------
    >>> from ocfuse.vision.together import SharedScale
    >>> SharedScale(offset=-4.0, unit=2.0).shared(-5.0)
    -0.5
    """

    offset: float
    unit: float

    @classmethod
    def of(cls, detector: Any) -> "SharedScale":
        """Return the scale of a fitted detector."""
        offset = float(detector.offset_)
        unit = float(np.median(detector.normal_scores_)) - offset
        return cls(offset, unit if unit > 0 else 1.0)  # 0 if most scores are equal, as of votes

    def shared(self, score: float) -> float:
        """Return a score of the model on the shared scale."""
        return (score - self.offset) / self.unit

    def own(self, shared: float) -> float:
        """Return the score that the model gave."""
        return self.offset + self.unit * shared


class SensorRows:
    """Recorded rows of sensors beside the frames of a camera.

    The row of a frame is the last one that is not later, and at most 1.5 usual steps older. The
    score of both is the lower one on the scale of `SharedScale`: one that sees nothing strange
    does not talk the other out of an alarm. Where one has no score, the other decides.

    Parameters
    ----------
    pictures : PictureDetector
        What judges the frames.
    model : StreamTable
        What judges the rows, all of them at once: the same scores as one by one.
    table : data frame
        The rows of one run. Times are those that the model learned with, or else in a column
        "time"; without times, row i is that of frame i.
    name : str, default="the rows"
        What to call them in messages.
    n_frames : int, default=None
        Number of frames if they have no times, and this is known.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Scores by `model`, NaN where there is none.
    times : ndarray of shape (n,) or None
        Times of the rows in seconds.
    n_without_row, n_without_picture : int
        Frames so far that were judged by the pictures or by the sensors alone.
    """

    def __init__(
        self,
        pictures: PictureDetector,
        model: StreamTable,
        table: Any,
        name: str = "the rows",
        n_frames: int | None = None,
    ) -> None:
        frame = as_frame(table)
        self.pictures, self.model, self.name = pictures, model, name
        self.scales = {
            PICTURES: SharedScale.of(pictures),
            SENSORS: SharedScale.of(model.detector_),
        }
        found, self.log = model.restart().follow(frame)
        self.scores = found["score"].to_numpy(dtype=np.float64)
        self.times = self._times(frame)
        self.n_frames = n_frames
        self.n_without_row = self.n_without_picture = 0
        self._is_checked = False
        self._n_told = 0  # rows whose failures of sensors have been told
        self._sort()

    def _sort(self) -> None:
        """Put the rows in the order of time."""
        if self.times is not None:
            known = np.flatnonzero(np.isfinite(self.times))
            self._order = known[np.argsort(self.times[known], kind="stable")]
            self._sorted = self.times[self._order]
            steps = np.diff(self._sorted)
            usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
            self.longest_age = LONGEST_AGE * usual

    def _times(self, table: Any) -> Any:
        known = self.model.schema_.times_of(table)
        if known is None and TIME in table.columns:
            known = table[TIME]
        times = check_times(as_times(known), len(table))
        return times if times is not None and np.isfinite(times).any() else None

    def row_of(self, frame: Frame) -> int | None:
        """Return the number of the row that belongs to a frame; None if there is none."""
        if not self._is_checked:
            self._check(frame)
            self._is_checked = True
        if self.times is None or np.isnan(frame.time):
            return frame.index if frame.index < len(self.scores) else None
        # times of a video are rounded to microseconds
        i = int(np.searchsorted(self._sorted, frame.time + 1e-6, side="right")) - 1
        is_near = i >= 0 and frame.time - self._sorted[i] <= self.longest_age + 1e-6
        return int(self._order[i]) if is_near else None

    def join(self, frame: Frame, score: float) -> tuple[float, dict[str, float], int | None]:
        """Return the score of a frame and its row, that of each model, and the number of the row.

        Parameters
        ----------
        frame : Frame
            The frame.
        score : float
            Its score by the model of pictures; NaN for a frame without a picture.

        Returns
        -------
        score : float
            The lower score, on the shared scale; NaN if there is none.
        parts : dict of str to float
            Both scores on the shared scale, NaN where there is none.
        row : int or None
            The row.
        """
        row = self.row_of(frame)
        scores = {PICTURES: score, SENSORS: np.nan if row is None else float(self.scores[row])}
        parts = {name: self.scales[name].shared(scores[name]) for name in scores}
        self.n_without_row += bool(np.isnan(parts[SENSORS]))
        self.n_without_picture += bool(np.isnan(parts[PICTURES]) and not np.isnan(parts[SENSORS]))
        return float(np.fmin(parts[PICTURES], parts[SENSORS])), parts, row

    def severity(self, parts: dict[str, float]) -> float:
        """Return how grave scores of both models are: the graver one."""
        detectors = {PICTURES: self.pictures, SENSORS: self.model.detector_}
        own = {name: self.scales[name].own(part) for name, part in parts.items()}
        found = [detectors[name].conformal_.severity([own[name]])[0] for name in own]
        return float(np.fmax(*found))

    def readings(self, row: int | None) -> list[ChannelReading]:
        """Return the channels behind the score of a row, with what is usual of them."""
        return [] if row is None else self.model.readings(self.log, row)

    def failures(self, row: int | None) -> list[SensorEvent]:
        """Return sensors that fail or work again up to a row and have not been told yet."""
        start = self._n_told
        self._n_told = max(start, 0 if row is None else row + 1)
        there = sorted(i for i in self.log.sensors if start <= i < self._n_told)
        return [event.at(i) for i in there for event in self.log.sensors[i]]

    @property
    def last_time(self) -> float:
        """Time of the last row; NaN without times."""
        return np.nan if self.times is None else float(self._sorted[-1])

    def _check(self, frame: Frame) -> None:
        """Refuse rows that cannot belong to the frames, at the first of these."""
        n = len(self.scores)
        if self.times is None or np.isnan(frame.time):
            if self.n_frames != n:
                what = "The rows have" if self.times is None else "The frames have"
                frames = "frames" if self.n_frames is None else f"{self.n_frames} frames"
                raise InvalidInputError(
                    f"{what} no times, so that row i would be that of frame i. Got {n} rows in "
                    f"{self.name} for {frames}. Expected as many, or times of both: a column "
                    f"{TIME!r} in seconds, and a video or a trial folder."
                )
            return
        first, last = float(self._sorted[0]), float(self._sorted[-1])
        if not 2 * first - last - self.longest_age <= frame.time <= last + self.longest_age:
            raise InvalidInputError(
                f"The frames begin at {frame.time:.3f} s, the rows of {self.name} are from "
                f"{first:.3f} to {last:.3f} s: not the same clock, or not the same run. Expected "
                f"times of one clock. Give rows whose column of times counts as the video does."
            )

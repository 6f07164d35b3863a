"""What is seen of a stream: its samples as rows of features, live as in training."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming.clock import (
    LEFT_OUT,
    RESTARTS,
    ChunkLog,
    Clock,
    Rest,
    SlowMean,
    StreamState,
)
from ocfuse.streaming.course import Course
from ocfuse.streaming.windows import Windows
from ocfuse.usual import Usual

#: Share of the channels that may be missing while samples are still scored.
MOST_MISSING = 0.5


@dataclass
class StreamView:
    """How the samples of a stream become rows of features."""

    channels: list[str]
    windows: Windows | None  # None takes the samples themselves
    course: Course | None  # what samples are measured from, if the context counts
    is_watched: BoolArray  # channels that are not left out
    follows: BoolArray  # channels that are measured from their slow mean
    rest: Rest
    half_life: float  # of the slow mean, in samples
    usual_step: float
    max_gap: float  # usual steps over which windows reach
    fill: FloatArray | None = None  # typical features, for missing channels
    blank: BoolArray | None = None  # features that are not looked at; None for none
    usual: Usual | None = None  # what samples are measured from, if the time counts

    def __post_init__(self) -> None:
        self.watched = self.named(self.is_watched)
        # the features
        self.names = self.watched if self.windows is None else self.windows.names(self.watched)

    @property
    def n_remembered(self) -> int:
        """How many samples windows need besides the present one."""
        return 0 if self.windows is None else self.windows.longest - 1

    def named(self, chosen: BoolArray) -> list[str]:
        """Return the names of some channels."""
        return [self.channels[j] for j in np.flatnonzero(chosen).tolist()]

    def new_state(self) -> StreamState:
        """Return the state of a stream that has not begun."""
        clock = Clock(self.usual_step, self.max_gap)
        slow = SlowMean(self.half_life, self.rest.spread)
        return StreamState(self.n_remembered, len(self.watched), clock, slow, self.checksum)

    @property
    def checksum(self) -> str:
        """Checksum by which checkpoints of another model are refused."""
        rest, numbers = self.rest, (self.half_life, self.usual_step, self.max_gap)
        arrays = [rest.centre, rest.spread, rest.unrest, self.follows, self.is_watched, numbers]
        if self.course is not None:
            arrays += [self.course.mean_, self.course.spread_]
        if self.usual is not None and self.usual.seasons is not None:
            arrays += [self.usual.groups_.centre_, self.usual.groups_.spread_]
            for season in self.usual.seasons.parts_:
                arrays += [season.centre_, season.spread_]
        lengths = () if self.windows is None else self.windows.lengths
        found = sha256(repr((self.channels, lengths)).encode())
        arrays += [] if self.blank is None else [self.blank]
        for array in arrays:
            found.update(np.asarray(array, dtype=np.float64).tobytes())
        return found.hexdigest()

    def measured(
        self, samples: FloatArray, context: FloatArray | None, times: FloatArray | None = None
    ) -> FloatArray:
        """Return samples less what is usual at their time and context, if these count."""
        if self.usual is not None:
            samples = self.usual.measure(*self.when(len(samples), times), samples)
        if self.course is None or context is None:
            return samples
        known = ~np.isnan(context).any(axis=1)
        measured = np.full_like(samples, np.nan)
        measured[known] = self.course.measured(samples[known], context[known, 0])
        return measured

    def when(self, n: int, times: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return groups, of which there are none, and times of samples, as `usual` takes them."""
        return np.empty((n, 0)), np.full(n, np.nan) if times is None else times

    def rows(
        self,
        state: StreamState,
        samples: FloatArray,
        times: FloatArray | None,
        log: ChunkLog | None = None,
    ) -> FloatArray:
        """Return the features of the next samples, as `measured` gives them; update the state.

        Whole rows are NaN where there are none; so are features of channels that are missing.
        """
        rows = np.full((len(samples), len(self.names)), np.nan)
        came: list[int] = []
        # the slow mean at each sample: before it, after it, and what is behind it then
        slow = np.full((3, *samples.shape), np.nan)
        for i, sample in enumerate(samples):
            verdict = state.read_clock(None if times is None else float(times[i]))
            if verdict != "next" and log is not None:
                log.add(verdict, [i])
            if verdict in RESTARTS:
                self._slide(state, rows, came, samples, slow[0])
                state.restart()
            if verdict not in LEFT_OUT:
                came.append(i)
                slow[0, i] = state.slow.follow(sample)
                slow[1, i], slow[2, i] = state.slow.mean, state.slow.n_behind
        self._slide(state, rows, came, samples, slow[0])
        self._note_drift(state, slow[1], slow[2], log)
        if self.blank is not None:
            rows[:, self.blank] = np.where(np.isnan(rows[:, self.blank]), np.nan, 0.0)
        return rows

    def fill_in(
        self, rows: FloatArray, state: StreamState | None = None, log: ChunkLog | None = None
    ) -> BoolArray:
        """Put typical features for missing channels, in place; return which rows can be scored."""
        missing = np.isnan(rows)
        if not missing.any():
            return np.ones(len(rows), dtype=bool)
        n = len(self.watched)
        gone = missing.reshape(len(rows), -1, n).any(axis=1).sum(axis=1)
        scored = gone <= MOST_MISSING * n
        filled = scored & (gone > 0)
        rows[filled] = np.where(missing[filled], self.fill, rows[filled])
        if state is not None:
            state.counts["missing"] += int(filled.sum())
            state.counts["unscored"] += int((~scored).sum())
        if log is not None:
            log.add("missing", np.flatnonzero(filled).tolist())
            log.add("unscored", np.flatnonzero(~scored).tolist())
        return np.asarray(scored)

    def drifted(self, state: StreamState) -> BoolArray:
        """Return which channels have left training, of those whose level counts."""
        return state.slow.has_left(self.rest) & self.is_watched & ~self.follows

    def _note_drift(
        self, state: StreamState, means: FloatArray, behind: FloatArray, log: ChunkLog | None
    ) -> None:
        """Note channels that leave training, from their slow means at each of the samples."""
        far = state.slow.had_left(self.rest, means, behind)
        if not far.any():
            return
        far &= self.is_watched & ~self.follows
        first = far.argmax(axis=0)
        gone = [j for j in np.flatnonzero(far.any(axis=0)) if self.channels[j] not in state.drifted]
        for j in sorted(gone, key=lambda j: first[j]):
            state.drifted.append(self.channels[j])
            if log is not None:
                log.drifted.setdefault(int(first[j]), []).append(self.channels[j])

    def _slide(
        self,
        state: StreamState,
        rows: FloatArray,
        came: list[int],
        samples: FloatArray,
        before: FloatArray,
    ) -> None:
        """Let the samples that came into the windows, and write their features into the rows.

        Where the slow mean is followed, they are measured from what it was before them.
        """
        if not came:
            return
        young = max(0, len(state.samples) - state.age)  # too young for the longest window
        if len(came) < len(samples):
            samples, before = samples[came], before[came]
        if self.follows.any():
            samples = np.where(self.follows, samples - before, samples)
        joined = state.push(samples if self.is_watched.all() else samples[:, self.is_watched])
        features = joined if self.windows is None else self.windows.slide(joined)
        if young == 0 and len(came) == len(rows):
            rows[:] = features
        else:
            rows[came[young:]] = features[young:]
        came.clear()


def typical(rows: FloatArray, names: list[str]) -> FloatArray:
    """Return the median of every feature, or refuse runs in which one has no value."""
    empty = [names[j] for j in np.flatnonzero(np.isnan(rows).all(axis=0)).tolist()]
    if empty:
        raise InvalidInputError(
            f"{len(empty)} of {len(names)} features have no value in training, such as "
            f"{empty[0]!r}. Runs must be longer than the windows, and times must rise."
        )
    return np.asarray(np.nanmedian(rows, axis=0))

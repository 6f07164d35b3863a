"""What is seen of a stream: its samples as rows of features, live as in training."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming.clock import LEFT_OUT, RESTARTS, Clock, Rest, SlowMean, StreamState
from ocfuse.streaming.course import Course
from ocfuse.streaming.windows import Windows

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
        lengths = () if self.windows is None else self.windows.lengths
        found = sha256(repr((self.channels, lengths)).encode())
        for array in arrays:
            found.update(np.asarray(array, dtype=np.float64).tobytes())
        return found.hexdigest()

    def measured(self, samples: FloatArray, context: FloatArray | None) -> FloatArray:
        """Return samples less what is usual at their context, if that counts."""
        if self.course is None or context is None:
            return samples
        known = ~np.isnan(context).any(axis=1)
        measured = np.full_like(samples, np.nan)
        measured[known] = self.course.measured(samples[known], context[known, 0])
        return measured

    def rows(self, state: StreamState, samples: FloatArray, times: FloatArray | None) -> FloatArray:
        """Return the features of the next samples, as `measured` gives them; update the state.

        Whole rows are NaN where there are none; so are features of channels that are missing.
        """
        rows = np.full((len(samples), len(self.names)), np.nan)
        came: list[int] = []
        values: list[FloatArray] = []
        for i, sample in enumerate(samples):
            verdict = state.read_clock(None if times is None else float(times[i]))
            if verdict in RESTARTS:
                self._slide(state, rows, came, values)
                state.restart()
            if verdict not in LEFT_OUT:
                came.append(i)
                values.append(self._followed(state, sample)[self.is_watched])
        self._slide(state, rows, came, values)
        return rows

    def fill_in(self, rows: FloatArray, state: StreamState | None = None) -> BoolArray:
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
        return np.asarray(scored)

    def drifted(self, state: StreamState) -> BoolArray:
        """Return which channels have left training, of those whose level counts."""
        return state.slow.has_left(self.rest) & self.is_watched & ~self.follows

    def _followed(self, state: StreamState, sample: FloatArray) -> FloatArray:
        """Return a sample, less the slow mean where that is followed; this goes a step on."""
        before = state.slow.follow(sample)
        far = self.drifted(state)
        if far.any():
            state.drifted += [name for name in self.named(far) if name not in state.drifted]
        return np.where(self.follows, sample - before, sample)

    def _slide(
        self, state: StreamState, rows: FloatArray, came: list[int], values: list[FloatArray]
    ) -> None:
        """Let samples into the windows, and write their features into the rows."""
        if not came:
            return
        young = max(0, len(state.samples) - state.age)  # too young for the longest window
        joined = state.push(np.array(values))
        features = joined if self.windows is None else self.windows.slide(joined)
        rows[came[young:]] = features[young:]
        came.clear()
        values.clear()


def typical(rows: FloatArray, names: list[str]) -> FloatArray:
    """Return the median of every feature, or refuse runs in which one has no value."""
    empty = [names[j] for j in np.flatnonzero(np.isnan(rows).all(axis=0)).tolist()]
    if empty:
        raise InvalidInputError(
            f"{len(empty)} of {len(names)} features have no value in training, such as "
            f"{empty[0]!r}. Runs must be longer than the windows, and times must rise."
        )
    return np.asarray(np.nanmedian(rows, axis=0))

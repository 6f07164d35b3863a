"""Slow change of a source: a threshold that follows it, within bounds, and a test that it changed.

`RollingThreshold` shifts scores as the latest normal ones move, with a bounded speed and up to a
bounded distance. `ChangeTest` reports that a source has changed, with a bounded probability of a
false report. Both take one value after another.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.scores.conformal import ConformalCalibrator, whole_part
from ocfuse.validation import check_number, rate_in_open_interval

#: Values that a level of the window rests on, at least: fewer of neighbouring rows say nothing.
FEWEST_BELOW = 100
#: Share of the capital that goes from every bet to all of them after each value.
JUMP = 0.01
#: Values that later ones are compared with, at most; then the test begins anew.
MOST_COMPARED = 100_000


class RollingThreshold:
    """Threshold that follows slow changes of scores, within bounds.

    A low quantile of the normal scores (at twice the rate of the threshold, or 100 scores of the
    window if that is more) is compared with the same quantile of the latest scores. The `shift`
    follows the difference with a bounded step per row, up to a bounded distance, and is subtracted
    from every score. So the threshold keeps its number, and p-values, severities and events are
    those of the source as it is now.

    Normal rows raise alarms, too, and are counted as they are: a threshold that leaves its own
    alarms out only rises. But rows of a stretch most of which are alarms are left out, as such a
    stretch is no chance. Normal streams have a few of them: as many of their rows as are
    missing to the rate of the threshold count as the lowest of the window.

    The unit U of both bounds is the distance from the threshold to the median of the normal
    scores. A fault that lowers scores faster than `speed` U per 1,000 rows, or farther than
    ``1 + limit`` U below their median, is not followed and raises its alarm.

    Parameters
    ----------
    conformal : ConformalCalibrator
        The normal scores that set the threshold.
    offset : float
        The threshold.
    window : int, default=2000
        Number of latest scores; the shift begins to move after half as many.
    speed : float, default=0.1
        Largest change of the shift in 1,000 rows, in units of U.
    limit : float, default=0.25
        Largest shift, up or down, in units of U.
    stretch : int, default=20
        Number of rows that are left out together if more than half of them are of alarms; of a
        threshold with a high rate r, more than ``(1 + r) / 2`` of them.

    Attributes
    ----------
    shift : float
        Number subtracted from scores; below 0 if scores have become lower.
    unit : float
        U.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.scores import ConformalCalibrator, RollingThreshold
    >>> normal, low = np.random.default_rng(0).normal(size=(2, 5000))
    >>> calibrator = ConformalCalibrator().fit(normal)
    >>> rolling = RollingThreshold(calibrator, calibrator.threshold(0.01)[0], window=500)
    >>> for score in low - 0.5:  # the source has changed a little
    ...     rolling.take(score, in_event=rolling.adjusted(score) < rolling.offset)
    >>> float(round(rolling.shift / rolling.unit, 1))
    -0.2
    """

    def __init__(
        self,
        conformal: ConformalCalibrator,
        offset: float,
        window: int = 2000,
        speed: float = 0.1,
        limit: float = 0.25,
        stretch: int = 20,
    ) -> None:
        for name, value, least in (("window", window, 100), ("stretch", stretch, 2)):
            is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not is_whole or value < least:
                raise InvalidInputError(
                    f"{name} must be a number of rows of at least {least}. Got {value!r}."
                )
        advice = "It is in units of the distance from the threshold to the median."
        self.window = int(window)
        self.speed = check_number(speed, "speed", 0.0, 100.0, advice)
        self.limit = check_number(limit, "limit", 0.0, 100.0, advice)
        self.stretch = min(int(stretch), self.window)
        self.offset = float(offset)
        self.rate = max(conformal.share_below(offset), 1.0 / (len(conformal.scores_) + 1))
        # far enough from the threshold that the rows left out below it move the level little
        self.level = min(max(2.0 * self.rate, FEWEST_BELOW / self.window), 0.5)
        self.usual = _quantile(conformal, self.level)
        self.unit = max(_quantile(conformal, 0.5) - self.offset, 0.0)
        self.shift = 0.0
        self._recent: deque[tuple[float, bool]] = deque()
        self._sorted: list[float] = []
        self._n_left_out = 0
        self._alarms: deque[bool] = deque(maxlen=self.stretch)

    def adjusted(self, score: float) -> float:
        """Return a score minus the shift, to be compared with the threshold."""
        return score - self.shift

    def take(self, score: float, in_event: bool) -> None:
        """Add the next raw score, and whether its row is of an alarm."""
        if math.isnan(score):
            return
        self._alarms.append(in_event)
        self._put(score, is_left_out=False)
        if sum(self._alarms) > 0.5 * (1.0 + self.rate) * self.stretch:
            self._leave_out()
        else:
            self._move()

    @property
    def target(self) -> float:
        """How far the scores of the window have moved; the shift where it says nothing yet."""
        n = len(self._sorted)
        if 2 * n < self.window:
            return self.shift
        missing = math.ceil(self.rate * (n + 1)) - bisect_left(
            self._sorted, self.offset + self.shift
        )
        left_out = min(self._n_left_out, max(missing, 0))
        rank = max(whole_part(self.level * (n + left_out + 1)) - left_out, 1)
        return self._sorted[rank - 1] - self.usual

    def _move(self) -> None:
        step, most = self.speed * self.unit / 1000.0, self.limit * self.unit
        gap = self.target - self.shift
        moved = self.shift + min(max(gap, -step), step)
        self.shift = min(max(moved, -most), most)

    def _put(self, score: float, is_left_out: bool) -> None:
        self._recent.append((score, is_left_out))
        if is_left_out:
            self._n_left_out += 1
        else:
            insort(self._sorted, score)
        while len(self._recent) > self.window:
            old, was_left_out = self._recent.popleft()
            if was_left_out:
                self._n_left_out -= 1
            else:
                del self._sorted[bisect_left(self._sorted, old)]

    def _leave_out(self) -> None:
        """Leave out the latest rows, as far as they are not left out already."""
        taken: list[float] = []
        while self._recent and len(taken) < self.stretch and not self._recent[-1][1]:
            score, _ = self._recent.pop()
            del self._sorted[bisect_left(self._sorted, score)]
            taken.append(score)
        for score in reversed(taken):
            self._put(score, is_left_out=True)

    def is_like(self, other: "RollingThreshold") -> bool:
        """Return whether another one goes by the same threshold, window and bounds."""
        names = ("offset", "window", "speed", "limit", "usual", "unit", "rate", "level", "stretch")
        return all(getattr(self, name) == getattr(other, name, None) for name in names)

    def __getstate__(self) -> dict[str, object]:
        state = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        values = [value for value, _ in self._recent]
        flags = [is_left_out for _, is_left_out in self._recent]
        return state | {
            "recent": np.array(values, dtype=np.float64),
            "left_out": np.array(flags, dtype=bool),
            "alarms": np.array(self._alarms, dtype=bool),
        }

    def __setstate__(self, state: dict[str, object]) -> None:
        known = {"stretch": 0, "alarms": []} | state  # also of files of before
        recent, left_out, alarms = (known.pop(n) for n in ("recent", "left_out", "alarms"))
        self.__dict__.update(known)
        self._recent, self._sorted, self._n_left_out = deque(), [], 0
        self._alarms = deque(np.asarray(alarms).tolist(), maxlen=self.stretch)
        pairs = zip(np.asarray(recent).tolist(), np.asarray(left_out).tolist(), strict=True)
        for value, is_left_out in pairs:
            self._put(value, is_left_out)


def _quantile(conformal: ConformalCalibrator, share: float) -> float:
    """Return the lowest normal score with this share of the weight at or below it."""
    reached = np.cumsum(conformal.weights_)
    place = np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12))
    return float(conformal.scores_[min(int(place), len(conformal.scores_) - 1)])


@dataclass(frozen=True)
class SourceChange:
    """Report that a source has changed.

    Parameters
    ----------
    chance : float
        Largest probability of a false report since the test began.
    n : int
        Number of values, or blocks of rows, since the test began.
    n_since : int
        Number of values, or blocks, since the probable change: those in which the bets won.
    is_lower : bool
        Whether values have become lower; for scores this means more unusual rows.
    """

    chance: float
    n: int
    n_since: int
    is_lower: bool


class Bets:
    """Bets on p-values of one source, or of many at once: a martingale that starts at 1.

    Three bets have factors that are 1 on average if p is uniform: ``1.5 - p`` and
    ``1 / (2 sqrt(p))``, that p is small, and ``0.5 + p``. A hundredth of each goes to all of them
    after every value, and ``1 / (t (t + 1))`` of the capital waits for the value t.

    Attributes
    ----------
    n : int
        Values so far.
    made : list
        What the three bets have made.
    """

    def __init__(self) -> None:
        self.n = 0
        self.made: list[Any] = [0.0, 0.0, 0.0]

    @property
    def capital(self) -> Any:
        """What is not bet yet, and what the bets have made."""
        return 1.0 / (self.n + 1) + self.made[0] + self.made[1] + self.made[2]

    @property
    def is_lower(self) -> Any:
        """Whether the bets that p is small have made more."""
        return self.made[0] + self.made[1] > self.made[2]

    def take(self, p: Any) -> Any:
        """Take the next p-value, or those of many sources; return the capital."""
        self.n += 1
        ready = 1.0 / (3 * self.n * (self.n + 1))
        factors = (1.5 - p, 0.5 * (p + 1e-12) ** -0.5, 0.5 + p)
        bets = [(c + ready) * f for c, f in zip(self.made, factors, strict=True)]
        shared = JUMP * (bets[0] + bets[1] + bets[2]) / 3
        self.made = [(1.0 - JUMP) * c + shared for c in bets]
        return self.capital


class ChangeTest:
    """Test whether a source has changed, with a bounded probability of a false report.

    Every value is ranked among all values before it. While values are exchangeable, the resulting
    p-values are independent and uniform for any distribution (Vovk et al. 2005). The test bets on
    them that values become lower, a little or much, or higher. Its capital starts at 1 and is a
    martingale, so the probability that it ever reaches ``1 / chance`` is at most `chance` (Ville
    1939). When it does, the source is reported as changed. After a report, and after 100,000
    values, the test starts again and compares with the values from then on.

    Neighbouring rows of sensors are alike, so their p-values are not independent. Then give
    `block`: means of so many rows are tested, which are nearly exchangeable if blocks are long
    enough. A cycle longer than a block, such as that of a day, is a change to this test.

    Parameters
    ----------
    chance : float, default=0.01
        Largest probability of ever reporting a change of a source that does not change.
    block : int, default=1
        Number of values whose mean is tested.
    reference : sequence of float, default=()
        Earlier values of the source, exchangeable with future ones if it does not change: values
        of single rows, never of runs.

    Attributes
    ----------
    bets : Bets
        The bets since the test began.
    n_changes : int
        Number of reported changes.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.scores import ChangeTest
    >>> before, after = np.random.default_rng(0).normal(size=(2, 500))
    >>> test = ChangeTest(0.01)
    >>> any(test.take(value) for value in before)
    False
    >>> found = [test.take(value) for value in after - 1.0]
    >>> next(i for i, change in enumerate(found) if change) < 100
    True
    """

    def __init__(
        self, chance: float = 0.01, block: int = 1, reference: Sequence[float] | FloatArray = ()
    ) -> None:
        self.chance = rate_in_open_interval(chance, "chance")
        if isinstance(block, bool) or not isinstance(block, int | np.integer) or block < 1:
            raise InvalidInputError(f"block must be a number of rows of at least 1. Got {block!r}.")
        self.block = int(block)
        self.n_changes = 0
        self._total, self._n_in_block = 0.0, 0
        # gains of a bet on either side: their logarithm since it was 0 last, and when that was
        self._sums, self._began = [0.0, 0.0], [0, 0]
        self._begin(np.sort(np.asarray(reference, dtype=np.float64)).tolist())

    @property
    def capital(self) -> float:
        """Capital of the bets since the test began; it started at 1."""
        return float(self.bets.capital)

    def take(self, value: float) -> SourceChange | None:
        """Add the next value; return the change that it makes certain enough, or None.

        NaN, that is, no value, is left out.
        """
        if math.isnan(value):
            return None
        self._total += value
        self._n_in_block += 1
        if self._n_in_block < self.block:
            return None
        mean, self._total, self._n_in_block = self._total / self.block, 0.0, 0
        return self._test(mean)

    def _test(self, value: float) -> SourceChange | None:
        """Bet on the rank of a value, and compare later ones with it."""
        before = self._before
        if len(before) >= MOST_COMPARED:
            self._begin([])
            before = self._before
        low = bisect_left(before, value)
        equal = bisect_right(before, value) - low
        # ties in an order that chance decides, the same whenever the stream is played
        drawn = float(np.random.default_rng([self.n_changes, self.bets.n]).random())
        p = (low + drawn * (equal + 1)) / (len(before) + 1)
        insort(before, value)
        capital = self.bets.take(p)
        for side, tail in enumerate((p, 1.0 - p)):
            total = self._sums[side] - math.log(2.0) - 0.5 * math.log(max(tail, 1e-12))
            self._sums[side] = max(total, 0.0)
            if total <= 0.0:
                self._began[side] = self.bets.n
        if capital < 1.0 / self.chance:
            return None
        is_lower = bool(self.bets.is_lower)
        n_since = self.bets.n - self._began[0 if is_lower else 1]
        found = SourceChange(self.chance, self.bets.n, n_since, is_lower)
        self.n_changes += 1
        self._begin([])
        return found

    def _begin(self, reference: list[float]) -> None:
        self._before, self.bets = reference, Bets()
        self._sums, self._began = [0.0, 0.0], [0, 0]

    def is_like(self, other: "ChangeTest") -> bool:
        """Return whether another one tests the same blocks at the same chance."""
        return (self.chance, self.block) == (other.chance, other.block)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_before": np.array(self._before, dtype=np.float64)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._before = np.asarray(self._before).tolist()


def block_length(runs: Sequence[FloatArray], least: int = 1) -> int:
    """Return how many rows a block must have so that neighbouring blocks of runs are not alike.

    Parameters
    ----------
    runs : sequence of ndarray
        Values of runs in the order of time; NaN is left out.
    least : int, default=1
        Rows of a block at least, such as those of a window.

    Returns
    -------
    int
        The least length, doubled as often as it takes until the correlation of the mean of a
        block with the next one of its run is what chance explains; no longer than leaves 20 blocks.
    """
    known = [run[~np.isnan(run)] for run in runs]
    n, length = sum(map(len, known)), max(int(least), 1)
    while 2 * length * 20 <= n:
        pairs = [_means(run, length) for run in known]
        first = np.concatenate([means[:-1] for means in pairs])
        second = np.concatenate([means[1:] for means in pairs])
        if len(first) < 10 or np.ptp(first) == 0 or np.ptp(second) == 0:
            break
        if np.corrcoef(first, second)[0, 1] < 2.0 / math.sqrt(len(first)):
            break
        length *= 2
    return length


def _means(run: FloatArray, length: int) -> FloatArray:
    """Return the means of whole blocks of a run."""
    n = len(run) // length
    means: FloatArray = run[: n * length].reshape(n, length).mean(axis=1)
    return means

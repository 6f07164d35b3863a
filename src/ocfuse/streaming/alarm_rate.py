"""Rate of events of normal runs, and the choice of a threshold and rule for a rate.

Whole runs are scored by fits that have not seen them. `HeldOutRuns` counts their events at any
threshold, and chooses threshold, shortest duration and hold together, so that future runs raise
events no more often than requested.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError, OcfuseWarning
from ocfuse.groups import Groups
from ocfuse.scores.conformal import whole_part
from ocfuse.streaming.events import MAX_UNSCORED, EventRule, leave_score
from ocfuse.system.packages import slow
from ocfuse.validation import check_choice, check_number


class Alarms:
    """The alarms of some runs at any threshold, as `EventTracker` raises them.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the runs, one after another; NaN for samples without a score.
    starts : ndarray of shape (k,)
        First sample of each run.
    """

    def __init__(self, scores: FloatArray, starts: IntArray) -> None:
        self.place = np.flatnonzero(~np.isnan(scores))
        self.scores = scores[self.place]
        self.run = np.searchsorted(starts, self.place, side="right")
        # of scores on both sides of it, none counts for the other: a new run, or a long gap
        parted = (np.diff(self.place) > MAX_UNSCORED + 1) | (np.diff(self.run) > 0)
        self.begins = np.r_[True, parted][: len(self.place)]
        self.section = np.cumsum(self.begins)

    def highest(self, m: int) -> FloatArray:
        """Return the highest of the last m scores in a row; infinity where there are fewer."""
        n = len(self.scores)
        found = np.full(n, np.inf)
        if n >= m:
            windows = np.lib.stride_tricks.sliding_window_view(self.scores, m)
            whole = self.section[m - 1 :] == self.section[: n - m + 1]
            found[m - 1 :] = np.where(whole, windows.max(axis=1), np.inf)
        return found

    def find(self, highest: FloatArray, enter: float, leave: float) -> tuple[IntArray, IntArray]:
        """Return at which of the scores alarms are raised, and the samples that end them."""
        n = len(self.scores)
        order = 2 * np.arange(n)
        set_at = np.maximum.accumulate(np.where(highest < enter, order, -2))
        reset = np.where(self.scores >= leave, order, np.where(self.begins, order - 1, -2))
        is_on = set_at > np.maximum.accumulate(reset)
        before = np.r_[False, is_on[:-1]] & ~self.begins
        raised = np.flatnonzero(is_on & ~before)
        after = np.r_[is_on[1:] & ~self.begins[1:], False]
        last = np.flatnonzero(is_on & ~after)
        # the next score has ended it, unless a gap or the end of the run came before
        following = np.minimum(last + 1, n - 1)
        is_score = (following > last) & ~self.begins[following]
        return raised, np.where(is_score, self.place[following], self.place[last] + 1)

    def count(self, highest: FloatArray, enter: float, leave: float, hold: int) -> int:
        """Return the number of events: of alarms within the hold time, one."""
        raised, stop = self.find(highest, enter, leave)
        run = self.run[raised]
        is_joined = (run[1:] == run[:-1]) & (self.place[raised[1:]] - stop[:-1] <= hold)
        return len(raised) - int(is_joined.sum())

    def threshold(
        self, highest: FloatArray, hold: int, allowed: int, normal_scores: FloatArray
    ) -> float:
        """Return the highest threshold up to which no one raises more events than are allowed."""
        values = np.sort(highest[np.isfinite(highest)])
        if not len(values):
            raise InvalidInputError(
                "Runs are too short to count events: none has scores enough in a row."
            )
        # of the lowest, which neighbours share, each; then ever fewer
        ranks = np.unique(np.geomspace(1, max(len(values) // 4, 1), N_THRESHOLDS).astype(np.intp))
        chosen = float(values[0])
        for enter in values[ranks - 1].tolist():
            leave = leave_score(enter, normal_scores)
            if self.count(highest, enter, leave, hold) > allowed:
                break
            chosen = enter
        return chosen

    def mean_delay(
        self, highest: FloatArray, m: int, enter: float, fall: float, most: int
    ) -> float:
        """Return after how many scores an alarm would be raised if scores fell by so much.

        On average over all moments at which they might fall that are followed by `most` scores;
        later alarms count as if they came then.
        """
        n = len(self.scores)
        if n <= most:
            return float(most)
        reached = np.where(highest < enter + fall, np.arange(n), n + most)
        following = np.minimum.accumulate(reached[::-1])[::-1]
        moments = np.flatnonzero(self.section[most:] == self.section[: n - most])
        if not len(moments):
            return float(most)
        # m scores in a row, the first of them fallen
        waited = following[moments + m - 1] - moments + 1
        return float(np.minimum(waited, most).mean())


#: Thresholds that are tried, from the lowest on.
N_THRESHOLDS = 120
#: Least durations that are tried, and hold times in lengths of the longest window.
DURATIONS = (3, 5, 8, 12, 20)
HOLDS = (4, 8)
#: How rare the scores are whose distance from the median made-up falls have.
RARE = (0.05, 0.01, 0.001)
#: Scores after which a fall counts as found late.
MOST_WAIT = 120
#: Share of fits that hold runs out, and samples of held-out runs that are scored at most.
N_FITS = 4
MOST_HELD_OUT = 200_000
#: Units of a rate of alarms: seconds in each; runs are counted.
PER = {"hour": 3600.0, "day": 86400.0, "run": math.nan}


@dataclass(frozen=True)
class AlarmRate:
    """Largest rate of events of normal runs, on average.

    Parameters
    ----------
    rate : float, optional
        Events per unit, on average over future runs. None promises no rate: the threshold stays
        that for rows, and events of held-out runs are only counted.
    per : {"hour", "day", "run"}, default="hour"
        Unit of the rate. Hours and days need times; numbers count as seconds.

    Examples
    --------
    >>> from ocfuse.streaming import AlarmRate, StreamDetector
    >>> stream = StreamDetector(alarm_rate=AlarmRate(0.1, per="hour"))
    """

    rate: float | None = None
    per: str = "hour"

    def __post_init__(self) -> None:
        check_choice(self.per, "per", tuple(PER))
        if self.rate is not None:
            check_number(self.rate, "rate", 0.0, math.inf, "It counts events.")


@dataclass(frozen=True)
class HeldOutRuns:
    """Scores of normal runs from fits that have not seen them, and their events.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the runs, one after another; NaN for samples without a score.
    starts : ndarray of shape (k,)
        First sample of each run.
    seconds : ndarray of shape (k,) or None
        Duration of each run; None without times.
    are_whole : bool
        Whether whole runs were held out. Their events hold for future runs; those of blocks hold
        for these runs only.
    """

    scores: FloatArray
    starts: IntArray
    seconds: FloatArray | None
    are_whole: bool

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.starts)

    def units(self, per: str) -> float:
        """Return how many hours, days or runs they are; NaN without times."""
        if per == "run":
            return float(self.n_runs)
        return math.nan if self.seconds is None else float(self.seconds.sum()) / PER[per]

    def n_events(self, offset: float, rule: EventRule, normal_scores: FloatArray) -> int:
        """Return the events that a threshold raises in these runs."""
        alarms = Alarms(self.scores, self.starts)
        leave = leave_score(offset, normal_scores)
        return alarms.count(alarms.highest(rule.min_duration), offset, leave, rule.hold)

    def facts(self, n_events: int, wanted: AlarmRate | None) -> dict[str, Any]:
        """Return the events of these runs, and what is promised of others: None for nothing."""
        per = "run" if self.seconds is None else "hour" if wanted is None else wanted.per
        known = self.are_whole
        return {
            "events": n_events,
            "runs": self.n_runs,
            "hours": None if self.seconds is None else self.units("hour"),
            "per": per,
            "asked": None if wanted is None else wanted.rate,
            "rate": n_events / self.units(per),
            "promised": self.expected(n_events, per) if known else None,
            "likely_at_most": self.highest_likely(n_events, per) if known else None,
        }

    def expected(self, n_events: int, per: str) -> float:
        """Return the upper bound of the mean rate of events of future runs, from n events.

        A future run may be the worst of all, so one more run with an event is counted.
        """
        return (n_events + 1) / (self.units(per) * (1.0 + 1.0 / self.n_runs))

    def highest_likely(self, n_events: int, per: str, level: float = 0.95) -> float:
        """Return the rate that is not exceeded with a probability, if events occur at random."""
        most = slow("scipy.stats").chi2.ppf(level, 2 * n_events + 2) / 2
        return float(most) / self.units(per)

    def choose(
        self, wanted: AlarmRate, normal_scores: FloatArray, longest: int
    ) -> tuple[float, EventRule]:
        """Return the threshold and the rule that find falls of the score soonest at a rate.

        For each shortest duration and hold, the threshold is the highest one for which `expected`
        is at most the rate. Of these candidates the one is chosen that finds artificial falls of
        the score soonest: from each moment of these runs on, all scores are lowered by the
        distance between their median and a rare score.

        Parameters
        ----------
        wanted : AlarmRate
            The rate.
        normal_scores : ndarray
            Scores of normal rows, whose median `leave_score` uses.
        longest : int
            Samples in the longest window.

        Returns
        -------
        offset : float
            The threshold.
        rule : EventRule
            Least duration and hold time.
        """
        allowed = self._allowed(wanted)
        alarms = Alarms(self.scores, self.starts)
        middle = float(np.median(alarms.scores))
        falls = [middle - float(np.quantile(alarms.scores, q)) for q in RARE]
        best: tuple[float, float, EventRule] | None = None
        for m in DURATIONS:
            highest = alarms.highest(m)
            for times in HOLDS:
                rule = EventRule(m, times * longest)
                offset = alarms.threshold(highest, rule.hold, allowed, normal_scores)
                delays = [alarms.mean_delay(highest, m, offset, fall, MOST_WAIT) for fall in falls]
                cost = float(np.mean(delays))
                if best is None or cost < best[0]:
                    best = cost, offset, rule
        assert best is not None
        return best[1:]

    def choose_rule(
        self, offset: float, normal_scores: FloatArray, longest: int, most: float = 1.0
    ) -> EventRule:
        """Return the rule for a threshold that counts rows, without a rate of events.

        The hold is four times the longest window. The duration is the shortest of 3, 5, 8 and 12
        samples for which these runs promise at most one event per hour, or else 12; it is 3 if
        runs are too short for that promise. If blocks of few runs were held out, nothing is known
        about future runs; then it is the shortest one with which these blocks raise no event, as
        with a long hold frequent alarms would be one endless event.

        Parameters
        ----------
        offset : float
            The threshold.
        normal_scores : ndarray
            Scores of normal rows.
        longest : int
            Samples in the longest window.
        most : float, default=1.0
            Events in an hour.

        Returns
        -------
        EventRule
            Least duration and hold time.
        """
        rules = [EventRule(m, HOLDS[0] * longest) for m in DURATIONS[:-1]]
        if self.are_whole and (self.seconds is None or self.expected(0, "hour") > most):
            return rules[0]
        for rule in rules:
            n_events = self.n_events(offset, rule, normal_scores)
            if (self.expected(n_events, "hour") <= most) if self.are_whole else n_events == 0:
                return rule
        return rules[-1]

    def _allowed(self, wanted: AlarmRate) -> int:
        """Return how many events these runs may have; warn if that is none and still too many."""
        units = self.units(wanted.per)
        if math.isnan(units):
            raise InvalidInputError(
                f"Alarms per {wanted.per} need times of the samples, and there are none. Give "
                'times, or a rate per run: per="run".'
            )
        rate = math.nan if wanted.rate is None else wanted.rate
        allowed = whole_part(rate * units * (1.0 + 1.0 / self.n_runs)) - 1
        if not self.are_whole or allowed < 0:
            warnings.warn(self.too_few(wanted), FewSamplesWarning, stacklevel=5)
        return max(allowed, 0)

    def too_few(self, wanted: AlarmRate) -> str:
        """Return a message that a rate cannot be promised, and which one can."""
        per = wanted.per
        runs = "1 run tells" if self.n_runs == 1 else f"{self.n_runs} runs tell"
        if not self.are_whole:
            return (
                f"{runs} nothing of how runs differ: {wanted.rate:g} alarms per {per} cannot be "
                "promised of others. The threshold is meant for the rest of the same. Learn from "
                "more runs."
            )
        size = "" if per == "run" else f" of {self.units(per) / self.n_runs:.2g} {per}s"
        least, likely = self.expected(0, per), self.highest_likely(0, per)
        return (
            f"{wanted.rate:g} alarms per {per} cannot be promised: from {self.n_runs} runs{size}, "
            f"no less than {least:.2g} can, on average, or {likely:.2g} with 95 % confidence. "
            f"That is what is set. Learn from {self._needed(wanted)} such runs, or ask for more."
        )

    def _needed(self, wanted: AlarmRate) -> str:
        """Return how many runs as these could promise a rate."""
        rate = wanted.rate or math.nan
        one = rate * self.units(wanted.per) / self.n_runs
        return f"{math.ceil(1.0 / one) - 1:,}" if one > 0 else "ever more"


def held_out_runs(
    scores: FloatArray, slices: list[slice], times: FloatArray | None, are_whole: bool
) -> HeldOutRuns:
    """Return what is known of runs by their scores; runs that have none are left out."""
    scored = [part for part in slices if not np.isnan(scores[part]).all()]
    lengths = [part.stop - part.start for part in scored]
    seconds = None
    if times is not None:
        ends = [times[part][np.isfinite(times[part])] for part in scored]
        seconds = np.array([np.ptp(each) * (1 + 1 / max(len(each) - 1, 1)) for each in ends])
    return HeldOutRuns(
        np.concatenate([scores[part] for part in scored]) if scored else scores[:0],
        np.cumsum([0, *lengths])[:-1],
        seconds,
        are_whole,
    )


def held_out_scores(
    detector: Any,
    rows: FloatArray,
    y: Any,
    taken: IntArray,
    known: BoolArray,
    groups: Groups,
    context: FloatArray | None,
) -> FloatArray:
    """Return scores of the known rows by fits to `taken` rows of other runs; NaN for others.

    Of very many rows, those of some runs only.
    """
    fold = groups.folds(N_FITS)
    withheld = groups.withheld(fold)
    step = -(-int(known.sum()) // MOST_HELD_OUT)
    asked = known & (groups.label % step == 0)
    scores = np.full(len(rows), np.nan)
    for f in range(int(fold.max()) + 1):
        part, held = taken[~withheld[taken, f]], np.flatnonzero(asked & (fold == f))
        if not len(held):
            continue
        with warnings.catch_warnings():  # the fit to all runs has said it
            warnings.simplefilter("ignore", OcfuseWarning)
            learned = clone(detector).fit(
                rows[part],
                None if y is None else y[part],
                groups.take(part),
                None if context is None else context[part],
            )
            chosen = None if context is None else context[held]
            scores[held] = learned.score_samples(rows[held], chosen)
    return scores

"""StreamDetector: scores of live sensor streams and of recorded runs."""

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.detectors.base import require_count
from ocfuse.encoder import check_direction, positions_of
from ocfuse.ensemble.detector import FusedDetector
from ocfuse.ensemble.plan import Plan
from ocfuse.exceptions import (
    DriftWarning,
    FewSamplesWarning,
    InvalidInputError,
    InvalidTypeError,
)
from ocfuse.explain import Explanation, number_text
from ocfuse.frame_columns import native_frame, read_frame
from ocfuse.fusion.local_scale import warn_if_far
from ocfuse.limits import ValueLimits, check_limits, make_limits, warn_of_broken
from ocfuse.persistence import load, save
from ocfuse.scores.threshold import InnerThresholdMixin, p_values_of
from ocfuse.streaming.alarm_rate import (
    HOLDS,
    MOST_HELD_OUT,
    N_FITS,
    AlarmRate,
    HeldOutRuns,
    held_out_runs,
    held_out_scores,
)
from ocfuse.streaming.channels import ChannelReading, readings_of
from ocfuse.streaming.clock import (
    LEFT_OUT,
    RESTARTS,
    ChunkLog,
    StreamState,
    check_times,
    usual_step,
)
from ocfuse.streaming.course import Course
from ocfuse.streaming.events import EventRule, EventTracker, leave_score
from ocfuse.streaming.fit import (
    JudgedRun,
    StreamTraining,
    TrainingRows,
    are_levels_known,
    choose,
    learn_view,
    require_enough,
    training_groups,
    warn_of_clock,
    warn_of_few_runs,
)
from ocfuse.streaming.sensors import ChannelMonitor, SensorEvent, SensorLimits
from ocfuse.streaming.slow import SlowChange, SlowSettings, stream_block
from ocfuse.streaming.view import StreamView, typical
from ocfuse.streaming.windows import KINDS, LARGEST, Windows, check_samples, run_slices
from ocfuse.tables.judged import spread
from ocfuse.usual import check_seasons, to_days
from ocfuse.usual.seasons import find_zone
from ocfuse.validation import (
    ANOMALY,
    NORMAL,
    UNKNOWN,
    check_choice,
    check_context,
    check_number,
    check_training_labels,
    require_context,
    require_fitted,
    require_mostly_normal,
)


class StreamDetector(InnerThresholdMixin, BaseEstimator):  # type: ignore[misc]
    """Anomaly detector for sensor streams: learns normal runs, scores each new sample.

    Each sample is described by windows of the latest samples (see `Windows`), and a
    `FusedDetector` scores these features. In training whole runs are held out. With fewer than
    four runs, blocks of time are held out instead, without their neighbours (see `blocks`). The
    false-alarm rate then holds for the rest of these runs only, and a `FewSamplesWarning` says so.
    Samples have the same scores whether they come one by one or in chunks.

    Windows leave missing values out. A channel that is missing in more than half of a window gets
    its typical value. A sample has no score (NaN) if more than half of the channels are missing,
    if its context is not finite, or until the longest window is full. After a gap in time the
    windows start again. A sample is ignored and has no score if its time is not finite, not later
    than the last one, or more than a thousand usual steps ahead. A second sample so far ahead is
    accepted, and the fifth late one in order restarts the clock. `state_.counts` counts these
    cases, and `state_.silent` the samples since the last score.

    Parameters
    ----------
    detector : FusedDetector, optional
        Detector of the features, not yet fitted; it defines members, fusion and false-alarm rate.
        None is ``FusedDetector(random_state=0)``.
    windows : sequence of int, default=(10, 30)
        Lengths of the windows in samples; with () the samples themselves are the features.
    n_blocks : int, default=4
        Number of blocks of time that are held out in turn, with fewer than four runs.
    drift : {"keep", "drop", "follow"}, default="keep"
        What to do with channels that drift in training (`drift_ratio` above 0.3): keep them, with
        a warning (if there are `n_blocks` runs or more, above 3 only); drop them; or follow them,
        that is, subtract their slow mean.
    half_life : int, optional
        Half-life of the slow mean in samples; by default ten times the longest window.
    max_gap : float, default=5.0
        Longest step in time within a window, in units of the usual step in training.
    course : Course, optional
        Compare samples with their usual values at the same context before windows are taken, for
        tasks with phases. Needs at least 2 runs and a context of one column.
    max_rows : int or None, default=4000
        Most samples to learn from. Of more, one of every 2, 3, ... neighbours is taken at random,
        as their windows are nearly alike. The time to fit grows with it; the time to score hardly
        does. None takes all.
    season : str or sequence of str, default=()
        Compare channels with their usual values at the same local time of the "day", "week",
        "month" or "year", where this predicts held-out samples better. Times must then be dates,
        or seconds since 1970.
    holidays : str or sequence of str, default=()
        Days that are treated as Sundays unless their training rows differ. Needs
        ``season="week"``.
    zone : str, optional
        Time zone in which days begin, such as "Europe/Berlin", for times in UTC. None is the zone
        of the times if they are a pandas column with one; other times are not converted.
    alarm_rate : AlarmRate, optional
        How often normal runs may raise an event. Events are then counted in the training runs,
        each scored by a fit that has not seen it (four more fits), and threshold and `event_rule_`
        are chosen for the rate. ``AlarmRate()`` without a rate only counts.
    direction : dict, optional
        Channels, by name or position, in which only high or only low values are bad:
        ``{"current": "high"}`` or "low". The side applies to level and slope of windows. The
        spread of such a channel within a window is not used: a fall would show there, too.
    limits : dict, optional
        Lowest and highest allowed value of channels, None for no limit: ``{"temp": (None, 90)}``.
        Samples beyond a limit are reported as a sensor event of the kind "limit", whatever their
        scores.

    Attributes
    ----------
    detector_ : FusedDetector
        The fitted detector of the features; its rows are those of `features`.
    drift_ratio_ : ndarray of shape (n_channels,)
        How far each channel drifts in training, see `ocfuse.streaming.drift_ratio`.
    channels_, watched_ : list of str
        Names of all channels, and of those that are not dropped.
    feature_names_ : list of str
        Names of the columns of `features`.
    offset_ : float
        Threshold: scores below it raise an alarm.
    event_rule_ : EventRule
        Shortest duration and hold of events, see `tracker`.
    alarm_rate_ : AlarmRate or None
        The rate for which threshold and event rule were chosen.
    held_out_ : HeldOutRuns or None
        With `alarm_rate`: scores of whole training runs from fits that have not seen them; after
        `calibrate`, scores of its runs.
    training_scores_ : ndarray of shape (n_samples,)
        Held-out scores of the training samples; NaN for samples without a score, and for those not
        learned (`max_rows`).
    training_counts_ : dict
        Counts of odd training samples (late, without a time, ...), as in ``state_.counts``.
    state_ : StreamState
        State of the live stream.
    sensors_ : SensorLimits
        Usual values of each channel, and when its sensor counts as failed.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse import FusedDetector
    >>> from ocfuse.streaming import StreamDetector
    >>> rng = np.random.default_rng(0)
    >>> current = rng.normal(size=1000)
    >>> X = np.column_stack([current, current + 0.1 * rng.normal(size=1000)])
    >>> stream = StreamDetector(FusedDetector("light", random_state=0), windows=(10,))
    >>> stream = stream.fit(X, runs=np.repeat(np.arange(20), 50))
    >>> scores = [stream.score_one(x) for x in X[:30] + [0, 3]]
    >>> bool(np.isnan(scores[8])), bool(scores[9] < stream.offset_)
    (True, True)
    """

    view_: StreamView
    detector_: FusedDetector
    training_rows_: NDArray[np.intp]
    context_range_: FloatArray | None
    channels_: list[str]
    feature_names_: list[str]
    state_: StreamState
    # also of models that were written without them
    season: Any = ()
    holidays: Any = ()
    zone: str | None = None
    event_rule_: EventRule = EventRule()
    held_out_: HeldOutRuns | None = None
    alarm_rate_: AlarmRate | None = None
    sensors_: SensorLimits | None = None
    direction: Any = None
    limits: Any = None
    limits_: ValueLimits | None = None
    broken_: dict[str, int]

    def __init__(
        self,
        detector: Any = None,
        *,
        windows: Sequence[int] = (10, 30),
        n_blocks: int = 4,
        drift: str = "keep",
        half_life: int | None = None,
        max_gap: float = 5.0,
        course: Course | None = None,
        max_rows: int | None = 4000,
        season: Any = (),
        holidays: Any = (),
        zone: str | None = None,
        alarm_rate: AlarmRate | None = None,
        direction: Any = None,
        limits: Any = None,
    ) -> None:
        self.detector = detector
        self.windows = windows
        self.n_blocks = n_blocks
        self.drift = drift
        self.half_life = half_life
        self.max_gap = max_gap
        self.course = course
        self.max_rows = max_rows
        self.season = season
        self.holidays = holidays
        self.zone = zone
        self.alarm_rate = alarm_rate
        self.direction = direction
        self.limits = limits

    # -- learning ---------------------------------------------------------

    def plan(self, X: Any, runs: Any = None) -> Plan:
        """Predict memory and time of `fit`, without fitting.

        With `alarm_rate`, `fit` makes four more fits, each to three quarters of the runs.

        Parameters
        ----------
        X : array-like, data frame or tuple of int
            Samples as in `fit`, or the numbers of samples and channels.
        runs : array-like of shape (n,) or int, optional
            Runs as in `fit`, or their number.

        Returns
        -------
        Plan
            Memory and time: ``print(stream.plan((35_000, 6), runs=24))``.
        """
        self._check_parameters()
        n, c = X if isinstance(X, tuple) else check_samples(X).shape
        n_runs = len(run_slices(runs, n)) if np.ndim(runs) else 1 if runs is None else int(runs)
        n_features = c * (len(Windows(self.windows).names(["x"])) if len(self.windows) else 1)
        taken = len(choose(np.arange(n), self.max_rows))
        detector = FusedDetector(random_state=0) if self.detector is None else self.detector
        groups = max(n_runs, self.n_blocks)
        plan = detector.plan((taken, n_features), groups=groups)
        if self.alarm_rate is None:
            return plan
        part = taken - taken // N_FITS
        held_out = detector.plan((part, n_features), groups=groups - groups // N_FITS)
        scored = min(n, MOST_HELD_OUT) * held_out.score_seconds / 1000.0
        seconds = plan.fit_seconds + N_FITS * held_out.fit_seconds + scored
        return replace(plan, fit_seconds=seconds)

    def fit(
        self,
        X: Any,
        y: Any = None,
        runs: Any = None,
        time: Any = None,
        context: Any = None,
        judged: Sequence[JudgedRun] = (),
    ) -> "StreamDetector":
        """Learn from normal runs.

        Parameters
        ----------
        X : array-like or data frame of shape (n, c)
            Samples, run after run, each run ordered by time; NaN for gaps.
        y : array-like of shape (n,), optional
            Labels as in `FusedDetector.fit`. Without labels all samples should be normal.
        runs : array-like of shape (n,), optional
            Run of each sample; None is one run.
        time : array-like of shape (n,), optional
            Times of the samples, numbers or dates; None means evenly spaced samples.
        context : array-like of shape (n,) or (n, k), optional
            Context of each sample, such as the progress of the task.
        judged : sequence of JudgedRun, optional
            Samples around events with a verdict, from `StreamTable.judged_runs`. Each event counts
            as one run, and its samples are numbered after those of X.

        Returns
        -------
        StreamDetector
            The fitted detector, ready for a new stream.
        """
        self._check_parameters()
        frame = read_frame(X)
        samples = check_samples(native_frame(frame))
        n = len(samples)
        slices, times = run_slices(runs, n), check_times(time, n)
        names = getattr(frame, "columns", [f"x{j}" for j in range(samples.shape[1])])
        data = StreamTraining(
            samples=samples,
            names=[str(name) for name in names],
            slices=slices,
            times=times,
            context=None if context is None else check_context(context, n),
            usual_step=usual_step(times, slices),
            is_dated=time is not None and np.asarray(time).dtype.kind in "MO",
            zone=str(getattr(getattr(time, "dtype", None), "tz", None) or ""),
        )
        require_mostly_normal(y)
        fresh = copy(self)  # a fit that fails leaves this detector as it was
        fresh._fit(data, None if y is None else check_training_labels(y, n), judged)
        self.__dict__.update(fresh.__dict__)
        return self

    def _fit(self, data: StreamTraining, y: Any, judged: Sequence[JudgedRun]) -> None:
        self.view_, samples, self.drift_ratio_ = learn_view(self, data)
        self.sensors_ = SensorLimits.learn(
            *(data.samples, data.names, data.slices),
            has_level=are_levels_known(self.drift_ratio_, len(data.slices), self.n_blocks),
            times=data.times,
            step=data.usual_step,
            is_dated=data.is_dated,
            context=data.context,
        )
        self.channels_, self.watched_ = self.view_.channels, self.view_.watched
        self.feature_names_ = self.view_.names
        sides = self._settle_sides()
        given = check_limits(self.limits)
        places = positions_of(list(given), data.names, len(data.names), "limits")
        self.limits_ = make_limits(given, np.array(places), [data.names[j] for j in places])
        if self.limits_ is not None:
            warn_of_broken(self.limits_.broken(data.samples[:, self.limits_.places]))
        rows, self.training_counts_ = self._run_rows(samples, data.slices, data.times)
        warn_of_clock(self.training_counts_)
        self.view_.fill = typical(rows, self.feature_names_)
        kept = np.flatnonzero(self.view_.fill_in(rows))
        taken = choose(kept, self.max_rows)
        if y is not None:
            taken = np.union1d(taken, kept[y[kept] == ANOMALY])
        purge, n = self.view_.n_remembered, len(rows)
        groups = training_groups(data, self.n_blocks, purge)
        require_enough(groups.take(kept), purge, self.n_blocks)
        known = self._with_judged(
            TrainingRows(rows, y, groups, data.context, taken), judged, len(data.slices)
        )
        rows, y, groups = known.rows, known.y, known.groups
        context, taken = known.context, known.taken
        self.training_rows_ = taken
        detector = FusedDetector(random_state=0) if self.detector is None else clone(self.detector)
        if sides:
            detector.set_params(direction=sides)
        with self._unless_of_rows(self.alarm_rate):
            self.detector_ = detector.fit(
                rows[taken],
                None if y is None else y[taken],
                groups.take(taken),
                None if context is None else context[taken],
            )
        self.context_range_ = None
        if context is not None:
            self.context_range_ = np.array([context.min(axis=0), context.max(axis=0)])
        scores = np.full(len(rows), np.nan)
        scores[taken] = self.detector_.training_scores_
        self.training_scores_ = scores[:n]
        self.event_rule_ = EventRule(hold=HOLDS[0] * max((*self.windows, 1)))
        self.held_out_, self.alarm_rate_ = None, self.alarm_rate
        self.reset()
        if self.alarm_rate is not None:
            self._hold_out(known, data)
            self._settle_alarms()

    def _settle_sides(self) -> dict[int, str]:
        """Return the side of features, and leave out the others of channels of one side."""
        given = {} if self.direction is None else self.direction
        check_direction(given)
        names, view = self.channels_, self.view_
        places = positions_of(list(given), names, len(names), "direction")
        channels = {names[j]: given[key] for key, j in zip(given, places, strict=True)}
        n, sides = len(view.watched), {}
        blank = np.zeros(len(view.names), dtype=bool)
        for k in range(len(view.names)):
            side = channels.get(view.watched[k % n])
            if side is not None and (
                view.windows is None or KINDS[k // n % len(KINDS)] != "spread"
            ):
                sides[k] = side
            elif side is not None:
                blank[k] = True
        view.blank = blank if blank.any() else None
        if channels and self.sensors_ is not None:
            sign = [{"high": 1, "low": -1}.get(channels.get(name, ""), 0) for name in names]
            self.sensors_ = replace(self.sensors_, sign=np.array(sign))
        return sides

    def _with_judged(
        self, known: TrainingRows, judged: Sequence[JudgedRun], n_runs: int
    ) -> TrainingRows:
        """Return training rows with those of judged events, of each as many as of a run."""
        most = max(20, len(known.taken) // n_runs)
        for number in dict.fromkeys(run.event for run in judged):
            parts = [run for run in judged if run.event == number]
            found = [self._judged_rows(run) for run in parts]
            rows, labels = (
                np.vstack([one[0] for one in found]),
                np.concatenate([p.y for p in parts]),
            )
            usable = np.concatenate([one[1] for one in found]) & (labels != UNKNOWN)
            chosen = spread(np.flatnonzero(usable), most)
            if len(chosen):
                beside = [run.context for run in parts if run.context is not None]
                context = np.vstack(beside)[chosen] if beside else None
                known = known.extend(rows[chosen], labels[chosen].astype(np.float64), context)
        return known

    def _judged_rows(self, run: JudgedRun) -> tuple[FloatArray, BoolArray]:
        """Return features of a run from its beginning, and which samples have a score."""
        samples = self.view_.measured(run.samples, run.context, run.times)
        rows, _ = self._run_rows(samples, [slice(0, len(samples))], run.times)
        return rows, self.view_.fill_in(rows) & ~unknown_context(run.context, len(rows))

    def _hold_out(self, known: TrainingRows, data: StreamTraining) -> None:
        """Score whole runs by detectors that have not learned from them."""
        rows, y, groups, n = known.rows, known.y, known.groups, len(data.samples)
        asked = np.asarray(~np.isnan(rows).any(axis=1))
        asked[n:] = False
        if y is not None:
            asked &= y != ANOMALY
        scores = held_out_scores(
            *(self.detector_, rows, y, known.taken, asked, groups, known.context)
        )
        self.held_out_ = held_out_runs(scores[:n], data.slices, data.times, not groups.are_folds)

    @contextmanager
    def _unless_of_rows(self, wanted: AlarmRate | None) -> Iterator[None]:
        """Give no warning that runs are too few for a rate of rows if one of events was asked."""
        with warnings.catch_warnings():
            if wanted is not None and wanted.rate is not None:
                words = ".* too few for false_alarm_rate="
                warnings.filterwarnings("ignore", words, FewSamplesWarning)
            yield

    def _settle_alarms(self) -> None:
        """Set threshold and rule as was asked for, or the rule alone if no rate was."""
        wanted, held, longest = self.alarm_rate_, self.held_out_, max((*self.windows, 1))
        if wanted is not None and wanted.rate is not None:
            self.set_alarm_rate(wanted.rate, wanted.per)
        elif held is not None:
            normal = self.detector_.normal_scores_
            self.event_rule_ = held.choose_rule(self.offset_, normal, longest)

    def calibrate(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> "StreamDetector":
        """Set the threshold from fresh normal runs; see `FusedDetector.calibrate`.

        With several runs, each has the same weight, and the rate holds for future runs. With one
        run the rate holds for the rest of that run only, and a warning says so.

        Parameters
        ----------
        X, runs, time, context : array-like
            Normal samples as in `fit`.

        Returns
        -------
        StreamDetector
            The detector.
        """
        rows, situation = self._recorded(X, runs, time, context)
        scored = np.asarray(~np.isnan(rows).any(axis=1))
        slices = run_slices(runs, len(rows))
        run = np.repeat(np.arange(len(slices)), [part.stop - part.start for part in slices])
        if len(slices) == 1:
            warn_of_few_runs(1, "Calibrate on several.")
        with self._unless_of_rows(self.alarm_rate_):
            self.detector_.calibrate(
                rows[scored],
                None if situation is None else situation[scored],
                run[scored] if len(slices) > 1 else None,
            )
        if self.alarm_rate_ is not None:
            scores = self._scores(rows, situation, scored)
            times = check_times(time, len(rows))
            self.held_out_ = held_out_runs(scores, slices, times, len(slices) >= self.n_blocks)
            self._settle_alarms()
        return self

    # -- events -----------------------------------------------------------

    def set_alarm_rate(self, rate: float, per: str = "hour") -> "StreamDetector":
        """Choose threshold, shortest duration and hold of events for a rate, from held-out runs.

        Of all choices with which held-out runs raise events no more often than `rate`, the one is
        taken that finds artificial falls of the score soonest. No anomalies are used.

        Parameters
        ----------
        rate : float
            Events per hour, day or run, on average over future runs.
        per : {"hour", "day", "run"}, default="hour"
            Unit of the rate.

        Returns
        -------
        StreamDetector
            The detector. If there are too few runs for the rate, the lowest rate that they can
            promise is set, and a `FewSamplesWarning` names it.
        """
        check_is_fitted(self, "state_")
        if self.held_out_ is None:
            raise InvalidInputError(
                "No held-out runs are known, by which events could be counted. Learn with "
                "alarm_rate=AlarmRate(), or with ocfuse fit --stream."
            )
        wanted, longest = AlarmRate(rate, per), max((*self.windows, 1))
        normal = self.detector_.normal_scores_
        offset, rule = self.held_out_.choose(wanted, normal, longest)
        self.detector_.set_threshold(offset=offset)
        self.event_rule_, self.alarm_rate_ = rule, wanted
        return self

    def alarm_facts(self) -> dict[str, Any]:
        """Return the event rule, the events of held-out runs, and the rate that they promise."""
        rule, held = self.event_rule_, self.held_out_
        facts: dict[str, Any] = {"min_rows": rule.min_duration, "hold": rule.hold}
        if held is not None:
            normal, wanted = self.detector_.normal_scores_, self.alarm_rate_
            facts |= held.facts(held.n_events(self.offset_, rule, normal), wanted)
        return facts

    def slow_change(self, settings: SlowSettings) -> SlowChange:
        """Return an object that follows slow changes of a live stream and tests for a change.

        The test takes means of blocks of rows. A block is at least as long as the longest window,
        and long enough that held-out training scores are no more alike from block to block than
        chance explains.

        Parameters
        ----------
        settings : SlowSettings
            Whether to follow and to test, and how.

        Returns
        -------
        SlowChange
            The object, at the beginning of a stream.
        """
        check_is_fitted(self, "detector_")
        known = self.training_scores_ if self.held_out_ is None else self.held_out_.scores
        longest = max((*self.windows, 1))
        return SlowChange.of(self.detector_, settings, stream_block(known, longest), longest)

    def tracker(
        self,
        min_duration: int | None = None,
        hold: int | None = None,
        leave: float | None = None,
    ) -> EventTracker:
        """Return a tracker that joins low scores of this detector to events, as all commands do.

        Parameters
        ----------
        min_duration, hold : int, optional
            Samples as in `EventTracker`; by default those of `event_rule_`.
        leave : float, optional
            An alarm ends with the first score that is not below this. By default it is the
            threshold plus a quarter of the distance to the median of normal scores.

        Returns
        -------
        EventTracker
            The tracker, at the beginning of a run.
        """
        rule, detector = self.event_rule_, self.detector_
        usual = leave_score(detector.offset_, detector.normal_scores_)
        return EventTracker(
            self.offset_,
            usual if leave is None else leave,
            rule.min_duration if min_duration is None else min_duration,
            hold=rule.hold if hold is None else hold,
        )

    # -- recorded runs ----------------------------------------------------

    def score_run(self, X: Any, time: Any = None, context: Any = None) -> FloatArray:
        """Score a whole recorded run from its beginning; the live stream does not change.

        Parameters
        ----------
        X, time, context : array-like
            As in `score_chunk`.

        Returns
        -------
        ndarray of shape (n,)
            Scores; NaN for samples without a score.
        """
        return self.score_samples(X, None, time, context)

    def score_samples(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Score recorded runs, each from its beginning; the live stream does not change.

        Parameters
        ----------
        X, runs, time, context : array-like
            Samples as in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Scores; NaN for samples without a score.
        """
        rows, situation = self._recorded(X, runs, time, context)
        return self._scores(rows, situation, np.asarray(~np.isnan(rows).any(axis=1)))

    def decision_function(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Return scores of recorded runs minus the threshold: negative raises an alarm."""
        return self.score_samples(X, runs, time, context) - self.offset_

    def predict(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> NDArray[np.int64]:
        """Return -1 for the samples of recorded runs that raise an alarm, else +1.

        A sample without a score raises no alarm.
        """
        below = self.decision_function(X, runs, time, context) < 0
        return np.where(below, ANOMALY, NORMAL)

    def p_values(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Return p-values of recorded runs: how rarely a normal sample scores as low, or NaN."""
        scores = self.score_samples(X, runs, time, context)
        return p_values_of(scores, self.conformal_)

    def explain(
        self, X: Any, rows: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> Explanation:
        """Explain the scores of some samples of recorded runs.

        Parameters
        ----------
        X : array-like
            Samples as in `fit`. Give whole runs, as windows need the samples before.
        rows : array-like of int or bool
            Samples to explain, by number or as a mask. Each must have a score.
        runs, time, context : array-like
            As in `fit`.

        Returns
        -------
        Explanation
            One entry per chosen sample. Its features are `feature_names_`, and its `nearest_rows`
            are numbers of samples of `fit`.
        """
        features, situation = self._recorded(X, runs, time, context)
        chosen = np.arange(len(features))[np.asarray(rows)]
        unscored = chosen[np.isnan(features[chosen]).any(axis=1)]
        if len(unscored):
            raise InvalidInputError(
                f"Only samples with a score can be explained. Sample {unscored[0]} has none."
            )
        found = self.detector_.explain(
            features[chosen], None if situation is None else situation[chosen]
        )
        return replace(
            found,
            feature_names=list(self.feature_names_),
            nearest_rows=self.training_rows_[found.nearest_rows],
        )

    def features(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Return the features that `detector_` scores; rows of NaN where there is no score.

        Parameters
        ----------
        X, runs, time, context : array-like
            Samples as in `fit`.

        Returns
        -------
        ndarray of shape (n, number of features)
            Features; their names are `feature_names_`.
        """
        return self._recorded(X, runs, time, context)[0]

    # -- the live stream --------------------------------------------------

    def score_one(self, x: ArrayLike, time: Any = None, context: Any = None) -> float:
        """Score the next sample of the stream.

        Parameters
        ----------
        x : array-like of shape (c,)
            Values of the channels; NaN for missing ones.
        time : float or date, optional
            Its time, if `fit` was given times.
        context : float or array-like of shape (k,), optional
            Its context, if `fit` was given context. None if unknown; the sample then has no score.

        Returns
        -------
        float
            Score: higher is more normal, below `offset_` is an alarm; NaN if there is none.
        """
        require_fitted(self, "state_")
        times = None if time is None else [time]
        situation = None if context is None else np.reshape(np.asarray(context), (1, -1))
        if context is None and self.context_range_ is not None:
            situation = np.full((1, self.context_range_.shape[1]), np.nan)
        return float(self.score_chunk(np.reshape(np.asarray(x), (1, -1)), times, situation)[0])

    def score_chunk(self, X: Any, time: Any = None, context: Any = None) -> FloatArray:
        """Score the next samples of the stream.

        A `DriftWarning` names a channel when its slow mean leaves the training range; see
        `drifted`.

        Parameters
        ----------
        X : array-like of shape (n, c)
            Samples in the order of their arrival.
        time : array-like of shape (n,), optional
            Their times, if `fit` was given times.
        context : array-like of shape (n,) or (n, k), optional
            Their context, if `fit` was given context.

        Returns
        -------
        ndarray of shape (n,)
            Scores; NaN for samples without a score.
        """
        scores, _ = self.follow(X, time, context)
        return scores

    def follow(self, X: Any, time: Any = None, context: Any = None) -> tuple[FloatArray, ChunkLog]:
        """Score the next samples of the stream as `score_chunk`, and record events at each.

        Parameters
        ----------
        X, time, context : array-like
            As in `score_chunk`.

        Returns
        -------
        scores : ndarray of shape (n,)
            Scores; NaN for samples without a score.
        log : ChunkLog
            Odd samples, sensor events, and samples at which channels left the training range.
        """
        require_fitted(self, "state_")
        # all checks first: input that is refused must not have moved the stream
        samples = self._check(X)
        times = check_times(time, len(samples))
        situation = self._check_context(context, len(samples))
        state, log = self.state_, ChunkLog(len(samples))
        if not state.is_context_told:
            state.is_context_told = self._warn_of_context(situation, 4)
        rows = self.view_.rows(state, self.view_.measured(samples, situation, times), times, log)
        if situation is not None:
            rows[unknown_context(situation, len(rows))] = np.nan
        scores = self._scores(rows, situation, self.view_.fill_in(rows, state, log))
        state.note(scores, rows, situation)
        state.time = np.nan if times is None or not len(times) else float(times[-1])
        log.parts = [(0, rows, situation, state.slow.mean)]
        log.times = [(0, times)]
        self._monitor(samples, times, log)
        if log.drifted:
            names = [name for names in log.drifted.values() for name in names]
            warnings.warn(
                f"The level of {', '.join(names)} has left what was learned: a "
                "lasting fault, or drift. If it is drift, learn again from new runs.",
                DriftWarning,
                stacklevel=3,
            )
        return scores, log

    def _monitor(self, samples: FloatArray, times: FloatArray | None, log: ChunkLog) -> None:
        """Note sensors that fail or work again."""
        if self.state_.monitor is None:
            self.state_.monitor = ChannelMonitor(self.sensor_limits)
        monitor = self.state_.monitor
        first = monitor.n_seen
        for event in monitor.update(samples, times):
            log.sensors.setdefault(event.row - first, []).append(event)
        if self.limits_ is not None:
            for event in self._limit_events(self.limits_, samples, times, first):
                log.sensors.setdefault(event.row - first, []).append(event)

    def _limit_events(
        self, limits: ValueLimits, samples: FloatArray, times: FloatArray | None, first: int
    ) -> Iterator[SensorEvent]:
        """Yield the beginnings and ends of samples beyond a limit, channel by channel."""
        values = samples[:, limits.places]
        for k, name in enumerate(limits.names):
            alone = ValueLimits([name], np.zeros(1, np.intp), limits.low[[k]], limits.high[[k]])
            for i, rule in enumerate(alone.broken(values[:, [k]])):
                if bool(rule) == (name in self.broken_) or np.isnan(values[i, k]):
                    continue
                time = None if times is None or not np.isfinite(times[i]) else float(times[i])
                row, state = first + i, "begin" if rule else "end"
                detail = f"{rule}: {number_text(float(values[i, k]))}" if rule else ""
                if rule:
                    self.broken_[name] = row
                else:
                    del self.broken_[name]
                yield SensorEvent("limit", name, state, row, time, row, detail)

    @property
    def sensor_limits(self) -> SensorLimits:
        """`sensors_`, or for models of earlier versions what is known instead."""
        return self.sensors_ or SensorLimits.of_view(self.view_)

    def readings(
        self, log: ChunkLog | None = None, sample: int = -1, count: int = 3
    ) -> list[ChannelReading]:
        """Return the channels that lower a score of the live stream most, with usual values.

        It takes about as long as ten scores. Call it when an alarm begins.

        Parameters
        ----------
        log : ChunkLog, optional
            Log that `follow` returned with the scores; None takes the last sample.
        sample : int, default=-1
            Position of the sample in the chunk.
        count : int, default=3
            Most channels to return.

        Returns
        -------
        list of ChannelReading
            Channels, those that lower the score most first; empty for a sample without a score.
        """
        return self.reasons(log, sample, count)[0]

    def reasons(
        self, log: ChunkLog | None = None, sample: int = -1, count: int = 3
    ) -> tuple[list[ChannelReading], dict[str, float]]:
        """Return the channels and the members that lower a score of the live stream most.

        Parameters
        ----------
        log, sample, count : optional
            As in `readings`.

        Returns
        -------
        readings : list of ChannelReading
            As returned by `readings`.
        members : dict of str to float
            What each member adds to the score, the lowest first.
        """
        require_fitted(self, "state_")
        state = self.state_
        made = log
        if made is None:
            made, sample = ChunkLog(1), 0
            if state.features is not None:
                made.parts = [(0, state.features, state.context, state.slow.mean)]
                made.times = [(0, np.array([state.time]))]
        found = made.made_of(sample)
        if found is None:
            return [], {}
        row, place, slow_mean = found
        why = self.detector_.explain(row, place)
        when = made.time_of(sample)
        (readings,) = readings_of(
            why, self.detector_, self.view_, row, place, slow_mean, count, times=when
        )
        order = np.argsort(why.contributions[0], kind="stable").tolist()
        return readings, {why.member_names[d]: float(why.contributions[0, d]) for d in order}

    def status(self) -> str:
        """Return the status of the last live sample: "alarm", "normal", or "unscored"."""
        check_is_fitted(self, "state_")
        if self.state_.silent or np.isnan(self.state_.score):
            return "unscored"
        return "alarm" if self.state_.score < self.offset_ else "normal"

    def drifted(self) -> list[str]:
        """Return the channels of the live stream whose slow mean is now far from training.

        Far means more than six spreads of the slow mean from the mean of training. This spread is
        learned from means of blocks of training. Scores of a drifted stream may no longer be
        valid; fit again. Channels are tested after one half-life; dropped and followed channels
        are not. `state_.drifted` lists all channels that have ever drifted.
        """
        check_is_fitted(self, "state_")
        return self.view_.named(self.view_.drifted(self.state_))

    def reset(self) -> "StreamDetector":
        """Start a new live stream with the next sample."""
        self.state_ = self.view_.new_state()
        self.broken_ = {}
        return self

    def checkpoint(self, path: str | os.PathLike[str]) -> Path:
        """Write the state of the live stream to a small file."""
        check_is_fitted(self, "state_")
        return save(self.state_, path)

    def resume(self, path: str | os.PathLike[str]) -> "StreamDetector":
        """Continue the stream from a file of `checkpoint`, with the same scores to the bit."""
        check_is_fitted(self, "state_")
        state = load(path)
        if not isinstance(state, StreamState) or state.model != self.state_.model:
            raise InvalidInputError(
                f"{Path(path).name} is no checkpoint of a stream of this model: channels, windows "
                "and what was learned must be the same. Begin a new stream with reset()."
            )
        self.state_ = state
        return self

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write detector and live stream to one file, which `ocfuse.load` reads."""
        check_is_fitted(self, "state_")
        return save(self, path)

    def _recorded(
        self, X: Any, runs: Any, time: Any, context: Any
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return features of recorded runs, NaN where there is no score, and their context."""
        check_is_fitted(self, "state_")
        samples = self._check(X)
        times = check_times(time, len(samples))
        situation = self._check_context(context, len(samples))
        self._warn_of_context(situation, 4)
        slices = run_slices(runs, len(samples))
        rows, _ = self._run_rows(self.view_.measured(samples, situation, times), slices, times)
        rows[unknown_context(situation, len(rows))] = np.nan
        rows[~self.view_.fill_in(rows)] = np.nan
        return rows, situation

    def _run_rows(
        self, samples: FloatArray, slices: list[slice], times: FloatArray | None
    ) -> tuple[FloatArray, dict[str, int]]:
        """Return features of runs, each from its beginning, and the counts of clock verdicts."""
        rows, counts = np.empty((len(samples), len(self.feature_names_))), Counter[str]()
        for part in slices:
            state = self.view_.new_state()
            when = None if times is None else times[part]
            rows[part] = self.view_.rows(state, samples[part], when)
            counts.update(state.counts)
        return rows, {name: counts[name] for name in ("seen", *LEFT_OUT, *RESTARTS)}

    def _scores(
        self, rows: FloatArray, context: FloatArray | None, scored: BoolArray
    ) -> FloatArray:
        if scored.all() and len(rows):
            return self.detector_.score_samples(rows, context)
        scores = np.full(len(rows), np.nan)
        if scored.any():
            chosen = None if context is None else context[scored]
            scores[scored] = self.detector_.score_samples(rows[scored], chosen)
        return scores

    def _check_context(self, context: Any, n: int) -> FloatArray | None:
        """Return the context of n samples, NaN where it is unknown, or refuse it."""
        scale = self.detector_.context_scale_
        table = None if context is None else _known_or_nan(context, n)
        given = 0 if table is None else table.shape[1]
        require_context(given, 0 if scale is None else len(scale.centre))
        return table

    def _warn_of_context(self, context: FloatArray | None, stacklevel: int) -> bool:
        """Warn of context that is far beyond training; return whether any is."""
        if context is None or self.context_range_ is None:
            return False
        low, high = self.context_range_
        return warn_if_far(context, low, high, stacklevel + 1)

    def _check(self, X: Any) -> FloatArray:
        samples = check_samples(X)
        if samples.shape[1] != len(self.channels_):
            raise InvalidInputError(
                f"Samples must have {len(self.channels_)} channels, as in fit: "
                f"{', '.join(self.channels_)}. Got {samples.shape[1]}."
            )
        return samples

    def _check_parameters(self) -> None:
        _require_kind("detector", self.detector, FusedDetector, 'FusedDetector("light")')
        _require_kind("course", self.course, Course, "Course()")
        if not isinstance(self.windows, Sequence | np.ndarray):
            raise InvalidTypeError(
                f"windows must be a sequence of lengths, such as (10, 30). Got {self.windows!r}."
            )
        check_seasons(self.season)
        to_days(self.holidays)
        if self.zone:
            find_zone(self.zone)
        check_choice(self.drift, "drift", ("keep", "drop", "follow"))
        for name in ("half_life", "max_rows"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), 1, "It counts samples.")
        _require_kind("alarm_rate", self.alarm_rate, AlarmRate, 'AlarmRate(0.1, per="hour")')
        check_number(self.max_gap, "max_gap", 1.0, np.inf, "It counts usual steps in time.")


def _known_or_nan(context: Any, n: int) -> FloatArray:
    """Return the context of n samples, in which bad values are allowed: live ones come."""
    values = np.asarray(context)
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # None is a context that is not known
            values = values.astype(np.float64)
    if values.dtype.kind != "f":
        return check_context(values, n)
    bad = ~(np.abs(values) <= LARGEST)
    table = check_context(np.where(bad, 0.0, values), n)
    return np.where(bad.reshape(table.shape), np.nan, table)


def unknown_context(context: FloatArray | None, n: int) -> BoolArray:
    """Return which of n samples have a context that is not known."""
    return np.zeros(n, dtype=bool) if context is None else np.asarray(np.isnan(context).any(axis=1))


def _require_kind(name: str, given: Any, kind: type, example: str) -> None:
    if given is not None and not isinstance(given, kind):
        raise InvalidTypeError(
            f"{name} must be a {kind.__name__} or None, such as {example}. Got {given!r}."
        )

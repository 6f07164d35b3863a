"""What is learned of training runs before there are features: channels, course, drift."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ocfuse.arrays import BoolArray, FloatArray, Int64Array
from ocfuse.detectors.base import N_FOLDS
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError, SuspectInputWarning
from ocfuse.groups import Groups
from ocfuse.streaming.clock import LEFT_OUT, Rest
from ocfuse.streaming.course import DRIFTING, Course, drift_ratio, warn_of_drift
from ocfuse.streaming.view import StreamView
from ocfuse.streaming.windows import Windows, blocks
from ocfuse.tables.judged import beside_judged
from ocfuse.usual import Calendar, Seasons, Usual, check_seasons, to_days
from ocfuse.usual.seasons import require_seasons_for, warn_of_seasons


@dataclass(frozen=True)
class StreamTraining:
    """Checked training runs."""

    samples: FloatArray  # run after run
    names: list[str]
    slices: list[slice]
    times: FloatArray | None
    context: FloatArray | None
    usual_step: float = np.inf  # median step in time
    is_dated: bool = False  # times are seconds
    zone: str = ""  # time zone that they were given in

    @property
    def run(self) -> NDArray[np.int64]:
        """Number of the run of each sample."""
        return np.repeat(np.arange(len(self.slices)), [s.stop - s.start for s in self.slices])


@dataclass(frozen=True)
class JudgedRun:
    """Checked samples around an event, and what somebody found their rows to be."""

    event: int  # runs of one event are held out together
    samples: FloatArray
    times: FloatArray | None
    context: FloatArray | None  # NaN where it is not known
    y: Int64Array  # +1 normal, -1 anomaly; 0 for samples that only windows look back at


@dataclass(frozen=True)
class TrainingRows:
    """Features of samples, and which of them are learned from."""

    rows: FloatArray
    y: Any  # labels; None for none
    groups: Groups
    context: FloatArray | None
    taken: NDArray[np.intp]

    def extend(
        self, rows: FloatArray, label: FloatArray, context: FloatArray | None
    ) -> "TrainingRows":
        """Return these and the rows of one more group, all of which are learned from."""
        n, groups = len(self.rows), self.groups
        y = beside_judged(self.y, n)
        number = np.full(len(rows), groups.label.max() + 1)
        place = groups.place
        if place is not None:  # far from all others
            place = np.append(place, np.full(len(rows), place.max() + groups.purge + 1))
        return TrainingRows(
            np.vstack([self.rows, rows]),
            np.append(y, label),
            replace(groups, label=np.append(groups.label, number), place=place),
            None if self.context is None else np.vstack([self.context, context]),  # type: ignore[list-item]
            np.append(self.taken, np.arange(n, n + len(rows))),
        )


def learn_view(settings: Any, data: StreamTraining) -> tuple[StreamView, FloatArray, FloatArray]:
    """Settle what is seen of a stream by the settings of a `StreamDetector`.

    Returns the view, without typical features as yet; the training samples, measured from the
    course of the other runs if there is one; and the drift ratio of each channel.
    """
    dead = np.flatnonzero(np.isnan(data.samples).all(axis=0)).tolist()
    if dead:
        raise InvalidInputError(
            "These channels have no value in training: "
            f"{', '.join(data.names[j] for j in dead)}. Leave them out."
        )
    usual, data = _learn_seasons(settings, data)
    course, samples = _learn_course(settings.course, data)
    windows = Windows(settings.windows) if len(settings.windows) else None
    place = data.context if data.context is not None and data.context.shape[1] == 1 else None
    ratio = drift_ratio(samples, data.run, settings.n_blocks, place)
    is_drifting = ratio > DRIFTING
    is_watched = ~is_drifting | (settings.drift != "drop")
    if not is_watched.any():
        raise InvalidInputError('All channels drift. Use drift="follow" or "keep".')
    if settings.drift == "keep":
        warn_of_drift(
            ratio,
            data.names,
            drift_limit(len(data.slices), settings.n_blocks),
            "Their level will leave what was learned, and raise false alarms. Learn from more "
            'runs, or leave these channels out with drift="drop", or let a slow mean follow them: '
            'drift="follow".',
        )
    view = StreamView(
        channels=data.names,
        windows=windows,
        course=course,
        is_watched=is_watched,
        follows=is_drifting & (settings.drift == "follow"),
        rest=Rest(samples, data.slices),
        half_life=settings.half_life or 10 * (1 if windows is None else windows.longest),
        usual_step=data.usual_step,
        max_gap=settings.max_gap,
        usual=usual,
    )
    return view, samples, ratio


def drift_limit(n_runs: int, n_blocks: int) -> float:
    """Return the drift ratio above which the level of a channel is not known from training.

    Several runs show how far a channel wanders, unless they differ too much to learn from.
    """
    return DRIFTING if n_runs < n_blocks else 3.0


def are_levels_known(ratio: FloatArray, n_runs: int, n_blocks: int) -> BoolArray:
    """Return of which channels training tells the level."""
    return np.asarray(ratio <= drift_limit(n_runs, n_blocks))


def choose(kept: NDArray[np.intp], max_rows: int | None) -> NDArray[np.intp]:
    """Return at most `max_rows` of the samples, spread evenly over them.

    One at random out of each stretch of equal length: every k-th would meet a machine with a
    cycle of k samples in one phase only.
    """
    length = 1 if max_rows is None else max(1, -(-len(kept) // max_rows))
    starts = np.arange(0, len(kept), length)
    ends = np.minimum(starts + length, len(kept))
    return kept[np.random.default_rng(0).integers(starts, ends)] if len(kept) else kept


def training_groups(data: StreamTraining, n_blocks: int, purge: int) -> Groups:
    """Return what is held out together: runs, or blocks of them if they are few."""
    n_runs = len(data.slices)
    if n_runs >= n_blocks:
        return Groups(data.run, name="run")
    warn_of_few_runs(n_runs, f"Learn from {n_blocks} runs or more, or calibrate on fresh ones.")
    return replace(blocks(data.run, n_blocks, purge), name="run")


def require_enough(groups: Groups, purge: int, n_blocks: int, fewest: int = 10) -> None:
    """Refuse runs that leave too few samples to learn from while a part of them is held out."""
    n_left = 0
    if len(np.unique(groups.label)) > 1:
        n_left = int((~groups.withheld(groups.folds(N_FOLDS))).sum(axis=0).min())
    if n_left < fewest:
        about = max(n_blocks, 4) * (purge + 1) + 2 * fewest
        raise InvalidInputError(
            f"Runs are too short for windows of {purge + 1} samples: while a part is held out, and "
            f"its neighbours over which windows reach, {n_left} samples are left to learn from. "
            f"One run of about {about} samples is enough. Use longer runs or shorter windows."
        )


def warn_of_few_runs(n_runs: int, advice: str) -> None:
    """Warn that a threshold of so few runs counts samples, and what it is meant for."""
    these = "this run" if n_runs == 1 else "these runs"
    warnings.warn(
        f"{n_runs} {'run tells nothing' if n_runs == 1 else 'runs tell little'} of how runs "
        f"differ: the rate of false alarms is meant for the rest of {these}, and promises "
        f"nothing for others, which may raise many more. {advice}",
        FewSamplesWarning,
        stacklevel=4,
    )


def warn_of_clock(counts: dict[str, int]) -> None:
    """Warn if times have left out more than 1 % of the training samples."""
    left_out, n = sum(counts[name] for name in LEFT_OUT), counts["seen"]
    if left_out > 0.01 * n:
        warnings.warn(
            f"{left_out:,} of {n:,} training samples were left out by their times: "
            f"{counts['repeated']:,} repeat the last time, {counts['late']:,} are before it, "
            f"{counts['clock']:,} are far ahead. Windows reach over the samples that are left. "
            "Give finer times, or none if the samples are evenly spaced.",
            SuspectInputWarning,
            stacklevel=4,
        )


def _learn_seasons(settings: Any, data: StreamTraining) -> tuple[Usual | None, StreamTraining]:
    """Return what is usual by the time, and each sample measured from that of other times."""
    names = check_seasons(settings.season)
    holidays = to_days(settings.holidays)
    require_seasons_for(holidays, settings.zone, names)
    if not names:
        return None, data
    if data.times is None:
        raise InvalidInputError(
            f"season={settings.season!r} needs the times of the samples: give them to fit."
        )
    calendar = Calendar(settings.zone or data.zone, holidays)
    usual = Usual(Seasons(names, calendar, by_parts=True))
    nobody = np.empty((len(data.samples), 0))
    measured = usual.fit_measured(nobody, data.times, data.samples)
    warn_of_seasons(usual.seasons)
    return usual, replace(data, samples=measured)


def _learn_course(given: Course | None, data: StreamTraining) -> tuple[Course | None, FloatArray]:
    """Return the course of all runs, and each run measured from that of others.

    A run that is part of its own course is nearer to it than runs to come will be.
    """
    if given is None:
        return None, data.samples
    if len(data.slices) < 2 or data.context is None:
        raise InvalidInputError(
            "A course is learned from runs of one task: give fit a context, such as its progress, "
            f"and at least 2 runs. Got {len(data.slices)} run(s)"
            f"{' and no context' if data.context is None else ''}."
        )
    samples = np.empty_like(data.samples)
    fold = data.run % min(len(data.slices), 10)
    for i in range(int(fold.max()) + 1):
        own = fold == i
        course = clone(given).fit(data.samples[~own], data.context[~own])
        samples[own] = course.transform(data.samples[own], data.context[own])
    return clone(given).fit(data.samples, data.context), samples

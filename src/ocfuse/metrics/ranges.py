"""Measures for sequences with lasting anomalies: volumes under surfaces, ranges, events.

An *event* is a sequence of consecutive samples with label -1, an *episode* one with predictions
-1. Both end where a run ends. Every measure ignores something, and its documentation says what.

There is no point-adjustment. It counts all of an event as found once one of its samples is, so
that with long events random scores reach an F1 near 1 (Kim et al., AAAI 2022).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.metrics.rows import checked_labels, checked_scores
from ocfuse.validation import ANOMALY, check_choice, check_number, check_whole


def vus_roc(
    y: ArrayLike,
    scores: ArrayLike,
    window: int,
    *,
    runs: ArrayLike | None = None,
    n_thresholds: int | None = None,
) -> float:
    """Return the volume under the ROC surface of a sequence.

    Labels are rarely exact to the sample, and an alarm just before or after an event is useful. So
    every event has a buffer of half a width on both sides, in which the label falls with the
    square root of the distance. Recall of these soft labels is multiplied by the share of events
    with an alarm; alarms in a buffer count half as true positives. The area under the curve is
    averaged over all widths from 0 to `window` (Paparrizos et al., VLDB 2022, with the formulas of
    their package `vus`).

    Ignores when in an event the alarm comes, and how many alarms an event has. Longer events count
    more. Random scores get more than 0.5, the more the shorter events are relative to the window:
    0.58 with events of 30 samples and a window of 20, 0.71 with events of 5.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the samples in order, +1 and -1; both must occur.
    scores : array-like of shape (n,)
        Higher is more normal.
    window : int
        Largest width of the buffers in samples, such as the usual length of an anomaly or the
        period of the sequence. With 0 there are no buffers, but recall is still multiplied by the
        share of events with an alarm.
    runs : array-like of shape (n,), default=None
        Run of each sample, if there are several. Events and buffers end where their run ends.
    n_thresholds : int, default=None
        Number of thresholds, evenly spaced in rank. None uses all. Published values use 250.

    Returns
    -------
    float
        The volume, at most 1; 1 for perfect scores.

    Examples
    --------
    >>> from ocfuse.metrics import vus_roc
    >>> y = [1, 1, 1, 1, -1, -1, 1, 1, 1, 1]
    >>> late = [9, 9, 9, 9, 9, 1, 1, 9, 9, 9]
    >>> round(vus_roc(y, late, 0), 2), round(vus_roc(y, late, 4), 2)
    (0.69, 0.8)
    """
    return float(np.mean([roc for roc, _ in _areas(y, scores, window, runs, n_thresholds)]))


def vus_pr(
    y: ArrayLike,
    scores: ArrayLike,
    window: int,
    *,
    runs: ArrayLike | None = None,
    n_thresholds: int | None = None,
) -> float:
    """Return the volume under the precision-recall surface of a sequence.

    As `vus_roc`, but with the average precision of finding anomalies. The area under the ROC curve
    hardly changes with false alarms if most samples are normal; this measure does. Random scores
    get about the share of anomalous samples, so report that share too.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the samples in order, +1 and -1; both must occur.
    scores : array-like of shape (n,)
        Higher is more normal.
    window : int
        Largest width of the buffers, in samples (see `vus_roc`).
    runs : array-like of shape (n,), default=None
        Run of each sample, if there are several.
    n_thresholds : int, default=None
        Number of thresholds, evenly spaced in rank. None uses all. Published values use 250.

    Returns
    -------
    float
        The volume, at most 1.

    Examples
    --------
    >>> from ocfuse.metrics import vus_pr
    >>> y = [1, 1, 1, 1, -1, -1, 1, 1, 1, 1]
    >>> round(vus_pr(y, [9, 9, 9, 9, 1, 1, 9, 9, 9, 9], 0), 2)
    1.0
    """
    return float(np.mean([ap for _, ap in _areas(y, scores, window, runs, n_thresholds)]))


def range_recall(
    y: ArrayLike,
    predictions: ArrayLike,
    *,
    runs: ArrayLike | None = None,
    alpha: float = 0.0,
    bias: str = "flat",
) -> float:
    """Return the mean share of each event that is found (Tatbul et al., NeurIPS 2018).

    An event scores ``alpha`` if any of its samples has an alarm, plus ``1 - alpha`` times the
    share of its samples with an alarm, divided by the number of episodes in it. All events have
    the same weight, whatever their length.

    Ignores false alarms (see `range_precision`). An alarm one sample before or after an event does
    not count.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the samples in order, +1 and -1; anomalies must occur.
    predictions : array-like of shape (n,)
        Predictions, +1 and -1.
    runs : array-like of shape (n,), default=None
        Run of each sample, if there are several.
    alpha : float, default=0.0
        Weight, from 0 to 1, of having any alarm in an event.
    bias : {"flat", "front", "back"}, default="flat"
        Whether all samples of an event count the same, the first ones most, or the last ones most.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import range_recall
    >>> range_recall([1, -1, -1, 1, -1], [1, 1, -1, -1, 1])
    0.25
    """
    labels, predicted, run = _pair(y, predictions, runs, "y")
    alpha = check_number(alpha, "alpha", 0.0, 1.0, "0 counts what is covered only.")
    events, episodes = _stretches(labels, run), _stretches(predicted, run)
    return _range_reward(events, episodes, predicted, alpha, bias)


def range_precision(
    y: ArrayLike,
    predictions: ArrayLike,
    *,
    runs: ArrayLike | None = None,
    bias: str = "flat",
) -> float:
    """Return the mean share of each episode that lies within events.

    The share of an episode that lies in events is divided by the number of these events (Tatbul et
    al., NeurIPS 2018). All episodes have the same weight, whatever their length.

    Ignores events without an alarm (see `range_recall`), and how near a false alarm is to an
    event. Many short episodes within one event all count as correct.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the samples in order, +1 and -1.
    predictions : array-like of shape (n,)
        Predictions, +1 and -1; alarms must occur.
    runs : array-like of shape (n,), default=None
        Run of each sample, if there are several.
    bias : {"flat", "front", "back"}, default="flat"
        Whether all samples of an episode count the same, the first ones most, or the last ones
        most.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import range_precision
    >>> range_precision([1, -1, -1, 1, 1], [1, 1, -1, -1, 1])
    0.5
    """
    labels, predicted, run = _pair(y, predictions, runs, "predictions")
    events, episodes = _stretches(labels, run), _stretches(predicted, run)
    return _range_reward(episodes, events, labels, 0.0, bias)


@dataclass(frozen=True)
class EventScores:
    """Result of `event_scores`: events found and missed, false alarms, and delays.

    Attributes
    ----------
    n_events, n_found : int
        Number of events, and of those with an alarm within `tolerance` samples.
    n_episodes, n_false : int
        Number of episodes of alarms, and of those without an event.
    recall : float
        ``n_found / n_events``.
    precision : float
        Share of the episodes with an event; NaN without alarms.
    sample_precision : float
        Share of the samples with an alarm that are within `tolerance` of an event; NaN without
        alarms.
    composite_f1 : float
        Harmonic mean of `recall` and `sample_precision` (Garg et al., 2021): alarms everywhere
        find all events, but have a low precision. 0 without alarms.
    delays : ndarray of shape (n_events,)
        Time from the beginning of each event to its first alarm; NaN for events not found. The
        delay is 0 if an alarm comes before, within the tolerance, or is still on.
    """

    n_events: int
    n_found: int
    n_episodes: int
    n_false: int
    recall: float
    precision: float
    sample_precision: float
    composite_f1: float
    delays: FloatArray

    def __str__(self) -> str:
        found = self.delays[~np.isnan(self.delays)]
        delay = f", median delay {np.median(found):g}" if len(found) else ""
        return (
            f"{self.n_found} of {self.n_events} events found{delay}; {self.n_false} of "
            f"{self.n_episodes} alarms false; composite F1 {self.composite_f1:.3f}"
        )


def event_scores(
    y: ArrayLike,
    predictions: ArrayLike,
    *,
    runs: ArrayLike | None = None,
    time: ArrayLike | None = None,
    tolerance: int = 0,
) -> EventScores:
    """Count events found, false alarms and delays.

    These are the questions of an operator: which events were found, how late, and how many alarms
    were false.

    Ignores how much of an event is covered: one sample is enough. An alarm that is always on finds
    everything at once; only `composite_f1` shows that, `recall` and `delays` do not.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the samples in order, +1 and -1; anomalies must occur.
    predictions : array-like of shape (n,)
        Predictions, +1 and -1.
    runs : array-like of shape (n,), default=None
        Run of each sample, if there are several.
    time : array-like of shape (n,), default=None
        Times of the samples, numbers or dates, which must not go back within a run; delays are
        then in their units, or in seconds for dates. None counts samples.
    tolerance : int, default=0
        Most samples between an alarm and an event that it still finds, before or after it.

    Returns
    -------
    EventScores
        The counts and delays; ``print(event_scores(y, predictions))`` prints one line.

    Examples
    --------
    >>> from ocfuse.metrics import event_scores
    >>> print(event_scores([1, 1, -1, -1, -1, 1, -1], [-1, 1, 1, -1, -1, 1, 1]))
    1 of 2 events found, median delay 1; 1 of 2 alarms false; composite F1 0.571
    """
    labels, predicted, run = _pair(y, predictions, runs, "y")
    check_whole(tolerance, "tolerance")
    times = _times(time, run)
    events, episodes = _stretches(labels, run), _stretches(predicted, run)
    wide = _widened(events, run, tolerance)
    near = np.zeros(len(labels), dtype=bool)
    delays = np.full(len(events), np.nan)
    for i, (start, stop) in enumerate(wide):
        near[start:stop] = True
        hits = np.flatnonzero(predicted[start:stop])
        if len(hits):
            begin = events[i, 0]
            delays[i] = times[max(start + hits[0], begin)] - times[begin]
    n_found = int((~np.isnan(delays)).sum())
    is_right = np.array([near[start:stop].any() for start, stop in episodes], dtype=bool)
    recall = n_found / len(events)
    sample_precision = float(near[predicted].mean()) if predicted.any() else np.nan
    total = recall + sample_precision
    return EventScores(
        n_events=len(events),
        n_found=n_found,
        n_episodes=len(episodes),
        n_false=int((~is_right).sum()),
        recall=recall,
        precision=float(is_right.mean()) if len(episodes) else np.nan,
        sample_precision=sample_precision,
        composite_f1=2 * recall * sample_precision / total if total > 0 else 0.0,
        delays=delays,
    )


def _areas(
    y: ArrayLike,
    scores: ArrayLike,
    window: int,
    runs: ArrayLike | None,
    n_thresholds: int | None,
) -> list[tuple[float, float]]:
    """Return the areas under the ROC and the precision-recall curve for every width."""
    check_whole(window, "window")
    labels = checked_labels(y, needs=(1, -1))
    evidence = -checked_scores(scores, len(labels))
    run, is_anomaly = _runs(runs, len(labels)), labels == ANOMALY
    order = np.argsort(-evidence, kind="stable")
    lasts = np.searchsorted(-evidence[order], -evidence[order], side="right") - 1
    if n_thresholds is not None:
        if n_thresholds < 2:
            raise InvalidInputError(f"n_thresholds must be at least 2. Got {n_thresholds!r}.")
        lasts = lasts[np.linspace(0, len(order) - 1, n_thresholds).astype(np.intp)]
    # a threshold takes all samples with this score or more evidence
    lasts = np.unique(lasts)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    events = _stretches(is_anomaly, run)
    widths = range(window + 1)
    return [_area(is_anomaly, events, run, order, rank, lasts, width) for width in widths]


def _area(
    is_anomaly: NDArray[np.bool_],
    events: IntArray,
    run: IntArray,
    order: IntArray,
    rank: IntArray,
    lasts: IntArray,
    width: int,
) -> tuple[float, float]:
    """Return both areas for buffers of one width."""
    soft = _softened(is_anomaly, events, run, width)
    zones = _joined(_widened(events, run, width // 2))
    first = np.sort([rank[start:stop].min() for start, stop in zones])
    met = np.searchsorted(first, lasts, side="right") / len(zones)
    caught, n_alarms = np.cumsum(soft[order])[lasts], lasts + 1.0
    beside = np.cumsum(np.where(is_anomaly, 0.0, soft)[order])[lasts]
    positives = is_anomaly.sum() + beside / 2
    hits = np.r_[0.0, np.minimum(caught / positives, 1.0) * met]
    false = np.r_[0.0, (n_alarms - caught) / (len(soft) - positives), 1.0]
    height = np.r_[hits, 1.0]  # the curve ends where all is an alarm
    roc = np.sum(np.diff(false) * (height[1:] + height[:-1]) / 2)
    return float(roc), float(np.sum(np.diff(hits) * caught / n_alarms))


def _softened(
    is_anomaly: NDArray[np.bool_], events: IntArray, run: IntArray, width: int
) -> FloatArray:
    """Return labels that fall from 1 within events to their buffers' ends."""
    soft = is_anomaly.astype(np.float64)
    for (start, stop), (low, high) in zip(
        events.tolist(), _widened(events, run, width // 2).tolist(), strict=True
    ):
        before, after = np.arange(low, start), np.arange(stop, high)
        if len(before):
            soft[before] += np.sqrt(1.0 - (start - before) / width)
        if len(after):
            soft[after] += np.sqrt(1.0 - (after - stop + 1) / width)
    return np.minimum(soft, 1.0)


def _stretches(flags: NDArray[np.bool_], run: IntArray) -> IntArray:
    """Return where stretches of True begin and end (one past the last), each within a run."""
    key = np.where(flags, run + 1, 0)
    edges = np.flatnonzero(np.diff(np.r_[0, key, 0]))
    found = np.column_stack([edges[:-1], edges[1:]]) if len(edges) else np.empty((0, 2), np.intp)
    chosen: IntArray = found[key[found[:, 0]] > 0].astype(np.intp)
    return chosen


def _widened(events: IntArray, run: IntArray, by: int) -> IntArray:
    """Return events with so many samples more on both sides, within their runs."""
    borders = np.r_[0, np.flatnonzero(np.diff(run)) + 1, len(run)]
    which = np.searchsorted(borders, events[:, 0], side="right")
    low = np.maximum(events[:, 0] - by, borders[which - 1])
    return np.column_stack([low, np.minimum(events[:, 1] + by, borders[which])])


def _joined(zones: IntArray) -> IntArray:
    """Return zones that overlap as one; those that only touch stay two."""
    fresh = np.r_[True, zones[1:, 0] >= zones[:-1, 1]]
    last = np.r_[np.flatnonzero(fresh)[1:] - 1, len(zones) - 1]
    return np.column_stack([zones[fresh, 0], zones[last, 1]])


def _range_reward(
    asked: IntArray, others: IntArray, is_on: NDArray[np.bool_], alpha: float, bias: str
) -> float:
    """Return the mean reward of the ranges asked for, by the others that overlap them."""
    check_choice(bias, "bias", ("flat", "front", "back"))
    rewards = []
    for start, stop in asked.tolist():
        n_overlaps = int(np.sum((others[:, 0] < stop) & (others[:, 1] > start)))
        weight = np.arange(1.0, stop - start + 1.0) if bias != "flat" else np.ones(stop - start)
        if bias == "front":
            weight = weight[::-1]
        share = weight[is_on[start:stop]].sum() / weight.sum()
        rewards.append(alpha * (n_overlaps > 0) + (1.0 - alpha) * share / max(n_overlaps, 1))
    return float(np.mean(rewards))


def _pair(
    y: ArrayLike, predictions: ArrayLike, runs: ArrayLike | None, needs: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], IntArray]:
    """Return where labels and predictions are -1, of which one must occur, and the runs."""
    labels = checked_labels(y, needs=(-1,) if needs == "y" else ())
    predicted = checked_labels(
        predictions, needs=(-1,) if needs == "predictions" else (), name="predictions"
    )
    if predicted.shape != labels.shape:
        raise InvalidInputError(
            f"predictions must have shape {labels.shape}, one per label. "
            f"Got shape {predicted.shape}."
        )
    return labels == ANOMALY, predicted == ANOMALY, _runs(runs, len(labels))


def _runs(runs: ArrayLike | None, n: int) -> IntArray:
    """Return numbers of runs that count up with the samples."""
    if runs is None:
        return np.zeros(n, dtype=np.intp)
    given: NDArray[Any] = np.asarray(runs)
    if given.shape != (n,):
        raise InvalidInputError(f"runs must have shape ({n},). Got shape {given.shape}.")
    if np.any(given != given):
        raise InvalidInputError(
            "runs must name the run of every sample. Got NaN. Give these samples a run, or leave "
            "them out of all arguments."
        )
    number: IntArray = np.r_[0, np.cumsum(given[1:] != given[:-1])].astype(np.intp)
    if n and number[-1] + 1 > len(set(given.tolist())):
        raise InvalidInputError(
            "The samples of a run must follow each other. Sort them by run, and by time within it."
        )
    return number


def _times(time: ArrayLike | None, run: IntArray) -> FloatArray:
    """Return times as numbers, dates as seconds."""
    if time is None:
        return np.arange(float(len(run)))
    times = np.asarray(time)
    if times.dtype.kind == "M":
        seconds = times.astype("datetime64[us]").astype(np.float64) / 1e6
        times = np.where(np.isnat(times), np.nan, seconds)
    try:
        times = times.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"time must hold numbers or dates (datetime64). Got dtype {times.dtype}."
        ) from None
    if times.shape != run.shape:
        raise InvalidInputError(f"time must have shape {run.shape}. Got shape {times.shape}.")
    if not np.isfinite(times).all():
        raise InvalidInputError(
            f"time must tell when every sample was. Got {int((~np.isfinite(times)).sum())} gaps or "
            "infinite values. Leave these samples out of all arguments."
        )
    back = np.flatnonzero((np.diff(times) < 0) & (np.diff(run) == 0))
    if len(back):
        raise InvalidInputError(
            f"time must not go back within a run. Got {times[back[0] + 1]:g} after "
            f"{times[back[0]]:g} at sample {back[0] + 1}. Sort the samples by run, and by time "
            "within it; runs= tells which samples belong to one."
        )
    return times

"""Events with a verdict: what models learn from them, and whether their alarms change."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.exceptions import OcfuseWarning
from ocfuse.tables.dataframes import Frame, pandas
from ocfuse.validation import ANOMALY, NORMAL, UNKNOWN

if TYPE_CHECKING:
    from ocfuse.tables.detector import TableDetector


@dataclass(frozen=True)
class JudgedEvent:
    """The rows of an event with a verdict: real, or a false alarm.

    Parameters
    ----------
    number : int
        Number of the event.
    is_real : bool
        Whether it was real.
    parts : sequence of pandas.DataFrame
        Consecutive rows, in parts without a gap, with rows before and after the event.
    low : sequence of ndarray of bool
        For each part, which rows belong to the event and were below the threshold.
    """

    number: int
    is_real: bool
    parts: Sequence[Frame]
    low: Sequence[BoolArray]

    @property
    def label(self) -> int:
        """Label of its rows."""
        return ANOMALY if self.is_real else NORMAL


def beside_judged(labels: Any, n: int) -> FloatArray:
    """Return labels of n training rows as they stand beside those of judged events.

    Without a known normal row among them they all count as known: a threshold rests on known
    normal rows alone if there are enough, and must not rest on false alarms alone.
    """
    if labels is None:
        return np.full(n, float(NORMAL))
    known = np.where(np.asarray(labels) == UNKNOWN, np.nan, labels).astype(np.float64)
    if not (known == NORMAL).any():
        known[np.isnan(known)] = NORMAL
    return known


def spread(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return at most so many of the rows, spread evenly over them."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.intp)]


def low_rows(event: JudgedEvent, most: int) -> Frame:
    """Return rows of an event that were below the threshold, at most so many."""
    parts = zip(event.parts, event.low, strict=True)
    found = pandas().concat([part[low] for part, low in parts], ignore_index=True)
    return found.iloc[spread(np.arange(len(found)), most)]


@dataclass(frozen=True)
class Heeded:
    """Which events raise an alarm by the old model, and by new ones that have not seen them.

    Of an event of which no row has a score, a model says nothing: None.
    """

    event: JudgedEvent
    before: bool | None
    after: bool | None


class HeldOutVerdicts:
    """Judge by a model that learned from other events whether each event still raises an alarm.

    Parameters
    ----------
    learn : callable
        Takes events, and returns a model that has learned from the old data and from them.
    old : TableDetector
        The model before.
    events : sequence of JudgedEvent
        Events with a verdict.
    """

    #: Fits, at most: in each a part of the events is held out.
    most_folds: ClassVar[int] = 4
    #: Verdicts of a kind below which nothing can be promised of events to come.
    enough: ClassVar[int] = 20

    def __init__(
        self,
        learn: "Callable[[Sequence[JudgedEvent]], TableDetector]",
        old: "TableDetector",
        events: Sequence[JudgedEvent],
    ) -> None:
        self._learn, self._old, self._events = learn, old, list(events)

    def folds(self) -> list[list[JudgedEvent]]:
        """Return the events in parts that are held out, each kind spread over them; in order."""
        ordered = sorted(self._events, key=lambda event: (event.is_real, event.number))
        n = min(self.most_folds, len(ordered))
        return [ordered[i::n] for i in range(n)] if n > 1 else []

    def run(self) -> Iterator[Heeded]:
        """Yield what becomes of every event while it is held out, part by part."""
        for part in self.folds():
            held = {event.number for event in part}
            model = self._learn([event for event in self._events if event.number not in held])
            for event in part:
                yield Heeded(event, alarms(self._old, event), alarms(model, event))


def alarms(model: "TableDetector", event: JudgedEvent) -> bool | None:
    """Return whether a model raises an alarm in the rows of an event; None if none has a score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)
        return model.raises_alarm(event)


def counted(found: Sequence[Heeded]) -> dict[str, Any]:
    """Return how many false alarms are quiet and how many real events alarm, before and after."""
    real = [one for one in found if one.event.is_real]
    false = [one for one in found if not one.event.is_real]
    return {
        "false_alarms": {
            "events": len(false),
            "quiet_before": sum(one.before is False for one in false),
            "quiet_after": sum(one.after is False for one in false),
        },
        "real": {
            "events": len(real),
            "alarm_before": sum(one.before is True for one in real),
            "alarm_after": sum(one.after is True for one in real),
        },
    }

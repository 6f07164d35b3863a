"""Events against faults whose beginning and end are known."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.streaming.events import EventRule, events, leave_score

FloatArray = NDArray[np.float64]

HEADER = [
    *("system", "stated an hour", "false events an hour", "hours", "faults found"),
    *("on before", "median delay", "events per fault", "sensors told per fault", "channel named"),
]
#: What is told of a sensor, which may come beside an event of the score.
OF_SENSORS = ("missing", "stuck", "range", "rate")


@dataclass(frozen=True)
class Settings:
    """Threshold and rule of a system, and what it promises in an hour; None for nothing."""

    offset: float
    leave: float
    rule: EventRule
    stated: float | None = None

    @classmethod
    def of(
        cls, stream: Any, rule: EventRule | None = None, stated: float | None = None
    ) -> "Settings":
        """Return those of a fitted StreamDetector."""
        leave = leave_score(stream.offset_, stream.detector_.normal_scores_)
        return cls(stream.offset_, leave, stream.event_rule_ if rule is None else rule, stated)

    def events(self, scores: FloatArray) -> list[Any]:
        rule = self.rule
        return events(scores, self.offset, self.leave, rule.min_duration, hold=rule.hold)


@dataclass
class Outcome:
    """What one system did in normal time and in faults."""

    hours: float = 0.0
    false: int = 0
    delays: list[float] = field(default_factory=list)  # NaN for a fault without an event
    already: int = 0  # faults that began while an event was on
    per_fault: list[int] = field(default_factory=list)
    sensors: list[int] = field(default_factory=list)  # told of a fault
    named: list[bool] = field(default_factory=list)
    stated: list[float] = field(default_factory=list)

    def add_normal(self, settings: Settings, scores: FloatArray, time: FloatArray) -> None:
        """Count a run in which all is well."""
        self.hours += float(time[-1] - time[0]) / 3600.0
        self.false += len(settings.events(scores))

    def add_fault(
        self, settings: Settings, scores: FloatArray, time: FloatArray, first: int, last: int
    ) -> int | None:
        """Count a run with a fault from one row to another; return the row of its first event."""
        found = self.add_events(settings.events(scores), time, first, last)
        return None if found is None else int(found.raised)

    def add_events(self, found: Sequence[Any], time: FloatArray, first: int, last: int) -> Any:
        """Count events of a run with a fault; return the first one raised in it, None for none.

        All that is told counts as a false event before the fault, and as found in it.
        """
        self.hours += float(time[first] - time[0]) / 3600.0
        self.false += sum(event.raised < first for event in found)
        before = [e for e in found if e.raised < first < e.stop]
        inside = [e for e in found if first <= e.raised <= last]
        self.already += bool(before)
        self.delays.append(float(time[inside[0].raised] - time[first]) if inside else np.nan)
        if before or inside:
            of_sensors = sum(is_of_sensor(e) for e in inside)
            self.per_fault.append(len(before) + len(inside) - of_sensors)
            self.sensors.append(of_sensors)
        return inside[0] if inside else None

    @property
    def rate(self) -> float:
        """False events an hour."""
        return self.false / self.hours

    @property
    def delay(self) -> float:
        """Median seconds to the first event; a fault without one counts as never found."""
        middle = np.median(np.where(np.isnan(self.delays), np.inf, self.delays))
        return float(middle)

    @property
    def events_per_fault(self) -> float:
        """Mean number of events of a fault that has some, those of sensors left out."""
        return float(np.mean(self.per_fault)) if self.per_fault else np.nan

    def row(self, name: str) -> list[str]:
        """Return the cells of a table, below `HEADER`."""
        n, found = len(self.delays), int(np.isfinite(self.delays).sum())
        named = f"{sum(self.named)} of {len(self.named)}" if self.named else ""
        return [
            name,
            f"{np.mean(self.stated):.2f}" if self.stated else "not stated",
            f"{self.rate:.2f}",
            f"{self.hours:.1f}",
            f"{found} of {n}",
            f"{self.already}",
            f"{self.delay:.0f} s" if np.isfinite(self.delay) else "not found",
            f"{self.events_per_fault:.2f}",
            f"{np.mean(self.sensors):.2f}" if any(self.sensors) else "",
            named,
        ]

    def data(self) -> dict[str, Any]:
        return vars(self) | {"rate": self.rate}


def is_of_sensor(event: Any) -> bool:
    """Return whether an event is one that a sensor has failed."""
    return getattr(event, "kind", "event") in OF_SENSORS


def within_twice(outcome: Outcome) -> bool:
    """Return whether stated and measured rates are within a factor of 2."""
    ratio = outcome.rate / float(np.mean(outcome.stated))
    return bool(0.5 <= ratio <= 2.0)

"""From the scored rows of a stream to events, and to stretches that nobody watches."""

import math
from collections import deque
from typing import Any, TypeAlias

from ocfuse.streaming import EventTracker

#: A row with its scores, or what there is to tell. Columns of the table, which may have any name,
#: are under "columns".
Row: TypeAlias = dict[str, Any]


class RowEvents:
    """Join alarms of rows to events.

    Parameters
    ----------
    threshold, leave : float
        Scores below the first start an event, from the second on they end it.
    min_rows : int
        Scores in a row that it takes to raise an event.
    most_unscored : int
        Rows in a row that may have no score: windows must be full first.

    Attributes
    ----------
    n_events, n_blind, n_unscored : int
        Events; stretches with too many rows without a score; rows without a score.
    """

    def __init__(self, threshold: float, leave: float, min_rows: int, most_unscored: int) -> None:
        self.threshold = threshold
        self.tracker = EventTracker(threshold, leave, min_rows)
        self.most_unscored = most_unscored
        self.n_events = self.n_blind = self.n_unscored = 0
        self._recent: deque[Row] = deque(maxlen=min_rows)
        self._event: Row | None = None
        self._run: Any = None
        self._blind_rows = 0

    def take(self, row: Row, run: Any = None) -> list[Row]:
        """Take the next row, and the run that it is of; return what there is to tell.

        No event goes on into another run.
        """
        told = [] if run == self._run else self.finish()
        self._run = run
        if math.isnan(row["score"]):
            self.n_unscored += 1
            return told + self.miss(row)
        self._blind_rows = 0
        self._recent.append(row)
        was_on = self.tracker.is_on
        self.tracker.update(row["score"])
        if self.tracker.is_on:
            return told + (self._goes_on(row) if was_on else self._raised(row))
        return told + self._ended()

    def miss(self, row: Row) -> list[Row]:
        """Take note of a row without a score, or one that cannot be read, of the same run."""
        self._blind_rows += 1
        self.tracker.update(math.nan)
        told = [] if self.tracker.is_on else self._ended()
        if self._blind_rows == self.most_unscored + 1:
            self.n_blind += 1
            told.append({"kind": "blind", **_place(row), "rows": self._blind_rows})
        return told

    def finish(self) -> list[Row]:
        """End the event that lasts, as the run ends here; return what there is to tell."""
        self.tracker.finish()
        self._recent.clear()
        return self._ended()

    def _raised(self, row: Row) -> list[Row]:
        self.n_events += 1
        worst = min(self._recent, key=lambda seen: seen["score"])
        start = _place(self._recent[0])
        self._event = {"start": start, "raised": _place(row), "last": row, "worst": worst}
        told = {"kind": "alarm", "event": self.n_events, **row, "threshold": self.threshold}
        return [told | {"start": start}]

    def _goes_on(self, row: Row) -> list[Row]:
        if self._event is not None:
            worst = min(self._event["worst"], row, key=lambda seen: seen["score"])
            self._event |= {"last": row, "worst": worst}
        return []

    def _ended(self) -> list[Row]:
        if self._event is None:
            return []
        event, self._event = self._event, None
        event |= {"last": _place(event["last"]), "threshold": self.threshold}
        return [{"kind": "event", "event": self.n_events, **event}]


def _place(row: Row) -> Row:
    """Return what says which row it is."""
    return {name: row[name] for name in ("row", "columns")}

"""Slow change in a live stream: the threshold that follows, and the test, row by row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.scores import ChangeTest, ConformalCalibrator, RollingThreshold, SourceChange
from ocfuse.scores.slow import block_length
from ocfuse.streaming.status import CHANGED
from ocfuse.tables.detector import RULE


@dataclass(frozen=True)
class SlowSettings:
    """What is asked for: a threshold that follows slow changes, and the chance of the test.

    Parameters
    ----------
    adaptive : bool, default=False
        Let the threshold follow (`RollingThreshold`).
    change : float, default=None
        Chance of a false change, at most (`ChangeTest`); None tests nothing.
    """

    adaptive: bool = False
    change: float | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything is asked for."""
        return self.adaptive or self.change is not None


class SlowChange:
    """Take the scores of a stream one after another, and say what stands to the threshold now.

    Parameters
    ----------
    rolling : RollingThreshold, default=None
        What follows slow changes; None for nothing.
    test : ChangeTest, default=None
        What says that the source has changed; None for nothing.
    """

    def __init__(
        self, rolling: RollingThreshold | None = None, test: ChangeTest | None = None
    ) -> None:
        self.rolling, self.test = rolling, test

    @classmethod
    def of(
        cls, detector: Any, settings: SlowSettings, block: int = 1, longest: int = 1
    ) -> "SlowChange":
        """Return what is asked for, at the beginning of a stream.

        Parameters
        ----------
        detector : FusedDetector or PictureDetector
            A fitted detector, which has a threshold and the scores that this rests on.
        settings : SlowSettings
            What is asked for.
        block : int, default=1
            Rows of a block of the test; 1 for rows that stand alone.
        longest : int, default=1
            Rows of the longest window: one unusual row makes alarms of so many.

        Returns
        -------
        SlowChange
            What takes the scores.
        """
        conformal: ConformalCalibrator = detector.conformal_
        rolling = None
        if settings.adaptive:
            stretch = max(20, 4 * longest)
            rolling = RollingThreshold(conformal, detector.offset_, stretch=stretch)
        if settings.change is None:
            return cls(rolling)
        # scores of rows that the detector has not seen, and that are no neighbours in time
        is_exact = not (conformal.is_out_of_fold_ or conformal.n_left_out_ or conformal.are_alike_)
        is_alone = block == 1 and conformal.n_groups_ is None
        reference = conformal.scores_ if is_exact and is_alone else np.empty(0)
        return cls(rolling, ChangeTest(settings.change, block, reference))

    @property
    def shift(self) -> float:
        """What is taken off scores now."""
        return 0.0 if self.rolling is None else self.rolling.shift

    def take(self, score: float, in_event: bool) -> SourceChange | None:
        """Take the score of a row as it came, after it was judged; return a change of the source.

        Parameters
        ----------
        score : float
            The score; NaN for none.
        in_event : bool
            The row is of an alarm that lasts; rows between two alarms of an event are not.

        Returns
        -------
        SourceChange or None
            That the source has changed, if that is certain enough now.
        """
        if self.rolling is not None:
            self.rolling.take(score, in_event)
        return None if self.test is None else self.test.take(score)

    def go_on_from(self, before: "SlowChange | None") -> None:
        """Take up what was known before a restart, as far as it is of the same settings."""
        if before is None:
            return
        if self.rolling is not None and before.rolling is not None:
            is_same = self.rolling.is_like(before.rolling)
            self.rolling = before.rolling if is_same else self.rolling
        if self.test is not None and before.test is not None:
            self.test = before.test if self.test.is_like(before.test) else self.test

    def record(self, change: SourceChange) -> dict[str, Any]:
        """Return what is told of a change."""
        block = 1 if self.test is None else self.test.block
        return {
            "kind": CHANGED,
            "chance": change.chance,
            "direction": "lower" if change.is_lower else "higher",
            "rows": change.n_since * block,
            "tested": change.n * block,
            "block": block,
        }


def judged_again(
    row: Mapping[str, Any], shift: float, conformal: ConformalCalibrator, offset: float
) -> dict[str, Any]:
    """Return score, p-value and alarm of a row as it stands to the threshold now; {} for none.

    A row that breaks a limit raises an alarm whatever its score is.
    """
    score = float(row["score"]) - shift
    if math.isnan(score):
        return {}
    p_value = float(conformal.p_values([score])[0])
    is_anomaly = score < offset or row.get(RULE) is not None
    return {"score": score, "p_value": p_value, "is_anomaly": is_anomaly}


def change_words(record: Mapping[str, Any]) -> str:
    """Return a change in words."""
    kind = "stranger" if record["direction"] == "lower" else "more normal"
    return (
        f"the source has changed: rows are {kind} than before for about {record['rows']:,} rows; "
        f"with a chance of {record['chance']:g} at most this is false. If it is the new normal, "
        "learn again"
    )


def stream_block(scores: FloatArray, longest: int) -> int:
    """Return the rows of a block of a stream, from held-out scores some of which are NaN.

    Of many rows evenly spaced ones have a score: blocks are counted in all rows.
    """
    taken = np.flatnonzero(~np.isnan(scores))
    if len(taken) < 2:
        return max(longest, 1)
    step = max(1, round((int(taken[-1]) - int(taken[0])) / (len(taken) - 1)))
    return step * block_length([scores[taken]], -(-longest // step))

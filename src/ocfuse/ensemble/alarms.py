"""What a threshold may be, and what a user must know about it."""

import warnings
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.columns import EMPTY
from ocfuse.exceptions import (
    CopiedRowsWarning,
    FewSamplesWarning,
    IgnoredColumnsWarning,
    InvalidInputError,
    SuspectRowsWarning,
    ThresholdWarning,
)
from ocfuse.scores import ConformalCalibrator

FloatArray: TypeAlias = NDArray[np.float64]

#: What else can be done where groups are too few.
ALONE = "; or, if rows of one group are independent, calibrate without groups."


#: Share of copies among the rows from which on they are told.
TOLD_SHARE = 0.02


def check_rate(rate: Any) -> None:
    """Refuse what is no false-alarm rate."""
    if not (isinstance(rate, int | float | np.number) and 0 < rate < 1):
        raise InvalidInputError(f"false_alarm_rate must be in (0, 1), such as 0.01. Got {rate!r}.")


def settle_threshold(
    conformal: ConformalCalibrator, rate: float | None, offset: float | None
) -> tuple[float, float]:
    """Return the offset that is asked for by a rate or by itself, and the rate it stands for.

    Tell if that is higher than the rate asked for.
    """
    if (rate is None) == (offset is None):
        raise InvalidInputError("Give either false_alarm_rate or offset.")
    if rate is None:
        if not (isinstance(offset, int | float | np.number) and np.isfinite(offset)):
            raise InvalidInputError(f"offset must be a finite number. Got {offset!r}.")
        return float(offset), conformal.share_below(float(offset))
    check_rate(rate)
    offset, reached = conformal.threshold(rate)
    if reached > rate:
        _warn_of_few(conformal, rate, reached)
    _warn_if_tied(conformal.scores_, offset, rate)
    return offset, reached


def _warn_of_few(conformal: ConformalCalibrator, rate: float, reached: float) -> None:
    """Tell that the normal rows, or their groups, are too few for the rate."""
    n, least = conformal.n_groups_, int(np.ceil(1 / rate)) - 1
    who = f"{len(conformal.scores_)} normal rows are"
    advice = f"Use more rows: at least {least}, and twice as many if some were left out."
    if n is not None:
        name = conformal.group
        one = f"One {name} cannot tell how {name}s differ, and is"
        who = one if n == 1 else f"{n} {name}s are"
        twice = ", and twice as many if rows were left out" if conformal.n_left_out_ else ""
        advice = (
            f"Use at least {least} {name}s{twice}; or a rate of at least {_rounded_up(reached):g}"
        )
        # runs are never independent rows
        advice += ALONE if name == "group" else "."
    warnings.warn(
        f"{who} too few for false_alarm_rate={rate:g}: the threshold is at their lowest score, "
        f"which stands for {reached:.3g}. {advice}",
        FewSamplesWarning,
        stacklevel=5,
    )


def _rounded_up(rate: float) -> float:
    """Return a rate of three digits that is not below the one given."""
    return float(np.ceil(1e3 * rate) / 1e3)


def _warn_if_tied(scores: FloatArray, offset: float, rate: float) -> None:
    """Tell that many normal rows share the lowest score, so that few alarms can be raised."""
    lowest = int(np.sum(scores == scores[0]))
    if offset == scores[0] and lowest > 1 and lowest / len(scores) > rate:
        warnings.warn(
            f"{lowest} of {len(scores)} normal rows share the lowest score: only a row that "
            "scores lower still raises an alarm. Raise false_alarm_rate, or use a fusion with "
            "finer scores than votes.",
            ThresholdWarning,
            stacklevel=5,
        )


def warn_if_many_left_out(n_left_out: int, n: int, rate: float) -> None:
    """Tell that rows left out may be more than the threshold allows for."""
    if n_left_out > rate * (n + n_left_out) / 2:
        warnings.warn(
            f"{n_left_out} of {n + n_left_out} training rows are far outside and were not learned "
            "from (trimmed_rows_). If they are normal, say so with y = +1: otherwise rows like "
            "them raise alarms beyond the stated rate.",
            ThresholdWarning,
            stacklevel=5,
        )


def warn_of_ignored(columns: list[str]) -> None:
    """Tell which columns are not learned from."""
    if columns:
        are_empty = all(column.endswith(f"({EMPTY})") for column in columns)
        named = "What is a category all the same can be named: "
        advice = "" if are_empty else f" {named}encoder=FeatureEncoder(categories=[...])."
        warnings.warn(
            f"These columns are not learned from: {'; '.join(columns)}.{advice}",
            IgnoredColumnsWarning,
            stacklevel=4,
        )


def warn_of_group(n_remote: int, n: int) -> None:
    """Tell that rows far outside are so many that they were learned all the same."""
    if n_remote:
        warnings.warn(
            f"{n_remote} of {n} training rows lie far from the others and were learned as normal, "
            "as so many may be a rare mode. If they are anomalies, label them with y = -1 or leave "
            "them out: rows like them raise no alarm. If they are normal, say so with y = +1.",
            SuspectRowsWarning,
            stacklevel=5,
        )


def warn_of_copies(n_copies: int, n: int) -> None:
    """Tell that rows are copies of others, which are learned once and count once."""
    if n_copies >= TOLD_SHARE * n:
        warnings.warn(
            f"{n_copies / n:.0%} of the {n} rows are copies of others (copied_rows_). They are "
            f"learned once, and the false-alarm rate counts {n - n_copies} different ones.",
            CopiedRowsWarning,
            stacklevel=5,
        )

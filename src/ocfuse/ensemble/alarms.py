"""What a threshold may be, and what a user must know about it."""

import warnings
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import (
    FewSamplesWarning,
    InvalidInputError,
    SuspectRowsWarning,
    ThresholdWarning,
)

FloatArray: TypeAlias = NDArray[np.float64]


def check_rate(rate: Any) -> None:
    """Refuse what is no false-alarm rate."""
    if not (isinstance(rate, int | float | np.number) and 0 < rate < 1):
        raise InvalidInputError(f"false_alarm_rate must be in (0, 1), such as 0.01. Got {rate!r}.")


def check_offset(offset: Any) -> float:
    """Return a threshold that scores can be compared with."""
    if not (isinstance(offset, int | float | np.number) and np.isfinite(offset)):
        raise InvalidInputError(f"offset must be a finite number. Got {offset!r}.")
    return float(offset)


def warn_if_too_few(n: int, rate: float, reached: float) -> None:
    """Tell that the normal rows are too few for the rate."""
    if reached > rate:
        warnings.warn(
            f"{n} normal rows are too few for false_alarm_rate={rate:g}: "
            f"the threshold is at their lowest score, which stands for {reached:.3g}. "
            f"Use more rows: at least {int(np.ceil(1 / rate)) - 1}, and twice as many if some "
            "were left out.",
            FewSamplesWarning,
            stacklevel=5,
        )


def warn_if_tied(scores: FloatArray, offset: float, rate: float) -> None:
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

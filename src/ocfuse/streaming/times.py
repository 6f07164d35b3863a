"""Times of samples: numbers or dates, and the usual step between them."""

from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError

FloatArray: TypeAlias = NDArray[np.float64]


def to_seconds(time: Any) -> FloatArray:
    """Return times as numbers; dates as seconds."""
    values = np.asarray(time)
    if values.dtype.kind == "O":  # dates of Python or pandas
        with suppress(TypeError, ValueError):
            values = values.astype("datetime64[us]")
    if values.dtype.kind == "M":
        return np.asarray((values - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"time must hold numbers or dates. Got an array of {values.dtype}."
        ) from None


def check_times(time: Any, n: int) -> FloatArray | None:
    """Return n times as numbers, or None; those of a live stream may be bad (NaN, inf)."""
    if time is None:
        return None
    times = to_seconds(time)
    if times.shape != (n,):
        raise InvalidInputError(
            f"time must hold a time for each of {n} samples. Got shape {times.shape}."
        )
    return times


def require_finite(times: FloatArray | None) -> None:
    """Refuse to learn from times that are none."""
    bad = 0 if times is None else int((~np.isfinite(times)).sum())
    if bad:
        raise InvalidInputError(
            f"time must be finite to learn from. Got {bad} that are not. Leave these samples out."
        )


def require_rising(times: FloatArray | None, slices: list[slice]) -> None:
    """Refuse to learn from runs of which most samples come before the one in front of them."""
    if times is None:
        return
    steps = np.concatenate([np.diff(times[part]) for part in slices])
    if 2 * int((steps < 0).sum()) > len(steps):
        raise InvalidInputError(
            "time must rise within a run. It falls in "
            f"{int((steps < 0).sum())} of {len(steps)} steps: is the newest sample the first? "
            "Sort each run by time."
        )


def usual_step(times: FloatArray | None, slices: list[slice]) -> float:
    """Return the median step between samples; inf if it is not known."""
    if times is None:
        return np.inf
    steps = np.concatenate([np.diff(times[part]) for part in slices])
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else np.inf

"""Limits: rules that always raise an alarm, whatever the score says.

A limit is of one column, and of its value as it is: ``{"temp": (None, 90)}`` raises an alarm
wherever temp is above 90. Scores, p-values and the threshold do not know of limits, so that the
rate of false alarms is that of the score alone, and alarms by limits are counted apart. A gap
breaks no limit; infinity does.
"""

import math
import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, SuspectInputWarning


@dataclass(frozen=True)
class ValueLimits:
    """Lowest and highest values that columns may have.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    places : ndarray of shape (k,)
        Their positions.
    low, high : ndarray of shape (k,)
        Lowest and highest value that raises no alarm; infinite for none.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.limits import ValueLimits
    >>> limits = ValueLimits(["temp"], np.array([0]), np.array([-np.inf]), np.array([90.0]))
    >>> limits.broken(np.array([[95.0], [20.0], [np.nan]]))
    ['temp above 90', '', '']
    """

    names: list[str]
    places: IntArray
    low: FloatArray
    high: FloatArray

    def broken(self, values: FloatArray) -> list[str]:
        """Return which limits the rows break, in words; an empty text for none.

        Parameters
        ----------
        values : ndarray of shape (n, k)
            What the rows have in these columns, NaN for gaps.

        Returns
        -------
        list of str
            Such as "temp above 90; level below 2".
        """
        found = [""] * len(values)
        is_high, is_low = values > self.high, values < self.low
        for i in np.flatnonzero((is_high | is_low).any(axis=1)).tolist():
            found[i] = "; ".join(self._words(is_low[i], is_high[i]))
        return found

    def _words(self, is_low: BoolArray, is_high: BoolArray) -> list[str]:
        words = []
        for k, name in enumerate(self.names):
            if is_high[k]:
                words.append(f"{name} above {self.high[k]:.10g}")
            if is_low[k]:
                words.append(f"{name} below {self.low[k]:.10g}")
        return words

    def __str__(self) -> str:
        """Return the limits in words, such as "temp above 90"."""
        return ", ".join(self._words(np.isfinite(self.low), np.isfinite(self.high)))


def check_limits(given: Any) -> dict[Any, tuple[float, float]]:
    """Return the lowest and highest value of each column, infinite for none, or refuse them.

    Parameters
    ----------
    given : dict or None
        For each column a pair of numbers, None for no limit: ``{"temp": (None, 90)}``.

    Returns
    -------
    dict
        The same with infinity.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidTypeError(
            "limits must be a dict from columns to the lowest and the highest value, such as "
            f"{{'temp': (None, 90)}}. Got {given!r}."
        )
    found = {}
    for column, pair in given.items():
        is_pair = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
        ends = [math.nan] * 2
        if is_pair:
            ends = [
                infinite if end is None else _number(end)
                for end, infinite in zip(pair, (-math.inf, math.inf), strict=True)
            ]
        if any(map(math.isnan, ends)) or ends == [-math.inf, math.inf]:
            raise InvalidInputError(
                f"limits[{column!r}] must be the lowest and the highest value that raises no "
                f"alarm, finite numbers or None for no limit, such as (None, 90). Got {pair!r}."
            )
        if ends[0] > ends[1]:
            raise InvalidInputError(
                f"limits[{column!r}] has its lowest value above its highest, so that every row "
                f"would raise an alarm. Got {pair!r}. Write (lowest, highest)."
            )
        found[column] = (ends[0], ends[1])
    return found


def _number(end: Any) -> float:
    """Return a finite number as a float, NaN for anything else."""
    is_number = isinstance(end, numbers.Real) and not isinstance(end, bool | np.bool_)
    return float(end) if is_number and math.isfinite(end) else math.nan


def make_limits(
    given: Mapping[Any, tuple[float, float]], places: NDArray[np.intp], names: Sequence[str]
) -> ValueLimits | None:
    """Return checked limits of columns with these positions and names; None for none."""
    if not given:
        return None
    low, high = np.array(list(given.values()), dtype=np.float64).T
    return ValueLimits(list(names), np.asarray(places, dtype=np.intp), low, high)


def warn_of_broken(rules: Sequence[str]) -> None:
    """Warn of training rows that break limits, by what `ValueLimits.broken` says of each."""
    broken = [rule for rule in rules if rule]
    if broken:
        which = "; ".join(sorted(set(broken))[:3])
        warnings.warn(
            f"{len(broken):,} of {len(rules):,} training rows break a limit ({which}), and would "
            "raise alarms. They are learned from all the same: if they are faults, leave them out "
            "or label them -1; if not, move the limit.",
            SuspectInputWarning,
            stacklevel=4,
        )

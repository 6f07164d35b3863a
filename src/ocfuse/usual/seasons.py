"""Usual values by the time of day, week, month or year: centres and spreads of numbers.

Times become places on a ring of bins, by local wall time: 23:50 is near 00:10, and with daylight
saving 6 o'clock stays 6 o'clock. Centres are values at the bins, with lines between them, that fit
the rows and differ little from bin to bin (a ridge penalty on the differences, a random walk);
spreads likewise, from the squares of what is left. Rows far from what is usual at their time are
pulled in before.

How smooth they are, and whether the season counts at all, is chosen for each column by parts of
the time that were held out: a season that does not predict these better than no season is left
out. Several seasons are taken one after another, each from what is left by those before.

Rows that this was learned from are measured from what the others say, in closed form: without
row i, of leverage h, the centre at its time is ``f - h / (1 - h) (y - f)``.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from scipy.sparse import csr_array

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.exceptions import IgnoredColumnsWarning, InvalidInputError, not_one_of
from ocfuse.usual.groups import medians, reach_of_groups

#: Seasons with their length in seconds.
SEASONS = {"day": 86_400.0, "week": 604_800.0, "month": 2_629_800.0, "year": 31_557_600.0}
#: Bins of a day, of a day of a week, and of the others.
BINS_OF_DAY, BINS_OF_WEEKDAY, BINS_OF_MONTH, BINS_OF_YEAR = 144, 48, 31, 73
#: Periods that training must have; the last one may end a little early.
FEWEST_PERIODS = 1.9
#: Parts of the time that are held out.
MOST_PARTS = 5
#: How smooth a season may be: the square of the bins over which rows count together.
SMOOTHNESS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
#: What a season must gain on held-out rows, in log-likelihood.
LEAST_GAIN = 4.0
#: How firmly a holiday is tied to a Sunday, in units of neighbouring bins.
TIE_OF_HOLIDAYS = 0.1
#: Share of the mean variance that the variance at a time is at least.
LEAST_VARIANCE = 0.01
DAY = 86_400.0


def check_seasons(season: Any) -> tuple[str, ...]:
    """Return the names of seasons, the shortest first."""
    names = (season,) if isinstance(season, str) else tuple(season or ())
    for name in names:
        if name not in SEASONS:
            raise InvalidInputError(not_one_of("season", name, SEASONS))
    return tuple(name for name in SEASONS if name in names)


def to_days(holidays: Any) -> list[int]:
    """Return dates, as texts, as days since 1970, sorted."""
    given = [holidays] if isinstance(holidays, str) else list(() if holidays is None else holidays)
    days = set()
    for one in given:
        day: Any = np.datetime64("NaT")
        if isinstance(one, str):  # model files hold no other dates
            with suppress(ValueError):
                day = np.datetime64(one.strip(), "D")
        if np.isnat(day):
            raise InvalidInputError(
                f"holidays must be dates as texts, such as '2026-12-25'. Got {one!r}. A date of "
                "Python becomes one by str, days of pandas by strftime('%Y-%m-%d')."
            )
        days.add(int(day.astype(np.int64)))
    return sorted(days)


def require_seasons_for(holidays: Sequence[int], zone: str | None, names: Sequence[str]) -> None:
    """Refuse holidays and a time zone without the season that they are for."""
    if zone and not names:
        raise InvalidInputError(
            f"zone={zone!r} is the time zone of seasons. Give it with a season, such as "
            "season='day', or leave it out."
        )
    if holidays and "week" not in names:
        raise InvalidInputError(
            "holidays are days of the week of their own. Give them with season='week', or "
            "leave them out."
        )


def find_zone(name: str) -> tzinfo:
    """Return the time zone of a name such as "Europe/Berlin" or "UTC+02:00"."""
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)(?::\d\d)?", name)
    minutes = re.fullmatch(r"pytz\.FixedOffset\((-?\d+)\)", name)
    if offset is not None:
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3])))
    if minutes is not None:
        return timezone(timedelta(minutes=int(minutes[1])))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidInputError(
            f"The time zone {name!r} is not known. Name one such as 'Europe/Berlin' or 'UTC'."
        ) from None


class Calendar:
    """Local days and clocks.

    Parameters
    ----------
    zone : str
        Time zone of the seasons, if times are in UTC; empty if they are local already.
    holidays : list of int
        Local days since 1970 that are treated as Sundays.
    """

    def __init__(self, zone: str = "", holidays: Sequence[int] = ()) -> None:
        self.zone = zone
        self.holidays = list(holidays)

    def local(self, times: FloatArray) -> FloatArray:
        """Return local wall time as seconds since 1970, from seconds in UTC."""
        if self.zone in ("", "UTC"):
            return times
        zone, found = find_zone(self.zone), np.array(times)
        known = np.flatnonzero(np.isfinite(times))
        day, place = np.unique(np.floor(times[known] / DAY), return_inverse=True)
        begin, end = (np.array([_offset(zone, DAY * d) for d in days]) for days in (day, day + 1.0))
        found[known] += begin[place]
        # on days on which clocks are changed, which they are at full quarters
        changed = known[(begin != end)[place]]
        quarter, place = np.unique(np.floor(times[changed] / 900.0), return_inverse=True)
        shift = np.array([_offset(zone, 900.0 * q) for q in quarter])
        found[changed] = times[changed] + shift[place] if len(changed) else 0.0
        return found

    def clock(self, time: float) -> str:
        """Return the local time of day, such as "06:30"; empty if it is not known."""
        if not np.isfinite(time):
            return ""
        local = float(self.local(np.array([time]))[0])
        minutes = int(local % DAY // 60)
        return f"{minutes // 60:02}:{minutes % 60:02}"

    def describe(self, season: str, time: float) -> str:
        """Return when a time is in a season, such as "at 06:30" or "on a Monday"."""
        if not np.isfinite(time):
            return ""
        local = float(self.local(np.array([time]))[0])
        day = np.datetime64(int(local // DAY), "D").astype(date)
        if season == "day":
            return f"at {self.clock(time)}"
        if season == "week":
            names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
            is_holiday = int(local // DAY) in self.holidays
            return "on a holiday" if is_holiday else f"on a {names[day.weekday()]}"
        return f"on day {day.day} of the month" if season == "month" else f"in {day:%B}"

    def places(self, season: str, times: FloatArray) -> "Places":
        """Return where times, without gaps, are on the ring of a season."""
        local = self.local(times)
        day = np.floor(local / DAY).astype(np.int64)
        clock = local / DAY - day
        start = np.zeros(len(day), dtype=np.intp)
        size = np.full(len(day), n_bins(season, False))
        if season == "day":
            at = clock * BINS_OF_DAY
        elif season == "week":
            at = ((day + 3) % 7 + clock) * BINS_OF_WEEKDAY  # 1970 began on a Thursday
            free = np.isin(day, self.holidays)
            start[free], size[free] = 7 * BINS_OF_WEEKDAY, BINS_OF_WEEKDAY
            at = np.where(free, clock * BINS_OF_WEEKDAY, at)
        else:
            unit, n = ("M", BINS_OF_MONTH) if season == "month" else ("Y", BINS_OF_YEAR)
            dates = day.astype("datetime64[D]")
            first = dates.astype(f"datetime64[{unit}]")
            begin = first.astype("datetime64[D]").astype(np.int64)
            end = (first + 1).astype("datetime64[D]").astype(np.int64)
            at = (day - begin + clock) / (end - begin) * n
        at = at - 0.5
        low = np.floor(at).astype(np.intp)
        return Places(start + low % size, start + (low + 1) % size, at - low)

    def roughness(self, season: str) -> FloatArray:
        """Return the penalty on differences of neighbouring bins, as a quadratic form."""
        n, ring = n_bins(season, bool(self.holidays)), n_bins(season, False)
        first = np.arange(n)
        second = np.append(np.arange(1, ring + 1) % ring, ring + np.arange(1, n - ring + 1))
        if n > ring:
            second[-1] = ring
        weight = np.ones(n)
        if n > ring:  # holidays are tied to Sundays
            first = np.append(first, np.arange(ring, n))
            second = np.append(second, np.arange(ring - BINS_OF_WEEKDAY, ring))
            weight = np.append(weight, np.full(n - ring, TIE_OF_HOLIDAYS))
        L = np.zeros((n, n))
        np.add.at(L, (first, first), weight)
        np.add.at(L, (second, second), weight)
        np.add.at(L, (first, second), -weight)
        np.add.at(L, (second, first), -weight)
        return L


def n_bins(season: str, has_holidays: bool) -> int:
    """Return the number of bins of a season."""
    if season == "week":
        return (7 + has_holidays) * BINS_OF_WEEKDAY
    return {"day": BINS_OF_DAY, "month": BINS_OF_MONTH, "year": BINS_OF_YEAR}[season]


def _offset(zone: tzinfo, time: float) -> float:
    try:
        found = datetime.fromtimestamp(time, timezone.utc).astimezone(zone).utcoffset()
    except (OverflowError, ValueError):  # beyond the years that calendars know
        return 0.0
    return 0.0 if found is None else found.total_seconds()


@dataclass(frozen=True)
class Places:
    """Places between two bins: `share` of the way from the one to the other."""

    low: IntArray
    high: IntArray
    share: FloatArray

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: Any) -> "Places":
        """Return some of them."""
        return Places(self.low[rows], self.high[rows], self.share[rows])

    def matrix(self, n: int) -> csr_array:
        """Return the weights of n bins at every place."""
        rows = np.repeat(np.arange(len(self)), 2)
        columns = np.column_stack([self.low, self.high]).ravel()
        weights = np.column_stack([1.0 - self.share, self.share]).ravel()
        return csr_array((weights, (rows, columns)), shape=(len(self), n))

    def values(self, bins: FloatArray) -> FloatArray:
        """Return what lies between the values of bins, (n, m), at every place."""
        share = self.share[:, np.newaxis]
        found: FloatArray = (1.0 - share) * bins[self.low] + share * bins[self.high]
        return found


@dataclass(frozen=True)
class Smoother:
    """Rows at places on a ring, and how values at its bins are fitted to them."""

    places: Places
    roughness: FloatArray

    @cached_property
    def matrix(self) -> csr_array:
        """Weights of the bins in each row."""
        return self.places.matrix(len(self.roughness))

    @cached_property
    def gram(self) -> FloatArray:
        """Weights of pairs of bins, summed over rows."""
        found: FloatArray = (self.matrix.T @ self.matrix).toarray()
        return found

    def system(self, smoothness: float) -> FloatArray:
        """Return the matrix that is solved for the values at the bins."""
        n = len(self.roughness)
        unit = max(len(self.places), 1) / n
        # so little that it shows only where nothing else settles a value
        ridge = 1e-9 * unit * np.eye(n)
        return np.asarray(self.gram + smoothness * unit * self.roughness + ridge)

    def sums(self, y: FloatArray) -> FloatArray:
        """Return the right-hand side for values (n, m) of the rows."""
        found: FloatArray = self.matrix.T @ y
        return found

    def inverse(self, smoothness: float) -> FloatArray:
        """Return the inverse of the system."""
        return np.asarray(np.linalg.inv(self.system(smoothness)), dtype=np.float64)


class Season:
    """Centres and spreads on one ring, by column.

    Parameters
    ----------
    name : str
        The season.
    by_parts : bool, default=False
        Whether training rows are measured from other parts of the time, and not from all other
        rows: those of a stream are like their neighbours.

    Attributes
    ----------
    centre_, spread_ : ndarray of shape (n_bins, m)
        Centres, 0 where the season does not count, and spreads, 1 where it does not count.
    doubt_ : ndarray of shape (n_bins, m)
        How uncertain the centre is: its variance in units of that of a row.
    middle_, width_ : ndarray of shape (m,)
        Centre and spread of rows whose time is not known.
    moves_, widens_ : ndarray of shape (m,)
        Whether centres, and spreads, depend on the time.
    """

    def __init__(self, name: str, by_parts: bool = False) -> None:
        self.name = name
        self.by_parts = by_parts

    def fit_centres(
        self, calendar: Calendar, times: FloatArray, Y: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Learn centres from rows; return what is left of each, and how uncertain that is.

        Each is measured from the centre as the others have it, whose variance is returned in
        units of that of a row. NaN are gaps.
        """
        L = calendar.roughness(self.name)
        n, m = len(L), Y.shape[1]
        self.centre_, self.doubt_ = np.zeros((2, n, m))
        self.spread_ = np.ones((n, m))
        self.middle_, self.width_ = np.zeros(m), np.ones(m)
        self.moves_, self.widens_ = np.zeros((2, m), dtype=bool)
        left, doubt = np.array(Y), np.zeros_like(Y)
        for cells, columns, smoother, part in self._alike(calendar, times, Y):
            left[cells], doubt[cells] = self._fit_centres(smoother, part, Y[cells], columns)
        left[np.isnan(times)] -= self.middle_
        return left, doubt

    def fit_spreads(
        self, calendar: Calendar, times: FloatArray, left: FloatArray, doubt: FloatArray
    ) -> FloatArray:
        """Learn spreads from what is left of rows; return that of each as the others have it."""
        spread = np.ones_like(left)
        for cells, columns, smoother, part in self._alike(calendar, times, left):
            squares = left[cells] ** 2 / (1.0 + doubt[cells])
            spread[cells] = self._fit_spreads(smoother, part, squares, columns)
        spread[np.isnan(times)] = self.width_
        return spread

    def usual(self, calendar: Calendar, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centre and spread at every time and column."""
        shape = (len(times), len(self.middle_))
        centre, spread = np.broadcast_to(self.middle_, shape), np.broadcast_to(self.width_, shape)
        known = np.flatnonzero(np.isfinite(times))
        if not (self.moves_.any() or self.widens_.any()) or not len(known):
            return centre, spread
        centre, spread = centre.copy(), spread.copy()
        places = calendar.places(self.name, times[known])
        centre[known] = places.values(self.centre_)
        spread[known] = places.values(self.spread_) * np.sqrt(1.0 + places.values(self.doubt_))
        return centre, spread

    def _alike(
        self, calendar: Calendar, times: FloatArray, Y: FloatArray
    ) -> Iterator[tuple[Any, IntArray, Smoother, IntArray]]:
        """Yield the cells of columns with the same gaps, the columns, their rows and parts."""
        present = ~np.isnan(Y) & np.isfinite(times)[:, np.newaxis]
        part, L = parts_of_time(times, SEASONS[self.name]), calendar.roughness(self.name)
        alike: dict[bytes, list[int]] = {}
        for j in range(present.shape[1]):
            alike.setdefault(np.packbits(present[:, j]).tobytes(), []).append(j)
        for same in alike.values():
            columns, rows = np.array(same), np.flatnonzero(present[:, same[0]])
            if len(np.unique(part[rows])) > 1:
                smoother = Smoother(calendar.places(self.name, times[rows]), L)
                yield np.ix_(rows, columns), columns, smoother, part[rows]

    def _fit_centres(
        self, smoother: Smoother, part: IntArray, Y: FloatArray, columns: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Learn columns without gaps; return what is left of rows, and how uncertain that is."""
        near = pulled_in(smoother.places, Y, len(self.centre_))
        centre, doubt = np.zeros_like(Y), np.zeros_like(Y)
        chosen = _choose(smoother, part, near, _gain_of_centres)
        for smoothness in np.unique(chosen[~np.isnan(chosen)]):
            some = np.flatnonzero(chosen == smoothness)
            A = smoother.inverse(smoothness)
            bins = A @ smoother.sums(near[:, some])
            fitted, h = smoother.places.values(bins), _leverage(A, smoother.places)
            own = h / (1.0 - h)
            centre[:, some] = fitted - own * (near[:, some] - fitted)
            doubt[:, some] = own
            if self.by_parts:
                centre[:, some] = by_other_parts(smoother, part, near[:, some], smoothness)
            at = columns[some]
            self.moves_[at] = True
            self.centre_[:, at], self.doubt_[:, at] = bins, np.diag(A)[:, np.newaxis]
            self.middle_[at] = fitted.mean(axis=0)
            left = np.mean((near[:, some] - fitted) ** 2, axis=0)
            # a row whose time is not known may be of any
            self.width_[at] = np.sqrt(1.0 + fitted.var(axis=0) / np.where(left > 0, left, 1.0))
        return Y - centre, doubt

    def _fit_spreads(
        self, smoother: Smoother, part: IntArray, squares: FloatArray, columns: IntArray
    ) -> FloatArray:
        """Learn spreads from squares of what is left; return those of rows by the others."""
        squares = pulled_in(smoother.places, np.sqrt(squares), len(self.centre_)) ** 2
        level = squares.mean(axis=0)
        level[level == 0] = 1.0
        squares = squares / level
        chosen = _choose(smoother, part, squares, _gain_of_spreads)
        spread = np.ones_like(squares)
        for smoothness in np.unique(chosen[~np.isnan(chosen)]):
            some = np.flatnonzero(chosen == smoothness)
            A = smoother.inverse(smoothness)
            bins = A @ smoother.sums(squares[:, some])
            fitted, h = smoother.places.values(bins), _leverage(A, smoother.places)
            own = (fitted - h * squares[:, some]) / (1.0 - h)
            if self.by_parts:
                own = by_other_parts(smoother, part, squares[:, some], smoothness)
            spread[:, some] = np.sqrt(np.maximum(own, LEAST_VARIANCE))
            self.widens_[columns[some]] = True
            self.spread_[:, columns[some]] = np.sqrt(np.maximum(bins, LEAST_VARIANCE))
        return spread


def _choose(smoother: Smoother, part: IntArray, Y: FloatArray, gain: Any) -> FloatArray:
    """Return the smoothness for each column, NaN where no season foretells parts held out."""
    m = Y.shape[1]
    names = np.unique(part)
    gains = np.zeros((len(names), len(SMOOTHNESS), m))
    for k, one in enumerate(names):
        out = part == one
        learned = Smoother(smoother.places.take(~out), smoother.roughness)
        asked, sums = smoother.places.take(out), learned.sums(Y[~out])
        base, variance = Y[~out].mean(axis=0), Y[~out].var(axis=0)
        for i, smoothness in enumerate(SMOOTHNESS):
            bins = np.linalg.solve(learned.system(smoothness), sums)
            fitted = asked.values(np.asarray(bins, dtype=np.float64))
            gains[k, i] = gain(Y[out], fitted, base, variance)
    total = gains.sum(axis=0)
    best = total.argmax(axis=0)
    each = np.take_along_axis(gains, best[np.newaxis, np.newaxis], axis=1)[:, 0]
    sure = total.max(axis=0) > np.maximum(LEAST_GAIN, np.sqrt((each**2).sum(axis=0)))
    return np.where(sure, np.array(SMOOTHNESS)[best], np.nan)


def by_other_parts(
    smoother: Smoother, part: IntArray, Y: FloatArray, smoothness: float
) -> FloatArray:
    """Return what is usual at the times of rows, as the other parts of the time have it."""
    found = np.empty_like(Y)
    for one in np.unique(part):
        out = part == one
        learned = Smoother(smoother.places.take(~out), smoother.roughness)
        bins = np.linalg.solve(learned.system(smoothness), learned.sums(Y[~out]))
        found[out] = smoother.places.take(out).values(np.asarray(bins, dtype=np.float64))
    return found


def _gain_of_centres(
    y: FloatArray, fitted: FloatArray, mean: FloatArray, variance: FloatArray
) -> FloatArray:
    """Return how much likelier values are with the season, in units of the variance without."""
    before, after = ((y - mean) ** 2).sum(axis=0), ((y - fitted) ** 2).sum(axis=0)
    scale = np.where(variance > 0, variance, 1.0)
    found: FloatArray = 0.5 * (before - after) / scale
    return found


def _gain_of_spreads(
    squares: FloatArray, fitted: FloatArray, mean: FloatArray, _: FloatArray
) -> FloatArray:
    """Return how much likelier values with these squares are with the variance of the season."""
    now, before = np.maximum(fitted, LEAST_VARIANCE), np.maximum(mean, LEAST_VARIANCE)
    after = np.log(now) + squares / now
    found: FloatArray = 0.5 * (np.log(before) + squares / before - after).sum(axis=0)
    return found


def _leverage(A: FloatArray, places: Places) -> FloatArray:
    """Return how far each row tells the centre at its own time, as a column."""
    one, other, share = places.low, places.high, places.share
    h = (1.0 - share) ** 2 * A[one, one] + share**2 * A[other, other]
    h += 2.0 * share * (1.0 - share) * A[one, other]
    return np.minimum(h, 0.95)[:, np.newaxis]


def pulled_in(places: Places, Y: FloatArray, n: int, fewest: int = 8) -> FloatArray:
    """Return values of which those far from what is usual around their time are pulled in."""
    at = np.where(places.share < 0.5, places.low, places.high)
    # so many bins together that each has some rows
    while n > 1 and len(places) / len(np.unique(at)) < fewest:
        at, n = at // 2, (n + 1) // 2
    found = np.empty_like(Y)
    for j in range(Y.shape[1]):
        middle, count = medians(Y[:, j], at, n)
        reach = reach_of_groups(np.abs(Y[:, j] - middle[at]), at, count)[at]
        found[:, j] = np.clip(Y[:, j], middle[at] - reach, middle[at] + reach)
    return found


def parts_of_time(times: FloatArray, period: float) -> IntArray:
    """Return the part of the time that each row is in: whole periods, up to five parts."""
    known = times[np.isfinite(times)]
    if not len(known):
        return np.zeros(len(times), dtype=np.intp)
    number = np.floor((times - known.min()) / period)
    n_periods = max(int(np.nanmax(number)) + 1, 1)
    n_parts = min(MOST_PARTS, n_periods)
    part = np.nan_to_num(np.minimum(number * n_parts // n_periods, n_parts - 1))
    return np.asarray(part, dtype=np.intp)


class Seasons:
    """Usual values by season, for one or several seasons.

    Parameters
    ----------
    names : sequence of str
        Seasons, the shortest first.
    calendar : Calendar
        Local days and clocks.
    by_parts : bool, default=False
        See `Season`.

    Attributes
    ----------
    parts_ : list of Season
        The fitted seasons.
    """

    def __init__(self, names: Sequence[str], calendar: Calendar, by_parts: bool = False) -> None:
        self.names = list(names)
        self.calendar = calendar
        self.by_parts = by_parts

    def fit_measured(self, times: FloatArray, Y: FloatArray) -> FloatArray:
        """Learn from rows, and return the deviation of each from the others.

        Parameters
        ----------
        times : ndarray of shape (n,)
            Seconds since 1970; NaN if unknown.
        Y : ndarray of shape (n, m)
            Numbers, NaN for gaps.

        Returns
        -------
        ndarray of shape (n, m)
            Deviations from the usual values.
        """
        require_periods(self.names, times)
        self.parts_ = [Season(name, self.by_parts) for name in self.names]
        doubt, spread = np.zeros_like(Y), np.ones_like(Y)
        for part in self.parts_:
            Y, own = part.fit_centres(self.calendar, times, Y)
            doubt += own
        for part in self.parts_:
            spread *= part.fit_spreads(self.calendar, times, Y / spread, doubt)
        measured: FloatArray = Y / (spread * np.sqrt(1.0 + doubt))
        return measured

    def usual(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centre and spread at every time and column."""
        m = len(self.parts_[0].middle_)
        centre, spread = np.zeros((len(times), m)), np.ones((len(times), m))
        for part in self.parts_:
            of_part, width = part.usual(self.calendar, times)
            centre, spread = centre + of_part, spread * width
        return centre, spread

    @property
    def count(self) -> int:
        """Number of seasons that count for some column."""
        return sum(bool(self.counts(name).any()) for name in self.names)

    def facts(self, names: Sequence[str]) -> dict[str, Any]:
        """Return for which of the named columns seasons count."""
        return {
            "zone": self.calendar.zone,
            "holidays": len(self.calendar.holidays),
            "seasons": {
                season: [names[j] for j in np.flatnonzero(self.counts(season)).tolist()]
                for season in self.names
            },
            "columns": len(names),
        }

    def counts(self, name: str) -> BoolArray:
        """Return for which columns a season counts."""
        part = self.parts_[self.names.index(name)]
        return np.asarray(part.moves_ | part.widens_)

    def describe(self, times: Iterable[float]) -> list[str]:
        """Return when times are, such as "at 06:30 on a Monday"; empty if not known."""
        names = [name for name in self.names if self.counts(name).any()]
        if "week" in names and "day" not in names:
            names.insert(0, "day")
        return [
            " ".join(filter(None, [self.calendar.describe(name, time) for name in names]))
            for time in times
        ]


def require_periods(names: Sequence[str], times: FloatArray, of_numbers: str = "") -> None:
    """Refuse seasons of which training has fewer than two periods.

    `of_numbers` is the name of the column, if its times are numbers.
    """
    known = times[np.isfinite(times)]
    if not len(known):
        raise InvalidInputError("A season needs the times of rows. Got none that can be read.")
    require_seconds(known)
    span = float(np.ptp(known))
    for name in names:
        if span >= FEWEST_PERIODS * SEASONS[name]:
            continue
        if of_numbers and np.abs(known).max() < SEASONS["year"]:  # not since 1970
            raise InvalidInputError(
                f"time={of_numbers!r} does not look like times: numbers count as seconds, and "
                f"these go from {known.min():.4g} to {known.max():.4g}, while season={name!r} "
                f"needs two {name}s or more. Name a column of times, or leave the season out."
            )
        raise InvalidInputError(
            f"season={name!r} needs rows of two {name}s or more, which differ. These span "
            f"{_in_words(span)}. Leave it out, or learn from a longer time; times that are "
            "numbers count as seconds."
        )


def require_seconds(times: FloatArray, most: float = 2.6e11) -> None:
    """Refuse times beyond the year 9999, which are milliseconds, or less."""
    known = times[np.isfinite(times)]
    if len(known) and np.abs(known).max() > most:
        raise InvalidInputError(
            f"Times that are numbers count as seconds since 1970. Got {known[0]:.16g}, which is "
            "beyond the year 9999. If they are milliseconds, divide them by 1,000; if they are "
            "nanoseconds, by 1,000,000,000."
        )


def warn_of_seasons(seasons: Seasons | None) -> None:
    """Warn of seasons that count for no column."""
    if seasons is None:
        return
    names = [name for name in seasons.names if not seasons.counts(name).any()]
    if names:
        warnings.warn(
            f"The time of {' and of '.join(names)} foretells no column on parts of the time that "
            "were held out, and is left out: numbers are not measured by it. Learn from a longer "
            "time, if it should count.",
            IgnoredColumnsWarning,
            stacklevel=4,
        )


def _in_words(seconds: float) -> str:
    for name, size in (("days", DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.3g} seconds"

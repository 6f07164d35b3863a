"""Usual values of numbers by group and by time, and deviations from them.

A number is replaced by its deviation from the usual value of its group (`ocfuse.usual.groups`),
and this by its deviation from the usual value at its time (`ocfuse.usual.seasons`). This package
must not know tables, detectors and scores: it gets codes of groups, seconds and numbers.
"""

from copy import copy

import numpy as np

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.usual.groups import GroupLevels
from ocfuse.usual.seasons import Calendar, Seasons, check_seasons, to_days

__all__ = ["Calendar", "GroupLevels", "Seasons", "Usual", "check_seasons", "to_days"]

#: Rounds in which groups and seasons learn from what the others leave.
N_ROUNDS = 2
#: Share of normal rows whose values are called usual.
USUAL = 0.95


class Usual:
    """Usual values by group and by time.

    Parameters
    ----------
    seasons : Seasons, default=None
        The seasons to learn; None for none.

    Attributes
    ----------
    groups_ : GroupLevels
        Centres and spreads by group; without groups those of all rows.
    low_, high_ : ndarray of shape (m,)
        Range of the middle 95 % of the deviations of training rows.
    """

    def __init__(self, seasons: Seasons | None = None) -> None:
        self.seasons = seasons

    def fit_measured(
        self,
        whose: FloatArray,
        when: FloatArray,
        X: FloatArray,
        together: IntArray | None = None,
    ) -> FloatArray:
        """Learn from training rows, and return the deviation of each from the others.

        Parameters
        ----------
        whose : ndarray of shape (n, n_levels)
            Codes of the groups of each row, widest first; -1 and NaN are unknown.
        when : ndarray of shape (n,)
            Times in seconds since 1970, NaN if unknown; not used without seasons.
        X : ndarray of shape (n, m)
            Numbers, NaN for gaps.
        together : ndarray of shape (n,), default=None
            Rows with the same number, such as those of one run, are held out together.

        Returns
        -------
        ndarray of shape (n, m)
            Deviations, in units of the usual spread.
        """
        self.groups_ = GroupLevels()
        centre, spread = self.groups_.fit_held_out(whose, X, together)
        left = (X - centre) / spread
        if self.seasons is not None:
            left = self._fit_seasons(whose, when, X, left)
            for _ in range(N_ROUNDS if whose.shape[1] and self.seasons.count else 0):
                # rows of a group may be of some hours only: centres are of what the time leaves
                theirs, width = self.groups_.usual(whose)
                usual, unit = self.usual(whose, when)
                rest = theirs + width * (X - usual) / unit
                centre, spread = self.groups_.fit_held_out(whose, rest, together)
                left = self._fit_seasons(whose, when, X, (X - centre) / spread)
        measured: FloatArray = left * self.groups_.unit_
        self.low_, self.high_ = _middle(measured)
        return measured

    def _fit_seasons(
        self, whose: FloatArray, when: FloatArray, X: FloatArray, left: FloatArray
    ) -> FloatArray:
        """Learn seasons from the rows of known groups; return the deviations of all rows."""
        assert self.seasons is not None
        is_new = np.any(self.groups_.within(whose) != self.groups_.usual(whose)[1], axis=1)
        if is_new.all() or not is_new.any():
            return self.seasons.fit_measured(when, left)
        # their levels are not known, and would hide what the time does
        known = np.where(is_new[:, None], np.nan, left)
        found = self.seasons.fit_measured(when, known)
        centre, spread = self.usual(whose[is_new], when[is_new])
        found[is_new] = (X[is_new] - centre) / spread
        return found

    def with_groups(
        self, whose: FloatArray, when: FloatArray, X: FloatArray
    ) -> tuple["Usual", FloatArray]:
        """Return what is usual for the groups of rows, too, and the deviations of the rows.

        Rows of new groups are measured as learned from the others; the rest stays as it is.
        """
        fresh = copy(self)
        fresh.groups_, centre, spread = self.groups_.with_groups(whose, X)
        if fresh.groups_ is self.groups_:
            return self, self.measure(whose, when, X)
        if self.seasons is not None:
            middle, factor = self.seasons.usual(when)
            # what the time makes of a group of the usual spread, then of one of its own
            fresh.groups_, *_ = self.groups_.with_groups(whose, X - self.groups_.unit_ * middle)
            for _ in range(N_ROUNDS):
                theirs, width = fresh.groups_.usual(whose)
                rest = theirs + width * ((X - theirs) / width - middle) / factor
                fresh.groups_, centre, spread = self.groups_.with_groups(whose, rest)
            _, width = fresh.groups_.usual(whose)
            within = fresh.groups_.within(whose)
            within = np.where(within == width, spread, within)
            centre, spread = self._at_time(when, centre, spread, within)
        measured: FloatArray = (X - centre) / spread * self.groups_.unit_
        return fresh, measured

    def measure(self, whose: FloatArray, when: FloatArray, X: FloatArray) -> FloatArray:
        """Return the deviations of numbers from the usual values of their rows."""
        centre, spread = self.usual(whose, when)
        measured: FloatArray = (X - centre) / spread * self.groups_.unit_
        return measured

    def ranges(self, whose: FloatArray, when: FloatArray) -> tuple[FloatArray, ...]:
        """Return lowest and highest usual value, centre and unit, for every row and column."""
        centre, unit = self.units(whose, when)
        return centre + self.low_ * unit, centre + self.high_ * unit, centre, unit

    def units(self, whose: FloatArray, when: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the origin and the unit of the deviations, for each row and column."""
        centre, spread = self.usual(whose, when)
        return centre, spread / self.groups_.unit_

    def usual(self, whose: FloatArray, when: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centre and spread for every row and column."""
        levels, node = self.groups_, self.groups_.nodes(whose)
        centre, spread = levels.centre_[node], levels.spread_[node]
        if self.seasons is None:
            return centre, spread
        return self._at_time(when, centre, spread, levels.within_[node])

    def _at_time(
        self, when: FloatArray, centre: FloatArray, spread: FloatArray, within: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return centre and spread of groups at times; how groups differ does not depend on it."""
        assert self.seasons is not None
        middle, factor = self.seasons.usual(when)
        apart = np.sqrt(np.maximum(spread**2 - within**2, 0.0) + (within * factor) ** 2)
        return centre + within * middle, np.where(within == spread, spread * factor, apart)


def _middle(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return between which values the middle of each column lies, without its gaps."""
    low, high = np.zeros((2, X.shape[1]))
    for j in range(X.shape[1]):
        present = X[~np.isnan(X[:, j]), j]
        if len(present):
            cut = int((1.0 - USUAL) / 2 * len(present))
            places = [cut, len(present) - 1 - cut]
            low[j], high[j] = np.partition(present, sorted(set(places)))[places]
    return low, high

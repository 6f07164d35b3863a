"""The clock of a stream: which samples come in order, and when a new clock is believed."""

import math

#: Usual steps that a clock may jump ahead before a second sample must confirm it.
FARTHEST = 1000.0
#: Late samples, each later than the one before, after which their clock is taken.
PATIENCE = 5
#: Samples that are taken, and before which of them windows start again.
TAKEN = frozenset({"next", "gap", "new_clock"})
RESTARTS = frozenset({"gap", "new_clock"})
#: What is counted of a stream, and what of it is left out.
COUNTED = ("repeated", "late", "clock", "gap", "new_clock")
LEFT_OUT = ("repeated", "late", "clock")


class Clock:
    """Tell how the time of a sample follows on those before.

    No single time can silence a stream. One that is not finite, or more than a thousand
    usual steps ahead, is not believed; the next one may confirm such a jump. Once the clock
    has been set back, the fifth late sample in order is taken, and with it the new clock.

    Parameters
    ----------
    usual_step : float
        Median step between samples of training; inf if it is not known.
    max_gap : float
        Usual steps over which windows reach.

    Attributes
    ----------
    time : float
        Time of the last sample that was taken; NaN before the first.
    other : float
        Last time that was not believed since then; NaN if there is none.
    n_forward : int
        How often such times have gone forward.
    """

    def __init__(self, usual_step: float, max_gap: float) -> None:
        self.longest_step = max_gap * usual_step
        self.farthest = max(FARTHEST, max_gap) * usual_step
        self.time = self.other = math.nan
        self.n_forward = 0

    def read(self, time: float) -> str:
        """Take the time of the next sample, and tell what is to be done with the sample.

        Parameters
        ----------
        time : float
            Its time.

        Returns
        -------
        str
            "next" in order, "gap" in order after a gap, "new_clock" taken after many late
            ones; or, if it is to be left out, "repeated", "late", or "clock" (not believed).
        """
        if not math.isfinite(time):
            return "clock"
        step = time - self.time
        if step == 0 or time == self.other:
            return "repeated"
        if step < 0 or step > self.farthest:  # never for the first, whose step is NaN
            return self._doubt(time, step < 0)
        self._take(time)
        return "gap" if step > self.longest_step else "next"

    def _doubt(self, time: float, is_late: bool) -> str:
        forward = 0 < time - self.other <= self.farthest
        self.other = time
        self.n_forward += forward
        if is_late and self.n_forward >= PATIENCE - 1:
            self._take(time)
            return "new_clock"
        if forward and not is_late:
            self._take(time)
            return "gap"
        return "late" if is_late else "clock"

    def _take(self, time: float) -> None:
        self.time, self.other, self.n_forward = time, math.nan, 0

"""What a stream detector remembers of a stream: a bounded number of samples and counts."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.streaming.clock import COUNTED, Clock
from ocfuse.streaming.slow import SlowMean

FloatArray: TypeAlias = NDArray[np.float64]


class StreamState:
    """The last samples of a stream, and what has happened in it.

    Parameters
    ----------
    n_remembered, n_watched : int
        Samples that windows need besides the present one, and the channels of these.
    clock : Clock
        The clock, which tells order and gaps.
    slow : SlowMean
        The slow mean of each channel.
    model : str
        Checksum of the view that it belongs to.

    Attributes
    ----------
    samples : ndarray of shape (n_remembered, n_watched)
        The last samples, NaN where there were none.
    age : int
        Samples since the stream began, or began again after a gap.
    score : float
        The last score; NaN before the first.
    silent : int
        Samples since the last score: 0 if the last sample has one.
    features, context : ndarray or None
        What the score of the last sample was made of; None if it has no score.
    drifted : list of str
        Channels whose slow mean has left training, in the order in which they did.
    is_context_told : bool
        That context is far beyond training has been told.
    counts : dict
        How many samples were "seen"; "repeated" or "late", or had a "clock" that was not
        believed, and were left out; came after a "gap", or with a "new_clock", set back;
        had channels "missing"; were "unscored".
    """

    def __init__(
        self, n_remembered: int, n_watched: int, clock: Clock, slow: SlowMean, model: str = ""
    ) -> None:
        self.clock, self.slow, self.model = clock, slow, model
        self.samples: FloatArray = np.full((n_remembered, n_watched), np.nan)
        self.age = 0
        self.score = np.nan
        self.silent = 0
        self.features: FloatArray | None = None
        self.context: FloatArray | None = None
        self.drifted: list[str] = []
        self.is_context_told = False
        self.counts = dict.fromkeys(("seen", *COUNTED, "missing", "unscored"), 0)

    def restart(self) -> None:
        """Forget the windows; the slow mean stays."""
        self.samples = np.full_like(self.samples, np.nan)
        self.age = 0

    def read_clock(self, time: float | None) -> str:
        """Tell what is to be done with the next sample (see `Clock.read`), and count it."""
        verdict = "next" if time is None else self.clock.read(time)
        self.counts["seen"] += 1
        if verdict != "next":
            self.counts[verdict] += 1
        return verdict

    def push(self, rows: FloatArray) -> FloatArray:
        """Append samples; return them behind those remembered."""
        joined = np.vstack([self.samples, rows])
        self.samples = joined[len(rows) :]
        self.age += len(rows)
        return joined

    def note(self, scores: FloatArray, rows: FloatArray, context: FloatArray | None = None) -> None:
        """Remember the last score, what it was made of, and how long ago it was."""
        known = np.flatnonzero(~np.isnan(scores))
        if len(known):
            self.score, self.silent = float(scores[known[-1]]), 0
        self.silent += len(scores) - (int(known[-1]) + 1 if len(known) else 0)
        if len(scores):
            is_scored = not np.isnan(scores[-1])
            self.features = rows[-1:].copy() if is_scored else None
            self.context = context[-1:] if is_scored and context is not None else None

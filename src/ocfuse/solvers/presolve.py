"""When `solver="auto"` lets Frank-Wolfe go on, and when it hands over.

One Frank-Wolfe iteration costs a fraction of one interior-point iteration. If
it needs fewer than `patience` of them it is the faster method; the first one
alone finds the closed form, where every hinge is active at the maximiser of
``A' c``, and P* = 0 where that point separates the data.

The constants were fitted to measurements of the compiled kernel.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocfuse.solvers.ball import FloatArray

#: From this many samples on the objective is smooth in effect, and the gap falls
#: by a factor per iteration, not by a power of their number.
MANY_SAMPLES = 256
#: If the second iteration leaves more than this share of the first gap, no smooth
#: objective has shown itself.
STANDSTILL = 0.8
#: A large p says less against Frank-Wolfe then.
SMOOTH_PRIOR = 16.0


def patience(k: int, d: int, tol: float) -> float:
    """Return the Frank-Wolfe iterations that cost as much as the interior point."""
    frank_wolfe = 2.0 * d + 25.0
    interior_point = 0.5 * d**2 + 4.0 * d + 40.0
    growth = 1.0 + 0.2 * max(0.0, np.log10(k / 50.0)) ** 1.5
    n_iter = (3.0 - np.log10(min(tol, 0.1))) * growth
    return float(n_iter * interior_point / frank_wolfe)


@dataclass
class Forecast:
    """Predict from the gaps seen so far how many iterations a problem needs.

    The gap of a smooth objective shrinks by the factor that it showed in the
    second half of the iterations. That of a hinge over few samples shrinks like
    1/t^2, faster at first if p is near 1, and much later if p is large; what is
    known of p beforehand counts less with every iteration seen.
    """

    patience: float
    is_smooth: bool
    reference: FloatArray  # the gap at iteration `begin`
    begin: int = 1

    def is_hopeless(
        self, n_iter: int, gap: FloatArray, allowed: FloatArray, p: FloatArray
    ) -> NDArray[np.bool_]:
        """Tell which problems will need too many iterations.

        Iterations already made are spent: what counts is what is left, as long as
        the whole does not become much too long.
        """
        if n_iter == 1:
            self.reference = gap
        with np.errstate(all="ignore"):
            needed = n_iter * np.sqrt(gap / allowed)
            if self.is_smooth and n_iter > 1:
                rate = np.log(self.reference / gap) / (n_iter - self.begin)
                needed = np.fmin(needed, n_iter + np.log(gap / allowed) / rate)
            prior = np.minimum(p - 1.0, SMOOTH_PRIOR) if self.is_smooth else p - 1.0
            needed = needed * (1.0 + prior / n_iter**2)
        stands = gap > STANDSTILL * self.reference
        if n_iter == 2 * self.begin:
            self.reference, self.begin = gap, n_iter
        if self.is_smooth and n_iter < 3:
            return np.asarray(stands & (n_iter == 2))
        limit = self.patience * (1.0 + 4.0 / n_iter**2)
        return np.asarray((needed - n_iter > limit) | (needed > 1.5 * limit))

    def take(self, rows: NDArray[np.intp]) -> "Forecast":
        """Return the forecast of the chosen problems."""
        return Forecast(self.patience, self.is_smooth, self.reference[rows], self.begin)

"""Methods and their settings, and when `solver="auto"` changes from one to the other.

One Frank-Wolfe iteration costs a fraction of one interior-point iteration. If
it needs fewer than `patience` of them it is the faster method; the first one
alone finds the closed form, where every hinge is active at the maximiser of
``A' c``, and P* = 0 where that point separates the data.

The constants were fitted to measurements of the compiled kernel.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError

#: From this many samples on the objective is smooth in effect, and the gap falls
#: by a factor per iteration, not by a power of their number.
MANY_SAMPLES = 256


class Method(IntEnum):
    """What solves a problem; `AUTO` in an answer means the closed form."""

    AUTO = 0
    INTERIOR_POINT = 1
    FRANK_WOLFE = 2
    FRANK_WOLFE_PAPER = 3

    @classmethod
    def named(cls, name: str) -> "Method":
        """Return the method that a user asks for."""
        for method in cls:
            if name == method.public_name:
                return method
        known = ", ".join(f'"{method.public_name}"' for method in cls)
        raise InvalidInputError(f"solver must be one of {known}. Got {name!r}.")

    @property
    def public_name(self) -> str:
        """Return the name as users write it."""
        return self.name.lower().replace("_", "-")

    @property
    def solver(self) -> str:
        """Return what a Solution calls the method that produced it."""
        return "closed-form" if self is Method.AUTO else self.public_name


@dataclass(frozen=True)
class SolverSettings:
    """How to solve; `max_iter` bounds whichever method runs."""

    method: Method
    tol: float
    max_iter: int | None = None

    @classmethod
    def of(cls, solver: str, tol: float, max_iter: int | None) -> "SolverSettings":
        """Return the settings of a call."""
        return cls(Method.named(solver), tol, max_iter)

    @property
    def interior_point_limit(self) -> int:
        """Iterations allowed to the interior point."""
        return 200 if self.max_iter is None else self.max_iter

    @property
    def frank_wolfe_limit(self) -> int:
        """Iterations allowed to Frank-Wolfe."""
        return 10_000 if self.max_iter is None else self.max_iter

    @property
    def may_retry(self) -> bool:
        """Whether a problem that the kernel did not solve is worth another try."""
        by_interior_point = self.method in (Method.AUTO, Method.INTERIOR_POINT)
        return by_interior_point and self.max_iter is None


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
        """Return which problems will need too many iterations.

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
            # A large p says less against Frank-Wolfe if the objective is smooth.
            prior = np.minimum(p - 1.0, 16.0) if self.is_smooth else p - 1.0
            needed = needed * (1.0 + prior / n_iter**2)
        # If the second iteration leaves so much of the first gap, it is not smooth.
        stands = gap > 0.8 * self.reference
        if n_iter == 2 * self.begin:
            self.reference, self.begin = gap, n_iter
        if self.is_smooth and n_iter < 3:
            return np.asarray(stands & (n_iter == 2))
        limit = self.patience * (1.0 + 4.0 / n_iter**2)
        return np.asarray((needed - n_iter > limit) | (needed > 1.5 * limit))

    def take(self, rows: NDArray[np.intp]) -> "Forecast":
        """Return the forecast of the chosen problems."""
        return Forecast(self.patience, self.is_smooth, self.reference[rows], self.begin)

"""When `solver="auto"` lets Frank-Wolfe go on, and when it hands over.

One Frank-Wolfe iteration costs a fraction of one interior-point iteration. If
it needs fewer than `patience` of them it is the faster method; the first one
alone finds the closed form, where every hinge is active at the maximiser of
``A' c``, and P* = 0 where that point separates the data.
"""

import numpy as np
from numpy.typing import NDArray

from ocfuse.solvers.ball import FloatArray


def patience(d: int, tol: float) -> float:
    """Return the Frank-Wolfe iterations that cost as much as the interior point.

    The costs per sample and iteration, and the iterations that the interior
    point needs, were fitted to measurements of the compiled kernel.
    """
    frank_wolfe = 2.0 * d + 25.0
    interior_point = 0.5 * d**2 + 4.0 * d + 40.0
    n_iter = 3.0 - np.log10(min(tol, 0.1))
    return float(n_iter * interior_point / frank_wolfe)


def is_hopeless(
    n_iter: int, gap: FloatArray, allowed: FloatArray, p: FloatArray, patience: float
) -> NDArray[np.bool_]:
    """Tell which problems will need more than `patience` Frank-Wolfe iterations.

    The gap shrinks like 1/t^2 while the method does well, faster at first if p
    is near 1, and much later if p is large; what is known of p beforehand counts
    less with every iteration seen. Iterations already made are spent: what counts
    is what is left, as long as the whole does not become much too long.
    """
    with np.errstate(all="ignore"):
        forecast = n_iter * np.sqrt(gap / allowed) * (1.0 + (p - 1.0) / n_iter**2)
    limit = patience * (1.0 + 4.0 / n_iter**2)
    return np.asarray((forecast - n_iter > limit) | (forecast > 1.5 * limit))

"""When `solver="auto"` lets Frank-Wolfe go on, and when it hands over.

One Frank-Wolfe iteration costs a fraction of one interior-point iteration. If
it needs fewer than `patience` of them it is the faster method; the first one
alone finds the closed form, where every hinge is active at the maximiser of
``A' c``, and P* = 0 where that point separates the data.
"""

#: Iterations that the interior point typically needs.
INTERIOR_POINT_ITERATIONS = 7.5


def patience(d: int) -> float:
    """Return the Frank-Wolfe iterations that cost as much as the interior point.

    The costs per sample were fitted to measurements of the compiled kernel.
    """
    frank_wolfe = 2.0 * d + 25.0
    interior_point = 0.5 * d**2 + 4.0 * d + 40.0
    return INTERIOR_POINT_ITERATIONS * interior_point / frank_wolfe

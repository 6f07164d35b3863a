"""The problems as the solvers see them; everything a user gives is checked here."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.solvers.ball import LpBall
from ocfuse.validation import require_finite


@dataclass(frozen=True)
class Problem:
    """Many weighted hinge problems that share one table of margins.

    Problem l is, with ``i`` running over the entries of row l of `index`::

        minimise  sum_i c_li max(0, 1 - a_i.w)   subject to  ||w||_p_l <= 1

    A single global problem is the case m = 1, k = n.
    """

    A: FloatArray  # (n, d), margins y_i s_i
    index: NDArray[np.int64]  # (m, k), the samples of each problem, as rows of A
    c: FloatArray  # (m, k), sample weights, not negative
    p: FloatArray  # (m,), from 1 to inf
    nonneg: bool = False  # ask for w >= 0 too
    total: FloatArray = field(init=False)  # (m,), sums of the sample weights

    def __post_init__(self) -> None:
        """Derive the totals and refuse weights whose sum overflows."""
        with np.errstate(over="ignore"):
            total = self.c.sum(axis=1)
        require_finite(total, "the sum of sample_weight", "Divide the weights by their largest.")
        object.__setattr__(self, "total", total)

    @classmethod
    def from_scores(
        cls,
        S: ArrayLike,
        y: ArrayLike,
        p: ArrayLike,
        sample_weight: ArrayLike | None,
        nonneg: bool,
    ) -> "Problem":
        """Check the input of one global problem and build it."""
        A = _margins(S, y)
        n = A.shape[0]
        c = np.ones(n) if sample_weight is None else _real(sample_weight, "sample_weight")
        _require_shape(c, (n,), "sample_weight", "one weight per row of S")
        _require_weights(c)
        if np.ndim(p) != 0:
            raise InvalidInputError(
                f"p must be one number. Got an array of shape {np.shape(p)}. "
                "Use solve_batch for one p per problem."
            )
        norm = _norms(p, 1)
        return cls(A, np.arange(n, dtype=np.int64)[np.newaxis], c[np.newaxis], norm, bool(nonneg))

    @classmethod
    def from_neighbours(
        cls,
        S: ArrayLike,
        y: ArrayLike,
        index: ArrayLike,
        sample_weight: ArrayLike | None,
        p: ArrayLike,
        nonneg: bool,
    ) -> "Problem":
        """Check the input of many local problems and build them."""
        A = _margins(S, y)
        rows = _rows(index, A.shape[0])
        if sample_weight is None:
            c = np.ones(rows.shape)
        else:
            c = _real(sample_weight, "sample_weight")
        _require_shape(c, rows.shape, "sample_weight", "one weight per entry of index")
        _require_weights(c)
        return cls(A, rows, c, _norms(p, rows.shape[0]), bool(nonneg))

    @property
    def n_problems(self) -> int:
        """Number of problems m."""
        return len(self.index)

    @property
    def n_samples(self) -> int:
        """Samples per problem k."""
        return int(self.index.shape[1])

    @property
    def n_columns(self) -> int:
        """Columns d, one per fused detector."""
        return int(self.A.shape[1])

    def take(self, rows: NDArray[np.intp]) -> "Problem":
        """Return the chosen problems, sharing the margins."""
        return Problem(self.A, self.index[rows], self.c[rows], self.p[rows], self.nonneg)

    def ball(self) -> LpBall:
        """Return the constraint of all problems together."""
        return LpBall(self.p, self.nonneg)

    def gather(self) -> FloatArray:
        """Return the margins of every problem, shape (m, k, d); no copy if m = 1."""
        if self.n_problems == 1 and np.array_equal(self.index[0], np.arange(len(self.A))):
            return self.A[np.newaxis]
        return self.A[self.index]


def check_tol(tol: Any) -> float:
    """Return a tolerance that a certificate in double precision can reach."""
    is_number = isinstance(tol, int | float | np.integer | np.floating)
    number = float(tol) if is_number else np.nan
    if not (1e-12 <= number < np.inf):  # a smaller gap drowns in rounding
        raise InvalidInputError(
            f"tol must be a number of at least 1e-12, such as 1e-4. Got tol={tol!r}."
        )
    return number


def check_max_iter(max_iter: int | None) -> int | None:
    """Return an iteration limit, or None for the solver's own."""
    if max_iter is None:
        return None
    if not isinstance(max_iter, int | np.integer) or isinstance(max_iter, bool) or max_iter < 1:
        raise InvalidInputError(
            f"max_iter must be a positive integer or None. Got max_iter={max_iter!r}."
        )
    return min(int(max_iter), 2**31 - 1)  # what the compiled kernel can count


def _margins(S: ArrayLike, y: ArrayLike) -> FloatArray:
    scores = _real(S, "S")
    if scores.ndim != 2 or 0 in scores.shape:
        raise InvalidInputError(
            "S must be a table of scores of shape (n_samples, n_detectors), both at least 1. "
            f"Got shape {scores.shape}. Reshape one detector's scores with S.reshape(-1, 1)."
        )
    require_finite(scores, "S", "Remove or impute the rows that are not finite.")
    labels = _real(y, "y")
    _require_shape(labels, (scores.shape[0],), "y", "one label per row of S")
    if not np.all(np.abs(labels) == 1.0):
        wrong = np.unique(labels[np.abs(labels) != 1.0])
        shown = ", ".join(f"{value:g}" for value in wrong[:5])
        raise InvalidInputError(
            f"y must hold +1 (normal) and -1 (anomaly) only. Got {shown}. "
            "Labels 0/1 with 1 = anomaly become y = 1 - 2 * labels."
        )
    return np.ascontiguousarray(labels[:, np.newaxis] * scores)


def _rows(index: ArrayLike, n: int) -> NDArray[np.int64]:
    rows = np.asarray(index)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInputError(
            "index must have shape (n_problems, n_neighbours), with at least one neighbour. "
            f"Got shape {rows.shape}."
        )
    if rows.dtype.kind not in "iu":
        raise InvalidTypeError(
            f"index must hold integers, the rows of S. Got dtype {rows.dtype}. "
            "Use index.astype(int) if they are whole numbers."
        )
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        raise InvalidInputError(
            f"index must lie in [0, {n - 1}], the rows of S. "
            f"Got values from {rows.min()} to {rows.max()}."
        )
    return np.ascontiguousarray(rows, dtype=np.int64)


def _norms(p: ArrayLike, m: int) -> FloatArray:
    norms = _real(p, "p")
    if norms.ndim not in (0, 1) or (norms.ndim == 1 and norms.shape != (m,)):
        raise InvalidInputError(
            f"p must be one number or have shape ({m},), one per problem. Got shape {norms.shape}."
        )
    if np.any(np.isnan(norms)) or np.any(norms < 1.0):
        raise InvalidInputError(
            f"p must be in [1, inf]. Got p={_first_wrong(norms, ~(norms >= 1.0))}. "
            "Use p near 1 for sparse weights, 2 for a round ball, inf for equal trust."
        )
    return np.ascontiguousarray(np.broadcast_to(norms, (m,)))


def _real(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cSUVmM":
            raise InvalidTypeError(f"{name} must hold real numbers. Got dtype {array.dtype}.")
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidTypeError(f"{name} must hold real numbers. {error}.") from None


def _require_shape(array: FloatArray, shape: tuple[int, ...], name: str, meaning: str) -> None:
    if array.shape != shape:
        raise InvalidInputError(
            f"{name} must have shape {shape}, {meaning}. Got shape {array.shape}."
        )


def _require_weights(c: FloatArray) -> None:
    require_finite(c, "sample_weight", "Use 0 to leave a sample out.")
    if np.any(c < 0):
        raise InvalidInputError(
            f"sample_weight must not be negative. Got {_first_wrong(c, c < 0)}. "
            "Use 0 to leave a sample out, and y = -1 for an anomaly."
        )


def _first_wrong(array: FloatArray, wrong: NDArray[np.bool_]) -> float:
    return float(array[wrong].flat[0]) if array.ndim else float(array)

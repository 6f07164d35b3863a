"""Cascade: members in turn, cheap ones first, until a row is decided."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.rules import logistic_scale, weighted_quantile
from ocfuse.validation import check_number


class CascadeFusion(BaseFusion):
    """Cascade: members score a row in turn until one of two thresholds decides it.

    After stage j the running score is the mean of the first j members. Its tail probability is the
    share of normal rows with a lower running score at this stage. If the log-odds of this
    probability are at or below the lower threshold, the row is an anomaly; at or above the upper
    one it is normal; else the next member scores it. The last stage decides all other rows. The
    fused score is the log-odds at the deciding stage. So scores of different stages are on one
    scale: at every stage a normal row is below the log-odds of t with probability t. Beyond the
    normal scores of `fit` the log-odds are extrapolated linearly.

    The fused score may decrease when the score of a member increases: a higher first score may end
    the cascade before a later member would have raised the score even more.

    Parameters
    ----------
    order : sequence of int, optional
        Positions of the members in the order of the stages, cheap ones first; None is the order of
        the columns.
    low : float, default=0.01
        Share of the normal rows that a stage may call anomalies.
    high : float, default=0.5
        Share of the normal rows below the upper threshold of a stage. If there are anomalies in
        `fit`, the threshold is raised until at most a share `low` of the anomalies is above it.

    Attributes
    ----------
    order_ : ndarray of shape (d,)
        Positions of the members in the order of the stages.
    lower_, upper_ : ndarray of shape (d,)
        Thresholds of each stage, in log-odds.
    stage_counts_ : ndarray of shape (d,)
        Number of training rows that each stage decided.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.fusion import CascadeFusion
    >>> Z = np.random.default_rng(0).normal(size=(200, 3))
    >>> cascade = CascadeFusion().fit(Z)
    >>> cascade.stage([[3.0, 0.0, 0.0], [-0.5, 4.0, 0.0], [-0.5, 0.1, 0.1]])
    array([0, 1, 2])
    """

    def __init__(
        self, order: Sequence[int] | None = None, low: float = 0.01, high: float = 0.5
    ) -> None:
        self.order = order
        self.low = low
        self.high = high

    def stage(self, Z: ArrayLike) -> NDArray[np.intp]:
        """Return the stage, counted from 0, at which each row is decided.

        Parameters
        ----------
        Z : array-like of shape (q, d)
            Normalised scores of the members.

        Returns
        -------
        ndarray of shape (q,)
            Stages; stage j only needs the members ``order_[:j + 1]``.
        """
        scores, _ = self._query(Z, None)
        return self._stages(self._odds(scores))

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        d = Z.shape[1]
        low = check_number(self.low, "low", 0.0, 1.0, "0.01 rejects one normal in a hundred.")
        high = check_number(self.high, "high", 0.0, 1.0, "0.5 accepts every other normal.")
        if not low < high:
            raise InvalidInputError(f"low must be below high. Got low={low:g}, high={high:g}.")
        self.order_ = self._checked_order(d)
        running = self._running(Z)
        normal = y > 0
        knots = [tail_knots(running[normal, j], c[normal]) for j in range(d)]
        self.knots_ = [at for at, _ in knots]
        self.knot_odds_ = [odds for _, odds in knots]
        self.scale_ = logistic_scale(running[normal], c[normal])
        odds = self._odds(Z)
        self.lower_ = np.full(d, logit(low))
        self.upper_ = np.full(d, logit(high))
        if not normal.all():
            passed = weighted_quantile(odds[~normal], c[~normal], 1.0 - low)
            self.upper_ = np.maximum(self.upper_, np.nextafter(passed, np.inf))
        self.stage_counts_ = np.bincount(self._stages(odds), minlength=d)

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        odds = self._odds(Z)
        return odds[np.arange(len(Z)), self._stages(odds)]

    def _stages(self, odds: FloatArray) -> NDArray[np.intp]:
        clear = (odds <= self.lower_) | (odds >= self.upper_)
        clear[:, -1] = True
        return np.asarray(clear.argmax(axis=1))

    def _odds(self, Z: FloatArray) -> FloatArray:
        running = self._running(Z)
        return np.column_stack(
            [
                tail_log_odds(running[:, j], self.knots_[j], self.knot_odds_[j], self.scale_[j])
                for j in range(Z.shape[1])
            ]
        )

    def _running(self, Z: FloatArray) -> FloatArray:
        return np.asarray(np.cumsum(Z[:, self.order_], axis=1) / np.arange(1.0, Z.shape[1] + 1))

    def _checked_order(self, d: int) -> NDArray[np.intp]:
        if self.order is None:
            return np.arange(d)
        order = np.asarray(self.order)
        if order.shape != (d,) or not np.array_equal(np.sort(order), np.arange(d)):
            raise InvalidInputError(
                f"order must name each of the members 0 to {d - 1} once. Got {self.order!r}."
            )
        return order.astype(np.intp)


def tail_knots(r: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots of the map from a score to the log-odds of its tail probability.

    That is the share of the normals, with scores r and weights c, below the score; those at
    the score count half.
    """
    at, group = np.unique(r, return_inverse=True)
    weight = np.bincount(group.ravel(), weights=c, minlength=len(at))
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(at) > 257:  # more knots change nothing but the size of the file
        chosen = np.linspace(0, len(at) - 1, 257).round().astype(int)
        at, share = at[chosen], share[chosen]
    return at, np.log(share / (1.0 - share))


def tail_log_odds(r: FloatArray, at: FloatArray, odds: FloatArray, scale: float) -> FloatArray:
    """Interpolate between the knots; beyond them go on as the logistic law does."""
    inside = np.interp(r, at, odds)
    return np.asarray(inside + np.minimum(r - at[0], 0) / scale + np.maximum(r - at[-1], 0) / scale)

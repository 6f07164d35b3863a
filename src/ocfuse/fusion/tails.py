"""Quantiles, scales and tail probabilities of weighted normal scores."""

import numpy as np

from ocfuse.fusion.inputs import FloatArray

#: A spread below this share of the values is rounding, not information.
_ROUNDING = 1e-12
#: Knots of a tail curve; more of them change nothing but the file size.
_MOST_KNOTS = 257


def logistic_scale(Z: FloatArray, c: FloatArray) -> FloatArray:
    """Return the scale of the logistic law with the spread of each column, or 1."""
    mean = np.average(Z, axis=0, weights=c)
    spread = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=c))
    constant = spread <= _ROUNDING * np.abs(Z).max(axis=0)
    return np.asarray(np.where(constant, 1.0, spread * np.sqrt(3.0) / np.pi))


def weighted_quantile(Z: FloatArray, c: FloatArray, rate: float) -> FloatArray:
    """Return, per column, the largest value with at most `rate` of the weight below."""
    order = Z.argsort(axis=0, kind="stable")
    below = np.cumsum(c[order], axis=0) - c[order]
    # A share that equals the rate but for rounding is within it.
    within = below <= (rate + _ROUNDING) * c.sum()
    last = within.sum(axis=0) - 1
    return np.asarray(np.take_along_axis(Z, order, axis=0)[last, np.arange(Z.shape[1])])


def tail_knots(r: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots of the map from a score to the log-odds of its tail probability.

    Parameters
    ----------
    r : ndarray of shape (n,)
        Scores of the normals.
    c : ndarray of shape (n,)
        Their weights, positive.

    Returns
    -------
    at : ndarray of shape (k,)
        Increasing scores.
    odds : ndarray of shape (k,)
        Log-odds of the share of the normals below, those at the score counted half.
    """
    at, group = np.unique(r, return_inverse=True)
    weight = np.bincount(group.ravel(), weights=c, minlength=len(at))
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(at) > _MOST_KNOTS:
        chosen = np.linspace(0, len(at) - 1, _MOST_KNOTS).round().astype(int)
        at, share = at[chosen], share[chosen]
    return at, np.log(share / (1.0 - share))


def tail_log_odds(r: FloatArray, at: FloatArray, odds: FloatArray, scale: float) -> FloatArray:
    """Interpolate between the knots; beyond them go on as the logistic law does."""
    inside = np.interp(r, at, odds)
    return np.asarray(inside + np.minimum(r - at[0], 0) / scale + np.maximum(r - at[-1], 0) / scale)

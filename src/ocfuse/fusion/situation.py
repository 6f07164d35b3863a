"""Whether context counts: only if it helps to foretell what members say of normals."""

import numpy as np

from ocfuse.fusion.inputs import FloatArray, Kinship
from ocfuse.fusion.locality import representative_rows
from ocfuse.fusion.surroundings import LOCAL_SCALE_ROWS, LocalScale

#: Standard errors by which context must be better than shuffled context. Rows share their
#: neighbours, so that chance alone reaches 2 or 3.
CLEAR = 4.0


def learned_scale(
    X: FloatArray,
    Z: FloatArray,
    n_neighbors: int,
    shift_prior: float,
    scale_prior: float,
    n_context: int,
    groups: Kinship | None,
) -> LocalScale:
    """Return the local scale with context, if that tells something, or without.

    Every normal is foretold by its neighbours, of other groups if there are groups, and no
    label is used. The context must do that clearly better than the same context shuffled,
    which makes neighbourhoods as wide but tells nothing.

    Parameters
    ----------
    X, Z, n_neighbors, shift_prior, scale_prior, n_context, groups : object
        As `LocalScale` has them.

    Returns
    -------
    LocalScale
        With weight 1 or 0 of the context.
    """
    rows = representative_rows(len(X), LOCAL_SCALE_ROWS)
    X, Z = X[rows], Z[rows]
    kin = None if groups is None else groups.take(rows)
    priors = n_neighbors, shift_prior, scale_prior, n_context
    aware = LocalScale(X, Z, *priors, 1.0, kin)
    if aware.k > 1:
        shuffled = X.copy()
        shuffled[:, -n_context:] = np.random.RandomState(0).permutation(X[:, -n_context:])
        chance = LocalScale(shuffled, Z, *priors, 1.0, kin)
        if _is_clear(_by_group(aware, kin) - _by_group(chance, kin)):
            return aware
    return LocalScale(X, Z, *priors, 0.0, kin)


def _by_group(scale: LocalScale, groups: Kinship | None) -> FloatArray:
    """Return how well the scores of each group are foretold; without groups, of each row."""
    rows, fit = scale.foretold(groups)
    if groups is None:
        return fit
    _, group = np.unique(groups.label[rows], return_inverse=True)
    return np.bincount(group, weights=fit) / np.bincount(group)


def _is_clear(gain: FloatArray) -> bool:
    """Tell whether a gain is no chance."""
    return len(gain) > 1 and float(gain.mean()) > CLEAR * gain.std(ddof=1) / np.sqrt(len(gain))

"""Scored rows that tests share."""

import numpy as np

from ocfuse.fusion.crossfit import Ballot, ScoredRows


def scored_rows(
    n: int = 120, d: int = 4, n_pseudo: int = 80, n_real: int = 0, seed: int = 0
) -> ScoredRows:
    """Members that find anomalies better the later they come, in four folds."""
    rng = np.random.default_rng(seed)
    m = n_pseudo + n_real
    X = np.vstack([rng.normal(size=(n, 2)), rng.normal(size=(m, 2))])
    shift = np.linspace(0.0, 3.0, d)
    truth = np.r_[np.zeros(n), np.ones(m)][:, np.newaxis]
    S = rng.normal(size=(n + m, 1)) + rng.normal(size=(n + m, d)) - shift * truth
    y = np.repeat([1, -1], [n, m])
    fold = np.concatenate([np.arange(n) % 4, np.arange(n_real) % 4, np.full(n_pseudo, -1)])
    kind = np.where(fold < 0, 0, -1)
    seen = np.full(S.shape, np.nan)
    seen[:n] = S[:n] + rng.uniform(size=(n, d))
    return ScoredRows(S, y, X, fold, kind, seen, Ballot({"gauss": 1.0}, 0.5))

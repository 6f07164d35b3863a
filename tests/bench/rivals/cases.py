"""Rivals and tables that the tests of this folder share."""

import numpy as np

from ocfuse.lab.rivals import BoostedSVM, DynamicEnsemble, FilteredEnsemble

DETECTORS = {
    "boosted": BoostedSVM(random_state=0),
    "exponential": BoostedSVM(loss="exponential", n_rounds=5, random_state=0),
    "heterogeneous": DynamicEnsemble(random_state=0),
    "homogeneous": DynamicEnsemble("homogeneous", random_state=0),
    "filtered": FilteredEnsemble(random_state=0),
}


def islands(seed, n=150, n_anomalies=60):
    """Return normals on three islands to learn from, and rows to tell apart with labels."""
    rng = np.random.default_rng(seed)
    centres = np.array([[-2.0, -1.2], [2.0, -1.2], [0.0, 2.3]])
    normals = centres[rng.integers(0, 3, 2 * n)] + 0.3 * rng.normal(size=(2 * n, 2))
    sea = rng.uniform(-4, 4, (20 * n_anomalies, 2))
    off_shore = np.linalg.norm(sea[:, None] - centres, axis=2).min(axis=1) > 1.2
    rows = np.vstack([normals[n:], sea[off_shore][:n_anomalies]])
    return normals[:n], rows, np.arange(len(rows)) < n

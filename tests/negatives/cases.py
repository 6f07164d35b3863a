"""Tables of normals that generators are tried on."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3))
#: One row, one column, fewer rows than columns, constant and discrete columns.
TABLES = st.tuples(st.integers(1, 8), st.integers(1, 12)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=VALUES)
)
COUNTS = st.integers(1, 25)


def normals(n=60, m=4, seed=0):
    """Return correlated normal rows."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)) @ rng.standard_normal((m, m))


def one_hot_table(seed=0):
    """Return rows with two categories among numbers, and the source of the columns.

    The second category has a level that never occurs, and rows without any.
    """
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30)
    first = np.eye(3)[rng.integers(0, 3, n)]
    second = np.eye(4)[rng.integers(0, 3, n)] * rng.integers(0, 2, (n, 1))
    X = np.column_stack([rng.standard_normal((n, 2)), first, np.ones(n), second])
    return X, np.array([0, 3, 2, 2, 2, 4, 1, 1, 1, 1])

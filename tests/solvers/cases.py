"""Instances that several solver tests share."""

from typing import NamedTuple

import numpy as np
import pytest

from ocfuse.solvers import native

GRID = [32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 10.0, 100.0]
NORMS = [1.0, 1.0001, *GRID, 1e4, np.inf]


without_kernel = pytest.mark.skipif(
    not native.is_available(), reason="the C++ kernel was not built"
)
BACKENDS = ["numpy", pytest.param("native", marks=without_kernel)]


class Case(NamedTuple):
    """Scores, labels, neighbours and weights of many local problems."""

    S: np.ndarray
    y: np.ndarray
    index: np.ndarray
    c: np.ndarray


def make_case(seed, d=6, k=25, m=40, n=300, pure=False):
    rng = np.random.default_rng(seed)
    y = np.ones(n) if pure else np.where(rng.random(n) < 0.3, -1.0, 1.0)
    S = rng.normal(size=(n, d)) * rng.uniform(0.3, 1.0, d) + np.where(y > 0, 0.8, 0.0)[:, None]
    index = rng.integers(0, n, size=(m, k))
    c = rng.uniform(0.0, 1.0, size=(m, k)) * (rng.random((m, k)) < 0.8)
    c[:, 0] += 0.1
    return Case(S, y, index, c)

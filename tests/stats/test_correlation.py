import numpy as np
import pytest
from scipy.stats import spearmanr

from ocfuse.stats.ranks import rank_correlation


def test_it_is_spearmans():
    S = np.random.default_rng(0).normal(size=(40, 3)).round(1)  # with ties
    assert rank_correlation(S) == pytest.approx(spearmanr(S).statistic)


def test_constant_column_agrees_with_nobody():
    R = rank_correlation([[1.0, 5.0], [2.0, 5.0]])
    assert R[0, 0] == 1.0
    assert np.isnan(R[1]).all()
    assert np.isnan(R[:, 1]).all()


def test_one_column():
    assert rank_correlation([[1.0], [2.0]]).tolist() == [[1.0]]

"""The fitness that needs no anomalies."""

import numpy as np
import pytest

from ocfuse.fusion import LpFusion
from ocfuse.fusion.crossfit import ScoredRows, ballot_for
from ocfuse.lab.rivals.swarm import TIGHTNESS, Fitness
from ocfuse.tuning import RPAU
from ocfuse.tuning.splits import fold_splits


class Given(LpFusion):
    """A fusion with weights that are given."""

    def _fit(self, Z, y, X, c):
        self.w_ = np.array([0.2, 0.5, 0.3])


def scored(S):
    n = len(S)
    return ScoredRows(
        S=S,
        y=np.ones(n, dtype=int),
        X=np.zeros((n, 1)),
        fold=np.arange(n) % 4,
        kind=np.full(n, -1),
        seen=np.full(S.shape, np.nan),
        ballot=ballot_for([], n, 1),
    )


@pytest.mark.parametrize("n", [30, 41])
def test_it_is_the_rpau_of_our_tuning_with_its_tie_break(n):
    S = np.random.default_rng(0).standard_t([2, 5, 30], size=(n, 3))
    rpau = RPAU("power", rho=5.0)
    parts = [split.scaled(_Same()).judged(Given()) for split in fold_splits(scored(S))]
    value, tightness = rpau.judge(parts)
    fitness = Fitness(S, np.ones(n), 5.0)
    expected = -value - TIGHTNESS * tightness
    assert fitness(np.array([[0.2, 0.5, 0.3]]))[0] == pytest.approx(expected, rel=1e-9)


def test_long_tails_are_unfit():
    S = np.random.default_rng(1).standard_t([1.5, 30], size=(400, 2))
    tailed, tame = Fitness(S, np.ones(400), 5.0)(np.eye(2))
    assert tailed > 2 * tame


def test_rows_count_by_their_weight():
    S = np.random.default_rng(2).normal(size=(40, 2))
    W = np.array([[0.4, 0.6]])
    equal = Fitness(S, np.ones(40), 5.0)(W)
    np.testing.assert_allclose(Fitness(S, np.full(40, 7.0), 5.0)(W), equal)
    assert Fitness(S, np.arange(1.0, 41.0), 5.0)(W)[0] != pytest.approx(equal[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    assert np.isfinite(Fitness(np.zeros((n, 2)), np.ones(n), 5.0)(np.eye(2))).all()


class _Same:
    """A normaliser that changes nothing."""

    def fit(self, S):
        return self

    def transform(self, S):
        return S

    def get_params(self, deep=True):
        return {}

"""Dynamic selection."""

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from ocfuse.detectors import KNN, SVDD
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.rivals import DynamicEnsemble
from ocfuse.lab.rivals.dynamic import not_worse
from ocfuse.stats import critical_difference
from tests.bench.rivals.cases import islands


def test_pseudo_outliers_are_rejected_by_the_members():
    X, _, _ = islands(0)
    model = DynamicEnsemble(random_state=0).fit(X)
    outliers = model.rows_[len(X) :]
    assert len(outliers) == len(X)
    P = model.tails_.transform(model.pool_.score_samples(outliers))
    assert P.mean() < 0.05
    np.testing.assert_allclose(model.right_[len(X) :], 1.0 - P, atol=1e-9)


def test_neighbours_are_those_of_the_adaptive_distance():
    X, rows, _ = islands(1, n=60)
    model = DynamicEnsemble("homogeneous", n_neighbors=7, random_state=0).fit(X)
    nearest, closeness = model._neighbours(rows)
    kind = np.arange(len(model.rows_)) < len(X)
    for x, found, close in zip(rows[:10], nearest, closeness, strict=False):
        radius = [
            np.linalg.norm(model.rows_[kind != kind[i]] - v, axis=1).min()
            for i, v in enumerate(model.rows_)
        ]
        distance = np.linalg.norm(model.rows_ - x, axis=1) / radius
        assert found.tolist() == np.argsort(distance)[:7].tolist()
        assert (np.diff(close) <= 0).all()
        assert close[-1] == pytest.approx(np.exp(-1.0))


@pytest.mark.parametrize("seed", range(10))
def test_selection_follows_the_two_tests(seed):
    rng = np.random.default_rng(seed)
    right = rng.uniform(size=(30, 4)) + np.array([0.5, 0.4, 0.0, 0.0]) * rng.integers(0, 2)
    ranks = (-right).argsort(axis=1).argsort(axis=1) + 1.0
    gap = critical_difference(4, 30, 0.05)
    p_value = friedmanchisquare(*right.T).pvalue
    mean = ranks.mean(axis=0)
    expected = mean - mean.min() <= gap if p_value < 0.05 else np.ones(4, dtype=bool)
    assert not_worse(ranks[None], 0.05, gap)[0].tolist() == expected.tolist()


def test_a_member_that_is_right_everywhere_is_nominated():
    ranks = np.tile([1.0, 2.5, 2.5], (1, 25, 1))
    assert not_worse(ranks, 0.05, critical_difference(3, 25)).tolist() == [[True, False, False]]


def test_a_score_lies_between_those_of_the_members():
    X, rows, _ = islands(2)
    model = DynamicEnsemble(random_state=0).fit(X)
    P = model.tails_.transform(model.pool_.score_samples(rows))
    scores = model.score_samples(rows)
    assert (scores >= P.min(axis=1) - 1e-12).all()
    assert (scores <= P.max(axis=1) + 1e-12).all()


def test_one_member_is_its_own_probability():
    X, rows, _ = islands(3)
    model = DynamicEnsemble([KNN()], random_state=0).fit(X)
    P = model.tails_.transform(model.pool_.score_samples(rows))
    np.testing.assert_allclose(model.score_samples(rows), P[:, 0])


@pytest.mark.slow
def test_the_two_ensembles():
    X = islands(4)[0]
    homogeneous = DynamicEnsemble("homogeneous", random_state=0).fit(X).pool_
    assert {type(member) for _, member in homogeneous.members_} == {SVDD}
    heterogeneous = DynamicEnsemble("heterogeneous", random_state=0).fit(X).pool_
    assert len({type(member) for _, member in heterogeneous.members_}) == 6


@pytest.mark.parametrize(
    "parameters", [{"members": "all"}, {"n_neighbors": 1}, {"alpha": 1.0}], ids=str
)
def test_parameters_that_cannot_be_used(parameters):
    with pytest.raises(InvalidInputError, match=r"must be .* Got"):
        DynamicEnsemble(**parameters).fit(islands(0)[0])

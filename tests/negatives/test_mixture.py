"""Several generators together, and generators by name."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.negatives import (
    Gauss,
    Mirror,
    Mixture,
    PCShuffle,
    Shuffle,
    Swap,
    Uniform,
    make_negatives,
)

X = np.random.default_rng(0).standard_normal((30, 3))


class Constant(BaseEstimator):
    """A generator of a user: rows of one value."""

    def __init__(self, value=0.0):
        self.value = value

    def sample(self, X, n, random_state):
        return np.full((n, X.shape[1]), self.value)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 100])
def test_shares_are_equal_and_add_up(n):
    drawn = Mixture([Constant(0.0), Constant(1.0), Constant(2.0)]).sample(X, n, 0)
    counts = np.bincount(drawn[:, 0].astype(int), minlength=3)
    assert counts.sum() == n
    assert np.ptp(counts) <= 1
    assert np.all(np.diff(counts) <= 0)
    assert np.all(np.diff(drawn[:, 0]) >= 0)


def test_blocks_come_from_the_named_generators():
    drawn = Mixture(["shuffle", "mirror"]).sample(X, 20, 0)
    random = np.random.RandomState(0)
    np.testing.assert_array_equal(drawn[:10], Shuffle().sample(X, 10, random))
    np.testing.assert_array_equal(drawn[10:], Mirror().sample(X, 10, random))


def test_mixtures_nest_and_clone():
    nested = Mixture([Mixture(["mirror", "shuffle"]), "uniform"])
    assert nested.sample(X, 7, 0).shape == (7, 3)
    np.testing.assert_array_equal(clone(nested).sample(X, 7, 0), nested.sample(X, 7, 0))


@pytest.mark.parametrize("n", [1, 4, 5, 7, 100])
def test_kinds_are_those_of_the_rows(n):
    mixture = Mixture([Constant(0.0), Constant(1.0), Mixture([Constant(2.0), Constant(3.0)])])
    assert mixture.labels == ["constant"] * 4
    np.testing.assert_array_equal(mixture.kinds(n), mixture.sample(X, n, 0)[:, 0])


def test_kinds_of_the_default():
    mixture = Mixture()
    assert mixture.labels == ["gauss", "pcshuffle", "mirror", "swap", "uniform"]
    np.testing.assert_array_equal(mixture.kinds(12), [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4])
    assert len(set(map(tuple, mixture.sample(X, 500, 0)))) > 400


def test_foreign_objects_are_asked_for_rows_only_and_moved_to_patterns():
    table, source = np.column_stack([X[:, 0], np.eye(2)[np.arange(30) % 2]]), [1, 0, 0]
    drawn = Mixture([Constant(0.6), "shuffle"]).sample(table, 6, 0, source)
    np.testing.assert_array_equal(drawn[:3], [[0.6, 0.0, 1.0]] * 3)
    assert set(map(tuple, drawn[:, 1:])) == {(0.0, 1.0), (1.0, 0.0)}


def test_rows_of_foreign_objects_are_checked():
    with pytest.raises(InvalidInputError, match="constant must draw finite rows"):
        Mixture([Constant(np.nan)]).sample(X, 3, 0)


@pytest.mark.parametrize("kind", [Gauss, Mirror, Mixture, PCShuffle, Shuffle, Swap, Uniform])
def test_by_name(kind):
    name = kind.__name__.lower()
    made = make_negatives(name)
    assert type(made) is kind
    assert make_negatives(name) is not made


def test_none_object_and_list():
    assert make_negatives(None) is None
    mine = Uniform(margin=1.0)
    assert make_negatives(mine) is mine
    made = make_negatives(["mirror", mine])
    assert type(made) is Mixture
    assert isinstance(made.generators[0], Mirror)
    assert made.generators[1] is mine
    assert type(make_negatives(("mirror",))) is Mixture


@pytest.mark.parametrize("spec", ["mirrored", ["mirror", "nothing"]])
def test_unknown_name(spec):
    with pytest.raises(InvalidInputError, match="'gauss', 'mirror', 'mixture', "):
        make_negatives(spec)


@pytest.mark.parametrize("spec", [3, Mirror, [None], ["mirror", Uniform]])
def test_unusable_object(spec):
    with pytest.raises(InvalidTypeError, match="with sample"):
        make_negatives(spec)


def test_empty_and_wrong_lists():
    with pytest.raises(InvalidInputError, match="empty"):
        make_negatives([])
    for generators in ([], "mirror"):
        for ask in (lambda mixture: mixture.sample(X, 3, 0), lambda mixture: mixture.kinds(3)):
            with pytest.raises(InvalidInputError, match="at least one name"):
                ask(Mixture(generators))
    with pytest.raises(InvalidInputError, match="Got 'nothing'"):
        Mixture(["nothing"]).sample(X, 3, 0)

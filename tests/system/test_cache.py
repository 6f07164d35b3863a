"""Results are kept while they are asked to be, and no longer."""

import numpy as np

from ocfuse.system.cache import cached, caching


def counted():
    calls = []

    @cached
    def double(X, factor=2):
        calls.append(factor)
        return X * factor

    return double, calls


def test_equal_arrays_are_computed_once():
    double, calls = counted()
    X = np.arange(6.0).reshape(2, 3)
    with caching():
        first = double(X)
        assert double(X.copy()) is first
        with caching():  # the outer block goes on
            assert double(np.asfortranarray(X)) is first
        assert double(X) is first
    assert calls == [2]


def test_what_differs_is_computed():
    double, calls = counted()
    X = np.arange(6.0)
    with caching():
        double(X)
        double(X + 0.5)
        double(X.reshape(2, 3))
        double(X.astype(np.float32))
        double(X, 3)
        double(X, factor=3.0)
    assert len(calls) == 6


def test_nothing_is_kept_outside():
    double, calls = counted()
    X = np.arange(3.0)
    double(X)
    double(X)
    with caching():
        double(X)
    with caching():
        double(X)
    assert len(calls) == 4


def test_what_knows_its_digest_is_known_by_it():
    calls = []

    class Large:
        def __init__(self, digest):
            self.digest = digest

    @cached
    def name_of(value):
        calls.append(value.digest)
        return value.digest

    with caching():
        assert [name_of(Large(name)) for name in "aab"] == ["a", "a", "b"]
    assert calls == ["a", "b"]

"""The checksum sees every change of the content, and none of its form."""

import hashlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocfuse.datasets.formats import content_sha256

TABLES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 4), st.integers(1, 3)),
    elements=st.floats(-10, 10, width=16),
)


def checksum(X):
    return content_sha256([(X, ["a"] * len(X))])


def test_canonical_text():
    X = np.array([[1.0, -0.0], [np.nan, 0.1]])
    text = "1.0,0.0,good\n,0.1,bad\n"
    assert content_sha256([(X, ["good", "bad"])]) == hashlib.sha256(text.encode()).hexdigest()


@settings(deadline=None, max_examples=50)
@given(TABLES, st.data())
def test_every_change_of_a_value_shows(X, data):
    i = data.draw(st.integers(0, len(X) - 1))
    other = X.copy()
    other[i, 0] = np.nextafter(X[i, 0], np.inf)
    assert checksum(other) != checksum(X)
    other[i, 0] = np.nan
    assert checksum(other) != checksum(X)


@settings(deadline=None, max_examples=50)
@given(TABLES)
def test_order_counts(X):
    same = np.array_equal(X, X[::-1])
    assert (checksum(X) == checksum(X[::-1])) == same


def test_class_counts():
    X = np.zeros((2, 1))
    assert content_sha256([(X, ["a", "b"])]) != content_sha256([(X, ["b", "a"])])

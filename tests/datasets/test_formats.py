"""Files of data sets: damaged ones, and the checksum of their content."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocfuse.datasets import load_table
from ocfuse.datasets.formats import content_sha256, look_npz, read_npz
from ocfuse.exceptions import DatasetError


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("read", [read_npz, look_npz])
def test_damaged_files_raise_nothing_else(tmp_path, save, read):
    rng = np.random.default_rng(0)
    path = tmp_path / "a.npz"
    save(path, X=rng.normal(size=(20, 3)), y=np.zeros(20, dtype=int))
    whole = path.read_bytes()
    n_refused = 0
    for i in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged if i % 2 else whole[: rng.integers(len(whole))])
        try:
            read(path, "y")
        except DatasetError as error:
            n_refused += str(path) in str(error)
    assert n_refused > 150


def test_look_agrees_with_read(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.ones((3, 2)), y=[0, 1, 0])
    shape, y = look_npz(path, "y")
    X, labels, _ = read_npz(path, "y")
    assert shape == X.shape
    assert list(map(str, y)) == labels


def test_one_array_renamed(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    path = (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(DatasetError, match=r"as np.savez writes them. Got one array"):
        load_table(path, label="y", normal=0)


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

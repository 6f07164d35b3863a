"""npz files, damaged in every way: one kind of error."""

import numpy as np
import pytest

from ocfuse.datasets import load_table
from ocfuse.datasets.formats import look_npz, read_npz
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

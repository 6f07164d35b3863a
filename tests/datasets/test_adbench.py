"""ADBench's npz files."""

import numpy as np
import pytest

from ocfuse.datasets import find, list_datasets, load, load_adbench, locate
from ocfuse.exceptions import (
    DatasetError,
    DatasetUnavailableError,
    DatasetWarning,
    InvalidInputError,
)


@pytest.fixture
def adbench(folder):
    (folder / "adbench").mkdir()
    path = folder / "adbench" / "6_cardio.npz"
    np.savez_compressed(path, X=np.arange(6, dtype=np.float32).reshape(3, 2), y=[0, 1, 0])
    return path


def test_load(adbench):
    dataset = load_adbench("6_cardio")
    np.testing.assert_array_equal(dataset.X, [[0, 1], [2, 3], [4, 5]])
    assert dataset.X.dtype == np.float64
    assert dataset.y.tolist() == [1, -1, 1]
    assert dataset.about == find("adbench/6_cardio")
    assert locate("adbench/6_cardio") == str(adbench)


def test_entries_are_those_of_the_folder(adbench):
    (info,) = (info for info in list_datasets() if info.name.startswith("adbench/"))
    assert (info.n_rows, info.n_normals, info.n_features) == (3, 2, 2)
    assert info.sha256 is None


def test_real_entries_agree_with_the_arrays(data):
    for name in ("6_cardio", "MVTec-AD_cable", "46_WPBC"):
        dataset, info = load_adbench(name), find(f"adbench/{name}")
        assert dataset.X.shape == (info.n_rows, info.n_features)
        assert (dataset.y == 1).sum() == info.n_normals
        with np.load(data / "adbench" / f"{name}.npz") as arrays:
            np.testing.assert_array_equal(dataset.X, arrays["X"])
            np.testing.assert_array_equal(dataset.y == -1, arrays["y"] == 1)


def test_unknown_name(adbench):
    with pytest.raises(InvalidInputError, match=r"Did you mean '6_cardio'\?"):
        load_adbench("cardio")


def test_no_folder(folder):
    with pytest.raises(DatasetUnavailableError, match=r"ADBench and put it at .*6_cardio\.npz"):
        load_adbench("6_cardio")
    assert locate("adbench/6_cardio") is None


def test_bad_files(adbench):
    np.savez(adbench, X=np.ones((2, 2)), y=[0, 2])
    with pytest.raises(DatasetError, match=r"must hold 0 and 1. Got 0, 2"):
        load_adbench("6_cardio")
    np.savez(adbench, X=np.array([[1.0], [np.inf]]), y=[0, 1])
    with pytest.raises(DatasetError, match=r"'x0' of .* finite numbers. Got inf in row 2"):
        load_adbench("6_cardio")


@pytest.mark.parametrize("content", ["no", "cut", "one array", "no y", "other lengths"])
def test_damaged_file_is_left_out_of_the_list(adbench, content):
    damaged = adbench.with_name("7_damaged.npz")
    if content == "one array":
        with open(damaged, "wb") as file:
            np.save(file, np.ones((2, 2)))
    elif content == "no y":
        np.savez(damaged, X=np.ones((2, 2)))
    elif content == "other lengths":
        np.savez(damaged, X=np.ones((2, 2)), y=[0])
    else:
        damaged.write_bytes(b"no" if content == "no" else adbench.read_bytes()[:-40])
    with pytest.warns(DatasetWarning, match=rf"left out. .*{damaged}") as caught:
        names = [info.name for info in list_datasets() if info.name.startswith("adbench/")]
    assert len(caught) == 1
    assert names == ["adbench/6_cardio"]
    for door in (find, load):
        with pytest.raises(DatasetError, match="7_damaged"):
            door("adbench/7_damaged")
    with pytest.raises(InvalidInputError, match="Did you mean 'uci/iris'"):  # and no warning
        find("irsi")


def test_names_are_in_their_natural_order(adbench):
    for name in ("10_cover", "2_annthyroid", "MVTec-AD_cable", "1_ALOI"):
        adbench.with_name(f"{name}.npz").write_bytes(adbench.read_bytes())
    names = [info.name for info in list_datasets() if info.name.startswith("adbench/")]
    order = ("1_ALOI", "2_annthyroid", "6_cardio", "10_cover", "MVTec-AD_cable")
    assert names == [f"adbench/{name}" for name in order]

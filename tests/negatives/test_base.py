"""One-hot columns that belong together, and principal coordinates."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.encoder import FeatureEncoder
from ocfuse.negatives import Gauss, Mixture
from ocfuse.negatives import base as blocks_module
from ocfuse.negatives.base import OneHotBlocks, principal_coordinates
from tests.negatives.cases import TABLES, normals, one_hot_table


@given(seed=st.integers(0, 1000))
def test_coding_and_decoding_give_the_rows_back(seed):
    X, source = one_hot_table(seed)
    blocks = OneHotBlocks(X, source)
    assert blocks.coded().shape == (len(X), len(set(source)))
    np.testing.assert_array_equal(blocks.decoded(blocks.coded()), X)


@given(seed=st.integers(0, 1000))
def test_nearest_pattern_is_the_nearest_and_leaves_numbers_alone(seed):
    X, source = one_hot_table(seed)
    rows = np.random.default_rng(seed).standard_normal((9, X.shape[1]))
    moved = OneHotBlocks(X, source).nearest(rows)
    np.testing.assert_array_equal(moved[:, [0, 1, 5]], rows[:, [0, 1, 5]])
    for number in (1, 2):
        block = source == number
        patterns = np.unique(X[:, block], axis=0)
        distance = ((rows[:, np.newaxis, block] - patterns) ** 2).sum(axis=2)
        np.testing.assert_array_equal(moved[:, block], patterns[distance.argmin(axis=1)])


def test_ties_go_to_the_first_pattern_in_sorted_order():
    blocks = OneHotBlocks(np.eye(3), [4, 4, 4])
    moved = blocks.nearest(np.array([[0.2, 0.2, 0.2], [0.5, 0.5, -1.0]]))
    np.testing.assert_array_equal(moved, [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


def test_rows_that_occur_are_left_as_they_are():
    X, source = one_hot_table(5)
    np.testing.assert_array_equal(OneHotBlocks(X, source).nearest(X), X)


def test_what_is_given_is_not_changed():
    X, source = one_hot_table(5)
    before, rows = X.copy(), X + 0.1
    kept = rows.copy()
    blocks = OneHotBlocks(X, source)
    blocks.coded()
    blocks.nearest(rows)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(rows, kept)


def test_categories_of_a_data_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(list("rgb"), 40), "size": rng.standard_normal(40)})
    encoder = FeatureEncoder().fit(frame)
    drawn = Mixture().sample(encoder.transform(frame), 50, 0, encoder.source_)
    colours = drawn[:, encoder.source_ == 0]
    assert colours.shape == (50, 4)
    known = encoder.patterns_[0][:3]
    assert all((colour == known).all(axis=1).any() for colour in colours)


def test_without_blocks_rows_are_their_own_code():
    X = np.random.default_rng(0).normal(size=(7, 3))
    assert OneHotBlocks(X).coded() is X


def test_a_mixture_looks_for_principal_coordinates_once(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4))
    calls = []
    find = blocks_module.principal_coordinates

    def counting(rows):
        calls.append(len(rows))
        return find(rows)

    monkeypatch.setattr(blocks_module, "principal_coordinates", counting)
    drawn = Mixture(["gauss", "pcshuffle"]).sample(X, 10, random_state=0)
    assert calls == [30]
    np.testing.assert_array_equal(drawn[:5], Gauss().sample(X, 5, random_state=0))


@given(X=TABLES)
@settings(deadline=None, max_examples=50)
def test_coordinates_are_uncorrelated_and_give_the_rows_back(X):
    found = principal_coordinates(X)
    r = found.U.shape[1]
    assert r < len(X) or len(X) == 1
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(r), atol=1e-8)
    products = found.t.T @ found.t
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-7 * max(1, X.size))
    # what is lost lies in directions of less than 0.001 of the largest spread
    lost = (X - found.rows(found.t)) / np.where(found.scale > 0, found.scale, 1.0)
    assert np.sqrt((lost**2).sum()) <= 1e-3 * np.sqrt(X.size * min(X.shape)) + 1e-9


@pytest.mark.parametrize(("n", "m"), [(40, 5), (5, 40)])
def test_signs_are_settled(n, m):
    U = principal_coordinates(normals(n, m)).U
    assert np.all(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])] > 0)


def test_rows_that_differ_by_rounding_are_centred():
    above = np.nextafter(1.0, 2.0)
    found = principal_coordinates(np.array([[1.0, above], [above, 1.0], [1.0, 1.0]]))
    assert found.U.shape == (2, 2)
    np.testing.assert_allclose(found.t.mean(axis=0), 0.0, atol=1e-12)

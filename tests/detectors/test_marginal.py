"""Marginal tails: the formula, ties, leave-one-out, the same bits in every batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.detectors import Compressed, Marginal
from ocfuse.detectors import marginal as module
from ocfuse.detectors.gram import Gram
from tests.counting import count_calls


def table(n, m, seed=0, levels=None):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)) if levels is None else rng.integers(levels, size=(n, m)) * 1.0


def by_counting(X, new):
    """Return the score as the formula has it."""
    not_above = (X[None] <= new[:, None]).sum(axis=1)
    not_below = (X[None] >= new[:, None]).sum(axis=1)
    return np.log((np.minimum(not_above, not_below) + 0.5) / (len(X) + 1)).sum(axis=1)


tables = given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 40),
    m=st.integers(1, 30),
    levels=st.sampled_from([None, 2, 5]),
)


@tables
@settings(max_examples=60, deadline=None)
def test_score_is_the_formula(seed, n, m, levels):
    X, new = table(n, m, seed, levels), table(7, m, seed + 1, levels)
    scores = Marginal().fit(X).score_samples(np.vstack([new, X]))
    np.testing.assert_allclose(scores, by_counting(X, np.vstack([new, X])), rtol=1e-12)


@tables
@settings(max_examples=60, deadline=None)
def test_leave_one_out_equals_refits(seed, n, m, levels):
    X = table(n, m, seed, levels)
    gram = Gram(X)
    left_out = Marginal().fit_gram(gram)._leave_one_out(gram)
    refits = [by_counting(np.delete(X, i, axis=0), X[i : i + 1])[0] for i in range(n)]
    np.testing.assert_allclose(left_out, refits, rtol=1e-12)


@pytest.mark.slow
@tables
@settings(max_examples=60, deadline=None)
def test_increasing_maps_and_signs_of_columns_change_nothing(seed, n, m, levels):
    X, new = table(n, m, seed, levels), table(7, m, seed + 1, levels)
    scores = Marginal().fit(X).score_samples(new)
    np.testing.assert_array_equal(Marginal().fit(X**3).score_samples(new**3), scores)
    np.testing.assert_array_equal(Marginal().fit(-X).score_samples(-new), scores)


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 200])
def test_a_row_has_the_same_bits_in_every_batch(m):
    X, new = table(100, m), 2 * table(33, m, seed=1)
    detector = Marginal().fit(X)
    batch = detector.score_samples(new)
    np.testing.assert_array_equal(detector.score_samples(new[::-1])[::-1], batch)
    for i, row in enumerate(new):
        assert detector.score_samples(row[None])[0] == batch[i]


def test_the_tail_of_a_level_is_its_frequency():
    X = np.repeat([[0.0], [1.0]], [90, 10], axis=0)
    scores = Marginal().fit(X).score_samples([[0.0], [1.0], [2.0], [-1.0]])
    np.testing.assert_allclose(np.exp(scores) * 101, [90.5, 10.5, 0.5, 0.5])


def test_compression_changes_no_order():
    X, new = table(80, 4), 2 * table(20, 4, seed=1)
    plain, compressed = Marginal().fit(X), Compressed(Marginal()).fit(X)
    np.testing.assert_array_equal(compressed.score_samples(new), plain.score_samples(new))
    assert compressed.offset_ == plain.offset_


@pytest.mark.parametrize("has_kernel", [True, False])
def test_one_row_takes_few_calls_however_many_columns(monkeypatch, has_kernel):
    gram = Gram(table(200, 2000))
    detector, query = Marginal().fit_gram(gram), gram.query(gram.X[:1])
    if not has_kernel:
        monkeypatch.setattr(module, "kernel", None)
    assert count_calls(lambda: detector.score_query(query)) < 300


@pytest.mark.parametrize("q", [1, 16, 17, 300])
@pytest.mark.parametrize("m", [3, 130])
def test_kernel_and_twins_count_the_same(monkeypatch, q, m):
    X, new = np.round(table(200, m), 1), np.round(2 * table(q, m, seed=1), 1)
    detector = Marginal().fit(X)
    counts = detector._tail_counts(new)
    monkeypatch.setattr(module, "kernel", None)
    np.testing.assert_array_equal(detector._tail_counts(new), counts)
    expected = np.minimum(
        (X[:, None] <= new).sum(axis=0), (X[:, None] >= new).sum(axis=0)
    )  # by definition
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("digits", [0, 1, 12])
def test_tails_of_many_rows_follow_from_their_places(monkeypatch, digits):
    X = np.round(table(300, 7), digits)
    gram = Gram(X)
    detector = Marginal().fit_gram(gram)
    few = detector._leave_one_out(gram)
    monkeypatch.setattr(module, "MANY_ROWS", 100)
    monkeypatch.setattr(module, "VALUES_AT_ONCE", 700)
    np.testing.assert_allclose(detector._leave_one_out(gram), few, rtol=1e-12)

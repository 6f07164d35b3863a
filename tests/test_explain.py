"""Attributions by features: complete, exact for sums, zero where nothing differs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.explain import Explanation, attribute_features


def curved(X):
    return -np.sum(X**2, axis=1) + X[:, 0] * X[:, -1]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_shares_add_up(seed, m):
    rng = np.random.default_rng(seed)
    X, reference = rng.normal(size=(2, 3, m))
    shares = attribute_features(curved, X, reference, np.arange(m))
    np.testing.assert_allclose(shares.sum(1), curved(reference) - curved(X), atol=1e-12)


def test_a_sum_over_features_is_shared_exactly():
    rng = np.random.default_rng(0)
    X, reference = rng.normal(size=(2, 4, 3))
    shares = attribute_features(lambda X: -np.sum(X**2, axis=1), X, reference, np.arange(3))
    np.testing.assert_allclose(shares, X**2 - reference**2)


def test_a_feature_that_does_not_differ_has_no_share():
    rng = np.random.default_rng(1)
    X, reference = rng.normal(size=(2, 4, 3))
    reference[:, 1] = X[:, 1]
    shares = attribute_features(curved, X, reference, np.arange(3))
    np.testing.assert_array_equal(shares[:, 1], 0.0)
    assert np.abs(shares[:, [0, 2]]).min() > 0


def test_an_interaction_is_shared_equally():
    shares = attribute_features(
        lambda X: X[:, 0] * X[:, 1], np.zeros((1, 2)), np.ones((1, 2)), np.arange(2)
    )
    np.testing.assert_allclose(shares, [[0.5, 0.5]])


def test_the_columns_of_a_category_go_together():
    X, reference = np.array([[1.0, 0.0, 1.0]]), np.array([[0.0, 1.0, 1.0]])
    seen = []

    def score(rows):
        seen.append(rows.copy())
        return rows @ np.array([1.0, 2.0, 4.0])

    shares = attribute_features(score, X, reference, np.array([1, 1, 0]))
    np.testing.assert_allclose(shares, [[0.0, 1.0]])
    assert all((rows[:, 0] + rows[:, 1] == 1).all() for rows in seen)


def test_equal_rows():
    X = np.ones((2, 3))
    assert not attribute_features(curved, X, X, np.arange(3)).any()


@pytest.mark.parametrize("m", [5000])
def test_many_features_in_chunks(m):
    X, reference = np.ones((1, m)), np.zeros((1, m))
    shares = attribute_features(lambda X: -X.sum(axis=1), X, reference, np.arange(m))
    np.testing.assert_allclose(shares, 1.0)


def explanation(n, name):
    """Rows that differ in nothing but the number of their kind."""
    return Explanation(
        score=np.linspace(-1.0, 1.0, n),
        offset=0.0,
        p_value=np.full(n, 0.5),
        member_names=[name, "other"],
        member_scores=np.zeros((n, 2)),
        normalised_scores=np.zeros((n, 2)),
        weights=np.tile([0.25, 0.75], (n, 1)),
        base=np.zeros(n),
        contributions=np.zeros((n, 2)),
        local_p=np.full(n, np.nan),
        nearest_rows=np.zeros((n, 1), dtype=np.intp),
        nearest_distances=np.ones((n, 1)),
        feature_names=[name],
        attributions=np.full((n, 1), 2.0),
    )


def test_notebooks_show_a_table_of_few_rows():
    html = explanation(30, "a")._repr_html_()
    assert html.count("<tr>") == 1 + 20
    assert "and 10 more rows" in html
    assert "other (+0.75), a (+0.25)" in html
    assert html.count("<b>anomaly</b>") == 15


def test_names_in_a_notebook_are_no_markup():
    html = explanation(2, "<script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt; (+2)" in html


def test_a_feature_that_costs_nothing_is_not_called_unusual():
    why = explanation(1, "a")
    assert "a (+2.000)" in why.describe()
    for cost in (0.0, -1.0):
        harmless = replace(why, attributions=np.full((1, 1), cost))
        assert "unusual" not in harmless.describe()
        assert "a (+0)" not in harmless._repr_html_()

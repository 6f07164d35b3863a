"""Whether pseudo-anomalies tell the members apart."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from ocfuse.exceptions import InvalidInputError
from ocfuse.negatives import Mixture, diagnose


@pytest.mark.slow
@given(seed=st.integers(0, 1000), d=st.integers(1, 4), levels=st.sampled_from([2, 5, 10**9]))
@settings(deadline=None, max_examples=40)
def test_auc_is_that_of_scikit_learn_with_ties(seed, d, levels):
    rng = np.random.default_rng(seed)
    normal, negative = rng.integers(0, levels, (11, d)), rng.integers(0, levels, (17, d))
    kind = np.append([0, 1, 2], rng.integers(0, 3, 14))
    found = diagnose(normal, negative, kind)
    assert found.auc.shape == (d, 3)
    for g in range(3):
        y = np.repeat([1, 0], [11, np.sum(kind == g)])
        for j in range(d):
            scores = np.append(normal[:, j], negative[kind == g, j])
            np.testing.assert_allclose(found.auc[j, g], roc_auc_score(y, scores), atol=1e-12)


def scores(auc):
    """Return scores of normals and of one kind per column of a table of AUC (d, g)."""
    auc = np.asarray(auc)
    normal = np.tile(np.arange(1000.0)[:, np.newaxis], (1, len(auc)))
    return normal, 1000.0 * (1.0 - auc.T) - 0.5, np.arange(auc.shape[1])


def test_saturated_and_blind_kinds():
    auc = [[0.99, 0.98, 0.55, 0.56, 0.2], [1.0, 1.0, 0.5, 0.5, 0.1]]
    found = diagnose(*scores(auc))
    np.testing.assert_allclose(found.auc, auc)
    np.testing.assert_array_equal(found.saturated, [True, False, False, False, False])
    np.testing.assert_array_equal(found.blind, [False, False, True, False, True])
    assert found.labels == ["0", "1", "2", "3", "4"]
    assert found.message() is None


def test_message_when_no_kind_is_left():
    found = diagnose(*scores([[1.0, 0.5, 1.0], [1.0, 0.4, 0.995]]), ["gauss", "mirror", "uniform"])
    message = found.message()
    assert "gauss, uniform (too easy" in message
    assert "mirror (like normals" in message
    assert "labelled anomalies" in message
    assert "too easy" not in diagnose(*scores([[0.5], [0.5]])).message()


def test_one_useful_kind_is_enough():
    assert diagnose(*scores([[1.0, 0.5, 0.9], [1.0, 0.4, 0.8]])).message() is None


def test_kind_without_rows():
    normal, negative, kind = scores([[0.8], [0.9]])
    found = diagnose(normal, negative, kind + 1, ["gauss", "mirror", "swap"])
    np.testing.assert_array_equal(np.isnan(found.auc), [[True, False, True]] * 2)
    assert not found.saturated.any()
    assert not found.blind.any()
    assert found.message() is None
    normal, negative, kind = scores([[1.0], [1.0]])
    assert "gauss" not in diagnose(normal, negative, kind + 1, ["gauss", "mirror"]).message()


def test_infinite_scores_are_ranked():
    found = diagnose([[1.0], [np.inf]], [[-np.inf], [np.inf]], [0, 1])
    np.testing.assert_array_equal(found.auc, [[1.0, 0.25]])


def test_kinds_of_a_mixture():
    X = np.random.default_rng(0).standard_normal((200, 2))
    mixture = Mixture(["uniform", "gauss"])
    negative = mixture.sample(X, 400, 0)
    members = [lambda x: -np.abs(x).max(axis=1), lambda x: -(x**2).sum(axis=1)]
    normal, drawn = (np.column_stack([score(x) for score in members]) for x in (X, negative))
    found = diagnose(normal, drawn, mixture.kinds(400), mixture.labels)
    assert found.labels == ["uniform", "gauss"]
    assert found.auc[:, 0].min() > 0.7
    np.testing.assert_array_equal(found.blind, [False, True])


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        diagnose(*scores([[0.5]])).auc = None


@pytest.mark.parametrize(
    ("normal", "negative", "kind", "labels", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], [0], None, "shapes"),
        ([1.0], [[1.0]], [0], None, "shapes"),
        ([[1.0]], [[1.0]], [0, 1], None, "shapes"),
        (np.empty((0, 1)), [[1.0]], [0], None, "none empty"),
        ([[1.0]], np.empty((0, 1)), np.empty(0, int), None, "none empty"),
        ([[np.nan]], [[1.0]], [0], None, "NaN"),
        ([[1.0]], [[1.0]], [0.5], None, "whole numbers"),
        ([[1.0]], [[1.0]], [-1], None, "from 0"),
        ([[1.0]], [[1.0]], [1], ["gauss"], "from 0 to 0"),
    ],
)
def test_wrong_input(normal, negative, kind, labels, message):
    with pytest.raises(InvalidInputError, match=message):
        diagnose(normal, negative, kind, labels)

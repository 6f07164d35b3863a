"""Context: a distance beside that of the features, in every fusion that knows places."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import CompetenceFusion, LabelledFusion, LocalLpFusion, SumRule
from ocfuse.fusion.locality import Locality

LOCAL = [
    CompetenceFusion(context_weight=1.0),
    CompetenceFusion(context_weight=1.0, locality=Locality()),
    LocalLpFusion(anchors=4),
    LocalLpFusion(anchors="query"),
]


@pytest.fixture(name="rows")
def _rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    Z = 1 - np.abs(X @ rng.normal(size=(2, 3)))
    y = np.r_[np.ones(120), -np.ones(30)]
    return Z, y, X, rng.normal(size=(150, 1))


@pytest.mark.parametrize("fusion", LOCAL)
def test_it_adds_to_the_squared_distance(fusion, rows):
    """Context is one more column for everything that looks for neighbours."""
    Z, y, X, C = rows
    both = np.hstack([X, C])
    with_context = fusion.fit(Z, y, X, context=C)
    scores, weights = with_context.fuse(Z, X, C), with_context.weights(X, C)
    norms = with_context.local_p(X, C)
    as_columns = fusion.fit(Z, y, both)
    np.testing.assert_array_equal(scores, as_columns.fuse(Z, both))
    np.testing.assert_array_equal(weights, as_columns.weights(both))
    np.testing.assert_array_equal(norms, as_columns.local_p(both))


@pytest.mark.parametrize("fusion", LOCAL)
def test_it_matters(fusion, rows):
    Z, y, X, C = rows
    fitted = fusion.fit(Z, y, X, context=3 * C)
    assert not np.allclose(fitted.weights(X, 3 * C), fitted.weights(X, np.zeros_like(C)))
    base, parts = fitted.contributions(Z, X, C)
    np.testing.assert_allclose(base + parts.sum(axis=1), fitted.fuse(Z, X, C))


def test_one_column_may_be_a_vector(rows):
    Z, y, X, C = rows
    fitted = CompetenceFusion().fit(Z, y, X, context=C[:, 0])
    assert (fitted.n_features_, fitted.n_context_) == (2, 1)
    np.testing.assert_array_equal(fitted.fuse(Z, X, C[:, 0]), fitted.fuse(Z, X, C))


def test_classifiers_of_known_anomalies_do_not_see_it(rows):
    Z, y, X, C = rows
    fusion = LabelledFusion(CompetenceFusion(context_weight=1.0))
    fitted = fusion.fit(Z, y, X, context=C)
    assert fitted.classifier_.n_features_in_ == 2
    assert fitted.joint_classifier_.n_features_in_ == 5
    assert (fitted.fusion_.n_features_, fitted.fusion_.n_context_) == (2, 1)
    assert not np.array_equal(fitted.fuse(Z, X, C), fitted.fuse(Z, X, -C))


def test_rules_without_places_ignore_it(rows):
    Z, _, X, C = rows
    np.testing.assert_array_equal(
        SumRule().fit(Z, context=C).fuse(Z, X, C), SumRule().fit(Z).fuse(Z)
    )


def test_it_is_needed_as_in_fit(rows):
    Z, y, X, C = rows
    fitted = CompetenceFusion().fit(Z, y, X, context=C)
    with pytest.raises(InvalidInputError, match=r"context must have 1 columns.*Pass context="):
        fitted.fuse(Z, X)
    with pytest.raises(InvalidInputError, match="context must have 1 columns"):
        fitted.fuse(Z, X, np.hstack([C, C]))
    with pytest.raises(InvalidInputError, match="context must have 150 rows"):
        fitted.fuse(Z, X, C[:3])
    with pytest.raises(InvalidInputError, match="context must be finite"):
        fitted.fuse(Z, X, np.full_like(C, np.nan))
    with pytest.raises(InvalidInputError, match=r"context must have 0 columns.*Leave it out"):
        CompetenceFusion().fit(Z, y, X).fuse(Z, X, C)

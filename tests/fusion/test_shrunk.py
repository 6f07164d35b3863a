"""A learned fusion mixed with the sum rule."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import (
    LocalLpFusion,
    LpFusion,
    ProductRule,
    ShrunkFusion,
    SingleBest,
    StackedFusion,
    SumRule,
)
from tests.fusion.cases import scores


@pytest.mark.parametrize("inner", [LpFusion(p=1.2), LocalLpFusion(p=2.0)])
def test_the_ends_are_the_fusion_and_the_sum_rule(inner):
    Z, y, X = scores()
    learned = ShrunkFusion(inner, share=0.0).fit(Z, y, X)
    even = ShrunkFusion(inner, share=1.0).fit(Z, y, X)
    np.testing.assert_array_equal(learned.fuse(Z, X), inner.fit(Z, y, X).fuse(Z, X))
    np.testing.assert_allclose(even.fuse(Z, X), SumRule().fit(Z, y).fuse(Z))


def test_weights_are_those_of_the_score():
    Z, y, X = scores()
    fusion = ShrunkFusion(share=0.3).fit(Z, y, X)
    np.testing.assert_allclose((fusion.weights(X) * Z).sum(1), fusion.fuse(Z, X))
    assert (fusion.weights(X) >= 0.3 / Z.shape[1] - 1e-12).all()


@pytest.mark.parametrize(
    "inner", [LpFusion(p=1.2), LocalLpFusion(p=2.0), SumRule(), SingleBest()], ids=repr
)
def test_weights_times_scores_are_the_contributions_where_the_docstring_says_so(inner):
    Z, y, X = scores()
    fusion = ShrunkFusion(inner).fit(Z, y, X)
    base, C = fusion.contributions(Z, X)
    np.testing.assert_array_equal(base, 0.0)
    np.testing.assert_allclose(fusion.weights(X) * Z, C)


def test_signed_weights_are_the_contributions_but_for_a_factor():
    Z, y, X = scores()
    # The second member is turned round, so that its weight is negative.
    Z[:, 1] *= -1
    fusion = ShrunkFusion(LpFusion(p=1.2, nonneg=False), share=0.3).fit(Z, y, X)
    base, C = fusion.contributions(Z, X)
    products = fusion.weights(X) * Z
    factor = C.sum(axis=1) / products.sum(axis=1)
    assert (fusion.weights(X) < 0).any()
    assert np.abs(factor - 1.0).max() > 1e-3
    np.testing.assert_allclose(factor[:, np.newaxis] * products, C)
    np.testing.assert_allclose(base + C.sum(axis=1), fusion.fuse(Z, X))


@pytest.mark.parametrize("inner", [StackedFusion(), ProductRule()], ids=repr)
def test_contributions_are_exact_where_weights_are_not(inner):
    Z, y, X = scores()
    fusion = ShrunkFusion(inner, share=0.3).fit(Z, y, X)
    base, C = fusion.contributions(3 * Z, X)
    np.testing.assert_allclose(base + C.sum(axis=1), fusion.fuse(3 * Z, X))
    assert np.abs(fusion.weights(X) * 3 * Z - C).max() > 1e-3


def test_needs_are_those_of_the_fusion():
    assert ShrunkFusion().needs_X
    assert not ShrunkFusion(LpFusion()).needs_X
    assert ShrunkFusion(StackedFusion()).needs_anomalies


def test_a_share_outside_is_refused():
    Z, y, X = scores()
    with pytest.raises(InvalidInputError, match="share"):
        ShrunkFusion(share=1.5).fit(Z, y, X)

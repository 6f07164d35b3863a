"""Weights learned for each row that is asked about."""

import numpy as np
import pytest

from ocfuse.exceptions import OcfuseWarning
from ocfuse.fusion import LocalLpFusion, LpFusion
from ocfuse.fusion.local_lp import MOST_FLOOR_ROWS, Neighbourhood
from ocfuse.fusion.locality import Locality
from tests.fusion.cases import scores

OFF = Locality(kappa=1.0)


def test_a_row_has_the_same_bits_alone_and_in_a_batch():
    Z, y, X = scores(n=400)
    model = LocalLpFusion(p=1.5, anchors="query").fit(Z, y, X)
    alone = np.concatenate([model.fuse(Z[i : i + 1], X[i : i + 1]) for i in range(40)])
    np.testing.assert_array_equal(alone, model.fuse(Z, X)[:40])


def test_eta_one_and_kappa_one_is_global():
    Z, y, X = scores()
    model = LocalLpFusion(1.5, eta=1.0, anchors="query", locality=OFF, tol=1e-8).fit(Z, y, X)
    world = LpFusion(1.5, tol=1e-8).fit(Z, y)
    np.testing.assert_allclose(model.fuse(Z, X), world.fuse(Z), atol=2e-4)


@pytest.mark.parametrize("kernel", ["gaussian", "knn"])
def test_an_anchor_and_a_query_at_its_place_agree(kernel):
    Z, y, X = scores()
    # So many neighbours that no row is left out of the local part.
    hood = Neighbourhood(kernel, 30 if kernel == "gaussian" else 12)
    anchored = LocalLpFusion(1.5, kernel=hood, anchors=1, tol=1e-8).fit(Z, y, X)
    asked = LocalLpFusion(1.5, kernel=hood, anchors="query", tol=1e-8).fit(Z, y, X)
    np.testing.assert_allclose(
        asked.weights(anchored.anchors_), anchored.weights(anchored.anchors_), atol=2e-4
    )
    np.testing.assert_array_equal(asked.local_p(anchored.anchors_), anchored.p_)


def test_weights_of_a_problem_add_up_to_those_of_the_classes():
    Z, y, X = scores(n=900, n_anomalies=300)
    c = np.random.default_rng(0).uniform(0.5, 2, 900)
    model = LocalLpFusion(eta=0.3, anchors="query").fit(Z, y, X, c)
    problems = model.problems_
    index, weight = problems._rows(X[:5])
    assert index.shape[1] <= 2 * (MOST_FLOOR_ROWS + 4 * 30)
    for sign in (-1, 1):
        total = np.where(problems.y[index] == sign, weight, 0).sum(axis=1)
        np.testing.assert_allclose(total, problems.c[problems.y == sign].sum())


def test_no_anchors_are_kept():
    Z, y, X = scores()
    model = LocalLpFusion(anchors="query").fit(Z, y, X)
    assert model.anchors_.shape == (0, 3)
    assert model.W_.shape == (0, 4)
    assert model.status_ == []


def test_nothing_to_learn_is_said():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    Z -= Z.mean(axis=0)
    model = LocalLpFusion(eta=1.0, anchors="query", locality=OFF).fit(Z, X=X)
    with pytest.warns(OcfuseWarning, match="4 of 4"):
        np.testing.assert_allclose(model.weights(X[:4]), 1 / 3)

"""Competence fusion: closed form, limits, and what it is drawn to."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import spearmanr

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import CompetenceFusion
from ocfuse.fusion.base import Evidence
from ocfuse.fusion.locality import Locality


def _rows(n=150, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = rng.normal(size=(n, 1)) + rng.normal(size=(n, d)) * np.linspace(0.5, 2, d) + 3.0
    auc = rng.uniform(0.5, 1.0, size=(d, 4))
    return Z, X, Evidence(auc, np.array([1.0, 1.0, 0.5, 1.0]))


def test_weights_solve_the_locally_scaled_problem():
    Z, X, evidence = _rows()
    p = 1.5
    fusion = CompetenceFusion(p=p, shift_prior=5.0).fit(Z, X=X, evidence=evidence)
    _, sd = fusion.scale_.at(X[:1])
    a, s = fusion.competence_, sd[0]
    found = minimize(
        lambda w: -(a * s) @ w,
        np.full(5, 0.1),
        jac=lambda w: -(a * s),
        bounds=[(0, None)] * 5,
        constraints={"type": "ineq", "fun": lambda w: 1 - np.sum(np.abs(s * w) ** p)},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    w = found.x / fusion.spread_  # on the scale of Z
    np.testing.assert_allclose(fusion.weights(X[:1])[0], w / w.sum(), atol=2e-4)


def test_score_is_the_weighted_sum_of_local_scores():
    Z, X, evidence = _rows()
    fusion = CompetenceFusion().fit(Z, X=X, evidence=evidence)
    mean, sd = fusion.scale_.at(X)
    local = ((Z - fusion.centre_) / fusion.spread_ - mean) / sd
    np.testing.assert_allclose(fusion.fuse(Z, X), local @ fusion.trust_)
    base, C = fusion.contributions(Z, X)
    np.testing.assert_allclose(base + C.sum(axis=1), fusion.fuse(Z, X))


def test_competence_is_rank_times_agreement():
    Z, X, evidence = _rows()
    fusion = CompetenceFusion(agreement=1).fit(Z, X=X, evidence=evidence)
    b = evidence.by_rank() / evidence.by_rank().max()
    R = spearmanr(Z).statistic - np.eye(5)
    u = b**5
    c = np.maximum((R @ u) / (u.sum() - u), 1e-3)
    a = b * c / c.max()
    np.testing.assert_allclose(fusion.competence_, a / a.max())
    without = CompetenceFusion(agreement=0).fit(Z, X=X, evidence=evidence)
    np.testing.assert_allclose(without.competence_, b)


def test_p_goes_from_the_best_member_to_the_sum():
    Z, X, evidence = _rows()
    one = CompetenceFusion(p=1.0, n_neighbors=0, agreement=0).fit(Z, X=X, evidence=evidence)
    best = evidence.by_rank().argmax()
    np.testing.assert_allclose(one.trust_, np.arange(5) == best)
    even = CompetenceFusion(p=np.inf, n_neighbors=0).fit(Z, X=X, evidence=evidence)
    standard = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    np.testing.assert_allclose(even.fuse(Z, X), standard.mean(axis=1))


def test_scale_of_the_members_does_not_matter():
    Z, X, evidence = _rows()
    factor, shift = np.array([1e-3, 1.0, 50.0, 2.0, 7.0]), np.arange(5.0)
    fused = CompetenceFusion().fit(Z, X=X, evidence=evidence).fuse(Z, X)
    scaled = CompetenceFusion().fit(Z * factor + shift, X=X, evidence=evidence)
    np.testing.assert_allclose(scaled.fuse(Z * factor + shift, X), fused, atol=1e-9)


def test_labels_are_the_evidence_where_none_is_given():
    Z, X, _ = _rows()
    y = np.where(np.arange(len(Z)) < 20, -1, 1)
    Z[y < 0, 2] -= 10.0
    assert CompetenceFusion().fit(Z, y, X).trust_.argmax() == 2
    alike = CompetenceFusion(agreement=0).fit(Z[y > 0], X=X[y > 0])
    np.testing.assert_allclose(alike.trust_, 0.2)


def test_constant_members_and_one_member():
    Z, X, evidence = _rows()
    Z[:, 1] = 4.0
    fusion = CompetenceFusion().fit(Z, X=X, evidence=evidence)
    assert np.isfinite(fusion.fuse(Z, X)).all()
    single = CompetenceFusion().fit(Z[:, :1], X=X)
    assert single.trust_ == [1.0]


def test_norm_may_depend_on_the_place():
    Z, X, evidence = _rows()
    fusion = CompetenceFusion(locality=Locality(kappa=3.0)).fit(Z, X=X, evidence=evidence)
    assert np.ptp(fusion.local_p(X)) > 0.1
    base, C = fusion.contributions(Z, X)
    np.testing.assert_allclose(base + C.sum(axis=1), fusion.fuse(Z, X))
    assert (CompetenceFusion().fit(Z, X=X, evidence=evidence).local_p(X) == 6 / 5).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"p": 0.5}, "p must be"),
        ({"n_neighbors": -1}, "n_neighbors must be 0 or a positive integer"),
        ({"agreement": 1.5}, "agreement must be"),
        ({"shift_prior": 0.0}, "shift_prior must be"),
        ({"scale_prior": np.nan}, "scale_prior must be"),
    ],
)
def test_wrong_parameters(parameters, message):
    Z, X, evidence = _rows()
    with pytest.raises(InvalidInputError, match=message):
        CompetenceFusion(**parameters).fit(Z, X=X, evidence=evidence)


def test_evidence_of_other_members_is_refused():
    Z, X, evidence = _rows()
    with pytest.raises(InvalidInputError, match=r"one row per member: 3\. Got 5"):
        CompetenceFusion().fit(Z[:, :3], X=X, evidence=evidence)

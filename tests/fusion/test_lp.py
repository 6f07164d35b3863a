"""The global lp fusion: limits, closed forms and what cannot be learned."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from ocfuse.exceptions import (
    ConvergenceWarning,
    EqualWeightsWarning,
    InvalidInputError,
    OcfuseWarning,
)
from ocfuse.fusion import LeastSquaresFusion, LpFusion, SumRule
from ocfuse.fusion.lp import unit_weights
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.solve import solve
from tests.fusion.cases import scores

GRID = [32 / 31, 8 / 7, 4 / 3, 2.0, 4.0, 10.0, 100.0]


def test_score_is_a_weighted_mean():
    Z, y, X = scores()
    model = LpFusion(p=1.5).fit(Z, y)
    w = model.w_ / np.abs(model.w_).sum()
    np.testing.assert_allclose(model.fuse(Z), Z @ w)
    np.testing.assert_allclose(model.weights(X), np.tile(w, (len(X), 1)))
    np.testing.assert_array_equal(model.local_p(X), 1.5)


@pytest.mark.parametrize("nonneg", [True, False])
@pytest.mark.parametrize("p", GRID)
def test_same_as_the_solver(p, nonneg):
    Z, y, _ = scores()
    c = np.where(y > 0, 1.0, 5.0)
    model = LpFusion(p, nonneg=nonneg).fit(Z, y, sample_weight=c)
    solution = solve(Z, y, p, c, nonneg)
    np.testing.assert_allclose(model.w_, solution.w, atol=1e-6)
    assert model.gap_ <= 1e-4
    assert model.status_ == "solved"
    assert isinstance(model.solver_, str)
    assert np.linalg.norm(model.w_, p) <= 1 + 1e-9
    assert not nonneg or (model.w_ >= 0).all()


@pytest.mark.parametrize("p", GRID)
def test_closed_form_when_every_hinge_is_active(p):
    rng = np.random.default_rng(0)
    Z, y = rng.uniform(0, 0.2, size=(50, 4)), np.where(rng.random(50) < 0.4, -1.0, 1.0)
    y[0] = 1.0
    model = LpFusion(p, nonneg=False, tol=1e-9).fit(Z, y)
    total = (y[:, np.newaxis] * Z).sum(axis=0)
    q = p / (p - 1)
    a = np.abs(total) / np.abs(total).max()
    dual = np.sign(total) * a ** (q - 1)
    np.testing.assert_allclose(model.w_, dual / np.linalg.norm(dual, p), atol=1e-5)


def test_z_scores_of_normals_teach_nothing():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 5))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    with pytest.warns(OcfuseWarning, match="min-max"):
        model = LpFusion(p=2.0).fit(Z)
    np.testing.assert_allclose(model.w_, 0.2)
    np.testing.assert_allclose(model.fuse(Z), SumRule().fit(Z).fuse(Z))
    assert LpBall(np.array([2.0]), True).norm(model.w_[np.newaxis]) <= 1


def test_min_max_scores_of_normals_teach_something():
    Z, _, _ = scores(n_anomalies=0)
    Z[:, 2] += 0.5
    model = LpFusion(p=1.2).fit(Z)
    assert model.w_.argmax() == 2


def test_p_near_one_selects():
    Z, y, X = scores(d=6)
    w = LpFusion(p=1 + 1e-3).fit(Z, y).weights(X)[0]
    assert w.max() > 0.99


def test_p_to_infinity_tends_to_the_sum_rule():
    Z, _, X = scores(d=6, n_anomalies=0)
    Z *= 0.15  # every hinge active, every total positive
    errors = [np.abs(LpFusion(p).fit(Z).weights(X) - 1 / 6).max() for p in (2.0, 10.0, 100.0, 1e4)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-4
    np.testing.assert_allclose(LpFusion(np.inf).fit(Z).weights(X), 1 / 6, atol=1e-12)


def test_signed_weights_turn_a_bad_member_round():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(100) < 70, 1.0, -1.0)
    Z = np.column_stack([-y, 0.1 * y]) + 0.1 * rng.normal(size=(100, 2))
    assert LpFusion(nonneg=False).fit(Z, y).w_[0] < 0
    assert LpFusion(nonneg=True).fit(Z, y).w_[0] == pytest.approx(0.0, abs=1e-3)


def test_weights_count_as_copies():
    Z, y, X = scores()
    c = np.random.default_rng(0).integers(1, 4, len(Z))
    weighted = LpFusion(1.5, tol=1e-9).fit(Z, y, sample_weight=c)
    copied = LpFusion(1.5, tol=1e-9).fit(np.repeat(Z, c, axis=0), np.repeat(y, c))
    np.testing.assert_allclose(weighted.weights(X), copied.weights(X), atol=1e-4)


def test_unit_weights_of_zeros_are_equal():
    W = np.array([[0.0, 0.0], [3.0, -1.0]])
    np.testing.assert_array_equal(unit_weights(W), [[0.5, 0.5], [0.75, -0.25]])


def test_unconverged_is_said():
    Z, y, _ = scores(n=300, n_anomalies=150)
    with pytest.warns(ConvergenceWarning, match="frank-wolfe-paper"):
        model = LpFusion(p=4.0, solver="frank-wolfe-paper", tol=1e-9).fit(Z, y)
    assert model.status_ != "solved"
    assert model.gap_ > 1e-9


@pytest.mark.parametrize("p", [0.5, np.nan, "2"])
def test_wrong_norm_is_refused(p):
    with pytest.raises(InvalidInputError, match="p must"):
        LpFusion(p).fit(np.ones((3, 2)))


@pytest.mark.parametrize("nonneg", [True, False])
@pytest.mark.parametrize("p", [1.0, *GRID, np.inf])
def test_least_squares_cannot_be_improved_within_the_ball(p, nonneg):
    Z, y, _ = scores()
    c = np.where(y > 0, 1.0, 5.0)
    model = LeastSquaresFusion(p, nonneg=nonneg, tol=1e-9).fit(Z, y, sample_weight=c)
    ball = LpBall(p, nonneg)
    assert ball.contains(model.w_)
    assert model.status_ == "solved"

    def loss(w):
        return float((c * (y - Z @ w) ** 2).sum() / c.sum())

    rng = np.random.default_rng(0)
    near = ball.project(model.w_ + rng.normal(size=(300, len(model.w_))) * 0.05)
    far = ball.project(rng.normal(size=(300, len(model.w_))))
    assert min(loss(w) for w in [*near, *far]) >= loss(model.w_) - 1e-9


def test_least_squares_inside_the_ball_are_those_of_numpy():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3)) + 3.0
    y = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    model = LeastSquaresFusion(p=2.0, nonneg=False, tol=1e-12).fit(Z, y)
    expected = np.linalg.lstsq(Z, y, rcond=None)[0]
    assert np.linalg.norm(expected) < 1
    np.testing.assert_allclose(model.w_, expected, atol=1e-6)


def test_least_squares_without_anything_to_learn_weigh_equally():
    with pytest.warns(EqualWeightsWarning, match="Nothing could be learned"):
        model = LeastSquaresFusion().fit([[0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(model.w_, [0.5, 0.5])


def test_p_of_two_is_a_linear_svm_without_a_bias():
    """The constraint ``||w|| <= 1`` is the penalty of some C: there w is parallel to the SVM's."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random(80) < 0.4, -1, 1)
    Z = 0.5 * rng.normal(size=(80, 3)) + 0.5 * y[:, np.newaxis] * [1.0, 0.6, 0.2]
    ours = LpFusion(p=2.0, nonneg=False, tol=1e-9).fit(Z, y).w_

    def svm(C):
        machine = LinearSVC(
            C=C, loss="hinge", fit_intercept=False, dual=True, tol=1e-10, max_iter=10_000_000
        )
        return machine.fit(Z, y).coef_[0]

    low, high = 1e-4, 1e3
    for _ in range(60):  # the norm grows with C
        middle = np.sqrt(low * high)
        low, high = (middle, high) if np.linalg.norm(svm(middle)) < 1 else (low, middle)
    theirs = svm(low)
    np.testing.assert_allclose(np.linalg.norm(theirs), 1.0, atol=1e-4)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)

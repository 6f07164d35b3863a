"""Facts about the problem that hold whichever solver is used.

Those about the optimisation are proved in docs/errata.md.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ocfuse.solvers.ball import LpBall, lp_norm
from ocfuse.solvers.problem import Problem
from ocfuse.solvers.solution import certify

GRID = [32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 10.0, 100.0]


def hinge_objective(S, y, w, c=1.0):
    return np.sum(c * np.maximum(0.0, 1.0 - y * (S @ w)))


# Frank-Wolfe on a non-smooth function


def best_by_frank_wolfe(function, subgradient, ball, d, n_steps):
    """Return the smallest value along Frank-Wolfe with subgradients and steps 2/(t+2)."""
    w, best = np.zeros(d), np.inf
    for t in range(n_steps):
        w = w + 2.0 / (t + 2.0) * (ball.maximiser(-subgradient(w)) - w)
        best = min(best, function(w))
    return best


@pytest.mark.slow
def test_frank_wolfe_does_not_minimise_a_maximum():
    def subgradient(x):
        return np.eye(2)[np.argmax(x)]

    best = best_by_frank_wolfe(np.max, subgradient, LpBall(2.0), d=2, n_steps=20_000)
    optimum = np.full(2, -np.sqrt(0.5))
    assert lp_norm(optimum, 2.0) <= 1.0 + 1e-15
    assert best >= -0.5 - 1e-12
    assert np.max(optimum) < -0.7


@pytest.fixture
def two_hinges():
    """Return margins for which Frank-Wolfe stops at 0.309, the optimum being 0.134."""
    return np.array([[0.0, 1.0], [2.0, 0.0]])


def test_optimum_of_the_two_hinges_is_certified(two_hinges):
    w = np.array([0.5, np.sqrt(0.75)])
    alpha = np.array([1.0, np.sqrt(1 / 12)])
    primal, dual, _, _ = certify(two_hinges, np.ones(2), LpBall(2.0), w, alpha)
    assert_allclose([primal, dual], 1 - np.sqrt(0.75), rtol=1e-14)


@pytest.mark.slow
def test_frank_wolfe_does_not_minimise_two_hinges(two_hinges):
    def function(w):
        return hinge_objective(two_hinges, 1.0, w)

    def subgradient(w):
        return -two_hinges.T @ (two_hinges @ w < 1.0)

    best = best_by_frank_wolfe(function, subgradient, LpBall(2.0), d=2, n_steps=20_000)
    assert best >= (np.sqrt(5) - 1) / 4 - 1e-12
    assert best <= (np.sqrt(5) - 1) / 4 + 1e-3


# The closed form


@pytest.mark.parametrize("p", [1.0, *GRID, np.inf])
def test_closed_form_when_every_hinge_is_active(p):
    rng = np.random.default_rng(0)
    ball = LpBall(p)
    A = rng.standard_normal((50, 6))
    A = A / np.maximum(1.0, ball.dual_norm(A).max())  # then no margin exceeds 1
    c = rng.uniform(0.1, 1.0, 50)
    assert certify(A, c, ball, ball.maximiser(A.T @ c), c).gap <= 1e-12


def test_norm_near_1_picks_the_largest_total_not_the_most_correct():
    # Learner 0 is right on all ten samples, learner 1 on one only, by a lot.
    S = np.column_stack([np.full(10, 0.01), np.r_[0.9, np.full(9, -0.01)]])
    total = S.sum(axis=0)
    assert total[1] > total[0]
    for p in (1.0, 32 / 31):
        ball = LpBall(p)
        w = ball.maximiser(total)
        assert certify(S, np.ones(10), ball, w, np.ones(10)).gap <= 1e-12
        assert w[1] > 0.99
        assert w[0] < 1e-6


@pytest.mark.parametrize("p", [32 / 31, 8 / 7, 2.0])
def test_without_anomalies_the_highest_mean_gets_the_weight(p):
    rng = np.random.default_rng(0)
    # member 0 finds every anomaly, and its normals lie low in their range; member 1 knows nothing
    normals = np.column_stack([rng.beta(1, 4, 200), rng.beta(4, 1, 200)])
    anomalies = np.column_stack([rng.uniform(-2, -1, 50), rng.beta(4, 1, 50)])
    assert anomalies[:, 0].max() < normals[:, 0].min()
    ball = LpBall(p)
    w = ball.maximiser(normals.mean(axis=0))
    normals = normals / max(1.0, ball.dual_norm(normals).max())
    assert certify(normals, np.ones(200), ball, w, np.ones(200)).gap <= 1e-12
    share = w / w.sum()
    mean = normals.mean(axis=0)
    assert_allclose(w[1] / w[0], (mean[1] / mean[0]) ** (1 / (p - 1)))
    assert share[1] > 0.7
    # an increasing map of one member's scores keeps the order of all rows, and turns the weights
    lifted = np.column_stack([normals[:, 0] ** 0.05, normals[:, 1] ** 5])
    assert ball.maximiser(lifted.mean(axis=0))[0] > ball.maximiser(lifted.mean(axis=0))[1]


def test_norm_infinite_is_the_sum_rule_only_if_all_totals_are_positive():
    S, c, ball = np.array([[0.2, -0.1], [0.1, -0.3]]), np.ones(2), LpBall(np.inf)
    w = ball.maximiser(S.sum(axis=0))
    assert_array_equal(w, [1.0, -1.0])
    assert certify(S, c, ball, w, c).gap <= 1e-12
    assert hinge_objective(S, 1.0, np.ones(2)) > hinge_objective(S, 1.0, w) + 0.5


# Local weights


def test_blended_weights_stay_in_the_largest_ball():
    rng = np.random.default_rng(6)
    for _ in range(200):
        p = rng.choice(GRID, size=4)
        anchors = rng.standard_normal((4, 6))
        anchors /= lp_norm(anchors, p)[:, np.newaxis]
        blended = rng.dirichlet(np.ones(4)) @ anchors
        assert lp_norm(blended, p.max()) <= 1.0 + 1e-14
    # The smallest ball is not enough.
    corner = np.full(6, 6 ** (-1 / 4))
    assert lp_norm(corner, 4.0) <= 1.0 + 1e-15
    assert lp_norm(0.5 * corner + 0.5 * np.eye(6)[0], 4 / 3) > 1.5


@pytest.mark.parametrize("p", GRID)
def test_equation_3_asks_for_a_point_outside_the_ball(p):
    rng = np.random.default_rng(7)
    s = rng.uniform(-1.0, 0.2, 4)
    ones = np.ones(4)
    mu = np.linalg.norm(s)

    def equation_3(w):
        return max(0.0, 1.0 - s @ w) + mu * np.linalg.norm(1.0 - w)

    assert lp_norm(ones, p) > 1.0
    for w in rng.standard_normal((500, 4)) * 2.0:
        assert equation_3(w) >= equation_3(ones)
    assert equation_3(LpBall(p).project(ones)) > equation_3(ones)


# What the optimisation is fed


def test_z_scores_of_normal_data_teach_nothing():
    rng = np.random.default_rng(1)
    n = 60
    S = rng.gamma(2.0, size=(n, 5))
    S = (S - S.mean(axis=0)) / S.std(axis=0)
    W = rng.standard_normal((20_000, 5)) * 10.0 ** rng.uniform(-3, 1, (20_000, 1))
    values = np.maximum(0.0, 1.0 - S @ W.T).sum(axis=0)
    assert values.min() >= n - 1e-10
    assert hinge_objective(S, 1.0, np.zeros(5)) == n


@pytest.mark.parametrize("p", GRID)
def test_z_scores_of_normal_data_have_optimum_zero(p):
    rng = np.random.default_rng(2)
    S = rng.gamma(2.0, size=(60, 5))
    S = (S - S.mean(axis=0)) / S.std(axis=0)
    assert certify(S, np.ones(60), LpBall(p), np.zeros(5), np.ones(60)).gap <= 1e-12


def test_mirrored_scores_are_duplicates():
    rng = np.random.default_rng(3)
    S = rng.standard_normal((40, 5))
    mirrored = rng.choice(40, size=20, replace=False)
    both = np.vstack([S, -S[mirrored]])
    y = np.r_[np.ones(40), -np.ones(20)]
    doubled = np.ones(40)
    doubled[mirrored] = 2.0
    margins = Problem.from_scores(both, y, 2.0, None, nonneg=False).A
    assert_array_equal(margins, np.vstack([S, S[mirrored]]))
    for w in rng.standard_normal((200, 5)):
        expected = hinge_objective(S, 1.0, w, doubled)
        assert hinge_objective(both, y, w) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("percent", [0, 1, 5, 10])
def test_min_max_of_z_scores_is_min_max(percent):
    def min_max(train, s):
        low, high = np.percentile(train, [percent, 100 - percent], axis=0)
        return (s - low) / (high - low)

    rng = np.random.default_rng(4)
    train, s = rng.standard_t(3, (150, 4)) * 7.0 + 3.0, rng.standard_t(3, (50, 4))
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    standardised = min_max((train - mean) / deviation, (s - mean) / deviation)
    assert_allclose(standardised, min_max(train, s), rtol=1e-11, atol=1e-12)


# Evaluation


def average_precision(is_positive_by_rank):
    """Return the mean, over the positives, of the precision at their rank."""
    hits = np.cumsum(is_positive_by_rank)
    precision = hits / np.arange(1, len(hits) + 1)
    return precision[np.asarray(is_positive_by_rank, dtype=bool)].mean()


def test_worst_average_precision_of_60_positives_and_7_negatives():
    worst = average_precision([0] * 7 + [1] * 60)
    harmonic = np.cumsum(1.0 / np.arange(1, 68))
    formula = 1.0 - 7 / 60 * (harmonic[66] - harmonic[6])
    assert worst == pytest.approx(formula, rel=1e-13)
    assert worst == pytest.approx(0.744, abs=5e-4)


def test_no_ranking_of_60_positives_and_7_negatives_is_below_the_worst():
    rng = np.random.default_rng(5)
    labels = np.r_[np.zeros(7), np.ones(60)]
    worst = average_precision(labels)
    random = [average_precision(rng.permutation(labels)) for _ in range(2000)]
    assert min(random) > worst
    assert np.mean(random) == pytest.approx(60 / 67, abs=0.01)


# The documentation


def test_every_test_that_the_errata_name_exists():
    root = Path(__file__).parents[2]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (root / "docs/errata.md").read_text("utf-8"))
    assert len(named) > 30
    missing = [
        f"{file}::{name}"
        for file, name in named
        if f"def {name}(" not in (root / file).read_text("utf-8")
    ]
    assert missing == []

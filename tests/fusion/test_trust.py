"""Trust learned from other data sets: log-linear weights, tail values, reasons in words."""

import json

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import expon, spearmanr

from ocfuse import FusedDetector, load
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import TrustFusion
from ocfuse.fusion.base import Evidence
from ocfuse.fusion.trust import FEATURES, KINDS, TailScale, behaviour, read_coefficients


def _rows(n=150, d=5, seed=0, labels=KINDS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = rng.normal(size=(n, 1)) + rng.normal(size=(n, d)) * np.linspace(0.5, 2, d) + 3.0
    auc = rng.uniform(0.5, 1.0, size=(d, len(labels)))
    return Z, X, Evidence(auc, np.ones(len(labels)), list(labels))


def test_weights_are_log_linear_in_the_behaviour():
    Z, X, evidence = _rows()
    fusion = TrustFusion(strength=0.5).fit(Z, X=X, evidence=evidence)
    expected = softmax(0.5 * fusion.behaviour_ @ read_coefficients())
    np.testing.assert_allclose(fusion.trust_, expected)
    np.testing.assert_allclose(fusion.weights(X[:2]), [expected, expected])
    np.testing.assert_allclose(TrustFusion(0.0).fit(Z, X=X, evidence=evidence).trust_, 0.2)


def test_behaviour_is_measured_against_the_other_members():
    Z, _, evidence = _rows()
    x = behaviour(Z, evidence)
    area = np.clip(evidence.auc, 0.005, 0.995)
    odds = np.log(area / (1 - area))
    np.testing.assert_allclose(x[:, :6], odds - odds.mean(axis=0))
    np.testing.assert_allclose(
        np.sort(x[:, 6:11], axis=0), np.tile([[-0.4], [-0.2], [0], [0.2], [0.4]], 5), atol=1e-12
    )
    R = (spearmanr(Z).statistic.sum(axis=1) - 1) / 4
    np.testing.assert_allclose(x[:, 11], R - R.mean())
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)


def test_comparisons_that_were_not_made_do_not_count():
    Z, _, evidence = _rows(labels=("swap", "something new"))
    x = behaviour(Z, evidence)
    known = [
        FEATURES.index("area, swap"),
        FEATURES.index("rank, swap"),
        FEATURES.index("agreement"),
    ]
    assert (np.delete(x, known, axis=1) == 0).all()
    assert (behaviour(Z, None)[:, :-1] == 0).all()
    assert (behaviour(Z[:, :1], None) == 0).all()


def test_members_are_known_by_behaviour_only():
    Z, X, evidence = _rows()
    order = [3, 1, 4, 0, 2]
    turned = Evidence(evidence.auc[order], evidence.vote, evidence.labels)
    fusion = TrustFusion().fit(Z, X=X, evidence=evidence)
    other = TrustFusion().fit(Z[:, order], X=X, evidence=turned)
    np.testing.assert_allclose(other.trust_, fusion.trust_[order])
    np.testing.assert_allclose(other.fuse(Z[:, order], X), fusion.fuse(Z, X))


def test_the_score_is_one_less_the_weighted_tail_values():
    Z, X, evidence = _rows()
    fusion = TrustFusion().fit(Z, X=X, evidence=evidence)
    V = fusion.tail_.at(fusion._local(Z, X))
    np.testing.assert_allclose(fusion.fuse(Z, X), 1 - V @ fusion.trust_)
    base, C = fusion.contributions(Z, X)
    np.testing.assert_allclose(base + C.sum(axis=1), fusion.fuse(Z, X))


def test_tail_values_of_normals_are_exponential():
    rng = np.random.default_rng(0)
    tail = TailScale(rng.normal(size=(5000, 2)))
    V = tail.at(rng.normal(size=(20000, 2)))
    np.testing.assert_allclose(V.mean(axis=0), 1.0, atol=0.05)
    for share in (0.5, 0.9, 0.99):
        np.testing.assert_allclose(np.quantile(V[:, 0], share), expon.ppf(share), rtol=0.1)


def test_tail_values_fall_with_the_score_and_go_on_below_the_lowest_normal():
    L = np.random.default_rng(1).normal(size=(80, 1))
    tail = TailScale(L)
    grid = np.linspace(-50, 5, 2000)[:, np.newaxis]
    V = tail.at(grid)[:, 0]
    assert (np.diff(V) <= 1e-12).all()
    far = V[grid[:, 0] < L.min()]
    assert (np.diff(far) < 0).all()
    np.testing.assert_allclose(np.diff(far, 2), 0, atol=1e-9)


def test_scores_that_are_alike_have_one_tail_value():
    L = np.repeat([[0.0], [1.0]], [90, 10], axis=0)
    V = TailScale(L).at(np.array([[0.0], [1.0], [-1.0]]))[:, 0]
    np.testing.assert_allclose(V[:2], -np.log(np.array([45.5, 95.5]) / 101), rtol=0.2)
    assert V[2] > V[0] > V[1]


@pytest.mark.parametrize("n", [2, 5, 20])
def test_few_rows(n):
    Z, X, evidence = _rows(n=n)
    scores = TrustFusion().fit(Z, X=X, evidence=evidence).fuse(Z, X)
    assert np.isfinite(scores).all()


def test_reasons_in_words():
    Z, X, _ = _rows(d=3)
    auc = np.full((3, 6), 0.8)
    auc[0, :5] = 0.99
    auc[1, :5] = 0.55
    fusion = TrustFusion(3.0).fit(Z, X=X, evidence=Evidence(auc, np.ones(6), list(KINDS)))
    best, worst, _ = fusion.reasons()
    assert best.startswith("for it: tells made-up anomalies more surely than most")
    assert "against it: tells made-up anomalies less surely than most" in worst
    alike = TrustFusion(0.0).fit(Z, X=X).reasons()
    assert set(alike) == {"like most members in all that is known of it"}


def test_other_coefficients(tmp_path):
    Z, X, evidence = _rows()
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"coefficients": dict.fromkeys(FEATURES, 0.0)}))
    fusion = TrustFusion(coefficients=str(path)).fit(Z, X=X, evidence=evidence)
    np.testing.assert_allclose(fusion.trust_, 0.2)
    path.write_text("{}")
    with pytest.raises(InvalidInputError, match="make train-trust"):
        TrustFusion(coefficients=str(path)).fit(Z, X=X)
    with pytest.raises(InvalidInputError, match="coefficients must name a JSON file"):
        TrustFusion(coefficients=str(tmp_path / "missing.json")).fit(Z, X=X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strength": -1.0}, "strength"),
        ({"n_neighbors": -1}, "n_neighbors must be 0 or a positive integer"),
        ({"scale_prior": 0.0}, "scale_prior"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    Z, X, _ = _rows()
    with pytest.raises(InvalidInputError, match=message):
        TrustFusion(**settings).fit(Z, X=X)


def test_evidence_of_other_members_is_refused():
    Z, X, evidence = _rows()
    with pytest.raises(InvalidInputError, match=r"one row per member: 4\. Got 5"):
        TrustFusion().fit(Z[:, :4], X=X, evidence=evidence)


def test_a_saved_model_scores_alike(tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 3))
    detector = FusedDetector("light", fusion="trust", random_state=0).fit(X)
    detector.save(tmp_path / "model.ocf")
    np.testing.assert_array_equal(
        load(tmp_path / "model.ocf").score_samples(X), detector.score_samples(X)
    )


def exponential(n, seed, *, means=(1.0, 1.0, 1.0)):
    """Tail values: of normals they are exponential with mean 1."""
    return np.random.default_rng(seed).exponential(means, size=(n, len(means)))


def fitted_to(d):
    Z = np.random.default_rng(0).normal(size=(60, d))
    return TrustFusion().fit(Z, X=Z)


def test_unlabelled_rows_move_trust_to_who_alarms_more():
    fusion = fitted_to(3)
    rows = np.vstack([exponential(270, 1), exponential(30, 2, means=(8.0, 3.0, 1.0))])
    found = fusion.adapted(exponential(500, 3), rows)
    gain = np.log(found.trust_ / fusion.trust_)
    assert gain[0] > gain[1] > gain[2]
    assert gain[0] - gain[2] == pytest.approx(found.shift_[0] - found.shift_[2])
    assert (fusion.shift_ == 0).all()  # a copy was changed
    again = found.adapted(exponential(500, 3), rows)
    np.testing.assert_array_equal(again.trust_, found.trust_)


@pytest.mark.parametrize("seed", range(5))
def test_normal_rows_alone_move_little(seed):
    found = fitted_to(3).adapted(exponential(500, 10), exponential(300, 20 + seed))
    assert np.abs(found.shift_).max() < 0.5
    # no more alarms than of normals: nothing at all
    fewer = fitted_to(3).adapted(exponential(500, 10), 0.5 * exponential(300, 20 + seed))
    assert fewer.sureness_ == 0
    assert (fewer.shift_ == 0).all()


def test_members_that_alarm_alike_stay_as_they_are():
    rows = np.repeat(exponential(300, 1, means=(5.0,)), 3, axis=1)
    normals = np.repeat(exponential(300, 2, means=(1.0,)), 3, axis=1)
    assert (fitted_to(3).adapted(normals, rows).shift_ == 0).all()


def test_more_rows_are_surer():
    rows = np.vstack([exponential(2850, 1), exponential(150, 2, means=(3.0, 2.0, 1.0))])
    mixed = np.random.default_rng(0).permutation(rows)
    normals = exponential(2000, 3)
    few, many = (fitted_to(3).adapted(normals, mixed[:n]).sureness_ for n in (60, 3000))
    assert few < many

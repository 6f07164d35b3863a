"""A fusion with known anomalies: what they add, and what they must not take away."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, OcfuseWarning
from ocfuse.fusion import CompetenceFusion, LocalLpFusion, LpFusion, ProductRule, SumRule
from ocfuse.fusion.base import Evidence
from ocfuse.fusion.labelled import LabelledFusion, default_share
from tests.fusion.cases import scores

#: Quick stand-ins for the default trees where they are not what is tested.
QUICK = RandomForestClassifier(5, random_state=0)


def quick(fusion=None, **settings):
    return LabelledFusion(SumRule() if fusion is None else fusion, QUICK, **settings)


@pytest.mark.parametrize(
    "inner", [None, LpFusion(p=1.5), LocalLpFusion(p=3.0, nonneg=False), ProductRule()], ids=repr
)
def test_contributions_add_up_to_the_score(inner):
    Z, y, X = scores()
    fusion = LabelledFusion(inner, QUICK).fit(Z, y, X)
    base, C = fusion.contributions(2 * Z, X)
    np.testing.assert_allclose(base + C.sum(axis=1), fusion.fuse(2 * Z, X), atol=1e-10)


@pytest.mark.slow
def test_a_row_is_scored_on_its_own():
    Z, y, X = scores()
    fusion = LabelledFusion().fit(Z, y, X)
    together = fusion.fuse(Z, X)
    alone = np.concatenate([fusion.fuse(Z[i : i + 1], X[i : i + 1]) for i in range(len(Z))])
    np.testing.assert_allclose(alone, together, atol=1e-10)
    np.testing.assert_allclose(fusion.fuse(Z[::-1], X[::-1])[::-1], together, atol=1e-10)
    assert fusion.fuse(Z[:0], X[:0]).shape == (0,)


def test_two_fits_agree_and_the_parts_given_stay_unfitted():
    Z, y, X = scores()
    fusion = LabelledFusion(LpFusion(), QUICK, LogisticRegression())
    again = clone(fusion)
    np.testing.assert_array_equal(fusion.fit(Z, y, X).fuse(Z, X), again.fit(Z, y, X).fuse(Z, X))
    assert not hasattr(fusion.fusion, "n_members_")
    assert not hasattr(fusion.classifier, "classes_")
    assert not hasattr(fusion.joint_classifier, "classes_")


def test_without_share_it_is_the_fusion_on_another_scale():
    Z, y, X = scores()
    inner = LocalLpFusion(p=8 / 7).fit(Z, y, X)
    P = inner.fuse(Z, X)
    normal = P[y > 0]
    fusion = LabelledFusion(LocalLpFusion(p=8 / 7), share=0.0, classifier=QUICK).fit(Z, y, X)
    standard = (P - normal.mean()) / normal.std()
    expected = np.where(standard < -6, np.arcsinh(-6) + standard + 6, np.arcsinh(standard))
    np.testing.assert_allclose(fusion.fuse(Z, X), expected, atol=1e-10)
    np.testing.assert_array_equal(fusion.weights(X), inner.weights(X))
    np.testing.assert_array_equal(fusion.local_p(X), inner.local_p(X))


def test_the_score_is_the_stated_formula():
    Z, y, X = scores()
    fusion = quick(share=2.0).fit(Z, y, X)
    table = np.column_stack([X, Z, Z.mean(axis=1)])
    normal = table[y > 0]
    table = np.arcsinh((table - normal.mean(axis=0)) / normal.std(axis=0))
    weight = np.where(y > 0, 0.5 / (y > 0).sum(), 0.5 / (y < 0).sum()) * len(y)
    q = clone(QUICK).fit(table[:, :3], y, sample_weight=weight).predict_proba(table[:, :3])
    linear = LogisticRegression(C=0.1, max_iter=1000)
    r = linear.fit(table[:, :-1], y, sample_weight=weight).predict_proba(table[:, :-1])
    p = (q + r) / 2 + 0.005
    odds = np.log(p[:, 1] / p[:, 0])
    odds = np.minimum(odds, np.quantile(odds[y > 0], 0.25))
    P = np.sinh(table[:, -1])
    P = np.where(P < -6, np.arcsinh(-6) + P + 6, table[:, -1])
    expected = P + 2.0 * odds
    np.testing.assert_allclose(fusion.fuse(Z, X), expected, atol=1e-8)


@settings(max_examples=15, deadline=None)
@given(k=st.integers(1, 20))
def test_the_share_grows_with_the_number_of_labels(k):
    Z, y, X = scores()
    kept = np.r_[np.flatnonzero(y > 0), np.flatnonzero(y < 0)[:k]]
    fusion = quick().fit(Z[kept], y[kept], X[kept])
    assert fusion.share_ == default_share(k) == 4.0 * k / (k + 40.0)


def test_it_learns_a_kind_that_the_members_cannot_see():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    Z = rng.normal(size=(400, 4))
    y = np.where(np.arange(400) < 300, 1, -1)
    X[y < 0, 0] += 5.0
    kept = np.arange(400) < 310
    blind = SumRule().fit(Z[kept]).fuse(Z[~kept])
    fused = LabelledFusion(SumRule()).fit(Z[kept], y[kept], X[kept])
    normal = rng.normal(size=(90, 3)), rng.normal(size=(90, 4))
    truth = np.r_[np.ones(90), np.zeros(90)]
    sees = np.r_[fused.fuse(normal[1], normal[0]), fused.fuse(Z[~kept], X[~kept])]
    assert roc_auc_score(truth, np.r_[normal[1].mean(axis=1), blind]) < 0.65
    assert roc_auc_score(truth, sees) > 0.95


def test_the_log_odds_cannot_outvote_a_score_far_below():
    Z, y, X = scores()
    fusion = quick(share=4.0).fit(Z, y, X)
    # Like a normal in its features, like none in its scores.
    new = fusion.fuse(Z[y > 0] - 50.0, X[y > 0])
    assert new.max() < fusion.fuse(Z, X).min()
    farther = fusion.fuse(Z[y > 0] - 1e300, X[y > 0])
    assert (farther < new).all()
    alone = quick(share=0.0).fit(Z, y, X).fuse(Z, X)
    assert np.abs(fusion.fuse(Z, X) - alone).max() <= 4.0 * np.log(1.005 / 0.005) + 1e-9


def test_being_unlike_the_known_anomalies_does_not_make_normal():
    """Known anomalies on one side: rows on the other gain no more than normals have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(220, 2))
    y = np.repeat([1, -1], [200, 20])
    X[y < 0, 0] += 3.0
    Z = -np.abs(X)
    fusion = LabelledFusion(SumRule()).fit(Z, y, X)
    other = X[y > 0] - [20.0, 0.0]
    assert fusion.fuse(-np.abs(other), other).max() < np.quantile(fusion.fuse(Z, X)[y > 0], 0.05)


def test_only_ratios_within_a_class_count():
    Z, y, X = scores()
    c = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    heavy = np.where(y > 0, c, 8.0 * c)
    # not trees, whose splits may turn over at the last bit of a column
    fusion = LabelledFusion(SumRule(), LogisticRegression())
    fused = fusion.fit(Z, y, X, c).fuse(Z, X)
    np.testing.assert_allclose(fusion.fit(Z, y, X, heavy).fuse(Z, X), fused, atol=1e-6)
    assert np.abs(fused - fusion.fit(Z, y, X).fuse(Z, X)).max() > 1e-3


def test_units_and_origin_of_the_features_do_not_matter():
    Z, y, X = scores()
    X = np.column_stack([X, np.full(len(X), 0.1)])
    moved = X * [2.0**20, 2.0**-20, 1.0, 1.0] + [0.0, 0.0, 4.0, 7.0]
    fused = quick().fit(Z, y, X).fuse(Z, X)
    np.testing.assert_allclose(quick().fit(Z, y, moved).fuse(Z, moved), fused, atol=1e-6)


def test_one_known_anomaly_is_enough():
    Z, y, X = scores(n_anomalies=1)
    fused = LabelledFusion().fit(Z, y, X).fuse(Z, X)
    assert np.isfinite(fused).all()
    assert fused.argmin() == len(Z) - 1


def test_weights_that_a_classifier_cannot_use_are_told():
    Z, y, X = scores()
    with pytest.warns(OcfuseWarning, match="KNeighborsClassifier takes no sample_weight"):
        LabelledFusion(SumRule(), KNeighborsClassifier()).fit(Z, y, X)


@pytest.mark.parametrize("name", ["classifier", "joint_classifier"])
@pytest.mark.parametrize("value", [LogisticRegression, "trees", LinearSVC()])
def test_what_gives_no_probability_is_refused(name, value):
    Z, y, X = scores()
    with pytest.raises(InvalidTypeError, match=f"{name} must be an object"):
        LabelledFusion(**{name: value}).fit(Z, y, X)


@pytest.mark.parametrize("wrong", [{"share": -1.0}, {"share": np.inf}, {"share": np.nan}])
def test_numbers_outside_are_refused(wrong):
    Z, y, X = scores()
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        quick(**wrong).fit(Z, y, X)


def test_the_evidence_reaches_the_fusion():
    Z, y, X = scores()
    evidence = Evidence(np.array([[0.6], [0.9], [0.7], [0.5]]), np.ones(1))
    given = quick(CompetenceFusion()).fit(Z, y, X, evidence=evidence)
    alone = CompetenceFusion().fit(Z, y, X, evidence=evidence)
    np.testing.assert_array_equal(given.weights(X), alone.weights(X))
    assert np.abs(given.weights(X) - quick(CompetenceFusion()).fit(Z, y, X).weights(X)).max() > 0.1


def test_it_needs_features_and_anomalies():
    Z, y, X = scores()
    with pytest.raises(InvalidInputError, match="feature rows"):
        quick().fit(Z, y)
    with pytest.raises(InvalidInputError, match="needs anomalies"):
        quick().fit(Z, X=X)

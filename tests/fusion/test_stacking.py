"""Any classifier on top of the scores."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ocfuse.exceptions import InvalidTypeError, OcfuseWarning
from ocfuse.fusion.stacking import StackedFusion
from tests.fusion.cases import scores

FOREST = RandomForestClassifier(30, random_state=0)


@pytest.mark.parametrize(
    "classifier",
    [
        None,
        SVC(),
        FOREST,
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_classifier_tells_them_apart(classifier):
    Z, y, _ = scores()
    model = StackedFusion(classifier).fit(Z, y)
    fused = model.fuse(Z)
    assert roc_auc_score(y, fused) > 0.9
    assert np.isfinite(fused).all()
    base, C = model.contributions(Z)
    np.testing.assert_allclose(base + C.sum(axis=1), fused, atol=1e-10)


def test_default_is_the_stated_logistic_regression():
    Z, y, X = scores()
    model = StackedFusion().fit(Z, y)
    same = LogisticRegression(C=0.01, class_weight="balanced").fit(Z, y)
    np.testing.assert_allclose(model.fuse(Z), same.decision_function(Z))
    expected = same.coef_[0] / np.abs(same.coef_).sum()
    np.testing.assert_allclose(model.weights(X[:1]), expected[np.newaxis])


def test_probabilities_become_log_odds():
    Z, y, X = scores()
    model = StackedFusion(FOREST).fit(Z, y)
    share = np.clip(model.classifier_.predict_proba(Z)[:, 1], 1e-12, 1 - 1e-12)
    np.testing.assert_allclose(model.fuse(Z), logit(share))
    np.testing.assert_allclose(model.weights(X), 0.25)


def test_the_given_classifier_is_not_fitted():
    Z, y, _ = scores()
    given = SVC()
    StackedFusion(given).fit(Z, y)
    assert not hasattr(given, "support_")


def test_weights_reach_the_classifier():
    Z, y, _ = scores()
    c = np.where(Z[:, 0] > 0.5, 5.0, 0.2)
    c /= c.mean()
    plain = LogisticRegression().fit(Z, y, sample_weight=c)
    alone = StackedFusion(LogisticRegression()).fit(Z, y, sample_weight=c)
    np.testing.assert_allclose(alone.fuse(Z), plain.decision_function(Z), rtol=1e-3, atol=1e-3)
    piped = StackedFusion(make_pipeline(LogisticRegression())).fit(Z, y, sample_weight=c)
    np.testing.assert_allclose(piped.fuse(Z), alone.fuse(Z))
    assert np.abs(alone.fuse(Z) - StackedFusion(LogisticRegression()).fit(Z, y).fuse(Z)).max() > 0.1


def test_weights_that_cannot_be_used_are_told():
    Z, y, _ = scores()
    c = np.where(y > 0, 1.0, 2.0)
    with pytest.warns(OcfuseWarning, match="KNeighborsClassifier takes no sample_weight"):
        StackedFusion(KNeighborsClassifier()).fit(Z, y, sample_weight=c)


@pytest.mark.parametrize("classifier", [SVC, "svc", StandardScaler()])
def test_what_is_no_classifier_is_refused(classifier):
    Z, y, _ = scores()
    with pytest.raises(InvalidTypeError, match="classifier must be an object"):
        StackedFusion(classifier).fit(Z, y)

"""FusedDetector with context: hidden from members, in one scale, kept wherever rows are."""

import numpy as np
import pytest

import ocfuse
from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN
from ocfuse.ensemble import report
from ocfuse.ensemble.score import ScoreChain
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import CompetenceFusion, LocalLpFusion, TrustFusion
from ocfuse.metrics import auc
from ocfuse.streaming import blocks

MEMBERS = [("knn", KNN(5)), ("gmm", GMM(1))]


def phases(n, seed, spread=(0.1, 1.0)):
    """A task whose second half is restless, and the progress of each row."""
    rng = np.random.default_rng(seed)
    progress = rng.random(n)
    scale = np.where(progress < 0.5, *spread)[:, np.newaxis]
    return scale * rng.normal(size=(n, 3)), progress


@pytest.fixture(name="fitted", scope="module")
def _fitted():
    X, progress = phases(300, 0)
    return FusedDetector(MEMBERS, random_state=0).fit(X, np.ones(300), context=progress)


def test_members_do_not_see_it(fitted):
    X, _ = phases(300, 0)
    blind = FusedDetector(MEMBERS, random_state=0).fit(X, np.ones(300))
    np.testing.assert_array_equal(fitted.transform(X), blind.transform(X))
    np.testing.assert_array_equal(fitted.pool_.out_of_fold_scores_, blind.pool_.out_of_fold_scores_)


def test_what_is_normal_depends_on_it(fitted):
    """A restless row in the calm phase is an anomaly that features alone do not show."""
    X, progress = phases(400, 1)
    odd, late = phases(200, 2, (0.5, 1.0))
    calm, early = odd[late < 0.5], late[late < 0.5]
    rows, context = np.vstack([X, calm]), np.r_[progress, early]
    y = np.r_[np.ones(len(X)), -np.ones(len(calm))]
    known = FusedDetector(MEMBERS, random_state=0).fit(phases(300, 0)[0], np.ones(300))
    gain = auc(y, fitted.score_samples(rows, context)) - auc(y, known.score_samples(rows))
    assert gain > 0.2


@pytest.mark.parametrize("weight", [0.0, None])
def test_weight_nought_and_no_difference_between_contexts_is_no_context(weight):
    X, progress = phases(150, 0, (1.0, 1.0))
    blind = FusedDetector(MEMBERS, random_state=0).fit(X, np.ones(150))
    fusion = TrustFusion(context_weight=weight)
    aware = FusedDetector(MEMBERS, fusion=fusion, random_state=0)
    aware.fit(X, np.ones(150), context=progress)
    np.testing.assert_allclose(aware.score_samples(X, progress), blind.score_samples(X))
    assert aware.offset_ == pytest.approx(blind.offset_)


def test_its_units_do_not_matter():
    X, progress = phases(150, 0)
    one = FusedDetector(MEMBERS, random_state=0).fit(X, np.ones(150), context=progress)
    other = FusedDetector(MEMBERS, random_state=0).fit(X, np.ones(150), context=60 * progress - 7)
    np.testing.assert_allclose(
        one.score_samples(X, progress), other.score_samples(X, 60 * progress - 7), rtol=1e-9
    )


def test_on_average_rows_are_as_far_apart_in_context_as_in_features(fitted):
    features = fitted.training_.var(axis=0).sum()
    assert fitted.training_context_.var(axis=0).sum() == pytest.approx(features)


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.EqualWeightsWarning")
@pytest.mark.parametrize("fusion", [None, LocalLpFusion()])
def test_neither_order_nor_batch_matters(fusion):
    X, progress = phases(160, 3)
    order = np.random.default_rng(0).permutation(160)
    groups = blocks(160, 4, 5)
    one = FusedDetector(MEMBERS, fusion=fusion, random_state=0)
    one.fit(X, np.ones(160), groups, progress)
    other = FusedDetector(MEMBERS, fusion=fusion, random_state=0)
    other.fit(X[order], np.ones(160), groups.take(order), progress[order])
    np.testing.assert_array_equal(one.training_scores_[order], other.training_scores_)
    scores = one.score_samples(X, progress)
    np.testing.assert_allclose(
        scores[:5],
        [one.score_samples(X[i : i + 1], progress[i : i + 1])[0] for i in range(5)],
        rtol=1e-12,
    )


@pytest.mark.slow
def test_anomalies_trimmed_rows_and_two_columns():
    X, progress = phases(200, 4)
    X[:3] = 60.0
    y = np.r_[np.zeros(180), -np.ones(20)]
    X[180:] += 4
    context = np.column_stack([progress, np.arange(200)])
    detector = FusedDetector(MEMBERS, false_alarm_rate=0.12, random_state=0)
    detector.fit(X, y, np.arange(200) // 10, context)
    assert {0, 1, 2} <= set(detector.trimmed_rows_)
    assert np.isfinite(detector.training_scores_).all()
    assert (detector.predict(X[180:], context[180:]) == -1).mean() > 0.8


def test_few_rows_for_many_columns():
    """Everything is learned again in folds, the scale of the context too."""
    rng = np.random.default_rng(5)
    X, progress = rng.normal(size=(30, 20)), rng.random(30)
    one = FusedDetector(MEMBERS, negatives=None, random_state=0)
    one.fit(X, np.ones(30), context=progress)
    assert np.isfinite(one.training_scores_).all()


@pytest.mark.slow
def test_every_method_takes_it(fitted):
    X, progress = phases(60, 6)
    scores = fitted.score_samples(X, progress)
    np.testing.assert_allclose(fitted.decision_function(X, progress), scores - fitted.offset_)
    assert fitted.predict(X, progress).shape == (60,)
    assert fitted.predict_proba(X, progress).shape == (60, 2)
    assert fitted.p_values(X, progress).shape == (60,)
    assert fitted.discoveries(X, 0.1, progress).dtype == bool
    assert fitted.weights(X, progress).shape == (60, 2)
    why = fitted.explain(X[:3], progress[:3])
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=1), scores[:3])
    page = fitted.report(X, context=progress)
    assert "<html" in page.html
    fresh = FusedDetector(MEMBERS, random_state=0)
    y = np.where(np.arange(60) < 50, 1, -1)
    assert fresh.fit_predict(X, y, context=progress).shape == (60,)
    assert fresh.fit_threshold(X, y, progress).calibrate(X, progress).offset_ <= scores.max()


def test_attributions_keep_the_context(fitted):
    X, progress = phases(4, 7)
    why = fitted.explain(X, progress)
    reference = np.array([report._near(fitted, row)[2] for row in fitted.encoder_.transform(X)])
    chain = ScoreChain.of(fitted)
    gain = chain.score_encoded(reference, chain.scaled(progress, 4))
    gain -= fitted.score_samples(X, progress)
    np.testing.assert_allclose(why.attributions.sum(axis=1), gain, atol=1e-9)


def test_it_is_saved(fitted, tmp_path):
    X, progress = phases(40, 8)
    loaded = ocfuse.load(fitted.save(tmp_path / "model.ocf"))
    np.testing.assert_array_equal(
        loaded.score_samples(X, progress), fitted.score_samples(X, progress)
    )


def test_unusable_context_is_refused(fitted):
    X, progress = phases(40, 9)
    with pytest.raises(InvalidInputError, match="Pass context= as in fit"):
        fitted.score_samples(X)
    with pytest.raises(InvalidInputError, match="Leave it out"):
        FusedDetector(MEMBERS, random_state=0).fit(X).score_samples(X, progress)
    with pytest.raises(InvalidInputError, match="40 rows"):
        FusedDetector(MEMBERS).fit(X, context=progress[:3])
    with pytest.raises(InvalidInputError, match="context_weight"):
        FusedDetector(MEMBERS, fusion=CompetenceFusion(context_weight=-1)).fit(X, context=progress)


@pytest.mark.slow
def test_labelled_fusion_hands_it_on():
    """The inner fusion knows which columns are context: it learns their weight."""
    X, progress = phases(200, 10)
    y = np.r_[np.ones(180), -np.ones(20)]
    X[180:] += 4
    detector = FusedDetector(MEMBERS, random_state=0).fit(X, y, context=progress)
    inner = detector.fusion_.fusion_
    assert (inner.n_features_, inner.n_context_) == (3, 1)
    assert inner.scale_.context_weight > 0
    assert detector.weights(X, progress).shape == (200, 2)

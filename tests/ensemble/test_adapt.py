"""FusedDetector.adapt: trust from unlabelled rows."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.detectors import GMM, KNN, Marginal
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import TrustFusion
from ocfuse.metrics import auc
from ocfuse.tables import TableDetector

MEMBERS = {"gmm": GMM(n_components=1), "knn": KNN(), "marginal": Marginal()}


def normals(n, seed):
    """Two columns that go together: what each has alone says nothing of a broken pair."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=n)
    return np.column_stack([first, first + 0.1 * rng.normal(size=n)])


def anomalies(n, seed):
    rng = np.random.default_rng(seed)
    first = rng.uniform(-1, 1, n)
    return np.column_stack([first, first + rng.choice([-0.28, 0.28], n)])


def mixture(n, share, seed):
    k = round(share * n)
    rows = np.vstack([normals(n - k, seed), anomalies(k, seed)])
    return np.random.default_rng(seed).permutation(rows)


@pytest.fixture(scope="module")
def fitted():
    return FusedDetector(MEMBERS, random_state=0).fit(normals(300, 0))


@pytest.fixture(scope="module")
def adapted(fitted):
    return deepcopy(fitted).adapt(mixture(300, 0.1, 1))


def test_who_finds_more_is_trusted_more(fitted, adapted):
    before, after = fitted.fusion_.trust_, adapted.fusion_.trust_
    blind = list(MEMBERS).index("marginal")
    assert after[blind] < before[blind]
    assert after.sum() == pytest.approx(1)
    assert adapted.fusion_.n_adapted_ == 300
    assert 0 < adapted.fusion_.sureness_ <= 1
    assert "finds less in the unlabelled rows" in adapted.fusion_.reasons()[blind]


def test_other_anomalies_are_told_better(fitted, adapted):
    rows = np.vstack([normals(500, 2), anomalies(500, 2)])
    y = np.repeat([1, -1], 500)
    assert auc(y, adapted.score_samples(rows)) > auc(y, fitted.score_samples(rows))


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_without_anomalies_little_changes(fitted, seed):
    same = deepcopy(fitted).adapt(normals(300, seed))
    assert np.abs(same.fusion_.trust_ - fitted.fusion_.trust_).max() < 0.1


def test_the_threshold_holds_its_rate(adapted):
    assert np.mean(adapted.predict(normals(4000, 6)) < 0) == pytest.approx(0.05, abs=0.03)
    below = np.mean(adapted.normal_scores_ < adapted.offset_)
    assert below == pytest.approx(0.05, abs=0.02)
    assert (np.diff(adapted.normal_scores_) >= 0).all()


def test_held_out_scores_are_those_of_the_adapted_fusion(fitted, adapted):
    """Training rows, as if they were fresh ones, score as fresh ones do."""
    held_out, fresh = adapted.training_scores_, adapted.score_samples(normals(2000, 7))
    assert np.median(held_out) == pytest.approx(np.median(fresh), abs=0.1)
    assert not np.array_equal(held_out, fitted.training_scores_)


def test_scores_depend_on_the_row_alone_and_add_up(adapted):
    rows = mixture(60, 0.2, 8)
    at_once = adapted.score_samples(rows)
    one_by_one = np.concatenate([adapted.score_samples(row[np.newaxis]) for row in rows])
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-12)
    explained = adapted.explain(rows[:3])
    np.testing.assert_allclose(
        explained.base + explained.contributions.sum(axis=1), at_once[:3], rtol=1e-9
    )


def test_order_and_copies_of_the_rows_do_not_matter(fitted, adapted):
    rows = mixture(300, 0.1, 1)
    other = deepcopy(fitted).adapt(np.vstack([rows[::-1], rows[:50]]))
    np.testing.assert_allclose(other.fusion_.trust_, adapted.fusion_.trust_, rtol=1e-12)


def test_a_later_call_starts_from_what_fit_has_learned(fitted, adapted):
    other = mixture(300, 0.2, 9)
    twice = deepcopy(adapted).adapt(other)
    once = deepcopy(fitted).adapt(other)
    np.testing.assert_allclose(twice.fusion_.trust_, once.fusion_.trust_, rtol=1e-12)
    np.testing.assert_allclose(twice.normal_scores_, once.normal_scores_, rtol=1e-9)
    assert twice.offset_ == pytest.approx(once.offset_)


def test_a_file_keeps_it(adapted, tmp_path):
    again = load(adapted.save(tmp_path / "model.ocf"))
    rows = mixture(50, 0.2, 10)
    np.testing.assert_array_equal(again.score_samples(rows), adapted.score_samples(rows))
    np.testing.assert_array_equal(again.fusion_.shift_, adapted.fusion_.shift_)
    assert again.fusion_.reasons() == adapted.fusion_.reasons()
    assert again.fusion_.n_adapted_ == 300
    again.adapt(mixture(300, 0.1, 1))
    np.testing.assert_allclose(again.fusion_.trust_, adapted.fusion_.trust_)


def test_groups_and_context_are_kept():
    rng = np.random.default_rng(0)
    X, time = normals(240, 0), rng.random(240)
    groups = np.repeat(np.arange(24), 10)
    detector = FusedDetector(MEMBERS, fusion="trust", random_state=0)
    detector.fit(X, groups=groups, context=time)
    counted = detector.conformal_.weights_.sum()
    detector.adapt(mixture(200, 0.2, 1), context=rng.random(200))
    assert detector.fusion_.sureness_ > 0
    assert detector.n_groups_ == 24
    assert detector.conformal_.weights_.sum() == pytest.approx(counted)
    assert len(detector.conformal_.rates_) == len(detector.normal_scores_) + 1


def test_copies_in_training_have_the_score_of_their_row():
    X = normals(120, 0)
    detector = FusedDetector(MEMBERS, random_state=0).fit(np.vstack([X, X[:2]]))
    detector.adapt(mixture(200, 0.2, 1))
    assert len(detector.copied_rows_) == 2
    np.testing.assert_array_equal(detector.training_scores_[:2], detector.training_scores_[120:])


def test_drift_is_refused_and_nothing_changes(fitted):
    detector = deepcopy(fitted)
    with pytest.raises(InvalidInputError, match=r"have drifted as a whole: \d+% of them"):
        detector.adapt(normals(200, 1) + np.array([0.0, 2.0]))
    np.testing.assert_array_equal(detector.fusion_.trust_, fitted.fusion_.trust_)
    assert detector.offset_ == fitted.offset_


def test_too_few_different_rows_are_refused(fitted):
    with pytest.raises(InvalidInputError, match=r"at least 30 different rows.*Got 10\."):
        deepcopy(fitted).adapt(normals(10, 1))
    with pytest.raises(InvalidInputError, match="Got 40, of which 20 differ"):
        deepcopy(fitted).adapt(np.repeat(normals(20, 1), 2, axis=0))


def test_other_fusions_are_refused():
    detector = FusedDetector(MEMBERS, fusion="sum", random_state=0).fit(normals(60, 0))
    with pytest.raises(InvalidInputError, match=r"This detector has SumRule\. Fit one with"):
        detector.adapt(mixture(100, 0.1, 1))


def test_after_calibrate_it_is_refused_and_before_it_is_fine(fitted, adapted):
    detector = deepcopy(fitted).calibrate(normals(100, 1))
    with pytest.raises(InvalidInputError, match="adapt, and then call calibrate"):
        detector.adapt(mixture(100, 0.1, 1))
    assert deepcopy(adapted).calibrate(normals(100, 1)).threshold_rate_ <= 0.05


def test_probabilities_by_labels_are_refused():
    X = np.vstack([normals(100, 0), anomalies(6, 0)])
    y = np.repeat([1, -1], [100, 6])
    detector = FusedDetector(MEMBERS, fusion=TrustFusion(), random_state=0).fit(X, y)
    with pytest.raises(InvalidInputError, match="on labels"):
        detector.adapt(mixture(100, 0.1, 1))


def test_a_table():
    columns = ["first", "second"]
    table = pd.DataFrame(normals(200, 0), columns=columns)
    model = TableDetector(FusedDetector(MEMBERS, random_state=0)).fit(table)
    model.adapt(pd.DataFrame(mixture(200, 0.2, 1), columns=columns))
    assert model.detector_.fusion_.sureness_ > 0


def test_an_explanation_and_a_report_tell_why(adapted):
    rows = mixture(40, 0.2, 8)
    assert adapted.explain(rows[:1]).trust_reasons == adapted.fusion_.reasons()
    page = adapted.report(rows).html
    assert "Trusted most, 1" in page
    assert "in the unlabelled rows than most" in page

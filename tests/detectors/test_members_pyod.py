"""PyOD's detectors as estimators: sign, clones, one row at a time."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest

from ocfuse.detectors import Pool, from_pyod
from ocfuse.detectors.members import PyodDetector
from ocfuse.exceptions import InvalidInputError, InvalidTypeError

pyod = pytest.importorskip("pyod", reason="the adapter is tested with PyOD itself")

from pyod.models.copod import COPOD  # noqa: E402
from pyod.models.ecod import ECOD  # noqa: E402
from pyod.models.feature_bagging import FeatureBagging  # noqa: E402
from pyod.models.iforest import IForest  # noqa: E402
from pyod.models.knn import KNN  # noqa: E402
from pyod.models.lscp import LSCP  # noqa: E402
from pyod.models.ocsvm import OCSVM  # noqa: E402
from pyod.models.rod import ROD  # noqa: E402


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    return X, np.vstack([rng.normal(size=(20, 4)), 5 + rng.normal(size=(5, 4))])


@pytest.mark.slow
@pytest.mark.parametrize("detector", [KNN(), OCSVM(), IForest(random_state=0)])
def test_score_is_minus_the_decision_function(data, detector):
    X, new = data
    ours = from_pyod(detector).fit(X)
    theirs = clone(detector).fit(X)
    np.testing.assert_allclose(ours.score_samples(new), -theirs.decision_function(new))
    np.testing.assert_allclose(ours.decision_function(new), ours.score_samples(new) - ours.offset_)
    assert (ours.predict(new[20:]) == -1).all()
    assert set(ours.predict(new)) == {-1, 1}


def test_offset_is_a_quantile_of_the_training_scores(data):
    X, _ = data
    ours = from_pyod(OCSVM(), false_alarm_rate=0.1).fit(X)
    seen = -ours.detector_.decision_scores_
    assert (seen < ours.offset_).mean() <= 0.1
    assert (seen <= ours.offset_).mean() > 0.07


def test_given_detector_is_never_fitted(data):
    detector = KNN(n_neighbors=3)
    before = dict(vars(detector))
    ours = from_pyod(detector)
    ours.fit(data[0])
    assert vars(detector) == before
    assert ours.detector is detector
    assert ours.detector_ is not detector


def test_clone_and_nested_parameters():
    ours = clone(from_pyod(KNN(n_neighbors=3), false_alarm_rate=0.2))
    assert ours.get_params()["detector__n_neighbors"] == 3
    assert ours.set_params(detector__n_neighbors=9).detector.n_neighbors == 9
    assert ours.false_alarm_rate == 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "detector", [ECOD(), COPOD(), FeatureBagging(ECOD(), n_estimators=3, random_state=0), KNN()]
)
def test_score_of_a_row_does_not_depend_on_its_batch(data, detector):
    X, new = data
    ours = from_pyod(detector).fit(X)
    batch = ours.score_samples(new)
    single = np.concatenate([ours.score_samples(row[None]) for row in new])
    np.testing.assert_allclose(batch, single, rtol=1e-10)


@pytest.mark.slow
def test_plain_ecod_breaks_the_promise(data):
    """The reason for asking row by row; if this fails, the detour can go."""
    X, new = data
    theirs = ECOD().fit(X)
    single = np.concatenate([theirs.decision_function(row[None]) for row in new])
    assert np.abs(theirs.decision_function(new) - single).max() > 1e-3


@pytest.mark.parametrize(
    "detector", [ROD(), LSCP([KNN(), OCSVM()]), FeatureBagging(ROD())], ids=repr
)
def test_detectors_that_cannot_judge_a_row_are_refused(detector):
    with pytest.raises(InvalidInputError, match=r"a score of its own\. Got (ROD|LSCP)"):
        from_pyod(detector)


@pytest.mark.parametrize("thing", [None, "OCSVM", OCSVM, IsolationForest(), {}], ids=repr)
def test_other_things_are_refused(thing):
    with pytest.raises(InvalidTypeError, match="detector must be a detector of PyOD"):
        from_pyod(thing)
    with pytest.raises(InvalidTypeError, match="detector must be a detector of PyOD"):
        PyodDetector(thing).fit(np.zeros((5, 2)))


@pytest.mark.slow
def test_member_of_a_pool(data):
    X, new = data
    given = IForest(n_estimators=10)
    members = [from_pyod(given), from_pyod(ECOD())]
    first, second = (Pool(members).fit(X, random_state=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert first.names_ == ["iforest", "ecod"]
    assert given.random_state is None
    assert first.members_[0][1].detector_.random_state is not None
    np.testing.assert_array_equal(first.out_of_fold_scores_, second.out_of_fold_scores_)
    np.testing.assert_array_equal(first.score_samples(new), second.score_samples(new))
    expected = np.empty(len(X))
    for fold in range(4):
        test = np.arange(fold, len(X), 4)
        model = from_pyod(ECOD()).fit(np.delete(X, test, axis=0))
        expected[test] = model.score_samples(X[test])
    np.testing.assert_array_equal(first.out_of_fold_scores_[:, 1], expected)


def test_columns_must_match(data):
    ours = from_pyod(OCSVM()).fit(data[0])
    with pytest.raises(ValueError, match="features"):
        ours.score_samples(np.zeros((2, 3)))


@pytest.mark.slow
def test_package_imports_without_pyod():
    code = "import sys; sys.modules['pyod'] = None; import ocfuse.detectors as d; d.from_pyod"
    subprocess.run([sys.executable, "-c", code], check=True)

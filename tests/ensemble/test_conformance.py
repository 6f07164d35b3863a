"""scikit-learn's own checks on FusedDetector, with the labels that they make up."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, KPCA
from ocfuse.tuning import Search

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

MEMBERS = [("knn", KNN()), ("gmm", GMM(n_components=1)), ("kpca", KPCA())]

#: The failures that docs/howto/scikit-learn.md lists.
FAILURES = {
    "check_outliers_fit_predict": "fit_predict judges training rows by held-out scores",
    "check_fit2d_1feature": "9 of 10 labels are 1, the other is 2: refused with the line to write",
}


@parametrize_with_checks(
    [FusedDetector(MEMBERS, random_state=0)], expected_failed_checks=lambda estimator: FAILURES
)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FusedDetector("light", random_state=0),
        FusedDetector("light", fusion="sum", random_state=0),
        FusedDetector(MEMBERS, tune=Search("rpau", {"p": [4 / 3, 2]}, True), random_state=0),
    ],
    expected_failed_checks=lambda estimator: FAILURES,
)
def test_checks_of_other_settings(estimator, check):
    check(estimator)

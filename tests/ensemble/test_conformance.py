"""scikit-learn's own checks on FusedDetector, with the labels that they make up."""

from pathlib import Path

import pytest
import sklearn
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.fixes import parse_version

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, KPCA
from ocfuse.exceptions import InvalidInputError
from ocfuse.tuning import Search

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "scikit-learn.md"
MEMBERS = [("knn", KNN()), ("gmm", GMM(n_components=1)), ("kpca", KPCA())]
#: fit_predict judges training rows by held-out scores.
HELD_OUT = "check_outliers_fit_predict"
#: More than half of the labels that these make up have one value of two, which is refused with the
#: line to write. Older versions of scikit-learn draw other labels.
MAJORITY = {
    "check_fit2d_1feature",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_n_features_in_after_fitting",
}


def fails_as_documented(estimator, check):
    """Run a check; return whether it fails as the page says. Other failures are raised."""
    name = getattr(check, "func", check).__name__
    try:
        check(estimator)
    except (InvalidInputError, AssertionError) as error:
        if name == HELD_OUT or (name in MAJORITY and "y must hold +1 (normal)" in str(error)):
            return True
        raise
    return False


@parametrize_with_checks([FusedDetector(MEMBERS, random_state=0)])
def test_checks(estimator, check):
    fails_as_documented(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FusedDetector("light", random_state=0),
        FusedDetector("light", fusion="sum", random_state=0),
        FusedDetector(MEMBERS, tune=Search("rpau", {"p": [4 / 3, 2]}, True), random_state=0),
    ]
)
def test_checks_of_other_settings(estimator, check):
    fails_as_documented(estimator, check)


@pytest.mark.slow
@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.9"), reason="older")
def test_the_page_lists_what_fails():
    failed = []
    for estimator, check in estimator_checks_generator(FusedDetector(MEMBERS, random_state=0)):
        name = getattr(check, "func", check).__name__
        if name != "check_array_api_input" and fails_as_documented(estimator, check):
            failed.append(name)
    table = PAGE.read_text(encoding="utf-8").split("## The checks of scikit-learn")[1]
    listed = table.split("## ")[0].split("`")[1::2]
    assert sorted(failed) == sorted(
        name for name in listed if name.startswith("check_") and "." not in name
    )

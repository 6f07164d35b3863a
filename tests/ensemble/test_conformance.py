"""scikit-learn's own checks on FusedDetector.

Many of them give `fit` made-up labels such as 0, 1, 2, which FusedDetector
refuses on purpose. So they run twice: on a detector that is given no labels,
where all but one must pass, and on the detector itself, where exactly the listed ones fail.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, KPCA
from ocfuse.tuning import Search

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

MEMBERS = [("knn", KNN()), ("gmm", GMM(n_components=1)), ("kpca", KPCA())]


class WithoutLabels(FusedDetector):
    """A detector that is never told labels."""

    def fit(self, X, y=None, groups=None, context=None):
        """Learn from the rows alone."""
        return super().fit(X, None, groups, context)


HELD_OUT = {"check_outliers_fit_predict": "fit_predict judges training rows by held-out scores"}


@pytest.mark.slow
@parametrize_with_checks(
    [
        WithoutLabels(MEMBERS, random_state=0),
        WithoutLabels("light", fusion="sum", random_state=0),
        WithoutLabels(MEMBERS, tune=Search("rpau", {"p": [4 / 3, 2]}, True), random_state=0),
    ],
    expected_failed_checks=lambda estimator: HELD_OUT,
)
def test_all_checks_without_labels(estimator, check):
    check(estimator)


OTHER_LABELS = "fits with labels other than +1, -1 and 0, which are refused with advice"


CHECKS_WITH_OTHER_LABELS = (
    "check_classifier_data_not_an_array",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_preserve_dtypes",
)


def refused(estimator):
    return dict.fromkeys(CHECKS_WITH_OTHER_LABELS, OTHER_LABELS) | HELD_OUT


@parametrize_with_checks([FusedDetector(MEMBERS, random_state=0)], expected_failed_checks=refused)
def test_checks_with_labels(estimator, check):
    check(estimator)

"""What scikit-learn offers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from benchmarks.scale.data import FloatArray


class OneWidthSVM:
    """One one-class SVM; its kernel is as wide as the mean squared distance M of the rows."""

    def fit(self, X: FloatArray) -> "OneWidthSVM":
        scale = 2.0 * float(X.var(axis=0, ddof=1).sum())
        self.svm = OneClassSVM(nu=0.1, gamma=1.0 / scale).fit(X)
        return self

    def score_samples(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.svm.score_samples(X))


SYSTEMS: dict[str, Callable[[], Any]] = {
    "IsolationForest": lambda: IsolationForest(random_state=0),
    "OneClassSVM": OneWidthSVM,
    "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True),
}

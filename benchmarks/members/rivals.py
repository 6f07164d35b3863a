"""The nearest public counterparts of the kernel members, with the same settings."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from pyod.models import kpca as pyod_kpca
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import OneClassSVM

from ocfuse.detectors.base import interleaved_folds
from ocfuse.detectors.kpca import KPCA

Array = NDArray[np.float64]


class Rival(ABC):
    """A public detector with a kernel ``exp(-d^2 / scale)``."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @abstractmethod
    def fit(self, X: Array) -> "Rival":
        """Learn from the rows of X."""

    @abstractmethod
    def score(self, X: Array) -> Array:
        """Return scores, higher for more normal rows."""

    def out_of_fold(self, X: Array) -> Array:
        """Score every row by a model of the other folds: there is no other public way."""
        scores = np.empty(len(X))
        for train, test in interleaved_folds(len(X)):
            scores[test] = type(self)(self.scale).fit(X[train]).score(X[test])
        return scores


class SklearnSVM(Rival):
    def fit(self, X: Array) -> "SklearnSVM":
        self.model = OneClassSVM(gamma=1.0 / self.scale, nu=0.1).fit(X)
        return self

    def score(self, X: Array) -> Array:
        return self.model.score_samples(X)


class SklearnGP(Rival):
    def fit(self, X: Array) -> "SklearnGP":
        kernel = RBF(np.sqrt(self.scale / 2))
        model = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None)
        self.model = model.fit(X, np.ones(len(X)))
        return self

    def score(self, X: Array) -> Array:
        return self.model.predict(X)


class PyodKernelPCA(Rival):
    """With as many components as ours: by default it takes all of them, and longer."""

    def fit(self, X: Array) -> "PyodKernelPCA":
        size = min(int(KPCA.default_share * len(X)), KPCA.most_directions)
        self.model = pyod_kpca.KPCA(n_components=size, gamma=1.0 / self.scale).fit(X)
        return self

    def score(self, X: Array) -> Array:
        return -self.model.decision_function(X)

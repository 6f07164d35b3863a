"""What is compared: ensembles of PyOD, and FusedDetector on the same members."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pyod.models import gmm, iforest, knn, lof
from pyod.models.combination import average
from pyod.models.lscp import LSCP
from pyod.models.suod import SUOD
from pyod.utils.utility import standardizer
from sklearn.ensemble import IsolationForest

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, LOF, from_pyod

FloatArray = NDArray[np.float64]


class System(Protocol):
    """Learns normal rows, then scores rows: higher = more normal."""

    def fit(self, X: FloatArray) -> Any: ...

    def score_samples(self, X: FloatArray) -> FloatArray: ...


def pyod_members(seed: int) -> list[Any]:
    """Return the five members of the study: two LOF, kNN, isolation forest, mixture."""
    return [
        lof.LOF(n_neighbors=10),
        lof.LOF(n_neighbors=30),
        knn.KNN(n_neighbors=5),
        iforest.IForest(random_state=seed),
        gmm.GMM(n_components=1, random_state=seed),
    ]


def own_members(seed: int) -> list[tuple[str, Any]]:
    """Return the same five in our own and scikit-learn's hands."""
    return [
        ("lof-10", LOF(10)),
        ("lof-30", LOF(30)),
        ("knn-5", KNN(5)),
        ("forest", IsolationForest(random_state=seed)),
        ("gmm-1", GMM(1)),
    ]


class PyodAverage:
    """The mean of the standardised scores, as PyOD's examples do it."""

    def __init__(self, seed: int) -> None:
        self.members = pyod_members(seed)

    def fit(self, X: FloatArray) -> "PyodAverage":
        for member in self.members:
            member.fit(X)
        self.training = np.column_stack([member.decision_scores_ for member in self.members])
        return self

    def score_samples(self, X: FloatArray) -> FloatArray:
        scores = np.column_stack([member.decision_function(X) for member in self.members])
        return -average(standardizer(self.training, scores)[1])


class PyodEnsemble:
    """An ensemble class of PyOD, with its sign turned."""

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def fit(self, X: FloatArray) -> "PyodEnsemble":
        self.detector.fit(X)
        return self

    def score_samples(self, X: FloatArray) -> FloatArray:
        return -self.detector.decision_function(X)


def lscp(seed: int) -> System:
    return PyodEnsemble(LSCP(pyod_members(seed), random_state=seed))


def suod(seed: int) -> System:
    """SUOD without its cost forecast, which refits 1,100 trees at every call."""
    return PyodEnsemble(
        SUOD(pyod_members(seed), n_jobs=1, bps_flag=False, verbose=False, combination="average")
    )


def fused_pyod(seed: int) -> System:
    members = [from_pyod(member) for member in pyod_members(seed)]
    return FusedDetector(members, random_state=seed)


def fused_own(seed: int) -> System:
    return FusedDetector(own_members(seed), random_state=seed)


def fused_default(seed: int) -> System:
    return FusedDetector(random_state=seed)


SYSTEMS: dict[str, Callable[[int], System]] = {
    "PyOD LSCP": lscp,
    "PyOD average": PyodAverage,
    "PyOD SUOD": suod,
    "FusedDetector, the PyOD members": fused_pyod,
    "FusedDetector, own counterparts": fused_own,
    "FusedDetector, default pool": fused_default,
}

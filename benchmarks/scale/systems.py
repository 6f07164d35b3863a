"""What is fitted: the detector as it is, and with the members of PyOD's ensembles."""

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import IsolationForest

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, LOF


def default() -> FusedDetector:
    return FusedDetector(random_state=0)


def light() -> FusedDetector:
    return FusedDetector("light", random_state=0)


def same() -> FusedDetector:
    """Fuse the members that PyOD's ensembles are given, in our own hands."""
    members = [LOF(10), LOF(30), KNN(5), IsolationForest(random_state=0), GMM(1)]
    return FusedDetector(members, random_state=0)


SYSTEMS: dict[str, Callable[[], Any]] = {
    "ocfuse default": default,
    "ocfuse light": light,
    "ocfuse on PyOD's members": same,
}

"""A fusion of one's own that learns from evidence: trust the members that win comparisons."""

import numpy as np
from sklearn.datasets import load_iris

from ocfuse import FusedDetector
from ocfuse.arrays import FloatArray
from ocfuse.fusion.base import BaseFusion, Evidence
from ocfuse.validation import GroupsLike


class WinnersFusion(BaseFusion):
    """Weight members by a power of their mean rank in the comparisons.

    Parameters
    ----------
    power : float, default=2.0
        0 trusts all members alike; the higher, the more the best one decides.
    """

    def __init__(self, power: float = 2.0) -> None:
        self.power = power

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        self._learn(Z, y, X, c, None, None)

    def _learn(
        self,
        Z: FloatArray,
        y: FloatArray,
        X: FloatArray,
        c: FloatArray,
        evidence: Evidence | None,
        groups: GroupsLike | None,
    ) -> None:
        rank = np.ones(Z.shape[1]) if evidence is None else evidence.by_rank()
        w = rank**self.power
        self.w_ = w / w.sum()

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray(Z @ self.w_)

    def _trust(self) -> FloatArray:
        return np.asarray(self.w_)

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), Z * self.w_


def main() -> None:
    """Use it in a detector."""
    X, species = load_iris(return_X_y=True)
    detector = FusedDetector("light", fusion=WinnersFusion(), random_state=0)
    detector.fit(X[species == 0])
    print(detector.weights(X[:1]).round(2), detector.predict(X[[25, 60, 120]]))


if __name__ == "__main__":
    main()

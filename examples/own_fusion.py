"""A fusion of one's own: trust a member the more, the less its normal scores vary."""

import numpy as np
from sklearn.datasets import load_iris

from ocfuse import FusedDetector
from ocfuse.arrays import FloatArray
from ocfuse.fusion.base import BaseFusion


class SteadyFusion(BaseFusion):
    """Weight members by one over the variance of their normal scores.

    Parameters
    ----------
    floor : float, default=0.01
        Added to every variance, so that no member takes it all.
    """

    def __init__(self, floor: float = 0.01) -> None:
        self.floor = floor

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        normal = y > 0
        deviation = Z[normal] - self.reference_
        variance = np.average(deviation**2, axis=0, weights=c[normal])
        w = 1.0 / (variance + self.floor)
        self.w_ = w / w.sum()

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray(Z @ self.w_)

    def _trust(self) -> FloatArray:
        return np.asarray(self.w_)


def main() -> None:
    """Use it in a detector."""
    X, species = load_iris(return_X_y=True)
    detector = FusedDetector("light", fusion=SteadyFusion(), random_state=0)
    detector.fit(X[species == 0])
    print(detector.weights(X[:1]).round(2), detector.predict(X[[25, 60, 120]]))


if __name__ == "__main__":
    main()

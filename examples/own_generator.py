"""A generator of one's own: normal rows moved away from their centre."""

import numpy as np
from numpy.random import RandomState
from sklearn.datasets import load_iris

from ocfuse import FusedDetector
from ocfuse.arrays import FloatArray
from ocfuse.negatives import Generator


class Stretch(Generator):
    """Draw normal rows and move them outwards.

    Parameters
    ----------
    factor : float, default=2.0
        Distance from the centre, in multiples of that of the normal row.
    """

    def __init__(self, factor: float = 2.0) -> None:
        self.factor = factor

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        centre = np.median(X, axis=0)  # of a constant column exactly its value, which stays
        rows = X[random.randint(len(X), size=n)]
        return np.asarray(centre + self.factor * (rows - centre))


def main() -> None:
    """Use it beside another: each is a comparison of its own."""
    X, species = load_iris(return_X_y=True)
    detector = FusedDetector("light", negatives=["gauss", Stretch()], random_state=0)
    detector.fit(X[species == 0])
    print(detector.fusion_.evidence_.labels, detector.predict(X[[25, 60, 120]]))


if __name__ == "__main__":
    main()

"""A detector of one's own: the mean kernel value, Parzen's density up to scale."""

import numpy as np
from sklearn.datasets import load_iris

from ocfuse import FusedDetector
from ocfuse.arrays import FloatArray
from ocfuse.detectors import GMM, KPCA
from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.gram import Gram, Query


class Parzen(BaseDetector):
    """Score a row by its mean similarity to the training rows.

    Parameters
    ----------
    width : float, default=0.5
        Width of the kernel, in multiples of the mean squared distance.
    max_samples : int, default=None
        Most training rows to learn from; None for all.
    false_alarm_rate : float, default=0.05
        Share of fresh normal rows that may fall below the offset.
    """

    closed_form = True

    def __init__(
        self,
        width: float = 0.5,
        max_samples: int | None = None,
        false_alarm_rate: float = 0.05,
    ) -> None:
        self.width = width
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def _fit(self, gram: Gram) -> None:
        """Learn nothing: the training rows are all there is."""

    def _score(self, query: Query) -> FloatArray:
        return np.asarray(query.kernel(self.width).mean(axis=1))

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        # a row is as similar to itself as can be: that 1 is taken out
        n = gram.n_rows
        return np.asarray((gram.kernel(self.width).sum(axis=1) - 1.0) / (n - 1.0))


def main() -> None:
    """Fuse it with two others; its kernel is the one of KPCA, computed once."""
    X, species = load_iris(return_X_y=True)
    members = [("parzen", Parzen()), ("kpca", KPCA(width=0.5)), ("gmm", GMM())]
    detector = FusedDetector(members, random_state=0).fit(X[species == 0])
    print(detector.get_feature_names_out(), detector.predict(X[[25, 60, 120]]))


if __name__ == "__main__":
    main()

"""Trust one member: the one that separates best."""

from typing import Literal

import numpy as np

from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.inputs import FloatArray, check_choice
from ocfuse.optional import slow


class SingleBest(BaseFusion):
    """Take the member that tells normals from anomalies best, alone.

    The anomalies may be known or generated; of equal members the first is taken.

    Parameters
    ----------
    criterion : {"auc", "average-precision"}, default="auc"
        Area under the ROC curve, or average precision of the anomalies.

    Attributes
    ----------
    quality_ : ndarray of shape (d,)
        Criterion of each member.
    best_ : int
        The member that is taken.

    Examples
    --------
    >>> from ocfuse.fusion import SingleBest
    >>> best = SingleBest().fit([[0.9, 0.2], [0.8, 0.9], [0.1, 0.5]], y=[1, 1, -1])
    >>> best.best_, best.fuse([[0.3, 0.7]])
    (0, array([0.3]))
    """

    needs_anomalies = True

    def __init__(self, criterion: Literal["auc", "average-precision"] = "auc") -> None:
        self.criterion = criterion

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        name = _CRITERIA[check_choice(self.criterion, "criterion", tuple(_CRITERIA))]
        criterion = getattr(slow("sklearn.metrics"), name)
        self.quality_ = np.array([criterion(y < 0, -z, sample_weight=c) for z in Z.T])
        self.best_ = int(self.quality_.argmax())

    def _trust(self) -> FloatArray:
        return np.asarray(np.arange(self.n_members_) == self.best_, dtype=np.float64)

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return Z[:, self.best_].copy()

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), Z * self._trust()


#: What scikit-learn calls them.
_CRITERIA = {"auc": "roc_auc_score", "average-precision": "average_precision_score"}

"""RPAU: how far the weighted average of normals leaves the range it should keep."""

from typing import Literal

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import MinMax
from ocfuse.system.cache import remembered
from ocfuse.tuning.criterion import Criterion
from ocfuse.tuning.crossfit import FloatArray
from ocfuse.tuning.splits import Judged


class RPAU(Criterion):
    """Judge by the relative percentage above unity, from normals alone.

    No published formula was found: this is a reconstruction. Member scores are
    mapped to ``a = 1 - z``, with z the min-max of the normals learned from, so that
    most normals are in [0, 1] and odd ones above. Of held-out normals, with the
    learned weights w made a true average::

        A_i = sum_j |w_j| a_ij / ||w||_1
        "power":    sum_{A_i > 1} (A_i - 1)^2 / sum_i A_i^2
        "percent":  100 #{A_i > 1} / n

    The value is its negative, as less is better; of equal ones the smaller mean A
    (the tighter description) wins. Without the division by the norm of w the
    largest p would always win, as its ball is the largest. The weights are taken as
    they are: with a normaliser other than the min-max, A is not what the fusion
    computes.

    Parameters
    ----------
    kind : {"power", "percent"}, default="power"
        The candidate formula.
    rho : float, default=5.0
        Percentile trimmed on either side by the min-max, the same for all fusions.

    Examples
    --------
    >>> from ocfuse.tuning import RPAU
    >>> RPAU("percent")
    RPAU(kind='percent')
    """

    def __init__(self, kind: Literal["power", "percent"] = "power", rho: float = 5.0) -> None:
        self.kind = kind
        self.rho = rho

    def judge(self, parts: list[Judged]) -> tuple[float, float]:
        """Return the negative RPAU and, between equal ones, the negative mean A."""
        if self.kind not in ("power", "percent"):
            raise InvalidInputError(f'kind must be "power" or "percent". Got {self.kind!r}.')
        A = np.concatenate([self._averages(part) for part in parts])
        return -self._above_unity(A), -float(A.mean())

    def _averages(self, part: Judged) -> FloatArray:
        """Return A of the held-out normals."""
        normals = part.rows.take(part.rows.y > 0)
        a = _outside(part.learned.S[part.learned.y > 0], normals.S, self.rho)
        w = np.abs(part.fusion.weights(normals.X, normals.context))
        w = w / w.sum(axis=1, keepdims=True)
        return np.asarray((w * a).sum(axis=1))

    def _above_unity(self, A: FloatArray) -> float:
        above = A > 1.0
        if self.kind == "percent":
            return 100.0 * float(above.mean())
        total = float((A**2).sum())
        return float(((A[above] - 1.0) ** 2).sum()) / total if total > 0 else 0.0


@remembered
def _outside(learned: FloatArray, S: FloatArray, rho: float) -> FloatArray:
    """Return a = 1 - z: from 0 to 1 within the trimmed range, above it where odd."""
    return np.asarray(1.0 - MinMax(rho).fit(learned).transform(S))

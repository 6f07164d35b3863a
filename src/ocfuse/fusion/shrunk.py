"""A learned fusion held back by the sum rule."""

import numpy as np
from sklearn.base import clone

from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.evidence import Evidence
from ocfuse.fusion.inputs import FloatArray, check_number
from ocfuse.fusion.local import LocalLpFusion


class ShrunkFusion(BaseFusion):
    """Mix a learned fusion with the sum rule.

    ``score = (1 - share) fusion(z) + share mean_j z_j``. Weights learned from
    pseudo-anomalies may trust the wrong member; equal weights are never far
    wrong. The mixture gives up a little of what the first gain for much of what
    they may lose.

    `weights` are the shares of trust, mixed alike and divided by the sum of their
    absolute values. They times the scores are the contributions, and add up to the
    fused score, where the learned fusion is itself the sum of its weights times the
    scores and none is negative: `LpFusion` and `LocalLpFusion` with ``nonneg=True``,
    `SumRule`, `SingleBest`. With signed weights the two differ by a factor that may
    change from row to row; with any other fusion, such as the stacked one or the
    product, `weights` are what it says it trusts, and not a formula of the score.
    `contributions` are exact for every fusion.

    Parameters
    ----------
    fusion : fusion, default=None
        The learned fusion; None is ``LocalLpFusion(p=8/7)``.
    share : float, default=0.5
        Share of the sum rule, from 0 to 1.

    Attributes
    ----------
    fusion_ : fusion
        The fitted fusion.

    Examples
    --------
    >>> from ocfuse.fusion import LpFusion, ShrunkFusion
    >>> Z = [[0.9, 0.4], [0.8, 0.5], [0.1, 0.3]]
    >>> fusion = ShrunkFusion(LpFusion(p=1.1), share=0.5).fit(Z, y=[1, 1, -1])
    >>> fusion.weights([[0.0]]).round(2)
    array([[0.75, 0.25]])
    """

    def __init__(self, fusion: BaseFusion | None = None, share: float = 0.5) -> None:
        self.fusion = fusion
        self.share = share

    @property
    def needs_X(self) -> bool:  # type: ignore[override]  # noqa: N802
        """Tell whether the learned fusion needs the feature rows."""
        return self._inner().needs_X

    @property
    def needs_anomalies(self) -> bool:  # type: ignore[override]
        """Tell whether the learned fusion needs rows with y = -1."""
        return self._inner().needs_anomalies

    def _inner(self) -> BaseFusion:
        return LocalLpFusion(p=8 / 7) if self.fusion is None else self.fusion

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        self._learn(Z, y, X, c, None)

    def _learn(
        self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray, evidence: Evidence | None
    ) -> None:
        check_number(self.share, "share", 0.0, 1.0, "0 is the learned fusion, 1 the sum rule.")
        self.fusion_ = clone(self._inner()).fit(Z, y, X if self.needs_X else None, c, evidence)

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return self._mix(self.fusion_.fuse(Z, self._rows(X)), Z.mean(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        base, C = self.fusion_.contributions(Z, self._rows(X))
        return (1.0 - self.share) * base, self._mix(C, Z / self.n_members_)

    def _weights(self, X: FloatArray) -> FloatArray:
        W = self.fusion_.weights(X)
        mixed = self._mix(W, np.full_like(W, 1.0 / self.n_members_))
        return np.asarray(mixed / np.abs(mixed).sum(axis=1, keepdims=True))

    def _trust(self) -> FloatArray:
        return np.asarray(self._weights(np.zeros((1, 1)))[0])

    def _local_p(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.fusion_.local_p(X))

    def _p(self) -> float:
        return float(self.fusion_.local_p(np.zeros((1, 1)))[0])

    def _rows(self, X: FloatArray) -> FloatArray | None:
        return X if self.needs_X else None

    def _mix(self, learned: FloatArray, even: FloatArray) -> FloatArray:
        return np.asarray((1.0 - self.share) * learned + self.share * even)

"""Weights from the competence of the members, in closed form for every row."""

import numpy as np
from sklearn.base import clone

from ocfuse.arrays import FloatArray
from ocfuse.cost import Cost, Shape
from ocfuse.exceptions import InvalidTypeError
from ocfuse.fusion.base import LEAST, Evidence, auc_of
from ocfuse.fusion.local_scale import LocalScale, LocalScaleFusion, normal_rows
from ocfuse.fusion.locality import Locality
from ocfuse.nearest.exact import representative_rows
from ocfuse.solvers.ball import LpBall
from ocfuse.system.packages import slow
from ocfuse.validation import GroupsLike, check_number, check_whole


class CompetenceFusion(LocalScaleFusion):
    """Fusion with weights from the competence of members and their agreement.

    The competence of a member is its mean rank in the comparisons of the `Evidence`, times its
    agreement (rank correlation on normal rows) with the competent members. Scores are relative to
    the mean and standard deviation of normal scores nearby (see `LocalScale`). The weights are::

        w(x) = argmax sum_j a_j sd_j(x) w_j   subject to  ||sd(x) w||_p <= 1,  w >= 0

    with the solution ``w_j(x) = v_j / sd_j(x)``, where v maximises ``a.v`` in the lp ball. The
    score is ``sum_j w_j(x) (z_j(x) - mean_j(x)) / ||v||_1``: 0 for a typical normal row, less for
    unusual ones. It does not depend on the scale of the members. All normal rows have the same
    weight: of `sample_weight` only the zeros matter.

    Parameters
    ----------
    p : float, default=6/5
        Norm of the constraint, from 1 (only the most competent member) to inf (equal weights).
    n_neighbors : int, default=20
        Number of nearest normal rows for the local scale, at most one in 15; 0 for a global scale.
    shift_prior : float, default=60.0
        Weight of the global mean, in rows; with context the largest weight.
    scale_prior : float, default=3.0
        Weight of the global standard deviation, in rows.
    agreement : int, default=3
        Number of iterations in which competence and agreement are computed from each other; 0
        ignores agreement.
    use_ranks : bool, default=True
        Whether to compare members by their ranks. False uses the areas under the ROC curve
        instead, which a single saturated member can dominate.
    locality : Locality, optional
        Makes p depend on the position, as in `LocalLpFusion`. None uses the same p everywhere,
        which was as good in measurements.
    context_weight : float, optional
        Weight of the context in the distance between rows, relative to all features. None takes 1
        if context improves the prediction of normal scores by their neighbours (of other groups,
        if there are groups), else 0.

    Attributes
    ----------
    competence_ : ndarray of shape (d,)
        The competences a; the largest is 1.
    trust_ : ndarray of shape (d,)
        Weights before the local scale is applied; they add up to 1.
    evidence_ : Evidence
        The comparisons from which the competences were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.fusion import CompetenceFusion
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> Z = [[0.9, 0.4], [0.8, 0.5], [0.9, 0.6], [0.7, 0.5], [0.1, 0.5], [0.2, 0.6]]
    >>> fusion = CompetenceFusion(n_neighbors=0).fit(Z, [1, 1, 1, 1, -1, -1], X)
    >>> fusion.trust_.round(2)
    array([0.97, 0.03])
    """

    def __init__(
        self,
        p: float = 6 / 5,
        n_neighbors: int = 20,
        shift_prior: float = 60.0,
        scale_prior: float = 3.0,
        agreement: int = 3,
        use_ranks: bool = True,
        locality: Locality | None = None,
        context_weight: float | None = None,
    ) -> None:
        self.p = p
        self.n_neighbors = n_neighbors
        self.shift_prior = shift_prior
        self.scale_prior = scale_prior
        self.agreement = agreement
        self.use_ranks = use_ranks
        self.locality = locality
        self.context_weight = context_weight

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of fusing one."""
        cost = LocalScale.cost(shape, self.n_neighbors)
        if isinstance(self.locality, Locality):
            cost += self.locality.cost(shape)
        return cost

    def _learn(
        self,
        Z: FloatArray,
        y: FloatArray,
        X: FloatArray,
        c: FloatArray,
        evidence: Evidence | None,
        groups: GroupsLike | None,
    ) -> None:
        self._check_parameters()
        chosen = normal_rows(y)
        normal = Z[chosen]
        if evidence is not None:
            self.evidence_ = evidence
        elif (y < 0).any():  # the one comparison
            areas = auc_of(normal, Z[y < 0])[:, np.newaxis]
            self.evidence_ = Evidence(areas, np.ones(1), ["y = -1"])
        else:  # all members are alike
            self.evidence_ = Evidence(np.full((Z.shape[1], 1), 0.5), np.ones(1), ["none"])
        self.evidence_.require_members(Z.shape[1])
        of_normals = None if groups is None else groups.take(np.flatnonzero(y > 0))
        standard = self._fit_scale(normal, X[chosen], of_normals)
        self.competence_ = self._competence(standard)
        self.trust_ = self._direction(np.array([self.p]))[0]
        self.locality_ = None
        if self.locality is not None:
            self.locality_ = clone(self.locality).fit(X[chosen], standard)

    def _weights(self, X: FloatArray) -> FloatArray:
        _, sd = self.scale_.at(X)
        # back on the scale of the scores as they are given
        w = self._directions(X) / (sd * self.spread_)
        return np.asarray(w / w.sum(axis=1, keepdims=True))

    def _local_p(self, X: FloatArray) -> FloatArray:
        if self.locality_ is None:
            return np.full(len(X), float(self.p))
        return np.asarray(self.locality_.norms(X, self.p))

    def _parts(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray(self._directions(X) * self._local(Z, X))

    def _directions(self, X: FloatArray) -> FloatArray:
        """Return v at every row: the same everywhere unless the norm depends on the place."""
        if self.locality_ is None:
            return np.broadcast_to(self.trust_, (len(X), len(self.trust_)))
        return self._direction(self._local_p(X))

    def _direction(self, p: FloatArray) -> FloatArray:
        """Return v for every norm, adding up to 1."""
        a = np.broadcast_to(self.competence_, (len(p), len(self.competence_)))
        v = LpBall(p, nonneg=True).maximiser(a)
        return np.asarray(v / v.sum(axis=1, keepdims=True))

    def _competence(self, standard: FloatArray) -> FloatArray:
        """Return the competences: wins, times agreement with other winners."""
        b = self.evidence_.by_rank() if self.use_ranks else self.evidence_.by_value()
        b = b / b.max()
        if self.agreement and len(b) > 1:
            R = rank_correlations(standard[representative_rows(len(standard), 5000)])
            ball = LpBall(max(self.p, 8 / 7), nonneg=True)  # agreement needs more than one member
            a = b
            for _ in range(self.agreement):
                u = ball.maximiser(a)
                agreed = np.maximum((R @ u) / np.maximum(u.sum() - u, LEAST), LEAST)
                a = b * agreed / agreed.max()
                a = a / a.max()
            b = a
        return np.asarray(b)

    def _check_parameters(self) -> None:
        check_number(self.p, "p", 1.0, np.inf, "1 trusts one member, inf all equally.")
        self._check_scale()
        if self.locality is not None and not isinstance(self.locality, Locality):
            raise InvalidTypeError(
                f"locality must be a Locality or None. Got locality={self.locality!r}."
            )
        check_whole(self.agreement, "agreement")


def rank_correlations(Z: FloatArray) -> FloatArray:
    """Return the rank correlations of the columns; none with itself or with a constant."""
    ranks = slow("scipy.stats").rankdata(Z, axis=0)
    ranks -= ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    unit = ranks / np.where(length > 0, length, 1.0)
    R: FloatArray = unit.T @ unit
    np.fill_diagonal(R, 0.0)
    return R

"""Dynamic selection among one-class detectors, after Wang and Mao (2019, 2020)."""

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import chi2, rankdata

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors import GMM, KNN, KPCA, LOF, SVDD, OneClassGP, Pool
from ocfuse.detectors.base import require_count, require_number
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.rivals.base import RowDetector, next_seed
from ocfuse.negatives import Uniform
from ocfuse.scores import TailProbability
from ocfuse.stats import critical_difference


class DynamicEnsemble(RowDetector):
    """Dynamic ensemble: the most competent member for each row, or a fusion of several.

    Known, from the abstract of Wang and Mao, "Outlier detection based on a dynamic
    ensemble model", Information Fusion 2019: outputs of one-class classifiers become
    probabilities, pseudo-outliers are generated with their help, a probabilistic model
    says how competent each classifier is, and a Friedman test with a Nemenyi test
    switches between one nominated classifier and a fusion. Of their successor, "A
    dynamic ensemble outlier detection model based on an adaptive k-nearest neighbor
    rule", Information Fusion 2020 (DEOD), only the title is known, and AUCs of a
    homogeneous and a heterogeneous ensemble on D2 to D7.

    Ours, reconstructed from that: a probability is the share of held-out normals that score lower.
    Pseudo-outliers are rows uniform in a widened box to which the members give a mean probability
    below 0.05. "Adaptive" is read as the distance of Wang, Neskovic and Cooper (2007): to a normal
    or pseudo-outlier v it is divided by the distance of v to the nearest row of the other kind. Of
    the k nearest v of a row x, with r(v) the probability that a member gives to the right answer
    at v, ``competence = sum_v g(v) r(v) / sum_v g(v)`` with ``g = exp(-(d(x, v) / d_k)^2)``.
    Members that differ from the best in both tests over the k neighbours, at the level alpha, are
    left out. If only the best one remains, it gives the score; else the score is the mean
    probability of the remaining members, weighted by competence.

    Parameters
    ----------
    members : {"heterogeneous", "homogeneous"} or list, default="heterogeneous"
        Six families, SVDD with five widths, or detectors as `ocfuse.detectors.Pool`
        takes them.
    n_neighbors : int, default=20
        Number of neighbours k among normal rows and pseudo-outliers.
    alpha : float, default=0.05
        Significance level of the tests.
    random_state : int, RandomState or None, default=None
        Seed of the pseudo-outliers and of the members.

    Attributes
    ----------
    pool_ : Pool
        The fitted members.
    rows_ : ndarray of shape (2 n, m)
        Normal rows and pseudo-outliers.
    right_ : ndarray of shape (2 n, d)
        Probability that each member gives to the right answer for each of these rows.
    gap_ : float
        Critical difference of mean ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.lab.rivals import DynamicEnsemble
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> near, far = DynamicEnsemble(random_state=0).fit(X).score_samples([[0, 0], [4, 4]])
    >>> bool(near > far)
    True
    """

    def __init__(
        self,
        members: Any = "heterogeneous",
        n_neighbors: int = 20,
        alpha: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.members = members
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.random_state = random_state

    def _fit(self, X: FloatArray, random: RandomState) -> None:
        require_count("n_neighbors", self.n_neighbors, 2, "Use 20.")
        require_number("alpha", self.alpha, 0.0, 1.0)
        self.pool_ = Pool(_members(self.members)).fit(X, random_state=next_seed(random))
        self.tails_ = TailProbability().fit(self.pool_.out_of_fold_scores_)
        normal = self.tails_.transform(self.pool_.out_of_fold_scores_)
        outliers, odd = self._pseudo_outliers(X, random)
        self.rows_ = np.vstack([X, outliers])
        self.right_ = np.vstack([normal, 1.0 - odd])
        self.ranks_ = rankdata(-self.right_, axis=1)
        n_neighbors, d = min(self.n_neighbors, len(self.rows_)), len(self.pool_.names_)
        self.gap_ = critical_difference(d, n_neighbors, self.alpha) if d > 1 else np.inf
        apart = cdist(X, outliers)
        radius = np.concatenate([apart.min(axis=1), apart.min(axis=0)])
        # rows may coincide
        least = 1e-3 * float(np.median(radius))
        self.radius_ = np.maximum(radius, least if least > 0 else 1.0)

    def _pseudo_outliers(self, X: FloatArray, random: RandomState) -> tuple[FloatArray, FloatArray]:
        """Return rows that the members reject, and the probabilities they give to them."""
        candidates = Uniform().sample(X, 4 * len(X), random)
        P = self.tails_.transform(self.pool_.score_samples(candidates))
        mean = P.mean(axis=1)
        # those rejected as they were drawn; if they are too few, the least probable others
        chosen = np.where(mean < 0.05, 0.0, mean).argsort(kind="stable")[: len(X)]
        return candidates[chosen], P[chosen]

    def _score(self, X: FloatArray) -> FloatArray:
        P = self.tails_.transform(self.pool_.score_samples(X))
        step = max(1, 4_000_000 // len(self.rows_))  # so many distances are held at once
        parts = [slice(begin, begin + step) for begin in range(0, len(X), step)]
        return np.concatenate([self._switched(X[part], P[part]) for part in parts])

    def _switched(self, X: FloatArray, P: FloatArray) -> FloatArray:
        nearest, closeness = self._neighbours(X)
        competence = (closeness[:, :, np.newaxis] * self.right_[nearest]).sum(axis=1)
        trusted = competence * not_worse(self.ranks_[nearest], self.alpha, self.gap_)
        return np.asarray((trusted * P).sum(axis=1) / trusted.sum(axis=1))

    def _neighbours(self, X: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the nearest rows by the adaptive distance, and how close they are."""
        # pair by pair, so that ties are broken alike in every batch
        D = cdist(X, self.rows_) / self.radius_
        nearest = D.argsort(axis=1, kind="stable")[:, : self.n_neighbors]
        near = np.take_along_axis(D, nearest, axis=1)
        farthest = near[:, -1:]
        return nearest, np.exp(-((near / np.where(farthest > 0, farthest, 1.0)) ** 2))


def not_worse(ranks: FloatArray, alpha: float, gap: float) -> NDArray[np.bool_]:
    """Return which members do not differ from the best, by their ranks, shape (q, k, d).

    First Friedman's test must find that the d members differ at all over the k
    neighbours; then those are left out whose mean rank is behind the best by more than
    Nemenyi's critical difference.
    """
    _, k, d = ranks.shape
    mean = ranks.mean(axis=1)
    friedman = 12.0 * k / (d * (d + 1)) * ((mean - (d + 1) / 2) ** 2).sum(axis=1, keepdims=True)
    do_differ = friedman > chi2.isf(alpha, max(d - 1, 1))
    return np.asarray(~(do_differ & (mean - mean.min(axis=1, keepdims=True) > gap)))


def _members(members: Any) -> Any:
    if not isinstance(members, str):
        return members
    if members == "homogeneous":
        return [(f"svdd-{width:g}", SVDD(width=width)) for width in (0.125, 0.25, 0.5, 1.0, 2.0)]
    if members == "heterogeneous":
        # of few columns more directions would leave errors that rounding can move
        kernels = [SVDD(width=0.5), OneClassGP(width=0.5), KPCA(0.9, width=0.5)]
        others = [GMM(), KNN(), LOF()]
        return [(type(member).__name__.lower(), member) for member in [*kernels, *others]]
    raise InvalidInputError(
        "members must be 'heterogeneous', 'homogeneous' or a list of detectors. "
        f"Got members={members!r}."
    )

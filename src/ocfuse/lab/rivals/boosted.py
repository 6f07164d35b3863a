"""Boosted one-class support vector machines, after Xing and Liu (2020)."""

from typing import Any, Literal

import numpy as np
from sklearn.svm import OneClassSVM
from sklearn.utils import check_random_state

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.base import KernelDetector, require_count, require_number
from ocfuse.detectors.gram import Gram, Query
from ocfuse.exceptions import InvalidInputError


class BoostedSVM(KernelDetector):
    """Boosted one-class support vector machines with a loss that is robust to outliers.

    Known, from the abstract: Xing and Liu, "Robust AdaBoost based ensemble of one-class
    support vector machines", Information Fusion 2020 (RAEOCSVM). The exponential loss of
    AdaBoost is replaced by a weighted combination of a modified exponential loss and the
    squared loss, and the updates of the machines' weights and of the distribution over
    the training rows follow from it. Published for D1, D4 and D10, G-mean only.

    Ours, as the formulas are not public: with machines h that say +1 or -1 and the margin
    ``F_i = sum_t a_t h_t(x_i) / sum_t a_t`` the loss of a row is::

        mixing E(F) + (1 - mixing) (1 - F)^2 / 2
        E(F) = exp(-F) if F >= 0, 2 - exp(F) if F < 0

    A row is drawn for the next machine with a probability proportional to the slope of
    its loss. E has the slope ``exp(-|F|)``, so that rows in dispute count most, and rows that
    every machine rejects only 2.4 times as much as rows that every machine accepts.
    The weight of a machine is that of AdaBoost, ``a = log((1 - e) / e) / 2`` with e the
    weight of the rows that it rejects. As a score that only counts votes has ties, the
    machines' real outputs ``sum_i b_i k(x, x_i) / level - 1`` are averaged with these
    weights.

    Parameters
    ----------
    width : float, default=0.5
        Width of the kernel, in multiples of the mean squared distance.
    nu : float, default=0.1
        In (0, 1): largest share of the weight of the rows that a machine rejects.
    n_rounds : int, default=20
        Number of machines.
    loss : {"robust", "exponential"}, default="robust"
        The loss above, or that of AdaBoost itself.
    mixing : float, default=0.8
        Share of the modified exponential loss, in (0, 1).
    max_samples : int or None, default=2000
        Most rows to learn from, evenly spaced. None learns from all.
    false_alarm_rate : float, default=0.05
        Share of fresh normal rows that `predict` may call anomalies.
    random_state : int, RandomState or None, default=None
        Seed of the draws of rows for each machine.

    Attributes
    ----------
    weights_ : ndarray of shape (n_machines,)
        Weights of the machines; they add up to 1.
    row_weights_ : ndarray of shape (n,)
        Weights of the training rows after the last machine; they add up to 1.
    coef_ : ndarray of shape (n,)
        Weight of each training row in the score.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.lab.rivals import BoostedSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> BoostedSVM(random_state=0).fit(X).predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        width: float = 0.5,
        nu: float = 0.1,
        n_rounds: int = 20,
        loss: Literal["robust", "exponential"] = "robust",
        mixing: float = 0.8,
        max_samples: int | None = 2000,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.nu = nu
        self.n_rounds = n_rounds
        self.loss = loss
        self.mixing = mixing
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("nu", self.nu, 0.0, 1.0)
        require_count("n_rounds", self.n_rounds, 1, "Use 20.")
        require_number("mixing", self.mixing, 0.0, 1.0)
        if self.loss not in ("robust", "exponential"):
            raise InvalidInputError(
                f"loss must be 'robust' or 'exponential'. Got loss={self.loss!r}."
            )

    def _fit(self, gram: Gram) -> None:
        K = gram.kernel(self.width)
        random = check_random_state(self.random_state)
        n = len(K)
        votes, weights = np.zeros(n), np.full(n, 1.0 / n)
        steps = np.empty(self.n_rounds)
        machines = np.empty((self.n_rounds, n))
        for t in range(self.n_rounds):
            machines[t] = self._machine(K, random.multinomial(n, weights))
            # a row this little below the border is on it: the solver does not know better
            answer = np.where(K @ machines[t] >= 1.0 - 1e-6, 1.0, -1.0)
            error, half = float(weights[answer < 0].sum()), 0.5 / n
            # half a row more on both sides keeps the weight of the machine finite
            steps[t] = max(0.5 * float(np.log((1.0 - error + half) / (error + half))), half)
            votes += steps[t] * answer
            weights = self._slope(votes, float(steps[: t + 1].sum()))
            weights /= weights.sum()
        self.weights_ = steps / steps.sum()
        self.row_weights_ = weights
        self.coef_ = self.weights_ @ machines

    def _score(self, query: Query) -> FloatArray:
        scores: FloatArray = query.kernel(self.width) @ self.coef_ - 1.0
        return scores

    def _machine(self, K: FloatArray, counts: IntArray) -> FloatArray:
        """Return b / level of a machine fitted to rows as often as they count: 1 is its border."""
        solver = OneClassSVM(kernel="precomputed", nu=self.nu, tol=1e-8)
        # scikit-learn numbers the support vectors among the rows of positive weight
        drawn = np.flatnonzero(counts)
        solver.fit(K[np.ix_(drawn, drawn)], sample_weight=counts[drawn].astype(np.float64))
        b = np.zeros(len(K))
        b[drawn[solver.support_]] = solver.dual_coef_[0] / -solver.intercept_[0]
        return b

    def _slope(self, votes: FloatArray, total: float) -> FloatArray:
        """Return how fast the loss falls with the margin."""
        if self.loss == "exponential":
            return np.asarray(np.exp(votes.min() - votes))
        margin = votes / total
        slope = self.mixing * np.exp(-np.abs(margin)) + (1.0 - self.mixing) * (1.0 - margin)
        return np.asarray(slope)

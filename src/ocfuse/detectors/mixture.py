"""Gaussian mixture: the log density of a row."""

import warnings
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state

from ocfuse.detectors.base import BaseDetector, require_count, require_number
from ocfuse.detectors.gram import FloatArray, Gram, Query
from ocfuse.threads import few_threads

#: One Gaussian is fitted in at most so many directions, in closed form.
MOST_DIRECTIONS = 256
#: Several are in at most so many: each of some 50 iterations costs their square.
MOST_DIRECTIONS_OF_SEVERAL = 64
#: Up to so many columns the directions are found by a full decomposition.
MOST_COLUMNS_EXACT = 1000
#: Training rows that each direction needs.
ROWS_PER_DIRECTION = 4
#: Training rows that each component needs.
ROWS_PER_COMPONENT = 2
MOST_ITERATIONS = 200
LOG_2PI = float(np.log(2 * np.pi))


class Subspace:
    """The leading principal directions of centred rows, and the noise off them.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        Centred rows.
    r : int
        Number of directions; with ``r = m`` the rows are left as they are.
    reg : float
        Added to the variance of the noise.
    seed : int
        Starts the search where a full decomposition would be slow.

    Attributes
    ----------
    directions : ndarray of shape (m, r)
        Orthonormal columns; of shape (m, 0) if ``r = m``.
    noise : float
        Mean variance of the rows over the other m - r directions, plus `reg`.
    """

    def __init__(self, rows: FloatArray, r: int, reg: float, seed: int) -> None:
        m = rows.shape[1]
        self.directions: FloatArray = np.empty((m, 0))
        self.noise = 1.0
        if r < m:
            solver = "covariance_eigh" if m <= MOST_COLUMNS_EXACT else "auto"
            # Rows without any spread have no directions: any will do.
            basis = np.eye(m, r)
            if rows.any():
                basis = PCA(r, svd_solver=solver, random_state=seed).fit(rows).components_.T
            self.directions = np.ascontiguousarray(basis)
            self.noise = float(self.split(rows)[1].mean()) / (m - r) + reg

    def split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows in the leading directions and their squared rest."""
        if not self.directions.shape[1]:
            return rows, np.zeros(len(rows))
        inside = rows @ self.directions
        rest = np.einsum("qm,qm->q", rows, rows) - np.einsum("qr,qr->q", inside, inside)
        return inside, np.maximum(rest, 0.0)

    def log_density(self, rest: FloatArray) -> FloatArray:
        """Return the log density of the rest of a row."""
        m, r = self.directions.shape
        if not r:
            return np.zeros_like(rest)
        density: FloatArray = rest / self.noise + (m - r) * (LOG_2PI + np.log(self.noise))
        return -0.5 * density


class Mixture:
    """Gaussians as scoring needs them: one product whitens for all of them.

    Parameters
    ----------
    weights : ndarray of shape (c,)
        Weights, sum 1.
    means : ndarray of shape (c, r)
        Means.
    factors : ndarray of shape (c, r, r)
        Upper triangular U with ``U U' = S^-1``, for each covariance S.
    """

    def __init__(self, weights: FloatArray, means: FloatArray, factors: FloatArray) -> None:
        self.shape = means.shape
        c, r = self.shape
        self.factors = np.ascontiguousarray(factors.transpose(1, 0, 2).reshape(r, c * r))
        self.shifts = np.einsum("cr,crs->cs", means, factors).ravel()
        volumes = np.log(factors.diagonal(axis1=1, axis2=2)).sum(axis=1)
        # A Gaussian without rows has weight 0: its logarithm must stay finite.
        self.constants = np.log(np.maximum(weights, 1e-300)) + volumes - 0.5 * r * LOG_2PI

    def log_density(self, rows: FloatArray) -> FloatArray:
        """Return the log density of every row."""
        white = (rows @ self.factors - self.shifts).reshape(-1, *self.shape)
        logs = self.constants - 0.5 * np.einsum("qcr,qcr->qc", white, white)
        top = logs.max(axis=1)
        density: FloatArray = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        return density

    def criterion(self, rows: FloatArray) -> float:
        """Return the Bayesian information criterion, lower is better."""
        c, r = self.shape
        n_parameters = c * (r + r * (r + 1) // 2) + c - 1
        return float(n_parameters * np.log(len(rows)) - 2 * self.log_density(rows).sum())


class GMM(BaseDetector):
    """Score rows by the log density of a Gaussian mixture.

    The density is ``sum_c w_c N(x; mu_c, S_c)`` with full covariances. With
    more than ``r = min(64, n // 4)`` columns (256 instead of 64 if
    `n_components` is 1) the mixture is fitted in the r leading principal
    directions, and what is left of a row counts as normal noise of one
    variance, the mean variance of the training rows over the other
    directions. A deviation off the subspace thus lowers the score too, and
    10,000 columns cost little more than a principal component analysis.

    Parameters
    ----------
    n_components : int, optional
        Number of Gaussians; if not given, the number up to `max_components`
        with the lowest Bayesian information criterion. Cut to n // 2, at
        least 1, where there are too few rows.
    max_components : int, default 5
        The most components that are tried if `n_components` is not given.
    reg_covar : float, default 1e-3
        Added to the variances, as a share of the mean variance of the
        features, so that the unit of the features does not matter.
    max_samples : int, optional
        Learn from at most so many rows, evenly spaced.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.
    random_state : int, RandomState instance or None
        Starts the mixture; one component in few columns needs none.

    Attributes
    ----------
    n_components_ : int
        Number of Gaussians.
    n_directions_ : int
        Number of columns or principal directions they are fitted in.
    converged_ : bool
        Whether the mixture reached its tolerance within 200 iterations.
    offset_ : float
        Rows that score less are called anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> GMM(n_components=1).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        max_components: int = 5,
        reg_covar: float = 1e-3,
        max_samples: int | None = None,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.max_components = max_components
        self.reg_covar = reg_covar
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("reg_covar", self.reg_covar, 0.0, np.inf)
        require_count("max_components", self.max_components, 1, "Use 5.")
        if self.n_components is not None:
            require_count("n_components", self.n_components, 1, "Use None to choose it by BIC.")

    def _fit(self, gram: Gram) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        X, centre = gram.reference.X, gram.reference.centre
        n, m = X.shape
        # M is twice the sum of the variances; a fold of one row has one too.
        self.unit_ = float(np.sqrt(gram.reference.scale / (2 * m)))
        rows = (X - centre) / self.unit_
        most = MOST_DIRECTIONS if self.n_components == 1 else MOST_DIRECTIONS_OF_SEVERAL
        self.n_directions_ = min(m, most, max(1, n // ROWS_PER_DIRECTION))
        with few_threads(n * self.n_directions_**2):
            self.subspace_ = Subspace(rows, self.n_directions_, self.reg_covar, seed)
            inside, _ = self.subspace_.split(rows)
            self.mixture_, self.converged_ = self._mixture(inside, seed)
        self.n_components_ = int(self.mixture_.shape[0])

    def _score(self, query: Query) -> FloatArray:
        rows = (query.X - self.reference_.centre) / self.unit_
        inside, rest = self.subspace_.split(rows)
        density = self.mixture_.log_density(inside) + self.subspace_.log_density(rest)
        density -= rows.shape[1] * np.log(self.unit_)
        return density

    def _mixture(self, rows: FloatArray, seed: int) -> tuple[Mixture, bool]:
        most = max(1, len(rows) // ROWS_PER_COMPONENT)
        if self.n_components is not None:
            return _fit_mixture(rows, min(self.n_components, most), self.reg_covar, seed)
        counts = range(1, min(self.max_components, most) + 1)
        tried = [_fit_mixture(rows, c, self.reg_covar, seed) for c in counts]
        return min(tried, key=lambda fit: fit[0].criterion(rows))


def _fit_mixture(rows: FloatArray, c: int, reg: float, seed: int) -> tuple[Mixture, bool]:
    """Fit c Gaussians and tell whether the fit converged."""
    if c == 1:
        return _single(rows, reg), True
    model = GaussianMixture(c, reg_covar=reg, max_iter=MOST_ITERATIONS, random_state=seed)
    with warnings.catch_warnings():
        # Too few distinct rows or iterations: `converged_` tells, not a warning.
        warnings.simplefilter("ignore")
        model.fit(rows)
    mixture = Mixture(model.weights_, model.means_, model.precisions_cholesky_)
    return mixture, bool(model.converged_)


def _single(rows: FloatArray, reg: float) -> Mixture:
    """Return the one Gaussian that the rows have in closed form."""
    n, r = rows.shape
    mean = rows.mean(axis=0)
    covariance = (rows - mean).T @ (rows - mean) / n + reg * np.eye(r)
    lower = cholesky(covariance, lower=True)
    factor = solve_triangular(lower, np.eye(r), lower=True).T
    return Mixture(np.ones(1), mean[None], factor[None])

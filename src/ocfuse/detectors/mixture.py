"""Gaussian mixture: the log density of a row."""

import warnings
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from sklearn.base import clone
from sklearn.utils import check_random_state

from ocfuse.arrays import FloatArray
from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.base import MANY_ROWS, N_FOLDS, BaseDetector, require_count, require_number
from ocfuse.detectors.gram import Gram, Query, RowChange
from ocfuse.system.packages import slow
from ocfuse.system.threads import few_threads

#: Of more than 2,000 rows directions are found from sums of products, up to so many columns.
MOST_COLUMNS_SUMMED = 4000
LOG_2PI = float(np.log(2 * np.pi))


@dataclass
class RowSums:
    """Sums over some rows, from which mean and covariance follow."""

    n: int
    total: FloatArray
    products: FloatArray  # (m, m), the sum of the outer products

    @classmethod
    def of(cls, rows: FloatArray) -> "RowSums":
        """Return the sums over rows that are centred, about."""
        return cls(len(rows), rows.sum(axis=0), rows.T @ rows)

    def __add__(self, other: "RowSums") -> "RowSums":
        return RowSums(self.n + other.n, self.total + other.total, self.products + other.products)

    def in_units_of(self, unit: float) -> "RowSums":
        """Return the sums over the same rows divided by a unit."""
        return RowSums(self.n, self.total / unit, self.products / unit**2)

    @property
    def mean(self) -> FloatArray:
        """Mean of the rows."""
        return np.asarray(self.total / self.n)

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the rows, by their number."""
        return np.asarray(self.products / self.n - np.outer(self.mean, self.mean))

    def gaussian(self, r: int, reg: float) -> "tuple[Subspace, FittedGaussians]":
        """Return r leading directions and one Gaussian in them, of rows about their mean."""
        m, covariance = len(self.total), self.covariance
        if r == m:
            return Subspace(np.empty((m, 0))), _gaussian(np.zeros(m), covariance, reg)
        subspace, variances = _leading(covariance, r, reg)
        factor = np.diag(1.0 / np.sqrt(variances + reg))
        return subspace, FittedGaussians(np.ones(1), np.zeros((1, r)), factor[None])


def fold_moments(gram: Gram, n_folds: int) -> list[RowSums]:
    """Return the sums over the rows of each interleaved fold, about the centre of all."""
    centre = gram.reference.centre
    return [RowSums.of(gram.X[f::n_folds] - centre) for f in range(n_folds)]


class Subspace:
    """The leading principal directions of centred rows, and the noise off them.

    `directions` (m, r) are orthonormal columns, none if rows are left as they are; `noise` is the
    mean variance of the rows over the other m - r directions.
    """

    def __init__(self, directions: FloatArray, noise: float = 1.0) -> None:
        self.directions = directions
        self.noise = noise

    @classmethod
    def of(cls, rows: FloatArray, r: int, reg: float, seed: int) -> "Subspace":
        """Find r directions of centred rows, unless they have no more columns.

        `reg` is added to the variance of the noise; the seed starts the search where a full
        decomposition would be slow.
        """
        m = rows.shape[1]
        if r == m:
            return cls(np.empty((m, 0)))
        if len(rows) > MANY_ROWS and m <= MOST_COLUMNS_SUMMED:
            return _leading(RowSums.of(rows).covariance, r, reg)[0]
        solver = "auto"
        if m <= 1000:  # a full decomposition, by the smaller of the two: columns or rows
            solver = "covariance_eigh" if m <= len(rows) else "full"
        # Rows without any spread have no directions: any will do.
        basis = np.eye(m, r)
        if rows.any():
            pca = slow("sklearn.decomposition").PCA(r, svd_solver=solver, random_state=seed)
            basis = pca.fit(rows).components_.T
        found = cls(np.ascontiguousarray(basis))
        found.noise = float(found.split(rows)[1].mean()) / (m - r) + reg
        return found

    def split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows in the leading directions and their squared rest."""
        if not self.directions.shape[1]:
            return rows, np.zeros(len(rows))
        inside = rows @ self.directions
        squares = np.einsum("qm,qm->q", rows, rows)
        rest = squares - np.einsum("qr,qr->q", inside, inside)
        # Of rows near the directions the difference leaves nothing but rounding errors.
        near = rest < 1e-3 * squares
        if near.any():
            gaps = rows[near] - inside[near] @ self.directions.T
            rest[near] = np.einsum("qm,qm->q", gaps, gaps)
        return inside, rest

    def log_density(self, rest: FloatArray) -> FloatArray:
        """Return the log density of the rest of a row."""
        m, r = self.directions.shape
        if not r:
            return np.zeros_like(rest)
        density: FloatArray = rest / self.noise + (m - r) * (LOG_2PI + np.log(self.noise))
        return -0.5 * density


class FittedGaussians:
    """Gaussians as scoring needs them: one product whitens for all of them.

    They are made of their weights (c,), means (c, r) and, for each covariance S, the upper
    triangular factor U with ``U U' = S^-1``, shape (c, r, r).
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

    def left_out(self, rows: FloatArray) -> FloatArray:
        """Return the log density of every row of one Gaussian's without its own part in it.

        The covariance S without row i, y from the mean, is ``n / (n - 1)`` of
        ``S - y y' / (n - 1)``: distance and volume follow (Sherman and Morrison).
        What was added to the variances is taken to grow with S.
        """
        n, r = rows.shape
        white = rows @ self.factors - self.shifts
        distances = np.einsum("qr,qr->q", white, white)
        kept = 1.0 - distances / (n - 1)
        volume = self.constants[0] - 0.5 * (r * np.log(n / (n - 1)) + np.log(kept))
        density: FloatArray = volume - 0.5 * n * distances / ((n - 1) * kept)
        return density

    def stepped(self, rows: FloatArray, reg: float, n_steps: int) -> "FittedGaussians":
        """Return the Gaussians after some steps of expectation and maximisation on rows.

        Of one Gaussian a single step is all. Steps end where the likelihood gains no more.
        """
        found, before = self, -np.inf
        for _ in range(1 if self.shape[0] == 1 else n_steps):
            shares, likelihood = found.shares(rows)
            if likelihood - before < 1e-3:  # as scikit-learn's mixture stops
                break
            before = likelihood
            found = FittedGaussians(*_maximised(rows, shares, reg))
        return found

    def shares(self, rows: FloatArray) -> tuple[FloatArray, float]:
        """Return the share of each Gaussian in the density of each row, and the log likelihood."""
        white = (rows @ self.factors - self.shifts).reshape(-1, *self.shape)
        logs = self.constants - 0.5 * np.einsum("qcr,qcr->qc", white, white)
        top = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - top)
        total = shares.sum(axis=1, keepdims=True)
        likelihood = float(np.mean(top + np.log(total)))
        shares /= total
        return shares, likelihood

    def criterion(self, rows: FloatArray) -> float:
        """Return the Bayesian information criterion, lower is better."""
        c, r = self.shape
        n_parameters = c * (r + r * (r + 1) // 2) + c - 1
        return float(n_parameters * np.log(len(rows)) - 2 * self.log_density(rows).sum())


class GMM(BaseDetector):
    """Gaussian mixture: the score is the log density of a row.

    The density is ``sum_c w_c N(x; mu_c, S_c)`` with full covariances. With more than
    ``r = min(64, n // 4)`` columns (256 instead of 64 if `n_components` is 1) the mixture is
    fitted in the r leading principal directions, and the rest of a row is modelled as Gaussian
    noise with one variance, the mean variance of the training rows over the other directions. So
    deviations from the subspace lower the score too, and 10,000 columns take little more time than
    a principal component analysis.

    Out-of-fold scores are computed with folds. Several Gaussians may converge to different
    optima, so in each fold they start from those of all rows; held-out scores then belong to the
    same optimum as the detector. For one Gaussian there are short cuts: with more
    than 2,000 rows the sums of a fold are subtracted from those of all rows, and with at most 256
    columns and at least 30 rows per column a row is left out in closed form.

    Parameters
    ----------
    n_components : int, optional
        Number of Gaussians. None takes the number up to `max_components` with the lowest Bayesian
        information criterion. With few rows it is at most n // 2, but at least 1.
    max_components : int, default 5
        Largest number of Gaussians to try if `n_components` is None.
    reg_covar : float, default 1e-3
        Number added to the variances, as a share of the mean variance of the features, so that
        their units do not matter.
    max_samples : int, optional
        Most rows to learn from, evenly spaced. None learns from all.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.
    random_state : int, RandomState instance or None
        Seed of the start of the mixture; one Gaussian in few columns needs none.

    Attributes
    ----------
    n_components_ : int
        Number of Gaussians.
    n_directions_ : int
        Number of columns or principal directions in which they are fitted.
    converged_ : bool
        Whether the mixture reached its tolerance within 200 iterations.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> GMM(n_components=1).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    #: One Gaussian is fitted in at most so many directions, in closed form.
    most_directions: ClassVar[int] = 256
    #: With fewer rows for each column out-of-fold scores go by folds.
    rows_per_column: ClassVar[int] = 30
    #: Iterations of several Gaussians.
    most_iterations: ClassVar[int] = 200
    #: Iterations of several Gaussians that an update takes, at most.
    update_steps: ClassVar[int] = 5
    #: The detector of all rows, from which one of some folds begins.
    _start: "GMM | None" = None

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

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        n, m = shape.rows, shape.columns
        r = self._directions_of(n, m)
        # without a number all up to the most are tried
        c = self.n_components or self.max_components * (self.max_components + 1) // 2
        kind = "gaussian" if self.n_components == 1 else "gaussians"
        return Cost(
            fit_work={
                "directions": shape.fits() * n * m * min(n, m) * (r < m),
                kind: shape.fits() * c * n * r * r,
            },
            score_work={"gaussians": c * r * r + r * m},
            scratch_bytes={"rows": NUMBER * shape.cells},
            model_bytes={"wide": NUMBER * (c * r * r + r * m)},
        )

    def _directions_of(self, n: int, m: int) -> int:
        # Of several Gaussians each of some 50 iterations costs the square of the directions.
        most = self.most_directions if self.n_components == 1 else 64
        return min(m, most, max(1, n // 4))

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
        self.n_directions_ = self._directions_of(n, m)
        with few_threads(n * self.n_directions_**2):
            if self.is_closed(n, m):
                total = reduce(add, gram.made(fold_moments, N_FOLDS))
                self.subspace_, self.mixture_ = self._gaussian(total)
                self.converged_ = True
            else:
                rows = (X - centre) / self.unit_
                self.subspace_ = Subspace.of(rows, self.n_directions_, self.reg_covar, seed)
                inside, _ = self.subspace_.split(rows)
                self.mixture_, self.converged_ = self._mixture(inside, seed, X)
        self.n_components_ = int(self.mixture_.shape[0])

    def fit_fold(self, part: Gram, gram: Gram) -> "GMM":
        """Return a clone fitted to a part of the rows of a Gram, to score the others.

        Several Gaussians have several optima. A fold begins where all rows ended, and so stays
        near the same one: scores held out in another are not those of this detector.
        """
        fresh: GMM = clone(self)
        if self.n_components != 1:
            fresh._start = self if hasattr(self, "mixture_") else clone(self).fit_gram(gram)
        fresh.fit_gram(part)
        return fresh

    def updated(self, change: RowChange) -> "GMM":
        """Return a copy that knows the new rows, in the directions of before.

        One Gaussian is what a fit to them would be; several take a few steps from where they are.
        """
        fresh = copy(self)
        fresh.reference_ = change.new
        rows = (change.new.X - change.new.centre) / self.unit_
        inside, _ = self.subspace_.split(rows)
        with few_threads(inside.size * inside.shape[1]):
            fresh.mixture_ = self.mixture_.stepped(inside, self.reg_covar, self.update_steps)
        return fresh

    def _score(self, query: Query) -> FloatArray:
        return self._log_density(query.X - self.reference_.centre, self.subspace_, self.mixture_)

    def _log_density(
        self, rows: FloatArray, subspace: Subspace, mixture: FittedGaussians
    ) -> FloatArray:
        rows = rows / self.unit_
        inside, rest = subspace.split(rows)
        density = mixture.log_density(inside) + subspace.log_density(rest)
        density -= rows.shape[1] * np.log(self.unit_)
        return density

    def is_closed(self, n: int, m: int) -> bool:
        """Return whether there is one Gaussian of many rows, learned from their sums."""
        return self.n_components == 1 and n > MANY_ROWS and m <= MOST_COLUMNS_SUMMED

    def _gaussian(self, sums: RowSums) -> tuple[Subspace, FittedGaussians]:
        return sums.in_units_of(self.unit_).gaussian(self.n_directions_, self.reg_covar)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        n, m = gram.X.shape
        # Directions that have seen a row fit it better, which nothing here would undo.
        if m > self.most_directions or n < self.rows_per_column * m:
            density = np.empty(n)
            parts = gram.made(fold_moments, N_FOLDS)
            for f in range(N_FOLDS):
                others = reduce(add, parts[:f] + parts[f + 1 :])
                rows = gram.X[f::N_FOLDS] - (self.reference_.centre + others.mean)
                density[f::N_FOLDS] = self._log_density(rows, *self._gaussian(others))
            return density
        rows = (gram.X - self.reference_.centre) / self.unit_
        density = self.mixture_.left_out(rows)
        density -= m * np.log(self.unit_)
        return density

    def _mixture(self, rows: FloatArray, seed: int, X: FloatArray) -> tuple[FittedGaussians, bool]:
        """Fit as many Gaussians as asked for, or as suit; return also whether that converged."""
        most = max(1, len(rows) // 2)
        if self.n_components is not None:
            return self._mixture_of(min(self.n_components, most), rows, seed, X)
        counts = range(1, min(self.max_components, most) + 1)
        tried = [self._mixture_of(c, rows, seed, X) for c in counts]
        return min(tried, key=lambda fit: fit[0].criterion(rows))

    def _mixture_of(
        self, c: int, rows: FloatArray, seed: int, X: FloatArray
    ) -> tuple[FittedGaussians, bool]:
        """Fit so many Gaussians; of a fold, from where those of all rows ended."""
        reg, begin = self.reg_covar, {}
        if c == 1:
            mean = rows.mean(axis=0)
            covariance = (rows - mean).T @ (rows - mean) / len(rows)
            return _gaussian(mean, covariance, reg), True
        start = self._start
        if start is not None and start.n_components_ == c:
            theirs, _ = start.subspace_.split((X - start.reference_.centre) / start.unit_)
            weights, means, factors = _maximised(rows, start.mixture_.shares(theirs)[0], reg)
            begin = {
                "init_params": "random_from_data",  # which is quick, and not used
                "weights_init": weights / weights.sum(),
                "means_init": means,
                "precisions_init": factors @ factors.transpose(0, 2, 1),
            }
        model = slow("sklearn.mixture").GaussianMixture(
            c, reg_covar=reg, max_iter=self.most_iterations, random_state=seed, **begin
        )
        with warnings.catch_warnings():
            # Too few distinct rows or iterations: `converged_` says so, not a warning.
            warnings.simplefilter("ignore")
            model.fit(rows)
        factors = model.precisions_cholesky_
        # A Gaussian is flat if its smallest variance is hardly more than what is added to all:
        # with fewer rows than directions it must be, and with columns that say the same.
        flat = len(rows) * model.weights_ > rows.shape[1] + 1
        flat &= np.linalg.eigvalsh(model.covariances_)[:, 0] <= 2.0 * reg
        if flat.any() and len(np.unique(rows, axis=0)) < len(rows):
            factors[flat] = _rounded_out(rows, model.covariances_[flat], model.weights_[flat], reg)
        return FittedGaussians(model.weights_, model.means_, factors), bool(model.converged_)


def _rounded_out(
    rows: FloatArray, covariances: FloatArray, weights: FloatArray, reg: float
) -> FloatArray:
    """Return the factors of Gaussians that have no spread in some direction of their own.

    Rows of few values make such Gaussians, by a few equal rows more or less: a row off
    their directions would then have no density. As many rows as there are directions,
    and one, with the spread of all rows are added to theirs.
    """
    n, r = rows.shape
    spread = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) / n + reg * np.eye(r)
    share = (r + 1) / (n * weights + r + 1)
    mixed = covariances + share[:, None, None] * (spread - covariances)
    return np.stack([_factor(covariance) for covariance in mixed])


def _leading(covariance: FloatArray, r: int, reg: float) -> tuple[Subspace, FloatArray]:
    """Return the r leading directions and the variances along them."""
    m = len(covariance)
    variances, directions = eigh(covariance, subset_by_index=[m - r, m - 1])
    if len(variances) < r:  # LAPACK loses some of many that are equal
        variances, directions = (found[..., m - r :] for found in eigh(covariance, driver="evd"))
    # eigenvectors have no sign of their own
    directions *= np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(r)])
    variances = np.maximum(variances, 0.0)
    rest = max(float(np.trace(covariance) - variances.sum()), 0.0)
    return Subspace(np.ascontiguousarray(directions), rest / (m - r) + reg), variances


def _gaussian(mean: FloatArray, covariance: FloatArray, reg: float) -> FittedGaussians:
    """Return one Gaussian as a mixture."""
    r = len(mean)
    factor = _factor(covariance + reg * np.eye(r))
    return FittedGaussians(np.ones(1), mean[None], factor[None])


def _maximised(
    rows: FloatArray, shares: FloatArray, reg: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights, means and factors of Gaussians by their shares in the rows."""
    counts = shares.sum(axis=0) + 10.0 * np.finfo(np.float64).eps
    means = (shares.T @ rows) / counts[:, None]
    factors = np.empty((len(means), rows.shape[1], rows.shape[1]))
    for j, mean in enumerate(means):
        centred = rows - mean
        spread = (shares[:, j, None] * centred).T @ centred / counts[j]
        factors[j] = _factor(spread + reg * np.eye(rows.shape[1]))
    return counts / len(rows), means, factors


def _factor(covariance: FloatArray) -> FloatArray:
    """Return the upper triangular U with ``U U' = S^-1``."""
    lower = cholesky(covariance, lower=True)
    factor: FloatArray = solve_triangular(lower, np.eye(len(lower)), lower=True).T
    return factor

"""Pools of members: named pools, and the class that fits and scores members together."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from ocfuse.arrays import FloatArray
from ocfuse.detectors.base import MANY_ROWS, require_count
from ocfuse.detectors.forest import Forest
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.marginal import Marginal
from ocfuse.detectors.members import (
    Members,
    check_scores,
    copy_members,
    finite_scores,
    givers_first,
    is_shared,
    name_members,
    own_scores,
)
from ocfuse.detectors.mixture import GMM
from ocfuse.detectors.neighbours import KNN, LOF
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.training import Progress, Training, blocks
from ocfuse.detectors.views import Compressed, Mahalanobis, Whitened
from ocfuse.exceptions import InvalidInputError, MemberError, did_you_mean
from ocfuse.groups import Groups, group_folds
from ocfuse.system.threads import few_threads
from ocfuse.validation import require_fitted

#: Widths of the paper, as multiples of the mean squared distance.
WIDTHS = (0.25, 0.5, 1.0)
#: Rows by way of which kernel members learn from all where there are many.
LANDMARKS = 1000
#: The same for the members of "default" and "large": more rows than these go by way of them.
FEW_LANDMARKS = 500
#: Training rows of a mixture of several Gaussians, which takes many passes.
MIXTURE_SAMPLES = 5000


def _kernel_members(*widths: float) -> Members:
    families = {"svdd": SVDD, "gp": OneClassGP, "kpca": KPCA}
    return [
        (f"{name}-{width:g}", family(width=width, landmarks=LANDMARKS))
        for name, family in families.items()
        for width in widths
    ]


def _paper(*widths: float) -> Members:
    return [*_kernel_members(*widths), ("gmm", GMM(max_samples=MIXTURE_SAMPLES))]


def _fast_kpca(width: float) -> KPCA:
    return KPCA(width=width, max_samples=FEW_LANDMARKS, landmarks=FEW_LANDMARKS)


def _default() -> Members:
    return [
        ("kpca-1", _fast_kpca(1.0)),
        ("knn-1", KNN(1)),
        ("knn-5", KNN(5)),
        ("gmm-1", GMM(1)),
        ("gmm-3", GMM(3, max_samples=MIXTURE_SAMPLES)),
        ("lof-30", LOF(30)),
        ("maha", Mahalanobis()),
        ("wknn-5", Whitened(KNN(5))),
        ("wkpca-1", Whitened(_fast_kpca(1.0))),
        ("wlof", Whitened(LOF((10, 20, 40)))),
        ("ckpca-0.25", Compressed(_fast_kpca(0.25))),
        ("ckpca-1", Compressed(_fast_kpca(1.0))),
        ("cknn-1", Compressed(KNN(1))),
        ("cknn-5", Compressed(KNN(5))),
        ("marginal", Marginal()),
        ("iforest", Forest()),
    ]


def _large() -> Members:
    # A whitening learned in every fold costs more than all others, and of many rows the fusion of
    # the others is as good.
    whitening = ("maha", "wknn-5", "wkpca-1", "wlof")
    return [pair for pair in _default() if pair[0] not in whitening]


def _wide() -> Members:
    return [
        *_kernel_members(*WIDTHS),
        ("gmm-1", GMM(1)),
        ("gmm-3", GMM(3, max_samples=MIXTURE_SAMPLES)),
        ("lof-10", LOF(10)),
        ("lof-30", LOF(30)),
        ("iforest", Forest()),
        ("knn-5", KNN(5)),
        ("maha", Mahalanobis()),
        ("wknn-5", Whitened(KNN(5))),
        ("wkpca-1", Whitened(KPCA(width=1.0, landmarks=LANDMARKS))),
        ("wlof", Whitened(LOF((10, 20, 40)))),
        ("knn-1", KNN(1)),
    ]


def _light() -> Members:
    return [
        ("gmm-1", GMM(1)),
        ("gmm-3", GMM(3, max_samples=MIXTURE_SAMPLES)),
        # their cost grows with the square of the rows
        ("knn-5", KNN(5, max_samples=2000)),
        ("lof-20", LOF(20, max_samples=2000)),
    ]


#: Column, name and estimator of some members.
Family: TypeAlias = list[tuple[int, str, Any]]

POOLS: dict[str, Callable[[], Members]] = {
    "paper": partial(_paper, 1.0),
    "paper-all": partial(_paper, *WIDTHS),
    "default": _default,
    "large": _large,
    "wide": _wide,
    "light": _light,
}


def make_pool(name: str) -> Members:
    """Return the members of a named pool, not fitted.

    Parameters
    ----------
    name : {"paper", "paper-all", "default", "large", "wide", "light"} or str
        "paper": SVDD, GP and KPCA of width 1, and GMM. "paper-all": the same with the widths 0.25,
        0.5 and 1. "default": 16 members, KPCA, KNN, LOF, GMM, the Mahalanobis distance, an
        isolation forest and `Marginal`; KPCA, KNN and LOF on whitened rows, KPCA and KNN on
        compressed ones. "large": the 12 of them without whitened rows. A `Pool` replaces "default"
        by "large" for more than 2,000 training rows. "wide": 20 members, those of "paper-all",
        GMM, KNN, LOF, an isolation forest, and the Mahalanobis distance, KNN, KPCA and LOF on
        whitened rows. "light": GMM, KNN and LOF, with a cost linear in the number of rows. Any
        other text names members of these pools, such as "knn-5,lof-30".

    Returns
    -------
    list of (name, estimator)
        Members; new estimators at every call.

    Examples
    --------
    >>> [name for name, _ in make_pool("light")]
    ['gmm-1', 'gmm-3', 'knn-5', 'lof-20']
    """
    if isinstance(name, str) and name in POOLS:
        return POOLS[name]()
    known = dict(pair for members in POOLS.values() for pair in members())
    names = [part.strip() for part in str(name).split(",")]
    for part in names:
        if part not in known:
            advice = f"Members of them go by name too: {', '.join(known)}."
            raise InvalidInputError(
                f"A pool must be one of {', '.join(map(repr, POOLS))}. Got {name!r}. "
                f"{did_you_mean(part, [*POOLS, *known]) or advice}"
            )
    return [(part, known[part]) for part in names]


class Pool(BaseEstimator):  # type: ignore[misc]
    """Fit several detectors to one table, and score rows with all of them.

    Members of this package that learn from the same rows share distances, kernels, factorisations
    and neighbours, in fitting, in out-of-fold scores and in scoring. Any other estimator with
    `score_samples` or `decision_function` (higher is more normal) can be a member too. A score of
    -inf is replaced by a finite one: the lowest of its out-of-fold scores minus 1,000 times their
    range. NaN and +inf are errors.

    Parameters
    ----------
    members : str, list or dict, default "default"
        The name of a pool (see `make_pool`), estimators, or (name, estimator) pairs. "default" is
        replaced by "large" for more than 2,000 training rows; ``make_pool("default")`` has 16
        members at any size. Clones of the members are fitted. Set their parameters with their
        names: ``set_params(**{"svdd-1__nu": 0.2})``.
    n_folds : int, default 4
        Number of folds, for members without closed-form out-of-fold scores.
    on_error : {"raise", "drop"}, default "raise"
        What happens if a member fails in `fit` or has scores that are not finite: "raise" a
        `MemberError`, or "drop" the member with a `MemberWarning`. In `score_samples` it is always
        an error.

    Attributes
    ----------
    pool_name_ : str or None
        Name of the pool that was used; None if the members were given.
    names_ : list of str
        Names of the members, in the order of the columns.
    members_ : list of (name, estimator)
        Fitted members.
    out_of_fold_scores_ : ndarray of shape (n, d)
        Scores of the training rows from members that have not seen them.
    fold_ : ndarray of shape (n,)
        Fold of each training row; rows of one group are in one fold.
    dropped_ : dict
        Names of dropped members, each with the reason.
    constants_ : dict
        Names of members that `FusedDetector.prune` removed, each with its constant score. They are
        in `names_`, but not in `members_`.
    lowest_ : dict
        The score that replaces -inf, by the name of each member of another package.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> pool = Pool("light").fit(X, random_state=0)
    >>> pool.out_of_fold_scores_.shape, pool.score_samples(X[:3]).shape
    ((100, 4), (3, 4))
    """

    pool_name_: str | None = None
    constants_: Mapping[str, float] = MappingProxyType({})  # of models saved before there were any

    def __init__(
        self,
        members: Any = "default",
        *,
        n_folds: int = 4,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> None:
        self.members = members
        self.n_folds = n_folds
        self.on_error = on_error

    def fit(
        self,
        X: ArrayLike,
        groups: ArrayLike | Groups | None = None,
        *,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> "Pool":
        """Fit clones of the members and compute their out-of-fold scores.

        Parameters
        ----------
        X : array-like of shape (n, m)
            Rows of normal data, scaled and finite.
        groups : array-like of shape (n,) or Groups, optional
            Group of each row. Rows of one group are held out together: no row is scored by a
            member that has seen another row of its group nor, with `Groups` of time blocks, rows
            next to it in time.
        random_state : int, RandomState instance or None
            Seed of the members whose `random_state` is None.
        n_jobs : int, optional
            Number of threads for members of other packages. The result does not depend on it.
        progress : callable, optional
            Called as ``progress(stage, member, done, total)`` at every step.

        Returns
        -------
        Pool
            The fitted pool.
        """
        self._check_parameters()
        table: FloatArray = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.pool_name_, named = self.chosen(len(table))
        members = copy_members(named, random_state)
        fold_of, withheld = None, None
        if groups is not None:
            labels = groups.label if isinstance(groups, Groups) else groups
            fold_of = group_folds(labels, len(table), self.n_folds)
            if isinstance(groups, Groups):
                withheld = groups.withheld(fold_of)
        self.fold_ = np.arange(len(table)) % self.n_folds if fold_of is None else fold_of
        drop = self.on_error == "drop"
        training = Training(members, table, self.n_folds, fold_of, drop, progress, withheld)
        self.members_ = training.run(n_jobs)
        self.names_ = [name for name, _ in self.members_]
        self.out_of_fold_scores_ = np.column_stack([training.scores[name] for name in self.names_])
        self.dropped_ = training.dropped
        self.constants_ = {}
        self.lowest_ = training.lowest
        return self

    def chosen(self, n: int) -> tuple[str | None, Members]:
        """Return the name and the members of the pool that is used for n training rows.

        Parameters
        ----------
        n : int
            Number of rows to learn from.

        Returns
        -------
        name : str or None
            "large" for "default" and more than 2,000 rows, else the given name; None if there is
            none.
        members : list of (name, estimator)
            Members, not fitted.
        """
        if not isinstance(self.members, str):
            return None, self._named()
        name = "large" if self.members == "default" and n > MANY_ROWS else self.members
        return name, make_pool(name)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the scores of rows by all members.

        Training rows get scores of members that have learned them: each is its own neighbour, at
        distance 0. For their held-out scores see `out_of_fold_scores_`.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Rows to score, scaled and finite.

        Returns
        -------
        ndarray of shape (q, d)
            Scores: higher is more normal; the columns are in the order of `names_`.
        """
        require_fitted(self, "members_")
        # Of one row the full check takes longer than a member: what is plainly right passes.
        table: FloatArray = (
            X if self._is_plain(X) else validate_data(self, X, dtype=np.float64, reset=False)
        )
        Z = np.empty((len(table), len(self.names_)))
        if self.constants_:
            Z[:] = [self.constants_.get(name, np.nan) for name in self.names_]
        self._score_shared(table, Z)
        for j, name, member in self._families[1]:
            scores = finite_scores(_attempt(name, own_scores, member, table), self.lowest_[name])
            Z[:, j] = _attempt(name, check_scores, scores, len(table))
        # One look at all is quicker than one at each, which is needed only to name the member.
        if not np.isfinite(Z).all():
            for name, column in zip(self.names_, Z.T, strict=True):
                _attempt(name, check_scores, column, len(table))
        return Z

    @property
    def is_own(self) -> bool:
        """Whether all fitted members are of this package: each row on its own, in any thread."""
        return not self._families[1]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if `deep`, also the members and their parameters, by name."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, member in self._named():
                params[name] = member
                if hasattr(member, "get_params"):
                    theirs = member.get_params(deep=True)
                    params.update({f"{name}__{key}": value for key, value in theirs.items()})
        return params

    def set_params(self, **params: Any) -> "Pool":
        """Set parameters, members by name, or their parameters by ``name__parameter``.

        Members are then stored as a list of pairs. The estimators that were given do not change.
        """
        for name in self._get_param_names():
            if name in params:
                setattr(self, name, params.pop(name))
        if not params:
            return self
        members = dict(self._named())
        theirs: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, _, parameter = key.partition("__")
            if name not in members:
                known = ", ".join([*self._get_param_names(), *members])
                raise InvalidInputError(f"A pool has no parameter {name!r}. It has {known}.")
            if parameter:
                theirs[name][parameter] = value
            else:
                members[name] = value
        for name, values in theirs.items():
            members[name] = clone(members[name]).set_params(**values)
        self.members = list(members.items())
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_kept"}

    def _is_plain(self, X: Any) -> TypeGuard[FloatArray]:
        """Return whether X is a finite array as in fit, without names that could differ."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _named(self) -> Members:
        if isinstance(self.members, str):
            return make_pool(self.members)
        return name_members(self.members, self._get_param_names())

    def _check_parameters(self) -> None:
        require_count("n_folds", self.n_folds, 2, "Use 4.")
        if self.on_error not in ("raise", "drop"):
            raise InvalidInputError(
                f"on_error must be 'raise' or 'drop'. Got on_error={self.on_error!r}."
            )

    @property
    def _families(self) -> tuple[list[Family], Family]:
        """Our own members by the training rows that they share, and those that are not ours.

        Members are with their columns, our own in the order of their needs.
        """
        kept: tuple[Members, list[Family], Family] | None = vars(self).get("_kept")
        if kept is None or kept[0] is not self.members_:
            families: defaultdict[int, Members] = defaultdict(list)
            for name, member in self.members_:
                if is_shared(member):
                    families[id(member.reference_)].append((name, member))
            column = {name: j for j, name in enumerate(self.names_)}
            own = [
                [(column[name], name, member) for name, member in givers_first(some)]
                for some in families.values()
            ]
            others = [
                (column[name], name, member)
                for name, member in self.members_
                if not is_shared(member)
            ]
            kept = self._kept = self.members_, own, others
        return kept[1:]

    def _score_shared(self, X: FloatArray, Z: FloatArray) -> None:
        """Score rows by our own members, into their columns: one Query per set of training rows."""
        with few_threads(0):  # as chunks of many rows are scored: the same bits
            for members in self._families[0]:
                reference = members[0][2].reference_
                # Of more than 4,000 training rows a new row is compared with some.
                for block in blocks(len(X), min(reference.n_rows, 4000)):
                    query = reference.query(X[block])
                    for j, name, member in members:
                        Z[block, j] = _attempt(name, member.score_query, query)


def _attempt(name: str, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        raise MemberError(f"Member {name!r} failed. {type(error).__name__}: {error}") from error

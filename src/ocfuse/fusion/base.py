"""Base class of the fusions, and the evidence for the competence of members."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ocfuse.arrays import FloatArray
from ocfuse.cost import Cost, Shape, guessed_cost
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import slow
from ocfuse.validation import (
    GroupsLike,
    check_context,
    check_labels,
    check_rows,
    check_sample_weight,
    check_table,
    check_width,
    require_context,
)

Self = TypeVar("Self", bound="BaseFusion")

#: A member that never wins still counts a little: its competence is a divisor.
LEAST = 1e-3


@dataclass(frozen=True)
class Evidence:
    """Comparisons in which a competent member should separate two kinds of rows.

    Each column is one comparison: how well each member separates normal rows from one kind of
    pseudo-negative, or rows that it has seen from rows that it has not.

    Parameters
    ----------
    auc : ndarray of shape (d, g)
        Area under the ROC curve of each member in each comparison.
    vote : ndarray of shape (g,)
        Weight of each comparison: not negative, and not all zero.
    labels : list of str
        Names of the comparisons.
    """

    auc: FloatArray
    vote: FloatArray
    labels: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together."""
        shape = np.shape(self.auc)
        if len(shape) != 2 or np.shape(self.vote) != shape[1:]:
            raise InvalidInputError(
                "Evidence needs one vote per comparison, the columns of auc. "
                f"Got auc of shape {shape} and vote of shape {np.shape(self.vote)}."
            )
        if not (np.min(self.vote) >= 0 and np.sum(self.vote) > 0 and np.isfinite(self.auc).all()):
            raise InvalidInputError(
                "Evidence needs finite auc, and votes that are not negative and not all zero. "
                f"Got vote={self.vote!r}."
            )

    def require_members(self, d: int) -> None:
        """Raise an error if the evidence is not of d members."""
        if len(self.auc) != d:
            raise InvalidInputError(
                f"evidence must have one row per member: {d}. Got {len(self.auc)}."
            )

    def by_rank(self) -> FloatArray:
        """Return the weighted mean rank of each member, from 0 to 1; ties share a rank."""
        ranks = slow("scipy.stats").rankdata(self.auc, axis=0) / len(self.auc)
        return np.asarray(ranks @ self.vote / np.sum(self.vote))

    def by_value(self) -> FloatArray:
        """Return the weighted mean area of each member."""
        return np.asarray(np.maximum(self.auc @ self.vote / np.sum(self.vote), LEAST))


class Ranked:
    """Scores of some rows, sorted once to be compared with those of others.

    Parameters
    ----------
    scores : ndarray of shape (n, d)
        Scores by the members.
    """

    def __init__(self, scores: FloatArray) -> None:
        self._columns = np.array(scores.T, order="C")
        self._columns.sort(axis=1)

    def above(self, others: FloatArray) -> FloatArray:
        """Return for each member how often a row is above one of the others; ties count half."""
        pairs = self._columns.shape[1] * len(others)
        return np.asarray((pairs - self._below(others)) / pairs)

    def below(self, others: FloatArray) -> FloatArray:
        """Return for each member how often a row is below one of the others; ties count half."""
        return np.asarray(self._below(others) / (self._columns.shape[1] * len(others)))

    def _below(self, others: FloatArray) -> FloatArray:
        """Return the number of pairs; it is exact, as all halves of whole numbers are."""
        pairs = zip(self._columns, others.T, strict=True)
        return np.array(
            [
                0.5 * (mine.searchsorted(theirs).sum() + mine.searchsorted(theirs, "right").sum())
                for mine, theirs in pairs
            ]
        )


def auc_of(normal: FloatArray, anomalous: FloatArray) -> FloatArray:
    """Return the area under the ROC curve of every column; ties count half."""
    return Ranked(normal).above(anomalous)


class BaseFusion(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class: fuse the scores of d members to one score; higher is more normal.

    The public methods check their input, the private ones compute. A subclass defines `_fit` and
    `_fuse`, and overrides other private methods if needed. Scoring is deterministic, does not
    change the fusion, and scores each row independently of the others.

    Attributes
    ----------
    n_members_ : int
        Number of members d seen in `fit`.
    n_features_ : int
        Number of columns of X seen in `fit`; only if `needs_X`.
    n_context_ : int
        Number of columns of context; they are the last columns of X in `_fit` and `_fuse`.
    reference_ : ndarray of shape (d,)
        Weighted mean of the scores of the normal rows seen in `fit`.
    """

    #: `fit` and `fuse` need the feature rows X
    needs_X: ClassVar[bool] = False  # noqa: N815
    #: `fit` needs rows with y = -1
    needs_anomalies: ClassVar[bool] = False

    n_context_: int = 0

    def fit(
        self: Self,
        Z: ArrayLike,
        y: ArrayLike | None = None,
        X: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        evidence: Evidence | None = None,
        context: ArrayLike | None = None,
        groups: GroupsLike | None = None,
    ) -> Self:
        """Learn from normalised scores of normal rows and, if there are any, of anomalies.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Normalised scores, one column per member; higher is more normal.
        y : array-like of shape (n,), optional
            +1 for normal and -1 for anomaly; None means that all rows are normal.
        X : array-like of shape (n, m), optional
            Features of the rows; only used if `needs_X`.
        sample_weight : array-like of shape (n,), optional
            Weights, not negative. Only their ratios matter; a row with weight 0 is left out.
        evidence : Evidence, optional
            Comparisons of the members; only used by fusions that weight members by their
            competence.
        context : array-like of shape (n,) or (n, k), optional
            Further coordinates of the rows, such as time or the progress of a task, in the units
            of X. They are added to the squared distance between rows. Members do not see them.
            Only used if `needs_X`; scoring then needs them too.
        groups : Groups, optional
            Group of each row, such as its run or part. Neighbours are then taken from other
            groups. Only used by `CompetenceFusion`.

        Returns
        -------
        BaseFusion
            The fitted fusion.
        """
        scores = check_table(Z, "Z", "n_members")
        n = len(scores)
        labels = check_labels(y, n)
        weight = check_sample_weight(sample_weight, n)
        rows, n_context = self._checked_rows(X, n, context)
        if not weight.all():
            kept = np.flatnonzero(weight)
            scores, labels, rows, weight = scores[kept], labels[kept], rows[kept], weight[kept]
            groups = None if groups is None else groups.take(kept)
        if not (labels > 0).any():
            raise InvalidInputError(
                f"{type(self).__name__} needs at least one normal row: y = +1 and a positive "
                f"sample_weight. Got none among {len(labels)} rows."
            )
        if self.needs_anomalies and not (labels < 0).any():
            raise InvalidInputError(
                f"{type(self).__name__} needs anomalies: rows with y = -1. Got none. "
                "Pass known anomalies or pseudo-negatives, or use a fusion that learns without."
            )
        # Mean one: fitting with equal weights is fitting without.
        weight = weight / weight.mean()
        normal = labels > 0
        self.reference_ = np.average(scores[normal], axis=0, weights=weight[normal])
        self.n_context_ = n_context
        self._learn(scores, labels, rows, weight, evidence, groups)
        # Last: a first fit that fails leaves the fusion unfitted.
        if self.needs_X:
            self.n_features_ = rows.shape[1] - n_context
        self.n_members_ = scores.shape[1]
        return self

    def fuse(
        self, Z: ArrayLike, X: ArrayLike | None = None, context: ArrayLike | None = None
    ) -> FloatArray:
        """Return the fused scores.

        Parameters
        ----------
        Z : array-like of shape (q, d)
            Normalised scores of the members.
        X : array-like of shape (q, m), optional
            Features of the rows; only used if `needs_X`.
        context : array-like of shape (q,) or (q, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        ndarray of shape (q,)
            Fused scores; higher is more normal.
        """
        return self._fuse(*self._query(Z, X, context))

    def weights(self, X: ArrayLike, context: ArrayLike | None = None) -> FloatArray:
        """Return the weight of each member for each row.

        Weights do not depend on the scores of the row. They are scaled so that the absolute values
        of a row add up to 1. Fusions without learned weights (fixed rules, cascade) return 1/d.
        For the share of a member in one fused score see `contributions`.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Features of the rows; unless `needs_X`, only their number matters.
        context : array-like of shape (q,) or (q, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        ndarray of shape (q, d)
            Weights.
        """
        self._require_fitted()
        if self.needs_X:
            return self._weights(self._features(X, None, context))
        return np.tile(self._trust(), (len(np.asarray(X)), 1))

    def contributions(
        self, Z: ArrayLike, X: ArrayLike | None = None, context: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Split the fused scores into a base and a contribution of each member.

        ``base + C.sum(axis=1)`` equals ``fuse(Z, X, context)``.

        Parameters
        ----------
        Z : array-like of shape (q, d)
            Normalised scores of the members.
        X : array-like of shape (q, m), optional
            Features of the rows; only used if `needs_X`.
        context : array-like of shape (q,) or (q, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        base : ndarray of shape (q,)
            The part of no member; zero if the fusion is linear.
        C : ndarray of shape (q, d)
            Contribution of each member.
        """
        return self._contributions(*self._query(Z, X, context))

    def local_p(self, X: ArrayLike, context: ArrayLike | None = None) -> FloatArray:
        """Return the norm p(x) of the constraint with which the weights of each row were learned.

        Between anchors with different norms, it is interpolated in the same way as the weights.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Features of the rows; unless `needs_X`, only their number matters.
        context : array-like of shape (q,) or (q, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        ndarray of shape (q,)
            Norms; NaN for a fusion without a norm.
        """
        self._require_fitted()
        if self.needs_X:
            return self._local_p(self._features(X, None, context))
        return np.full(len(np.asarray(X)), self._p())

    def reasons(self) -> list[str]:
        """Return the reasons for the trust in each member, as text.

        Returns
        -------
        list of str
            One text for each member; empty if the fusion gives no reasons.
        """
        self._require_fitted()
        return [""] * self.n_members_

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of fusing one.

        The plan adds the cost of the member scores.

        Parameters
        ----------
        shape : Shape
            Numbers of rows, columns and members.

        Returns
        -------
        Cost
            Work and bytes by kind. By default none, or the bytes of the rows if it `needs_X`.
        """
        return guessed_cost(shape) if self.needs_X else Cost()

    def _learn(
        self,
        Z: FloatArray,
        y: FloatArray,
        X: FloatArray,
        c: FloatArray,
        evidence: Evidence | None,
        groups: GroupsLike | None,
    ) -> None:
        """Learn from checked rows, evidence and groups, which most fusions do without."""
        self._fit(Z, y, X, c)

    @abstractmethod
    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        """Learn from checked rows; the weights c are positive, with mean one."""

    @abstractmethod
    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        """Compute the fused score of checked rows."""

    def _trust(self) -> FloatArray:
        """Return the weights where they are the same for all rows."""
        return np.full(self.n_members_, 1.0 / self.n_members_)

    def _p(self) -> float:
        """Return the norm where it is the same for all rows."""
        return np.nan

    def _weights(self, X: FloatArray) -> FloatArray:
        """Return the weights where they depend on the row."""
        return np.tile(self._trust(), (len(X), 1))

    def _local_p(self, X: FloatArray) -> FloatArray:
        """Return the norm where it depends on the row."""
        return np.full(len(X), self._p())

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Walk from the reference to z, member by member, forth and back."""
        start = np.broadcast_to(self.reference_, Z.shape)
        base = self._fuse(start.copy(), X)
        forth = self._walk(start, Z, X, range(self.n_members_))
        back = self._walk(start, Z, X, reversed(range(self.n_members_)))
        return base, (forth + back) / 2

    def _walk(
        self, start: FloatArray, Z: FloatArray, X: FloatArray, order: Iterable[int]
    ) -> FloatArray:
        point = start.copy()
        before = self._fuse(point, X)
        steps = np.empty_like(Z)
        for j in order:
            point[:, j] = Z[:, j]
            after = self._fuse(point, X)
            steps[:, j] = after - before
            before = after
        return steps

    def _query(
        self, Z: ArrayLike, X: ArrayLike | None, context: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        self._require_fitted()
        scores = check_table(Z, "Z", "n_members")
        check_width(scores, self.n_members_, "Z", "one per member seen in fit")
        return scores, self._features(X, len(scores), context)

    def _features(
        self, X: ArrayLike | None, n: int | None, context: ArrayLike | None
    ) -> FloatArray:
        """Return checked feature rows with their context as further columns, as in fit."""
        rows, n_context = self._checked_rows(X, n, context)
        if self.needs_X:
            check_width(rows[:, : rows.shape[1] - n_context], self.n_features_, "X", "as in fit")
            require_context(n_context, self.n_context_)
        return rows

    def _checked_rows(
        self, X: ArrayLike | None, n: int | None, context: ArrayLike | None
    ) -> tuple[FloatArray, int]:
        """Return checked rows, without columns where none are needed, and those of context."""
        if not self.needs_X:
            return np.empty((n or 0, 0)), 0
        if X is None:
            raise InvalidInputError(
                f"{type(self).__name__} needs the feature rows: its weights depend on the place. "
                "Got X=None. Pass X=, or use LpFusion for one weight vector everywhere."
            )
        rows = check_table(X, "X", "n_features")
        if n is not None:
            check_rows(rows, n, "X")
        if context is None:
            return rows, 0
        further = check_context(context, len(rows))
        return np.hstack([rows, further]), further.shape[1]

    def _require_fitted(self) -> None:
        if not hasattr(self, "n_members_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet. Call fit first.")

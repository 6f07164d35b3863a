"""The contract of every fusion: score matrix in, one score per row out; evidence for members."""

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
    """Comparisons of rows that a competent member should tell apart.

    Each is one column: how well every member tells normals from one kind of
    pseudo-anomaly, or rows that it has seen from rows that it has not.

    Parameters
    ----------
    auc : ndarray of shape (d, g)
        Area under the ROC curve of every member in every comparison.
    vote : ndarray of shape (g,)
        How much each comparison counts, not negative, not all zero.
    labels : list of str
        Names of the comparisons, for people to read.
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
        """Refuse evidence of another number of members than d."""
        if len(self.auc) != d:
            raise InvalidInputError(
                f"evidence must have one row per member: {d}. Got {len(self.auc)}."
            )

    def by_rank(self) -> FloatArray:
        """Return the voted mean of the members' ranks, from 0 to 1; ties share a rank."""
        ranks = slow("scipy.stats").rankdata(self.auc, axis=0) / len(self.auc)
        return np.asarray(ranks @ self.vote / np.sum(self.vote))

    def by_value(self) -> FloatArray:
        """Return the voted mean of the areas themselves."""
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
        """Return how often a row is above one of the others, by member; ties count half."""
        pairs = self._columns.shape[1] * len(others)
        return np.asarray((pairs - self._below(others)) / pairs)

    def below(self, others: FloatArray) -> FloatArray:
        """Return how often a row is below one of the others, by member; ties count half."""
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
    """Fuse the scores of d members into one score, higher = more normal.

    The public methods check their input, the private ones compute: a new fusion
    writes `_fit` and `_fuse`, and the others where it knows better. Scoring is
    deterministic, changes nothing, and treats every row on its own.

    Attributes
    ----------
    n_members_ : int
        Number of members d seen in `fit`.
    n_features_ : int
        Number of columns of X seen in `fit`; only where `needs_X`.
    n_context_ : int
        Number of columns of context, which are the last that `_fit` and `_fuse` get.
    reference_ : ndarray of shape (d,)
        Weighted mean score vector of the normal rows seen in `fit`.
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
        """Learn from the normalised scores of normal rows and, if any, of anomalies.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Normalised scores, one column per member, higher = more normal.
        y : array-like of shape (n,), optional
            +1 for normal and -1 for anomaly; None means that all rows are normal.
        X : array-like of shape (n, m), optional
            Feature rows; only read where `needs_X`.
        sample_weight : array-like of shape (n,), optional
            Weights, not negative; only their ratios count, and zero leaves a row out.
        evidence : Evidence, optional
            Comparisons that competent members win; only read by fusions that weigh
            members by their competence.
        context : array-like of shape (n,) or (n, k), optional
            What else tells places apart, such as time or the progress of a task, in
            the units of X: it adds to the squared distance of rows. Members do not
            see it. Only read where `needs_X`; scoring then needs it too.
        groups : Groups, optional
            Which rows are of one run or part: what is learned from neighbours is then
            learned from those of other groups. Only read by `CompetenceFusion`.

        Returns
        -------
        BaseFusion
            The fitted fusion itself.
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
            Feature rows; only read where `needs_X`.
        context : array-like of shape (q,) or (q, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        ndarray of shape (q,)
            Fused scores, higher = more normal.
        """
        return self._fuse(*self._query(Z, X, context))

    def weights(self, X: ArrayLike, context: ArrayLike | None = None) -> FloatArray:
        """Return the trust in each member at each row, before its score is seen.

        It is what the fusion learned, scaled so that the absolute values of a row
        add up to one. Fusions that learn no trust (the fixed rules, the cascade)
        say 1/d; the share that a member had in one score is in `contributions`.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Feature rows; where not `needs_X` only their number counts.
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
        """Split the fused scores into a base and one part per member.

        ``base + C.sum(axis=1)`` equals ``fuse(Z, X, context)``.

        Parameters
        ----------
        Z : array-like of shape (q, d)
            Normalised scores of the members.
        X : array-like of shape (q, m), optional
            Feature rows; only read where `needs_X`.
        context : array-like of shape (q,) or (q, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        base : ndarray of shape (q,)
            The part that no member has; zero where the fusion is linear.
        C : ndarray of shape (q, d)
            The part of each member.
        """
        return self._contributions(*self._query(Z, X, context))

    def local_p(self, X: ArrayLike, context: ArrayLike | None = None) -> FloatArray:
        """Return the norm p(x) under which the weights at each row were learned.

        Between anchors, each with a norm of its own, it is blended as the weights are.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Feature rows; where not `needs_X` only their number counts.
        context : array-like of shape (q,) or (q, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        ndarray of shape (q,)
            Norms; NaN for a fusion that has none.
        """
        self._require_fitted()
        if self.needs_X:
            return self._local_p(self._features(X, None, context))
        return np.full(len(np.asarray(X)), self._p())

    def reasons(self) -> list[str]:
        """Return why each member is trusted as it is, in words.

        Returns
        -------
        list of str
            One text for each member; empty where the fusion has no reason to give.
        """
        self._require_fitted()
        return [""] * self.n_members_

    def cost(self, shape: Shape) -> Cost:
        """Return what it takes to learn from rows, and to fuse one.

        The scores themselves are counted by the plan.

        Parameters
        ----------
        shape : Shape
            The rows.

        Returns
        -------
        Cost
            Work and bytes by kind. Unless a subclass knows better it is nothing, or the
            bytes of the rows where it `needs_X`.
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

"""Out-of-fold fused scores: each row by a fusion that has not seen it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ocfuse.arrays import FloatArray, Int64Array
from ocfuse.exceptions import EqualWeightsWarning
from ocfuse.fusion.base import BaseFusion, Evidence, Ranked
from ocfuse.validation import GroupsLike


@dataclass(frozen=True)
class Ballot:
    """Votes of the kinds of pseudo-negatives, and of rows seen against rows unseen.

    Parameters
    ----------
    kinds : dict
        Vote of every kind, by name, in the order of their numbers.
    seen : float
        Vote of the generalisation gap: a member that tells the rows it has seen
        from others draws a close line around them.
    """

    kinds: dict[str, float] = field(default_factory=dict)
    seen: float = 0.0

    def known(self, k: int) -> float:
        """Return the vote of k known anomalies: with ten as much as all others together."""
        others = sum(self.kinds.values()) + self.seen
        return k / 10 * (others or 1.0)


def ballot_for(labels: list[str], n_rows: int, n_columns: int) -> Ballot:
    """Return the votes for kinds of pseudo-negatives, by rows and columns.

    With r = 2 m / n and ``h = r^2 / (1 + r^2)``, from 0 (many rows) to 1 (many
    columns), kinds that share mean, covariance or box with the normals vote 1 - h, the gap h,
    and the others 1: with few rows for the columns, members that estimate just these cannot
    tell such kinds from normals.
    """
    r = 2.0 * n_columns / n_rows
    h = r * r / (1.0 + r * r)
    least = 1e-3  # a comparison that should not count still breaks ties
    kinds = {}
    for number, label in enumerate(labels):
        name = label if label not in kinds else f"{label} {number}"
        kinds[name] = max(1.0 - h, least) if label in ("gauss", "pcshuffle", "uniform") else 1.0
    return Ballot(kinds, max(h, least))


@dataclass(frozen=True)
class ScoredRows:
    """Rows with out-of-fold member scores, as the fusion learns from them.

    Parameters
    ----------
    S : ndarray of shape (n, d)
        Member scores; no row was seen by the member that scored it.
    y : ndarray of shape (n,)
        +1 or -1.
    X : ndarray of shape (n, m)
        Encoded features.
    fold : ndarray of shape (n,)
        Fold in which a row is held out; -1 for pseudo-negatives, which never are.
    kind : ndarray of shape (n,)
        Generator of a pseudo-negative, as the ballot numbers them; -1 for real rows.
    seen : ndarray of shape (n, d)
        Scores of normals by members that have seen them; NaN where not computed.
    ballot : Ballot
        How much each kind of comparison counts.
    learns_pseudo : bool, default=True
        Weights are learned from pseudo-negatives too; otherwise these are evidence only.
    context : ndarray of shape (n, k), optional
        Context of the rows, in the units of X.
    withheld : ndarray of shape (n, number of folds), optional
        Rows that are not learned from while a fold is held out; by default its own.
    groups : GroupsLike, optional
        Groups of the rows; what they are of a pseudo-negative does not matter.
    """

    S: FloatArray
    y: Int64Array
    X: FloatArray
    fold: Int64Array
    kind: Int64Array
    seen: FloatArray
    ballot: Ballot
    learns_pseudo: bool = True
    context: FloatArray | None = None
    withheld: NDArray[np.bool_] | None = None
    groups: GroupsLike | None = None

    def take(self, chosen: NDArray[np.bool_]) -> "ScoredRows":
        """Return the chosen rows."""
        return replace(
            self,
            S=self.S[chosen],
            y=self.y[chosen],
            X=self.X[chosen],
            fold=self.fold[chosen],
            kind=self.kind[chosen],
            seen=self.seen[chosen],
            context=None if self.context is None else self.context[chosen],
            withheld=None if self.withheld is None else self.withheld[chosen],
            groups=None if self.groups is None else self.groups.take(np.flatnonzero(chosen)),
        )

    def real(self) -> "ScoredRows":
        """Return the rows without pseudo-negatives."""
        return self.take(self.kind < 0)

    def kept(self, f: int) -> NDArray[np.bool_]:
        """Return which rows may be learned from while fold f is held out."""
        if self.withheld is None:
            return np.asarray(self.fold != f)
        return np.asarray(~self.withheld[:, f])

    def only(self, members: Sequence[int] | NDArray[np.intp]) -> "ScoredRows":
        """Return the rows with the scores of some members only."""
        return replace(self, S=self.S[:, members], seen=self.seen[:, members])

    @property
    def has_pseudo(self) -> bool:
        """Whether there are pseudo-negatives."""
        return bool((self.fold < 0).any())

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows are known anomalies, not made-up ones."""
        return np.asarray((self.y < 0) & (self.kind < 0))

    def evidence(self) -> Evidence | None:
        """Compare the members: by pseudo-negatives, rows they have seen, and known anomalies."""
        normal = self.S[self.y > 0]
        known = self.S[self.known]
        kinds = [self.S[self.kind == k] for k in range(len(self.ballot.kinds))]
        seen = self.seen[~np.isnan(self.seen).any(axis=1)]
        ranked = Ranked(normal)
        # Rows that were seen should be above normals, the others below.
        pairs = [
            *((ranked.above, rows) for rows in kinds),
            (ranked.below, seen),
            (ranked.above, known),
        ]
        votes = [*self.ballot.kinds.values(), self.ballot.seen, self.ballot.known(len(known))]
        held = [i for i, (_, rows) in enumerate(pairs) if len(rows) and len(normal)]
        if not held or not any(votes[i] for i in held):
            return None
        labels = [*self.ballot.kinds, "seen", "known anomalies"]
        return Evidence(
            np.column_stack([pairs[i][0](pairs[i][1]) for i in held]),
            np.array([votes[i] for i in held]),
            [labels[i] for i in held],
        )

    def weights(self) -> FloatArray:
        """Return weights that balance normals and anomalies; they sum to 1."""
        c = np.zeros(len(self.y))
        labels = np.unique(self.y)
        for label in labels:
            c[self.y == label] = 1.0 / (len(labels) * np.sum(self.y == label))
        return c


def fit_fusion(rows: ScoredRows, normaliser: Any, fusion: BaseFusion) -> tuple[Any, BaseFusion]:
    """Return a normaliser fitted on the normals and a fusion fitted on all rows."""
    normaliser = fit_normaliser(rows, normaliser)
    return normaliser, fit_weights(rows, normaliser.transform(rows.S), fusion)


def fit_normaliser(rows: ScoredRows, normaliser: Any) -> Any:
    """Return a normaliser fitted on the normals."""
    return clone(normaliser).fit(rows.S[rows.y > 0])


def fit_weights(rows: ScoredRows, Z: FloatArray, fusion: BaseFusion) -> BaseFusion:
    """Return a fusion fitted on all rows, whose normalised scores are Z."""
    learned = rows
    if not rows.learns_pseudo:
        learned, Z = rows.real(), Z[rows.kind < 0]
    fitted: BaseFusion = clone(fusion).fit(
        np.clip(Z, -1e6, 1e6),  # for the solver's sake; where rows are scored nothing is clipped
        learned.y,
        learned.X,
        learned.weights(),
        rows.evidence(),
        learned.context,
        learned.groups,
    )
    return fitted


def crossfitted_scores(rows: ScoredRows, normaliser: Any, fusion: BaseFusion) -> FloatArray:
    """Fuse every row by a normaliser and a fusion learned from the other folds.

    Pseudo-negatives are learned from in every fold, and get NaN.
    """
    fused = np.full(len(rows.y), np.nan)
    for f in np.unique(rows.fold[rows.fold >= 0]):
        held_out = rows.fold == f
        others = rows.take(rows.kept(f))
        with warnings.catch_warnings():  # the fit on all rows says it once
            warnings.simplefilter("ignore", EqualWeightsWarning)
            scale, fitted = fit_fusion(others, normaliser, fusion)
        del others  # before rows are taken again: they are large
        tested = rows.take(held_out)
        fused[held_out] = fitted.fuse(scale.transform(tested.S), tested.X, tested.context)
        del tested
    return fused

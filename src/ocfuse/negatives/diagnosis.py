"""Whether pseudo-negatives show differences between the members of an ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError


@dataclass(frozen=True)
class Diagnosis:
    """How well each member separates each kind of pseudo-negative from normal rows.

    Attributes
    ----------
    auc : ndarray of shape (d, g)
        AUC of each member for each kind; NaN for a kind without rows.
    saturated : ndarray of shape (g,)
        Whether every member has an AUC of at least 0.99.
    blind : ndarray of shape (g,)
        Whether every member has an AUC of at most 0.55.
    labels : list of str
        Names of the kinds.
    """

    auc: FloatArray
    saturated: NDArray[np.bool_]
    blind: NDArray[np.bool_]
    labels: list[str]

    def message(self) -> str | None:
        """Return a sentence if no kind shows differences between members, else None."""
        absent = np.isnan(self.auc).any(axis=0)
        if not (self.saturated | self.blind | absent).all():
            return None
        reasons = [
            f"{', '.join(np.array(self.labels)[which])} ({why})"
            for which, why in (
                (self.saturated, "too easy: every member has an AUC of 0.99 or more"),
                (self.blind, "like normals: every member has an AUC of 0.55 or less"),
            )
            if which.any()
        ]
        return (
            f"The pseudo-anomalies cannot tell the members apart: {'; '.join(reasons)}. What is "
            "learned from them says little about real anomalies. Use other generators, or give "
            "labelled anomalies."
        )


def diagnose(
    normal: ArrayLike, negative: ArrayLike, kind: ArrayLike, labels: Sequence[str] | None = None
) -> Diagnosis:
    """Measure how well each member separates each kind of pseudo-negative from normal rows.

    Parameters
    ----------
    normal : array-like of shape (n, d)
        Scores of normal rows from members that have not seen them; higher is more normal.
    negative : array-like of shape (q, d)
        Scores of pseudo-negatives.
    kind : array-like of shape (q,)
        Kind of each pseudo-negative, 0 to g - 1.
    labels : sequence of str, optional
        Names of the g kinds; None takes their numbers.

    Returns
    -------
    Diagnosis
        AUC of each member for each kind, and kinds that show no differences.

    Raises
    ------
    InvalidInputError
        Shapes do not match, a score is NaN, or a kind is not one of 0 to g - 1.

    Examples
    --------
    >>> from ocfuse.negatives import diagnose
    >>> found = diagnose([[2.0, 2.0], [3.0, 3.0]], [[0.0, 1.0], [1.0, 2.5]], [0, 1], ["a", "b"])
    >>> found.auc
    array([[1. , 1. ],
           [1. , 0.5]])
    >>> found.saturated
    array([ True, False])
    """
    normals, negatives, kinds = _checked(normal, negative, kind)
    names = [str(g) for g in range(kinds.max() + 1)] if labels is None else list(labels)
    if not 0 <= kinds.min() <= kinds.max() < len(names):
        raise InvalidInputError(
            f"kind must hold numbers from 0 to {len(names) - 1}, one for each label. "
            f"Got {kinds.min()} to {kinds.max()}."
        )
    beaten = np.empty(negatives.shape)  # share of normals above each pseudo-anomaly
    for j, ranked in enumerate(np.sort(normals, axis=0).T):
        below = np.searchsorted(ranked, negatives[:, j], side="left")
        below_or_tied = np.searchsorted(ranked, negatives[:, j], side="right")
        beaten[:, j] = 1.0 - (below + below_or_tied) / (2.0 * len(ranked))  # ties count half
    auc = np.full((normals.shape[1], len(names)), np.nan)
    for g in np.unique(kinds):
        auc[:, g] = beaten[kinds == g].mean(axis=0)
    return Diagnosis(
        auc=auc,
        saturated=np.all(auc >= 0.99, axis=0),
        blind=np.all(auc <= 0.55, axis=0),
        labels=names,
    )


def _checked(
    normal: ArrayLike, negative: ArrayLike, kind: ArrayLike
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    normals, negatives = np.asarray(normal, dtype=float), np.asarray(negative, dtype=float)
    kinds = np.asarray(kind)
    shapes = (normals.ndim, negatives.ndim, normals.shape[1:], kinds.shape)
    fits = shapes == (2, 2, negatives.shape[1:], negatives.shape[:1])
    if not fits or 0 in normals.shape + negatives.shape:
        raise InvalidInputError(
            "normal, negative and kind must have shapes (n, d), (q, d) and (q,), none empty. "
            f"Got {normals.shape}, {negatives.shape} and {kinds.shape}."
        )
    if np.isnan(normals).any() or np.isnan(negatives).any():
        raise InvalidInputError("Scores must not be NaN. Leave failing members out.")
    if kinds.dtype.kind not in "iu":
        raise InvalidInputError(f"kind must hold whole numbers. Got {kinds.dtype}.")
    return normals, negatives, kinds.astype(np.intp)

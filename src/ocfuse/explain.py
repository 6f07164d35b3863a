"""Why a row has its score: members, weights, neighbours, features."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

#: Rows that are scored in one call while features are attributed.
CHUNK = 2048
#: Rows that a notebook shows.
MOST_SHOWN = 20


@dataclass(frozen=True)
class Explanation:
    """What lies behind the scores of q rows, from d members and m features.

    Attributes
    ----------
    score : ndarray of shape (q,)
        Fused score; higher is more normal.
    offset : float
        Threshold: a lower score raises an alarm.
    p_value : ndarray of shape (q,)
        Conformal p-value: how rarely a normal row scores this low.
    member_names : list of str
        Names of the members, in the order of the columns below.
    member_scores : ndarray of shape (q, d)
        What each member said, in its own units.
    normalised_scores : ndarray of shape (q, d)
        The same on one scale.
    weights : ndarray of shape (q, d)
        How far each member is trusted here.
    base : ndarray of shape (q,)
        Score before any member has spoken; 0 for linear fusions.
    contributions : ndarray of shape (q, d)
        Share of each member in the score: ``base + contributions.sum(1) == score``.
    local_p : ndarray of shape (q,)
        Norm of the ball around the weights here; NaN if the fusion has none.
    nearest_rows : ndarray of shape (q, k)
        Training rows that are nearest, normal ones only, as positions in the X of `fit`.
    nearest_distances : ndarray of shape (q, k)
        Their distances in standardised features.
    feature_names : list of str
        Names of the features, in the order of the column below.
    attributions : ndarray of shape (q, m)
        Change of the score as each feature goes over to its value in the nearest
        normal row: large = this feature makes the row unusual. A row of them
        sums to the score of that normal row minus the score of this one.
    """

    score: FloatArray
    offset: float
    p_value: FloatArray
    member_names: list[str]
    member_scores: FloatArray
    normalised_scores: FloatArray
    weights: FloatArray
    base: FloatArray
    contributions: FloatArray
    local_p: FloatArray
    nearest_rows: IntArray
    nearest_distances: FloatArray
    feature_names: list[str]
    attributions: FloatArray

    @property
    def is_anomaly(self) -> NDArray[np.bool_]:
        """Tell which rows raise an alarm."""
        return self.score < self.offset

    def __len__(self) -> int:
        return len(self.score)

    def describe(self, row: int = 0, *, n_members: int = 5, n_features: int = 5) -> str:
        """Say in plain words what lies behind one row.

        Parameters
        ----------
        row : int, default=0
            Position among the explained rows.
        n_members : int, default=5
            Members to list, the most trusted first.
        n_features : int, default=5
            Features to list, the most unusual first.

        Returns
        -------
        str
            Several lines.
        """
        state = "anomaly" if self.is_anomaly[row] else "normal"
        near = ", ".join(map(str, self.nearest_rows[row]))
        lines = [
            f"{state}: score {self.score[row]:.3f}, threshold {self.offset:.3f}, "
            f"p-value {self.p_value[row]:.3g}",
            *self._member_lines(row, n_members),
            f"nearest normal training rows: {near}",
        ]
        top = self._unusual(row, n_features)
        parts = [f"{self.feature_names[j]} ({self.attributions[row, j]:+.3f})" for j in top]
        if parts:
            lines.append(f"most unusual features, by what they cost: {', '.join(parts)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table for notebooks: one line per row, its reasons in short."""
        heads = (
            "row",
            "verdict",
            "score",
            "p-value",
            "most unusual features",
            "most trusted members",
        )
        lines = [self._html_cells(i) for i in range(min(len(self), MOST_SHOWN))]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>" for line in lines)
        left = len(self) - len(lines)
        more = f"<p>and {left} more rows</p>" if left else ""
        head = "".join(f"<th>{text}</th>" for text in heads)
        return (
            f"<p>Explanation of {len(self)} rows, threshold {self.offset:.3f}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
        )

    def _html_cells(self, row: int) -> list[str]:
        features = self._unusual(row, 3)
        members = np.argsort(-np.abs(self.weights[row]), kind="stable")[:3]
        return [
            str(row),
            "<b>anomaly</b>" if self.is_anomaly[row] else "normal",
            f"{self.score[row]:.3f}",
            f"{self.p_value[row]:.3g}",
            escape(_listed(self.feature_names, self.attributions[row], features)),
            escape(_listed(self.member_names, self.weights[row], members)),
        ]

    def _unusual(self, row: int, count: int) -> IntArray:
        """Return the features that cost a row most; none that costs nothing."""
        costs = self.attributions[row]
        top: IntArray = np.argsort(-costs, kind="stable")[: min(count, np.sum(costs > 0))]
        return top

    def _member_lines(self, row: int, n_members: int) -> list[str]:
        lines = [f"{'member':<16}{'weight':>8}{'score':>10}{'share':>10}"]
        for j in np.argsort(-np.abs(self.weights[row]), kind="stable")[:n_members]:
            lines.append(
                f"{self.member_names[j]:<16}{self.weights[row, j]:>8.3f}"
                f"{self.normalised_scores[row, j]:>10.3f}{self.contributions[row, j]:>10.3f}"
            )
        return lines


def _listed(names: list[str], values: FloatArray, chosen: IntArray) -> str:
    return ", ".join(f"{names[j]} ({values[j]:+.3g})" for j in chosen.tolist())


def attribute_features(
    score: Callable[[FloatArray], FloatArray],
    X: FloatArray,
    reference: FloatArray,
    source: IntArray,
) -> FloatArray:
    """Share the difference ``score(reference) - score(X)`` among the features.

    The features of a row go over to the reference one after another, those that
    differ most first, and once more in the opposite order; a feature is given
    the mean of the two changes that it caused. A feature that does not differ
    is given 0, and a score that is a sum over features is shared exactly.

    Parameters
    ----------
    score : callable
        Maps encoded rows (r, e) to scores (r,).
    X : ndarray of shape (q, e)
        Encoded rows.
    reference : ndarray of shape (q, e)
        Encoded normal row for each of them.
    source : ndarray of shape (e,)
        Feature that every encoded column belongs to, 0 to m - 1.

    Returns
    -------
    ndarray of shape (q, m)
        One share per feature.
    """
    n_features = int(source.max()) + 1
    shares = np.zeros((len(X), n_features))
    for i in range(len(X)):
        difference = np.zeros(n_features)
        np.maximum.at(difference, source, np.abs(X[i] - reference[i]))
        order = np.argsort(-difference, kind="stable")
        order = order[difference[order] > 0]
        for path in (order, order[::-1]):
            shares[i, path] += 0.5 * _changes(score, X[i], reference[i], source, path)
    return shares


def _changes(
    score: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    reference: FloatArray,
    source: IntArray,
    path: IntArray,
) -> FloatArray:
    """Return the change of the score at each step from x to the reference."""
    when = np.full(int(source.max()) + 1, len(path))
    when[path] = np.arange(len(path))
    step_of_column = when[source]
    scores = np.empty(len(path) + 1)
    for start in range(0, len(path) + 1, CHUNK):
        steps = np.arange(start, min(start + CHUNK, len(path) + 1))
        rows = np.where(step_of_column < steps[:, np.newaxis], reference, x)
        scores[steps] = score(rows)
    changes: FloatArray = np.diff(scores)
    return changes

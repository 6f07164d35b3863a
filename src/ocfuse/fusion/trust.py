"""Trust learned on other data sets: weights from the behaviour of members on normal rows."""

import json
from copy import copy
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.arrays import FloatArray
from ocfuse.cost import Cost, Shape
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.base import Evidence
from ocfuse.fusion.competence import rank_correlations
from ocfuse.fusion.local_scale import LocalScale, LocalScaleFusion, normal_rows
from ocfuse.nearest.exact import representative_rows
from ocfuse.system.packages import slow
from ocfuse.validation import GroupsLike, check_number

#: The comparisons that a member is described by, as `Evidence` labels them.
KINDS = ("gauss", "pcshuffle", "mirror", "swap", "uniform", "seen")
#: What is known of a member, column by column of `behaviour`.
FEATURES = (
    *(f"area, {kind}" for kind in KINDS),
    *(f"rank, {kind}" for kind in KINDS[:-1]),
    "agreement",
)
#: False-alarm rates at which members are compared on unlabelled rows.
RATES = (0.02, 0.05, 0.1, 0.2, 0.4)


class TrustFusion(LocalScaleFusion):
    """The default fusion: weights predicted from the behaviour of members on normal rows.

    The behaviour of member j without any anomaly is a vector x_j (see `behaviour`): how well it
    separates normal rows from each kind of pseudo-negative, compared with the other members; how
    much better it scores rows that it has seen; how much it agrees with the others. The weights
    are log-linear in it::

        w_j = exp(b . x_j) / sum_i exp(b . x_i)

    The coefficients b are the same for every table. They were learned on one-class tasks of many
    public data sets, so that the fused scores find the known anomalies best. They do not depend on
    the names of members, so any detector can be a member. ``make train-trust`` learns b again; the
    page "trust" of the documentation has the data, and results on data sets that b was not learned
    on.

    The score is ``1 - sum_j w_j v_j(x)`` with v_j the negative logarithm of the probability that a
    normal row scores lower on the local scale (see `LocalScale` and `TailScale`). For normal rows
    v_j is 1 on average: a typical row has the score 0, unusual ones less. All normal rows have the
    same weight: of `sample_weight` only the zeros matter. Rows with y = -1 are not learned.

    Parameters
    ----------
    strength : float, default=1.0
        Factor of b: 0 gives equal weights, more than 1 concentrates weight on fewer members.
    n_neighbors : int, default=20
        Number of nearest normal rows for the local scale, at most one in 15; 0 for a global scale.
    shift_prior : float, default=60.0
        Weight of the global mean, in rows; with context the largest weight.
    scale_prior : float, default=3.0
        Weight of the global standard deviation, in rows.
    context_weight : float, optional
        Weight of the context in the distance between rows, relative to all features. None takes 1
        if context improves the prediction of normal scores by their neighbours (of other groups,
        if there are groups), else 0.
    coefficients : str, optional
        JSON file with other coefficients, written by ``make train-trust``. None takes those of the
        package.

    Attributes
    ----------
    trust_ : ndarray of shape (d,)
        The weights w, which add up to 1.
    evidence_ : Evidence or None
        The comparisons; None if there were none.
    behaviour_ : ndarray of shape (d, 12)
        The vectors x_j.
    parts_ : ndarray of shape (d, 12)
        ``strength * b * x_j``: the terms of the logarithm of each weight.
    scale_ : LocalScale
        Local mean and spread of the scores.
    tail_ : TailScale
        Map from local scores to v.
    shift_ : ndarray of shape (d,)
        Numbers that `adapted` added to the logarithm of the weights; 0 after a fit.
    n_adapted_ : int
        Number of unlabelled rows used by `adapted`.
    sureness_ : float
        How certain the result of `adapted` is, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.fusion import TrustFusion
    >>> from ocfuse.fusion.base import Evidence
    >>> Z = np.random.default_rng(0).normal(size=(60, 2))
    >>> evidence = Evidence(np.array([[0.9], [0.6]]), np.ones(1), ["pcshuffle"])
    >>> fusion = TrustFusion().fit(Z, X=Z, evidence=evidence)
    >>> bool(fusion.trust_[0] > fusion.trust_[1])
    True
    """

    def __init__(
        self,
        strength: float = 1.0,
        n_neighbors: int = 20,
        shift_prior: float = 60.0,
        scale_prior: float = 3.0,
        context_weight: float | None = None,
        coefficients: str | None = None,
    ) -> None:
        self.strength = strength
        self.n_neighbors = n_neighbors
        self.shift_prior = shift_prior
        self.scale_prior = scale_prior
        self.context_weight = context_weight
        self.coefficients = coefficients

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of fusing one."""
        return LocalScale.cost(shape, self.n_neighbors)

    def reasons(self) -> list[str]:
        """Return why each member is trusted more or less than the others, as text.

        Returns
        -------
        list of str
            One sentence for each member, the strongest reason first.
        """
        self._require_fitted()
        n = len(KINDS) - 1
        made_up = [*range(n), *range(n + 1, 2 * n + 1)]
        return [
            _in_words(
                ("tells made-up anomalies {} surely", parts[made_up].sum(), parts[made_up].sum()),
                ("remembers the rows it has seen {}", parts[n], x[n]),
                ("agrees with the other members {}", parts[-1], x[-1]),
                ("finds {} in the unlabelled rows", shift, shift),
            )
            for parts, x, shift in zip(self.parts_, self.behaviour_, self.shift_, strict=True)
        ]

    def _learn(
        self,
        Z: FloatArray,
        y: FloatArray,
        X: FloatArray,
        c: FloatArray,
        evidence: Evidence | None,
        groups: GroupsLike | None,
    ) -> None:
        self._check_scale()
        check_number(self.strength, "strength", 0.0, 100.0, "0 weighs all members equally.")
        chosen = normal_rows(y)
        of_normals = None if groups is None else groups.take(np.flatnonzero(y > 0))
        standard = self._fit_scale(Z[chosen], X[chosen], of_normals)
        self.tail_ = TailScale(self.scale_.out_of_fold(of_normals))
        self.evidence_ = evidence
        self.behaviour_ = behaviour(standard, evidence)
        b = read_coefficients(self.coefficients)
        self.parts_ = float(self.strength) * b * self.behaviour_
        self._set_shift(np.zeros(len(self.parts_)), 0, 0.0)

    def _set_shift(self, shift: FloatArray, n_rows: int, sureness: float) -> None:
        self.shift_, self.n_adapted_, self.sureness_ = shift, n_rows, sureness
        theta = self.parts_.sum(axis=1) + shift
        w = np.exp(theta - theta.max())
        self.trust_ = np.asarray(w / w.sum())

    def _trust(self) -> FloatArray:
        return self.trust_

    def _parts(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray(self.trust_ * (1.0 - self.tail_.at(self._local(Z, X))))

    def values(self, Z: ArrayLike, X: ArrayLike, context: ArrayLike | None = None) -> FloatArray:
        """Return v_j of every row: the score is 1 minus their sum weighted by `trust_`.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Normalised scores of the members.
        X : array-like of shape (n, m)
            Features.
        context : array-like of shape (n,) or (n, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        ndarray of shape (n, d)
            The values; higher is more anomalous.
        """
        return self.tail_.at(self._local(*self._query(Z, X, context)))

    def adapted(self, normals: FloatArray, rows: FloatArray) -> "TrustFusion":
        """Return a copy that trusts members more that find more anomalies in unlabelled rows.

        Suppose a share pi of the rows are anomalies. A member that raises alarms on a share f of
        normal rows raises alarms on ``(1 - pi) f + pi TPR(f)`` of all rows. With pi and f the same
        for all members, the number of alarms ranks members by TPR without labels. Let e_j be the
        mean over `RATES` of the share of alarms of member j beyond f, divided by the square root
        of f, standardised over the members. ``s e_j`` is added to the logarithm of the weight. The
        factor s (`sureness_`) is the product of two numbers: the share of the variance of e over
        members that chance does not explain; and how clearly the trusted members together raise
        more alarms than on normal rows, from 0 at one standard error to 1 at two. Without
        anomalies among the rows nothing changes.

        Parameters
        ----------
        normals : ndarray of shape (n, d)
            `values` of normal rows that the fusion has not learned.
        rows : ndarray of shape (q, d)
            `values` of the unlabelled rows.

        Returns
        -------
        TrustFusion
            The copy. The result of an earlier call is not kept.
        """
        self._require_fitted()
        fresh = copy(self)
        fresh._set_shift(np.zeros(len(self.parts_)), 0, 0.0)
        ordered = np.sort(normals, axis=0)
        theirs, ours = _alarms(ordered, rows), _alarms(ordered, normals)
        gap, error = _difference(theirs @ fresh.trust_, ours @ fresh.trust_)
        gains, errors = _difference(
            theirs - theirs.mean(axis=1, keepdims=True), ours - ours.mean(axis=1, keepdims=True)
        )
        spread = float(np.mean(gains**2))
        sureness = 0.0
        if spread > 1e-12 and error > 0:  # rounding is no difference
            beyond_chance = max(1.0 - float(np.mean(errors**2)) / spread, 0.0)
            sureness = beyond_chance * float(np.clip(gap / error - 1.0, 0.0, 1.0))
        shift = sureness * gains / np.sqrt(spread) if sureness else np.zeros(len(gains))
        fresh._set_shift(shift, len(rows), sureness)
        return fresh


class TailScale:
    """Negative logarithm of the probability that a normal scores lower, for each member.

    Linear between the scores of normals that it is learned from. Below the lowest tenth of them
    it goes on with the slope of an exponential tail, 1 over the mean distance of that tenth to
    its upper end: far anomalies stay apart, and every member counts in the same unit.

    Parameters
    ----------
    L : ndarray of shape (n, d)
        Scores of normals that nothing was learned from, on the local scale.
    """

    def __init__(self, L: FloatArray) -> None:
        n = len(L)
        ordered = np.sort(L, axis=0)
        # a member that gives many rows one score has one level for all of them
        ranks = slow("scipy.stats").rankdata(ordered, axis=0)
        kept = representative_rows(n, 1000)
        self.values, self.levels = ordered[kept], -np.log(ranks[kept] / (n + 1))
        k = max(-(-n // 10), min(5, n - 1), 1)
        self.end, self.end_level = ordered[k - 1], float(-np.log(k / (n + 1)))
        excess = (self.end - ordered[:k]).sum(axis=0) / max(k - 1, 1)
        self.slope = 1.0 / np.maximum(excess, 1e-3)  # a spread of 1 is that of all normals

    @cached_property
    def _columns(self) -> list[tuple[FloatArray, FloatArray]]:
        """Values and levels of every member, each in one piece."""
        both = np.ascontiguousarray(self.values.T), np.ascontiguousarray(self.levels.T)
        return list(zip(*both, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def at(self, L: FloatArray) -> FloatArray:
        """Return the value of every score."""
        V = np.empty(L.shape)
        for j, (values, levels) in enumerate(self._columns):
            V[:, j] = np.interp(L[:, j], values, levels)
        below = self.end - L
        return np.where(below > 0, self.end_level + below * self.slope, V)


def _alarms(normals: FloatArray, V: FloatArray) -> FloatArray:
    """Return what every row adds to the alarms of every member, over `RATES`; normals are sorted.

    A member alarms where the share of normals above is at most the rate; of ties half count.
    """
    n = len(normals)
    above = np.empty(V.shape)
    for j, column in enumerate(normals.T):
        lower = np.searchsorted(column, V[:, j], "left") + np.searchsorted(column, V[:, j], "right")
        above[:, j] = (n - 0.5 * lower + 0.5) / (n + 1)
    return np.asarray(np.mean([(above <= f) / np.sqrt(f) for f in RATES], axis=0))


def _difference(rows: FloatArray, normals: FloatArray) -> tuple[Any, Any]:
    """Return the difference of two means, column by column, and its standard error."""
    error = rows.var(axis=0) / len(rows) + normals.var(axis=0) / len(normals)
    return rows.mean(axis=0) - normals.mean(axis=0), np.sqrt(error)


def behaviour(Z: FloatArray, evidence: Evidence | None) -> FloatArray:
    """Return the behaviour of each member, as known without anomalies.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Out-of-fold scores of normal rows.
    evidence : Evidence or None
        Areas under the ROC curve against pseudo-anomalies, and of rows seen against rows unseen.

    Returns
    -------
    ndarray of shape (d, 12)
        In the order of `FEATURES`: the log-odds of each area minus the mean over the members, the
        rank of the member from -0.5 to 0.5, and the mean rank correlation with the other members
        minus its mean. A comparison that was not made is 0, the same for all members.
    """
    d = Z.shape[1]
    X = np.zeros((d, len(FEATURES)))
    if d == 1:
        return X
    R = rank_correlations(Z[representative_rows(len(Z), 5000)]).sum(axis=1) / (d - 1)
    X[:, -1] = R - R.mean()
    if evidence is None:
        return X
    evidence.require_members(d)
    for i, kind in enumerate(KINDS):
        if kind not in evidence.labels:
            continue
        area = np.clip(evidence.auc[:, evidence.labels.index(kind)], 0.005, 0.995)
        odds = np.log(area / (1.0 - area))
        X[:, i] = odds - odds.mean()
        if kind != "seen":
            ranks = slow("scipy.stats").rankdata(evidence.auc[:, evidence.labels.index(kind)])
            X[:, len(KINDS) + i] = (ranks - 0.5) / d - 0.5
    return X


def read_coefficients(path: str | None = None) -> FloatArray:
    """Return the coefficients b of a file, in the order of `FEATURES`."""
    if path is None:
        return _shipped()
    try:
        stored: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        found = np.array([float(stored["coefficients"][name]) for name in FEATURES])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"coefficients must name a JSON file with a number for each of {', '.join(FEATURES)}, "
            f"as `make train-trust` writes it. Got {path!r}: {error!r}."
        ) from None
    return found


@cache
def _shipped() -> FloatArray:
    return read_coefficients(str(Path(__file__).with_name("trust.json")))


def _in_words(*parts: tuple[str, float, float]) -> str:
    """Return what speaks for and against a member: phrases, their effects and directions."""
    found: dict[str, list[str]] = {"for": [], "against": []}
    for phrase, effect, direction in sorted(parts, key=lambda part: -abs(part[1])):
        if abs(effect) >= 0.1:  # a tenth of its weight
            words = phrase.format("more" if direction > 0 else "less")
            found["for" if effect > 0 else "against"].append(f"{words} than most")
    said = [f"{side} it: {', '.join(reasons)}" for side, reasons in found.items() if reasons]
    return "; ".join(said) or "like most members in all that is known of it"

"""A fusion that learns from few known anomalies and still guards against new kinds."""

from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone

from ocfuse.arrays import FloatArray
from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.exceptions import InvalidTypeError
from ocfuse.fusion.base import BaseFusion, Evidence
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.stacking import normal_share, weight_arguments
from ocfuse.system.packages import slow
from ocfuse.validation import GroupsLike, check_number

#: Added to both probabilities: about what a hundred trees can tell from certainty.
_MARGIN = 0.005
#: Share of the normals that do not reach the largest log-odds that count. On the
#: development sets 0.5 has 0.2 to 0.4 points more AUC on all anomalies, and up to 0.7
#: less on kinds that are not among the known ones.
TYPICAL = 0.25
#: Standard deviations below the normals from which on the fusion is not tamed.
FAR = 6.0
#: The hyperbolic sine is finite up to here.
LARGEST_ARGUMENT = 700.0
#: Weight of the log-odds with many anomalies, and the number that half of it takes.
GAIN, PRIOR = 4.0, 40.0

#: A spread below this share of the values is rounding, not information.
_ROUNDING = 1e-12
#: Knots of a tail curve; more of them change nothing but the file size.
_MOST_KNOTS = 257


class LabelledFusion(BaseFusion):
    """Add the log-odds of two classifiers to a fusion, the more the more anomalies are known.

    ::

        score = arcsinh((P - m) / s) + share min(logit((q_1 + q_2) / 2), typical)

    P is the given fusion, m and s are its mean and standard deviation on the normals.
    The probabilities of a normal, q_1 and q_2, come from one classifier on the features
    and one on features and scores; both are learned with equal total weight of the two
    classes, on columns that are standardised by the normals and tamed by arcsinh.

    The log-odds can lower a score, and raise it no further than to what three in four
    of the normals reach: a row that is unlike all normals is not made normal by being
    unlike the known anomalies too. That costs some accuracy on the known kinds. More
    than 6 standard deviations below the normals the first term is linear, so that the
    log-odds, which are bounded, cannot outvote it.

    `weights` and `local_p` are those of the given fusion.

    Parameters
    ----------
    fusion : fusion, optional
        The fusion to start from; by default ``CompetenceFusion()``. It is fitted on
        all rows, anomalies included, and is given the evidence.
    classifier : scikit-learn classifier, optional
        Learns from the features; by default a hundred bagged extra trees.
    joint_classifier : scikit-learn classifier, optional
        Learns from features and scores; by default a regularised logistic regression.
    share : float, optional
        Weight of the log-odds; 0 is the fusion alone. By default `default_share` of the
        number of known anomalies: the more, the larger.

    Attributes
    ----------
    fusion_ : fusion
        The fitted fusion.
    classifier_, joint_classifier_ : object
        The fitted classifiers.
    share_ : float
        Weight of the log-odds.
    typical_ : float
        Log-odds that three in four normals reach.
    center_, scale_ : ndarray of shape (m + d + 1,)
        Mean and standard deviation on the normals: of the features, the scores and P.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.fusion import LabelledFusion
    >>> X = np.array([[0.0], [0.2], [-0.2], [0.1], [-0.1], [2.0]])
    >>> Z = 1 - np.abs(X)
    >>> fusion = LabelledFusion().fit(Z, y=[1, 1, 1, 1, 1, -1], X=X)
    >>> near, known, new = fusion.fuse([[1.0], [-1.0], [-9.0]], [[0.0], [2.0], [-10.0]])
    >>> bool(near > known), bool(near > new)
    (True, True)
    """

    needs_X = True  # noqa: N815
    needs_anomalies = True

    def __init__(
        self,
        fusion: BaseFusion | None = None,
        classifier: Any = None,
        joint_classifier: Any = None,
        share: float | None = None,
    ) -> None:
        self.fusion = fusion
        self.classifier = classifier
        self.joint_classifier = joint_classifier
        self.share = share

    def cost(self, shape: Shape) -> Cost:
        """Return what it takes to learn from rows, and to fuse one."""
        inner = self.fusion if isinstance(self.fusion, BaseFusion) else CompetenceFusion()
        # features and scores side by side, and tamed; trees are of few rows
        return inner.cost(shape) + Cost(scratch_bytes={"bytes": 2 * NUMBER * shape.cells})

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        self._learn(Z, y, X, c, None, None)

    def _learn(
        self,
        Z: FloatArray,
        y: FloatArray,
        X: FloatArray,
        c: FloatArray,
        evidence: Evidence | None,
        groups: GroupsLike | None,
    ) -> None:
        self.share_ = default_share(int((y < 0).sum()))
        if self.share is not None:
            self.share_ = check_number(self.share, "share", 0.0, 1e6, "0 is the fusion alone.")
        trees = _cloned(self.classifier, "classifier", _default_trees)
        linear = _cloned(self.joint_classifier, "joint_classifier", _default_linear)
        normal = y > 0
        features, context = self._split(X)
        self.fusion_ = self._inner().fit(Z, y, features, c, evidence, context, groups)
        rows = np.column_stack([features, Z, self.fusion_.fuse(Z, features, context)])
        self._standardise(rows[normal], c[normal])
        table, balanced = self._tamed(rows)[:, :-1], _balanced(y, c)
        m = features.shape[1]
        labels = y.astype(int)
        self.classifier_ = trees.fit(table[:, :m], labels, **weight_arguments(trees, balanced))
        self.joint_classifier_ = linear.fit(table, labels, **weight_arguments(linear, balanced))
        self.typical_ = float(np.quantile(self._odds(table[normal], m), TYPICAL))

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        if len(Z) == 0:
            return np.empty(0)
        features, context = self._split(X)
        table = self._tamed(np.column_stack([features, Z, self.fusion_.fuse(Z, features, context)]))
        odds = np.minimum(self._odds(table[:, :-1], features.shape[1]), self.typical_)
        return _straightened(table[:, -1]) + self.share_ * odds

    def _odds(self, table: FloatArray, n_features: int) -> FloatArray:
        """Return the log-odds of a normal, from tamed features and scores."""
        by_features = normal_share(self.classifier_, table[:, :n_features])
        by_both = normal_share(self.joint_classifier_, table)
        share = (by_features + by_both) / 2
        return np.asarray(logit((share + _MARGIN) / (1.0 + 2.0 * _MARGIN)))

    def _split(self, X: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return features and context, which the classifiers do not see.

        An hour with known anomalies is no bad hour for ever.
        """
        m = X.shape[1] - self.n_context_
        return X[:, :m], X[:, m:] if self.n_context_ else None

    def _weights(self, X: FloatArray) -> FloatArray:
        return self.fusion_.weights(*self._split(X))

    def _local_p(self, X: FloatArray) -> FloatArray:
        return self.fusion_.local_p(*self._split(X))

    def _inner(self) -> BaseFusion:
        if self.fusion is None:
            return CompetenceFusion()
        if not isinstance(self.fusion, BaseFusion):
            raise InvalidTypeError(
                f"fusion must be a fusion object, such as LpFusion(p=2). Got {self.fusion!r}."
            )
        fusion: BaseFusion = clone(self.fusion)
        return fusion

    def _standardise(self, rows: FloatArray, c: FloatArray) -> None:
        self.center_ = np.average(rows, axis=0, weights=c)
        spread = np.sqrt(np.average((rows - self.center_) ** 2, axis=0, weights=c))
        # Below this a column is constant but for rounding.
        least = 1e-10 * np.maximum(np.abs(self.center_), 1e-100)
        self.scale_ = np.where(spread > least, spread, 1.0)

    def _tamed(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.arcsinh((rows - self.center_) / self.scale_))


def _straightened(tamed: FloatArray) -> FloatArray:
    """Undo arcsinh far below the normals, where it grows too slowly."""
    excess = np.minimum(np.sinh(np.maximum(tamed, -LARGEST_ARGUMENT)) + FAR, 0.0)
    return np.asarray(np.maximum(tamed, -np.arcsinh(FAR)) + excess)


def default_share(k: int) -> float:
    """Return the weight of the log-odds where k anomalies are known: 4 k / (k + 40)."""
    return GAIN * k / (k + PRIOR)


def _default_trees() -> Any:
    return slow("sklearn.ensemble").ExtraTreesClassifier(100, bootstrap=True, random_state=0)


def _default_linear() -> Any:
    return slow("sklearn.linear_model").LogisticRegression(C=0.1, max_iter=1000)


def _cloned(classifier: Any, name: str, default: Any) -> Any:
    if classifier is None:
        return default()
    if isinstance(classifier, type) or not hasattr(classifier, "predict_proba"):
        raise InvalidTypeError(
            f"{name} must be an object with fit and predict_proba. Got {classifier!r}. "
            "Use for example LogisticRegression()."
        )
    return clone(classifier)


def _balanced(y: FloatArray, c: FloatArray) -> FloatArray:
    """Return the weights with equal totals of the two classes and mean one."""
    total = np.where(y > 0, c[y > 0].sum(), c[y < 0].sum())
    return np.asarray(c / total * (len(c) / 2))


def logistic_scale(Z: FloatArray, c: FloatArray) -> FloatArray:
    """Return the scale of the logistic law with the spread of each column, or 1."""
    mean = np.average(Z, axis=0, weights=c)
    spread = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=c))
    constant = spread <= _ROUNDING * np.abs(Z).max(axis=0)
    return np.asarray(np.where(constant, 1.0, spread * np.sqrt(3.0) / np.pi))


def weighted_quantile(Z: FloatArray, c: FloatArray, rate: float) -> FloatArray:
    """Return, per column, the largest value with at most `rate` of the weight below."""
    order = Z.argsort(axis=0, kind="stable")
    below = np.cumsum(c[order], axis=0) - c[order]
    # A share that equals the rate but for rounding is within it.
    within = below <= (rate + _ROUNDING) * c.sum()
    last = within.sum(axis=0) - 1
    return np.asarray(np.take_along_axis(Z, order, axis=0)[last, np.arange(Z.shape[1])])


def tail_knots(r: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots of the map from a score to the log-odds of its tail probability.

    Parameters
    ----------
    r : ndarray of shape (n,)
        Scores of the normals.
    c : ndarray of shape (n,)
        Their weights, positive.

    Returns
    -------
    at : ndarray of shape (k,)
        Increasing scores.
    odds : ndarray of shape (k,)
        Log-odds of the share of the normals below, those at the score counted half.
    """
    at, group = np.unique(r, return_inverse=True)
    weight = np.bincount(group.ravel(), weights=c, minlength=len(at))
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(at) > _MOST_KNOTS:
        chosen = np.linspace(0, len(at) - 1, _MOST_KNOTS).round().astype(int)
        at, share = at[chosen], share[chosen]
    return at, np.log(share / (1.0 - share))


def tail_log_odds(r: FloatArray, at: FloatArray, odds: FloatArray, scale: float) -> FloatArray:
    """Interpolate between the knots; beyond them go on as the logistic law does."""
    inside = np.interp(r, at, odds)
    return np.asarray(inside + np.minimum(r - at[0], 0) / scale + np.maximum(r - at[-1], 0) / scale)

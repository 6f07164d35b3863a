"""Member scores to one score and its p-value, as nodes: normalisers, fusions, calibration."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.cascade import CascadeFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.labelled import LabelledFusion
from ocfuse.fusion.local_lp import LocalLpFusion
from ocfuse.fusion.local_scale import MOST_COMPARED, LocalScale, LocalScaleFusion
from ocfuse.fusion.lp import LeastSquaresFusion, LpFusion
from ocfuse.fusion.rules import (
    AverageOfMaximum,
    MajorityVote,
    MaxRule,
    MedianRule,
    MinRule,
    ProductRule,
    SingleBest,
    SumRule,
    TrimmedMean,
)
from ocfuse.fusion.stacking import StackedFusion
from ocfuse.fusion.trust import TrustFusion
from ocfuse.onnx.graph import Graph, Tensor
from ocfuse.onnx.search import count_not_above, interpolated, nearest
from ocfuse.scores.conformal import ConformalCalibrator
from ocfuse.scores.distribution import SmoothTail
from ocfuse.scores.normalise import MinMax, RobustZ, TailProbability, ZScore

#: Normalisers that can be written.
NORMALISERS = (MinMax, RobustZ, TailProbability, ZScore)


def require_fusion(normaliser: Any, fusion: BaseFusion) -> None:
    """Refuse a normaliser and a fusion that cannot be written."""
    if type(normaliser) not in NORMALISERS:
        names = ", ".join(kind.__name__ for kind in NORMALISERS)
        raise InvalidInputError(
            f"The normaliser {type(normaliser).__name__} cannot be exported to ONNX; {names} can. "
            "Fit again with one of them, such as normaliser='min-max'."
        )
    why = ""
    if type(fusion) not in _FUSIONS:
        names = ", ".join(sorted(kind.__name__ for kind in _FUSIONS))
        why = f"of the fusions {names} can"
    elif isinstance(fusion, CompetenceFusion) and fusion.locality_ is not None:
        why = "a norm that depends on the place cannot: leave locality out"
    elif isinstance(fusion, LocalLpFusion) and fusion.problems_ is not None:
        why = "anchors='query' learns anew for every row: give a number of anchors"
    elif isinstance(fusion, StackedFusion) and _kind(fusion.classifier_) != LINEAR:
        why = f"of classifiers {LINEAR} can"
    elif isinstance(fusion, LabelledFusion):
        require_fusion(normaliser, fusion.fusion_)
        if _kind(fusion.classifier_) not in FORESTS or _kind(fusion.joint_classifier_) != LINEAR:
            why = f"of classifiers {' and '.join(FORESTS)} can, and {LINEAR} as the joint one"
    if why:
        raise InvalidInputError(
            f"The fusion {type(fusion).__name__} cannot be exported to ONNX; {why}. Fit again with "
            "one that can, such as fusion='trust'."
        )


def normalised(graph: Graph, normaliser: Any, S: Tensor) -> Tensor:
    """Return member scores (q, d) on one scale."""
    if not isinstance(normaliser, TailProbability):
        scaled: Tensor = (S - normaliser.shift_) / normaliser.scale_
        return scaled
    columns = [
        _tail(graph, tail, S.take(np.array([j], dtype=np.int64)))
        for j, tail in enumerate(normaliser.tails_)
    ]
    return graph.concat(columns, axis=1)


def _tail(graph: Graph, tail: SmoothTail, scores: Tensor) -> Tensor:
    inside = interpolated(graph, scores, tail.values[:, np.newaxis], tail.levels[:, np.newaxis])
    low, high = float(tail.values[0]), float(tail.values[-1])
    lower = _decay(scores, low, tail.lower_scale) * float(tail.levels[0])
    upper = 1.0 - _decay(scores, high, tail.upper_scale) * float(1.0 - tail.levels[-1])
    found = graph.where(scores < low, lower.most(float(np.finfo(float).tiny)), inside)
    return graph.where(scores > high, upper.least(float(np.nextafter(1.0, 0.0))), found)


def _decay(scores: Tensor, end: float, scale: float) -> Tensor:
    base = (scores - end).abs() / float(scale) / 2.0 + 1.0
    return 1.0 / base.square()


def fused(graph: Graph, fusion: BaseFusion, Z: Tensor, x: Tensor) -> Tensor:
    """Return the fused scores (q,) of normalised ones (q, d) and encoded rows."""
    return _FUSIONS[type(fusion)](graph, fusion, Z, x)


def p_values(graph: Graph, conformal: ConformalCalibrator, score: Tensor) -> Tensor:
    """Return the p-values (q,) of scores (q,)."""
    ordered = conformal.scores_[np.newaxis]
    rank = count_not_above(graph, ordered, score.reshape(-1, 1)).without_axis(1)
    return graph.constant(np.asarray(conformal.rates_, dtype=np.float64)).take(rank, axis=0)


# -- fusions on the local scale ----------------------------------------------


def _local(graph: Graph, fusion: LocalScaleFusion, Z: Tensor, x: Tensor) -> Tensor:
    """Return scores on the local scale."""
    standard: Tensor = (Z - fusion.centre_) / fusion.spread_
    scale = fusion.scale_
    if not scale.k:
        return standard
    mean, sd = _mean_and_sd(graph, scale, x)
    standard = (standard - mean) / sd
    return standard


def _mean_and_sd(graph: Graph, scale: LocalScale, x: Tensor) -> tuple[Tensor, Tensor]:
    if scale.n_context:
        unit = np.ones(scale.X.shape[1])
        unit[-scale.n_context :] = scale.context_weight
        x = x * unit
    k = min(scale.k, len(scale.X))
    near = nearest(graph, x, scale.X, k, in_pairs=len(scale.X) > MOST_COMPARED)
    K = ((near.distances / float(scale.width)).square() * -0.5).exp().with_axis(2)
    n, rows = K.sum(), graph.constant(scale.Z).take(near.index, axis=0)
    total = (K * rows).sum()
    plain = total / n.most(float(np.finfo(np.float64).tiny))
    spread = (K * (rows - plain.with_axis(1)).square()).sum()
    variance = (spread + scale.scale_prior) / (n + scale.scale_prior)
    return total / (n + scale.shift_prior), variance.sqrt()


def _trust(graph: Graph, fusion: TrustFusion, Z: Tensor, x: Tensor) -> Tensor:
    tail, L = fusion.tail_, _local(graph, fusion, Z, x)
    inside = interpolated(graph, L, tail.values, tail.levels)
    below = tail.end - L
    values = graph.where(below > 0.0, below * tail.slope + float(tail.end_level), inside)
    return ((1.0 - values) * fusion.trust_).sum()


def _competence(graph: Graph, fusion: CompetenceFusion, Z: Tensor, x: Tensor) -> Tensor:
    parts: Tensor = _local(graph, fusion, Z, x) * fusion.trust_
    return parts.sum()


def _local_lp(graph: Graph, fusion: LocalLpFusion, Z: Tensor, x: Tensor) -> Tensor:
    centre = fusion.anchors_.mean(axis=0)
    B = fusion.anchors_ - centre
    products = (x - centre) @ (2.0 * B.T) - (B**2).sum(axis=1)
    logits = products / float(fusion.width_)
    shares = (logits - logits.largest(keep=True)).exp()
    W = (shares / shares.sum(keep=True)) @ fusion.W_
    size = W.abs().sum(keep=True)
    is_some = size > 0.0
    unit = graph.where(is_some, W / graph.where(is_some, size, 1.0), 1.0 / fusion.W_.shape[1])
    return (Z * unit).sum()


# -- rules, and weights that are the same everywhere ---------------------------


def _weighted(graph: Graph, fusion: BaseFusion, Z: Tensor, x: Tensor) -> Tensor:
    return (Z * _weights(fusion)).sum()


def _weights(fusion: BaseFusion) -> FloatArray:
    return np.asarray(fusion._trust(), dtype=np.float64)


def _highest(graph: Graph, fusion: MaxRule, Z: Tensor, x: Tensor) -> Tensor:
    return Z.largest()


def _lowest(graph: Graph, fusion: MinRule, Z: Tensor, x: Tensor) -> Tensor:
    return Z.smallest()


def _median(graph: Graph, fusion: MedianRule, Z: Tensor, x: Tensor) -> Tensor:
    return _middle(Z, fusion.n_members_, (fusion.n_members_ - 1) // 2)


def _trimmed(graph: Graph, fusion: TrimmedMean, Z: Tensor, x: Tensor) -> Tensor:
    return _middle(Z, fusion.n_members_, fusion.n_trimmed_)


def _middle(Z: Tensor, d: int, n_trimmed: int) -> Tensor:
    ordered, _ = Z.top(d, largest=False)
    return ordered.take(np.arange(n_trimmed, d - n_trimmed, dtype=np.int64)).mean()


def _product(graph: Graph, fusion: ProductRule, Z: Tensor, x: Tensor) -> Tensor:
    t = (Z - fusion.mean_) / fusion.scale_
    logs = t.least(0.0) - ((-t.abs()).exp() + 1.0).log()
    return logs.mean()


def _vote(graph: Graph, fusion: MajorityVote, Z: Tensor, x: Tensor) -> Tensor:
    return graph.add("GreaterOrEqual", Z, fusion.thresholds_).to(np.float64).mean()


def _lowest_of_groups(graph: Graph, fusion: AverageOfMaximum, Z: Tensor, x: Tensor) -> Tensor:
    groups = [np.flatnonzero(fusion.groups_ == group) for group in np.unique(fusion.groups_)]
    lowest = [Z.take(members.astype(np.int64)).smallest(keep=True) for members in groups]
    return graph.concat(lowest, axis=1).mean()


def _cascade(graph: Graph, fusion: CascadeFusion, Z: Tensor, x: Tensor) -> Tensor:
    d = fusion.n_members_
    running = Z.take(fusion.order_.astype(np.int64)).running(1) / np.arange(1.0, d + 1)
    stages = []
    for j, (at, levels) in enumerate(zip(fusion.knots_, fusion.knot_odds_, strict=True)):
        r = running.take(np.array([j], dtype=np.int64))
        inside = interpolated(graph, r, at[:, np.newaxis], levels[:, np.newaxis])
        beyond = (r - float(at[0])).least(0.0) + (r - float(at[-1])).most(0.0)
        stages.append(inside + beyond / float(fusion.scale_[j]))
    odds = graph.concat(stages, axis=1)
    clear = (odds <= fusion.lower_) | graph.add("GreaterOrEqual", odds, fusion.upper_)
    clear = clear | (np.arange(d) == d - 1)
    stage = graph.add("ArgMax", clear.to(np.int64), axis=1)  # the first of equal ones
    return odds.at(stage).without_axis(1)


# -- classifiers of scikit-learn --------------------------------------------------

#: Names of the classifiers that can be written.
FORESTS, LINEAR = ("ExtraTreesClassifier", "RandomForestClassifier"), "LogisticRegression"


def _kind(classifier: Any) -> str:
    """Return the name of a class of scikit-learn, of which no other has the fitted state."""
    is_theirs = type(classifier).__module__.startswith("sklearn.")
    return type(classifier).__name__ if is_theirs else ""


def _stacked(graph: Graph, fusion: StackedFusion, Z: Tensor, x: Tensor) -> Tensor:
    return _linear_odds(fusion.classifier_, Z)


def _linear_odds(classifier: Any, table: Tensor) -> Tensor:
    """Return the log-odds of a normal by a logistic regression with two classes."""
    sign = 1.0 if classifier.classes_[1] == 1 else -1.0
    odds: Tensor = table @ (sign * classifier.coef_[0]) + sign * float(classifier.intercept_[0])
    return odds


def _labelled(graph: Graph, fusion: LabelledFusion, Z: Tensor, x: Tensor) -> Tensor:
    features = x.first(fusion.n_features_)
    plain = fused(graph, fusion.fusion_, Z, x).reshape(-1, 1)
    rows = (graph.concat([features, Z, plain], axis=1) - fusion.center_) / fusion.scale_
    n = len(fusion.center_) - 1
    sizes = rows.abs()
    tamed = ((sizes.square() + 1.0).sqrt() + sizes).log()
    tamed = graph.where(rows < 0.0, -tamed, tamed)
    by_features = _forest_share(graph, fusion.classifier_, tamed.first(fusion.n_features_))
    by_both = 1.0 / ((-_linear_odds(fusion.joint_classifier_, tamed.first(n))).exp() + 1.0)
    margin = 0.005  # as in `LabelledFusion`
    share = ((by_features + by_both) / 2.0 + margin) / (1.0 + 2.0 * margin)
    odds = (share.log() - (1.0 - share).log()).least(float(fusion.typical_))
    last = np.array(n, dtype=np.int64)
    straightened = tamed.take(last).most(-float(np.arcsinh(6.0)))
    straightened = straightened + (rows.take(last).most(-1e300) + 6.0).least(0.0)
    return straightened + odds * float(fusion.share_)


def _forest_share(graph: Graph, forest: Any, table: Tensor) -> Tensor:
    """Return the probability of a normal by a forest: the mean of its trees."""
    trees = [tree.tree_ for tree in forest.estimators_]
    starts = np.cumsum([0, *(tree.node_count for tree in trees)])
    column = list(forest.classes_).index(1)
    left, right, share = [], [], []
    for start, tree in zip(starts, trees, strict=False):
        own = np.arange(tree.node_count)
        is_leaf = tree.children_left < 0
        left.append(start + np.where(is_leaf, own, tree.children_left))
        right.append(start + np.where(is_leaf, own, tree.children_right))
        counts = tree.value[:, 0, :]
        share.append(counts[:, column] / counts.sum(axis=1))
    lefts, rights, features = (
        graph.constant(np.concatenate(parts).astype(np.int64))
        for parts in (left, right, [np.maximum(tree.feature, 0) for tree in trees])
    )
    thresholds = graph.constant(np.concatenate([tree.threshold for tree in trees]))
    values = table.to(np.float32).to(np.float64)  # trees compare in single precision
    place: Tensor = table.first(1).to(np.int64) * 0 + starts[:-1].astype(np.int64)
    for _ in range(max(tree.max_depth for tree in trees)):
        goes_left = values.at(features.take(place, axis=0)) <= thresholds.take(place, axis=0)
        place = graph.where(goes_left, lefts.take(place, axis=0), rights.take(place, axis=0))
    return graph.constant(np.concatenate(share)).take(place, axis=0).mean()


#: What writes each class of fusions.
_FUSIONS: dict[type, Callable[[Graph, Any, Tensor, Tensor], Tensor]] = {
    AverageOfMaximum: _lowest_of_groups,
    CascadeFusion: _cascade,
    CompetenceFusion: _competence,
    LabelledFusion: _labelled,
    LeastSquaresFusion: _weighted,
    LocalLpFusion: _local_lp,
    LpFusion: _weighted,
    MajorityVote: _vote,
    MaxRule: _highest,
    MedianRule: _median,
    MinRule: _lowest,
    ProductRule: _product,
    SingleBest: _weighted,
    StackedFusion: _stacked,
    SumRule: _weighted,
    TrimmedMean: _trimmed,
    TrustFusion: _trust,
}

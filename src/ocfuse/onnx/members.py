"""Members of a pool as nodes: each scores as its `_score` does."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ocfuse.arrays import FloatArray
from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.forest import LARGEST_SINGLE, Forest, average_length
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Reference
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.landmarks import Blocks
from ocfuse.detectors.marginal import Marginal
from ocfuse.detectors.members import givers_first
from ocfuse.detectors.mixture import GMM, LOG_2PI
from ocfuse.detectors.neighbours import ALP, KNN, LOF
from ocfuse.detectors.pool import Pool
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.views import (
    Compressed,
    Compression,
    Mahalanobis,
    Viewed,
    Whitened,
    Whitening,
)
from ocfuse.exceptions import InvalidInputError
from ocfuse.nearest.index import MOST_ROWS
from ocfuse.onnx.graph import Graph, Tensor
from ocfuse.onnx.search import Near, count_not_above, nearest, product_of_squares


class QueryRows:
    """QueryRows (q, m) to score, and what members compute of them, each once."""

    def __init__(self, graph: Graph, x: Tensor) -> None:
        self.graph = graph
        self.x = x
        self._against: dict[int, Against] = {}
        self._views: dict[int, QueryRows] = {}

    def against(self, reference: Reference) -> "Against":
        """Return the comparison of the rows with some training rows."""
        if id(reference) not in self._against:
            self._against[id(reference)] = Against(self, reference)
        return self._against[id(reference)]

    def view(self, coordinates: Any) -> "QueryRows":
        """Return the same rows in the coordinates of a view."""
        if id(coordinates) not in self._views:
            transform = _whitened if isinstance(coordinates, Whitening) else _compressed
            self._views[id(coordinates)] = QueryRows(self.graph, transform(self, coordinates))
        return self._views[id(coordinates)]


class Against:
    """QueryRows against training rows: distances, kernels and neighbours, as `Query` has them."""

    def __init__(self, rows: QueryRows, reference: Reference) -> None:
        self.rows, self.reference = rows, reference
        self._kernels: dict[float, Tensor] = {}
        self._nearest: tuple[int, Near] | None = None

    def kernel(self, width: float) -> Tensor:
        """Return ``exp(-D2 / (width M))``."""
        if width not in self._kernels:
            self._kernels[width] = _kernel(self.rows, self.reference, self.reference.X, width)
        return self._kernels[width]

    def neighbours(self, k: int) -> Near:
        """Return the k nearest training rows; the largest k is to be asked for first."""
        k = min(k, self.reference.n_rows)
        if self._nearest is None or self._nearest[0] < k:
            found = nearest(self.rows.graph, self.rows.x, self.reference.X, k, in_pairs=True)
            self._nearest = k, found
        most, found = self._nearest
        return found if k == most else found.first(k)


def member_scores(graph: Graph, pool: Pool, x: Tensor) -> Tensor:
    """Return the scores of all members, (q, d), in the order of `names_`."""
    require_members(pool)
    rows, found = QueryRows(graph, x), {}
    for name, member in givers_first(pool.members_):
        found[name] = _score(rows, member).reshape(-1, 1)
    for name, value in pool.constants_.items():
        found[name] = x.first(1) * 0.0 + float(value)
    return graph.concat([found[name] for name in pool.names_], axis=1)


def require_members(pool: Pool) -> None:
    """Refuse members that cannot be written, by their names."""
    strangers = [
        f"{name} ({type(inner).__name__})"
        for name, inner in ((name, _innermost(member)) for name, member in pool.members_)
        if type(inner) not in _SCORES
    ]
    if strangers:
        raise InvalidInputError(
            f"These members cannot be exported to ONNX: {', '.join(strangers)}. Only members of "
            f"this package can, {', '.join(sorted(kind.__name__ for kind in _SCORES))}. Leave the "
            "others out, for instance FusedDetector('default') or --members light, and fit again."
        )
    for name, member in pool.members_:
        n = member.reference_.n_rows
        if isinstance(_innermost(member), KNN | LOF | ALP) and n > MOST_ROWS:
            raise InvalidInputError(
                f"Member {name!r} searches cells of {n:,} training rows, which no operator of ONNX "
                f"does; up to {MOST_ROWS:,} can be exported. Give it max_samples, such as "
                "KNN(max_samples=2000), or take members='light', and fit again."
            )


def _innermost(member: Any) -> Any:
    return _innermost(member.detector_) if isinstance(member, Whitened | Compressed) else member


def _score(rows: QueryRows, member: BaseDetector) -> Tensor:
    if isinstance(member, Viewed):
        coordinates = member.reference_.view(member.view).coordinates
        return _score(rows.view(coordinates), member.detector_)
    return _SCORES[type(member)](rows, member)


# -- views ------------------------------------------------------------------


def _whitened(rows: QueryRows, whitening: Whitening) -> Tensor:
    centred, directions = rows.x - whitening.centre, whitening.directions
    scaled: Tensor = centred @ (directions.T * whitening.factors)
    if len(directions) == directions.shape[1]:
        return scaled
    inside = centred @ directions.T
    rest = (centred - inside @ directions).square().sum(keep=True).sqrt()
    rest = (rest - float(whitening.rounding)).most(0.0) * whitening.rest_factor
    return rows.graph.concat([scaled, rest], axis=1)


def _compressed(rows: QueryRows, compression: Compression) -> Tensor:
    sizes = rows.x.abs()
    values = ((sizes.square() + 1.0).sqrt() + sizes).log()
    signed = rows.graph.where(rows.x < 0.0, -values, values)
    return (signed - compression.mean) / compression.spread


# -- members ----------------------------------------------------------------


def _knn(rows: QueryRows, member: KNN) -> Tensor:
    distances = rows.against(member.reference_).neighbours(member.n_neighbors_).distances
    if member.method == "mean":
        return -distances.mean()
    last = min(member.n_neighbors_, member.reference_.n_rows) - 1
    return -distances.take(np.array(last, dtype=np.int64))


def _lof(rows: QueryRows, member: LOF) -> Tensor:
    graph, compared = rows.graph, rows.against(member.reference_)
    compared.neighbours(member.n_neighbors_)
    scores = []
    for factor in member.factors_:
        near = compared.neighbours(factor.k)
        radii = graph.constant(factor.radii).take(near.index, axis=0)
        reach = near.distances.most(radii).mean().most(float(factor.floor))
        density = graph.constant(factor.density).take(near.index, axis=0).mean()
        scores.append(-(reach * density))
    total = scores[0]
    for score in scores[1:]:
        total = total + score
    return total / float(len(scores))


def _alp(rows: QueryRows, member: ALP) -> Tensor:
    graph, k, n_local = rows.graph, member.n_neighbors_, member.n_local_
    scaled = QueryRows(graph, rows.x / member.unit_)
    near = scaled.against(member.scaled_).neighbours(max(k, n_local))
    others = graph.constant(member.distances_).take(near.index.first(n_local), axis=0)
    local = (others * _falling(n_local)[:, np.newaxis]).sum(axis=1)
    total = near.distances.first(k) + local
    is_apart = total > 0.0
    proximity = graph.where(is_apart, local / graph.where(is_apart, total, 1.0), 0.5)
    ordered, _ = proximity.top(k, largest=True)
    return (ordered * _falling(k)).sum()


def _falling(size: int) -> FloatArray:
    return np.arange(float(size), 0.0, -1.0) * (2.0 / (size * (size + 1)))


def _gmm(rows: QueryRows, member: GMM) -> Tensor:
    mixture, subspace = member.mixture_, member.subspace_
    inside, m = rows.x - member.reference_.centre, len(member.reference_.centre)
    constant = -m * math.log(member.unit_)
    density: Tensor | None = None
    r = subspace.directions.shape[1]
    if r:
        rest = inside - (inside @ subspace.directions) @ subspace.directions.T
        inside = inside @ subspace.directions
        density = rest.square().sum() * (-0.5 / (subspace.noise * member.unit_**2))
        constant -= 0.5 * (m - r) * (LOG_2PI + math.log(subspace.noise))
    white = (inside @ (mixture.factors / member.unit_) - mixture.shifts).reshape(-1, *mixture.shape)
    logs = white.square().sum(axis=2) * -0.5 + mixture.constants
    top = logs.largest(keep=True)
    total: Tensor = (logs - top).exp().sum().log() + top.without_axis(1)
    return (total if density is None else total + density) + constant


def _mahalanobis(rows: QueryRows, member: Mahalanobis) -> Tensor:
    own = member.whitening_  # after an update
    coordinates = member.reference_.view(Whitening).coordinates if own is None else own
    return -rows.view(coordinates).x.square().sum()


def _marginal(rows: QueryRows, member: Marginal) -> Tensor:
    graph, columns = rows.graph, np.ascontiguousarray(member.columns_)
    m, n = columns.shape
    below = count_not_above(graph, columns, rows.x, below=True)
    # of every place the tail of a value between those of training, and of one that equals the next
    place = np.arange(n + 1)
    between = np.broadcast_to(np.minimum(place, n - place), (m, n + 1))
    ends = np.array([np.searchsorted(column, column, "right") for column in columns])
    equal = between.copy()
    equal[:, :n] = np.minimum(ends, n - place[:n])
    following = np.hstack([columns, np.full((m, 1), np.inf)])
    at = below + np.arange(m, dtype=np.int64) * (n + 1)
    tails = [
        graph.constant(np.log((counts + 0.5) / (n + 1)).ravel()).take(at, axis=0)
        for counts in (equal, between)
    ]
    is_known = rows.x.equals(graph.constant(following.ravel()).take(at, axis=0))
    return graph.where(is_known, *tails).sum()


def _forest(rows: QueryRows, member: Forest) -> Tensor:
    graph, trees = rows.graph, member.trees_
    n_trees, width = trees.lengths.shape
    usual = float(average_length(np.array([member.rows_per_tree_]))[0])
    if not usual:
        return rows.x.first(1) * 0.0 - 0.5
    values = rows.x.clip(-LARGEST_SINGLE, LARGEST_SINGLE).to(np.float32)
    start = np.arange(n_trees, dtype=np.int64) * width
    features = graph.constant(trees.features.astype(np.int64).ravel())
    thresholds = graph.constant(trees.thresholds.ravel())
    # node i has the children 2 i and 2 i + 1; counted from the start of its tree: 2 i - start
    place = rows.x.first(1).to(np.int64) * 0 + (start + 1)
    for _ in range(width.bit_length() - 1):
        goes_right = values.at(features.take(place, axis=0)) > thresholds.take(place, axis=0)
        place = place + place - start + goes_right.to(np.int64)
    lengths = graph.constant(trees.lengths.ravel()).take(place - width, axis=0)
    return -(lengths.mean() * (-math.log(2.0) / usual)).exp()


def _kpca(rows: QueryRows, member: KPCA) -> Tensor:
    r = member.n_components_
    parts = rows.against(member.reference_).kernel(member.width) @ member.projection_
    f = parts.first(r) - member.shift_
    mean = parts.take(np.array(r, dtype=np.int64))
    score = f.square().sum() + mean * 2.0 - (1.0 + float(member.mean_))
    return (score + float(member.resolution_)).least(0.0)


def _svdd(rows: QueryRows, member: SVDD) -> Tensor:
    reference = member.reference_
    K = _kernel(rows, reference, reference.X[member.support_], member.width)
    reached = K @ member.dual_coef_
    position = (reached - float(member.level_)) * 2.0
    return position - position.clip(-1e-7, 1e-7)


def _gp(rows: QueryRows, member: OneClassGP) -> Tensor:
    K = rows.against(member.reference_).kernel(member.width)
    if member.blocks_ is not None:
        return _mean_in_blocks(rows, member, K, member.blocks_)
    mean = K @ member.alpha_
    if member.factor_ is None:
        return mean
    if member.method_ == "landmarks":
        to_half = member.factor_.T
    else:
        to_half = solve_triangular(member.factor_, np.eye(len(member.factor_)), lower=True).T
    half = K @ to_half
    variance = (-half.square().sum() + (1.0 + member.noise)).most(float(member.noise))
    if member.statistic == "variance":
        return -variance
    if member.statistic == "predictive":
        density = (1.0 - mean).square() / variance + (variance * (2.0 * math.pi)).log()
        return density * -0.5
    smallest = 1e-3  # as in `OneClassGP`
    ratio = mean.most(smallest).log() + (mean / smallest - 1.0).least(0.0)
    return ratio - variance.log() * 0.5


def _mean_in_blocks(rows: QueryRows, member: OneClassGP, K: Tensor, blocks: Blocks) -> Tensor:
    graph, starts = rows.graph, blocks.starts
    near = []
    for j, part in enumerate(blocks.parts):
        K_near = _kernel(rows, part, part.X, member.width)
        near.append((K_near @ member.alpha_[starts[j] : starts[j + 1]]).reshape(-1, 1))
    means = graph.concat(near, axis=1) + K @ np.asarray(member.weights_).T
    if not len(blocks.planes):
        return means.sum()
    signs, depths = _paths(blocks)
    is_above = (rows.x @ blocks.planes.T > blocks.levels).to(np.float64)
    # a row is in the block all of whose planes it is on the right side of
    agreed = is_above @ np.maximum(signs, 0.0) + (1.0 - is_above) @ np.maximum(-signs, 0.0)
    return graph.where(agreed.equals(depths), means, 0.0).sum()


def _paths(blocks: Blocks) -> tuple[FloatArray, FloatArray]:
    """Return which side of each plane leads to each block, (planes, blocks), and their numbers."""
    signs = np.zeros((len(blocks.planes), len(blocks.parts)))
    waiting: list[tuple[int, dict[int, float]]] = [(0, {})]
    while waiting:
        node, path = waiting.pop()
        if node < 0:
            for i, side in path.items():
                signs[i, ~node] = side
        else:
            low, high = map(int, blocks.children[node])
            waiting += [(low, path | {node: -1.0}), (high, path | {node: 1.0})]
    return signs, np.abs(signs).sum(axis=0)


def _kernel(rows: QueryRows, reference: Reference, Y: FloatArray, width: float) -> Tensor:
    """Return ``exp(-|x - y|^2 / (width M))``; the exponent is a single product of matrices."""
    rate = -1.0 / (width * reference.scale)
    exponents = product_of_squares(rows.graph, rows.x, Y, reference.centre, rate)
    return exponents.least(0.0).exp()


#: What writes the score of each class of members.
_SCORES: dict[type, Callable[[QueryRows, Any], Tensor]] = {
    ALP: _alp,
    Forest: _forest,
    GMM: _gmm,
    KNN: _knn,
    KPCA: _kpca,
    LOF: _lof,
    Mahalanobis: _mahalanobis,
    Marginal: _marginal,
    OneClassGP: _gp,
    SVDD: _svdd,
}

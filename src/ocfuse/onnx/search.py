"""Nearest rows, and places among sorted values, as nodes.

Distances that decide which rows are near are summed in the order of the code that learned, so that
rows which tie there tie here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.onnx.graph import Graph, Tensor

#: Candidates beyond the neighbours asked for, which are measured again: enough where few rows tie.
SPARE = 24
#: Products are rounded to so many units in the last place, so that rows that tie still do.
TIED = 1024.0


@dataclass(frozen=True)
class Near:
    """The nearest rows of every row: distances (q, k), nearest first, and their numbers."""

    distances: Tensor
    index: Tensor

    def first(self, k: int) -> "Near":
        """Return the first k of them."""
        return Near(self.distances.first(k), self.index.first(k))


def nearest(graph: Graph, x: Tensor, Y: FloatArray, k: int, *, in_pairs: bool) -> Near:
    """Return the k rows of Y nearest to each row of x; of equal ones the first.

    Candidates are found by a product of matrices and measured again by direct differences.
    `in_pairs` sums these as compiled code and `numpy.einsum` do, the squares of even and of odd
    columns apart; else from left to right, and rows tie by distances, not by their squares, as
    with SciPy.
    """
    n = len(Y)
    size = min(n, k + SPARE)
    centre = Y[0] + (Y - Y[0]).mean(axis=0)
    if size == n:
        differences = x.with_axis(1) - Y
        squares = _total(differences.square(), Y.shape[1], in_pairs)
        values, index = (squares if in_pairs else squares.sqrt()).top(k, largest=False)
        return Near(values.sqrt() if in_pairs else values, index)
    products = product_of_squares(graph, x, Y, centre, tied=TIED)
    _, found = products.top(size, largest=False, ordered=False)
    candidates, _ = found.top(size, largest=False)  # by their numbers
    differences = graph.constant(Y).take(candidates, axis=0) - x.with_axis(1)
    squares = _total(differences.square(), Y.shape[1], in_pairs)
    values, place = (squares if in_pairs else squares.sqrt()).top(k, largest=False)
    return Near(values.sqrt() if in_pairs else values, candidates.at(place))


def product_of_squares(
    graph: Graph,
    x: Tensor,
    Y: FloatArray,
    centre: FloatArray,
    factor: float = 1.0,
    *,
    tied: float = 0.0,
) -> Tensor:
    """Return the squared distances of rows to those of Y, times a factor, as one product.

    Rounded as such products are, to a few units in the last place of the squared lengths from the
    centre. With `tied` units so much is added, the same for all in a row, that they are rounded to
    so many: what ties but for rounding is then equal.
    """
    rows, others = x - centre, Y - centre
    squares = np.einsum("nm,nm->n", others, others)
    lengths = rows.square().sum(keep=True)
    ones = np.ones(len(Y))
    columns, table = [rows, lengths, lengths * 0.0 + 1.0], [*(-2.0 * others.T), ones, squares]
    if tied:
        columns.append((lengths + float(squares.max())) * tied)
        table.append(ones)
    return graph.concat(columns, axis=1) @ (factor * np.array(table))


def _total(squares: Tensor, m: int, in_pairs: bool) -> Tensor:
    """Return sums over the last of three axes, of length m, added up in a certain order."""
    if not in_pairs:
        return _in_order(squares, range(m))
    whole = range(m // 8)
    order = [8 * i + j for i in whole for j in (6, 4, 2, 0)]
    order += range(8 * len(whole), m - m % 2, 2)
    odd = [j + 1 for j in order]
    even = _in_order(squares, [*order, m - 1] if m % 2 else order)
    return even + _in_order(squares, odd) if odd else even


def _in_order(squares: Tensor, columns: Sequence[int]) -> Tensor:
    chosen = squares.take(np.array(columns, dtype=np.int64), axis=2)
    if len(columns) == 1:
        return chosen.without_axis(2)
    last = np.array(len(columns) - 1, dtype=np.int64)
    return chosen.running(2).take(last, axis=2)


def count_not_above(graph: Graph, ordered: FloatArray, x: Tensor, *, below: bool = False) -> Tensor:
    """Return how many values of each row of `ordered` (m, n) are not above x (q, m), or below it.

    By halving: as many steps as the length has digits.
    """
    m, n = ordered.shape
    height = int(n).bit_length()
    filled = np.full((m, 2**height), np.inf)
    filled[:, 1 : n + 1] = ordered  # place 0 is never looked at
    start = np.arange(m, dtype=np.int64) * 2**height
    values = graph.constant(filled.ravel())
    place: Tensor = x.to(np.int64) * 0 + start
    for step in 2 ** np.arange(height)[::-1]:
        further = place + int(step)
        value = values.take(further, axis=0)
        place = graph.where(value < x if below else value <= x, further, place)
    count: Tensor = place - start
    return count


def interpolated(graph: Graph, x: Tensor, knots: FloatArray, levels: FloatArray) -> Tensor:
    """Return levels at x (q, d), linear between knots (n, d), constant beyond (`numpy.interp`)."""
    n, d = knots.shape
    count = count_not_above(graph, knots.T, x)
    gaps = np.diff(knots, axis=0)
    slopes = np.divide(np.diff(levels, axis=0), gaps, out=np.zeros_like(gaps), where=gaps > 0)
    nothing = np.zeros((1, d))
    tables = (
        np.concatenate([knots[:1], knots]),
        np.concatenate([levels[:1], levels]),
        np.concatenate([nothing, slopes, nothing]),
    )
    place = count + np.arange(d, dtype=np.int64) * (n + 1)
    start, level, slope = (graph.constant(table.T.ravel()).take(place, axis=0) for table in tables)
    return (x - start) * slope + level

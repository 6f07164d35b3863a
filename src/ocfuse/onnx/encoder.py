"""Cells to standardised numbers, as `FeatureEncoder` has it, as nodes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.column_kinds import TEXT_GAPS
from ocfuse.encoder import FARTHEST, FeatureEncoder
from ocfuse.onnx.graph import Graph, Tensor
from ocfuse.onnx.search import product_of_squares
from ocfuse.sides import Sides

#: Spellings of truth, which are one category each.
SPELLINGS = {"true": ("true", "True", "TRUE"), "false": ("false", "False", "FALSE")}


class Cells:
    """The cells that a file is given, by the places of their columns in training.

    `table` (q, m) holds the columns at `places` as numbers; or `columns` are tensors (q, 1) of
    their own, of text at the places in `texts`.
    """

    def __init__(
        self,
        *,
        table: Tensor | None = None,
        places: Sequence[int] = (),
        columns: Mapping[int, Tensor] | None = None,
        texts: Collection[int] = (),
    ) -> None:
        self._table, self._places = table, list(places)
        self._columns, self.texts = columns or {}, texts

    def at(self, graph: Graph, places: Sequence[int]) -> Tensor:
        """Return the columns at some places, side by side."""
        if self._table is None:
            return graph.concat([self._columns[j] for j in places], axis=1)
        if list(places) == self._places:
            return self._table
        return self._table.take(np.array([self._places.index(j) for j in places], dtype=np.int64))


@dataclass(frozen=True)
class Encoded:
    """Encoded rows (q, e), and which rows, a column, have no score."""

    rows: Tensor
    has_no_score: Tensor | None


def encoded(graph: Graph, encoder: FeatureEncoder, cells: Cells) -> Encoded:
    """Return rows as the members see them.

    Rows with infinity, and with gaps that are refused, have no score.
    """
    blocks = _numbers(graph, encoder, cells) + _categories(graph, encoder, cells)
    rows = graph.concat([block.rows for block in blocks] + _empty(graph, encoder, cells), axis=1)
    n_empty = int(encoder.empty_.sum())
    # what is not known of a gap, and whether training had no such gap
    may_be_lost = np.concatenate(
        [*(block.may_be_lost for block in blocks), np.zeros(n_empty, bool)]
    )
    is_new = encoder.complete_[encoder.source_]
    gaps = [block.gaps for block in blocks]
    refused = [block.infinite for block in blocks if block.infinite is not None]
    if encoder.gaps == "refuse":
        refused += [(block.gaps & block.is_complete).any() for block in blocks]
    has_no_score = graph.concat(refused, axis=1).any() if refused else None
    sides = encoder.sides_
    if not may_be_lost.any():
        return Encoded(_one_sided(graph, sides, rows), has_no_score)
    spread = [block.gaps & np.ones(block.width, dtype=bool) for block in blocks]
    none = [(gaps[0].first(1) & np.zeros(n_empty, dtype=bool))] if n_empty else []
    is_lost = graph.concat(spread + none, axis=1) & may_be_lost
    far = is_lost & is_new
    if encoder.gaps != "alarm":
        far = far & graph.concat(gaps, axis=1).all()
    rows = graph.where(far, np.where(encoder._sign < 0, -FARTHEST, FARTHEST), rows)
    if encoder.gaps != "alarm" or (may_be_lost & ~is_new).any():
        rows = _judged(graph, rows, is_lost & ~far, encoder.donors_)
    return Encoded(_one_sided(graph, sides, rows), has_no_score)


@dataclass(frozen=True)
class _Block:
    """Encoded columns (q, e) of columns (q, m), with what is known of their gaps."""

    rows: Tensor
    gaps: Tensor  # (q, m)
    is_complete: BoolArray  # (m,), training had none
    may_be_lost: BoolArray  # (e,), nothing is known of a gap
    infinite: Tensor | None  # (q, 1), None for text

    @property
    def width(self) -> int:
        """The number e."""
        return len(self.may_be_lost)


def _numbers(graph: Graph, encoder: FeatureEncoder, cells: Cells) -> list[_Block]:
    is_number = ~encoder.categorical_ & ~encoder.ignored_
    if not is_number.any():
        return []
    values, scaler = cells.at(graph, np.flatnonzero(is_number).tolist()), encoder.scaler_
    gaps, is_complete = values.is_nan(), encoder.complete_[is_number]
    filled = graph.where(gaps, scaler.fill_, values)
    rows = ((filled - scaler.centre_) / scaler.scale_).clip(-FARTHEST, FARTHEST)
    return [_Block(rows, gaps, is_complete, is_complete, values.is_infinite().any())]


def _categories(graph: Graph, encoder: FeatureEncoder, cells: Cells) -> list[_Block]:
    blocks = []
    chosen = zip(
        np.flatnonzero(encoder.categorical_).tolist(),
        encoder.codes_,
        encoder.patterns_,
        strict=True,
    )
    for j, codes, patterns in chosen:
        column, is_text = cells.at(graph, [j]), j in cells.texts
        place = _place(graph, column, is_text, codes)
        known = np.where(np.isnan(patterns), 0.0, patterns)
        blocks.append(
            _Block(
                graph.constant(known).take(place.without_axis(1), axis=0),
                place.equals(len(codes)),
                encoder.complete_[j : j + 1],
                np.isnan(patterns[len(codes)]),
                None if is_text else column.is_infinite(),
            )
        )
    return blocks


def _empty(graph: Graph, encoder: FeatureEncoder, cells: Cells) -> list[Tensor]:
    columns = [cells.at(graph, [j]) for j in np.flatnonzero(encoder.empty_).tolist()]
    return [graph.where(column.is_nan(), 0.0, float(encoder.novelty_)) for column in columns]


def _place(graph: Graph, column: Tensor, is_text: bool, codes: dict[str, int]) -> Tensor:
    """Return the code of every category, ``len(codes)`` for a gap and one more for a new one."""
    gap, unknown = len(codes), len(codes) + 1
    if is_text:
        pairs = [
            (word, code) for text, code in codes.items() for word in SPELLINGS.get(text, [text])
        ]
        pairs += [(word, gap) for word in sorted({"", *TEXT_GAPS})]
        found = column.equals(np.array([word for word, _ in pairs], dtype=object))
    else:
        pairs = list(codes.items())
        found = column.equals(np.array([float(text) for text, _ in pairs]))
    steps = np.array([code - unknown for _, code in pairs], dtype=np.int64)
    place = (found.to(np.int64) * steps).sum(keep=True) + unknown
    return place if is_text else graph.where(column.is_nan(), gap, place)


def _judged(graph: Graph, rows: Tensor, is_lost: Tensor, donors: FloatArray) -> Tensor:
    """Put what the training rows nearest to a row hold where it has gaps, row by row.

    Of the five nearest, the one in the middle.
    """
    flat = is_lost.any().without_axis(1)
    numbers = graph.add("NonZero", flat).without_axis(0)
    count = graph.add("Size", numbers)
    k, width = min(5, len(donors)), donors.shape[1]

    def judged_row(body: Graph, i: Tensor) -> Tensor:
        number = numbers.inside(body).take(i, axis=0)
        row, lost = (
            rows.inside(body).take(number, axis=0),
            is_lost.inside(body).take(number, axis=0),
        )
        gaps = body.where(lost, 0.0, body.constant(donors) - row)
        distances = _in_turn(gaps.square(), 1)
        least, _ = distances.top(k, largest=False)
        reach = least.take(np.array([k - 1], dtype=np.int64), axis=0)
        which = body.add("NonZero", distances <= reach).without_axis(0)
        near = body.constant(donors).take(which, axis=0)
        middle = _in_turn(near, 0) / body.add("Size", which).to(np.float64)
        spread = _in_turn(body.where(lost, near - middle, 0.0).square(), 1)
        best = body.add("ArgMin", spread, axis=0, keepdims=0)
        return body.where(lost, near.take(best, axis=0), row)

    filled = graph.loop(count, judged_row, width)
    return graph.add("ScatterND", rows, numbers.with_axis(1), filled)


def _one_sided(graph: Graph, sides: Sides | None, rows: Tensor) -> Tensor:
    """Put what is to be expected in the place of values on the harmless side."""
    if sides is None:
        return rows
    turn = np.where(sides.sign < 0, -1.0, 1.0)
    own, others = np.flatnonzero(sides.sign != 0), np.flatnonzero(sides.sign == 0)
    turned: Tensor = rows * turn
    values: Tensor = turned.take(own.astype(np.int64))
    expected = _expected(graph, sides, turned, own, others)
    short = values - expected
    moved = short.most(0.0) if len(own) == 1 else _most_usual(graph, sides, short)
    found = graph.where(moved > short, (expected + moved).most(values), values)
    if len(others):
        found = graph.concat([found, turned.take(others.astype(np.int64))], axis=1)
    back = np.argsort(np.concatenate([own, others])).astype(np.int64)
    result: Tensor = found.take(back) * turn
    return result


def _expected(
    graph: Graph, sides: Sides, turned: Tensor, own: IntArray, others: IntArray
) -> Tensor:
    """Return what the other columns say of those of one side."""
    centre, donors = sides.centre_[own], sides.donors_
    if not len(others):
        same: Tensor = turned.take(own.astype(np.int64)) * 0.0
        same = same + (centre + sides.beside_.mean(axis=0))
        return same
    X = turned.take(others.astype(np.int64)).most(sides.low_[others]).least(sides.high_[others])
    squares = product_of_squares(graph, X, donors, np.zeros(len(others))).most(0.0)
    k = min(sides.n_neighbours, max(len(donors) // 5, 1), len(donors) - 1)
    nearest, _ = squares.top(k + 1, largest=False)
    reach = nearest.take(np.array([k], dtype=np.int64))
    weight = (reach - squares).most(0.0)
    slack = reach.most(1.0) * 1e-9
    are_equal = weight.sum(keep=True) <= slack
    weight = graph.where(are_equal, (squares <= reach + slack).to(np.float64), weight)
    line = (X - sides.centre_[others]) @ sides.slope_ + centre
    found: Tensor = line + (weight / weight.sum(keep=True)) @ sides.beside_
    return found


def _most_usual(graph: Graph, sides: Sides, short: Tensor) -> Tensor:
    """Return how far columns of one side are from what is expected, as `Sides` moves them."""
    n = len(sides.slack_)
    most = (-short - sides.slack_).most(0.0).most(short)
    start = short.most(0.0).least(most)
    each = [np.array([j], dtype=np.int64) for j in range(n)]
    moved = [start.take(j) for j in each]
    limits = [(short.take(j), most.take(j)) for j in each]
    pulls = -sides.precision_ / np.diag(sides.precision_)
    np.fill_diagonal(pulls, 0.0)
    for _ in range(sides.n_sweeps):
        for j, (low, high) in enumerate(limits):
            moved[j] = (graph.concat(moved, axis=1) @ pulls[:, j : j + 1]).most(low).least(high)
    return graph.concat(moved, axis=1)


def _in_turn(values: Tensor, axis: int) -> Tensor:
    """Return sums along an axis, one value after the other as NumPy adds them: rows may tie."""
    return values.running(axis).take(np.array(-1, dtype=np.int64), axis=axis)

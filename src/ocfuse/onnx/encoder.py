"""Cells to standardised numbers, as `FeatureEncoder` has it, as nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.column_kinds import TEXT_GAPS
from ocfuse.encoder import FARTHEST, FeatureEncoder
from ocfuse.onnx.graph import Graph, Tensor

#: Spellings of truth, which are one category each.
SPELLINGS = {"true": ("true", "True", "TRUE"), "false": ("false", "False", "FALSE")}


@dataclass(frozen=True)
class Cells:
    """The columns of a table, each (q, 1): numbers, or text where `is_text`."""

    columns: Sequence[Tensor]
    is_text: Sequence[bool]


@dataclass(frozen=True)
class Encoded:
    """Encoded rows (q, e), and which rows, a column, have no score."""

    rows: Tensor
    has_no_score: Tensor | None


def encoded(graph: Graph, encoder: FeatureEncoder, cells: Cells) -> Encoded:
    """Return rows as the members see them.

    Rows with infinity, and with gaps that are refused, have no score.
    """
    is_number = ~encoder.categorical_ & ~encoder.ignored_
    numbers = [cells.columns[j] for j in np.flatnonzero(is_number).tolist()]
    complete = encoder.complete_
    parts, gaps, lost, infinite = [], [], [], None
    if numbers:
        values = graph.concat(numbers, axis=1)
        missing, infinite = values.is_nan(), values.is_infinite().any()
        scaler = encoder.scaler_
        filled = graph.where(missing, scaler.fill_, values)
        parts.append(((filled - scaler.centre_) / scaler.scale_).clip(-FARTHEST, FARTHEST))
        gaps.append(missing)
        lost.append(missing & complete[is_number])
    chosen = zip(
        np.flatnonzero(encoder.categorical_).tolist(),
        encoder.codes_,
        encoder.patterns_,
        strict=True,
    )
    for j, codes, patterns in chosen:
        place = _place(graph, cells.columns[j], cells.is_text[j], codes)
        known = np.where(np.isnan(patterns), 0.0, patterns)
        parts.append(graph.constant(known).take(place.without_axis(1), axis=0))
        is_gap = place.equals(len(codes))
        gaps.append(is_gap)
        lost.append(is_gap & np.full(patterns.shape[1], bool(complete[j])))
    for j in np.flatnonzero(encoder.empty_).tolist():
        is_there = ~cells.columns[j].is_nan()
        parts.append(graph.where(is_there, float(encoder.novelty_), 0.0))
        lost.append(is_there & np.zeros(1, dtype=bool))
    rows = graph.concat(parts, axis=1)
    if not complete[~encoder.ignored_].any():
        return Encoded(rows, infinite)
    is_lost, is_blank = graph.concat(lost, axis=1), graph.concat(gaps, axis=1).all()
    if encoder.gaps == "refuse":
        refused = is_lost.any()
        return Encoded(rows, refused if infinite is None else refused | infinite)
    far = is_lost if encoder.gaps == "alarm" else is_lost & is_blank
    rows = graph.where(far, FARTHEST, rows)
    if encoder.gaps == "judge":
        rows = _judged(graph, rows, is_lost & ~is_blank, encoder.donors_)
    return Encoded(rows, infinite)


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
        distances = gaps.square().sum(axis=1)
        least, _ = distances.top(k, largest=False)
        reach = least.take(np.array([k - 1], dtype=np.int64), axis=0)
        which = body.add("NonZero", distances <= reach).without_axis(0)
        near = body.constant(donors).take(which, axis=0)
        middle = near.sum(axis=0, keep=True) / body.add("Size", which).to(np.float64)
        spread = body.where(lost, near - middle, 0.0).square().sum(axis=1)
        best = body.add("ArgMin", spread, axis=0, keepdims=0)
        return body.where(lost, near.take(best, axis=0), row)

    filled = graph.loop(count, judged_row, width)
    return graph.add("ScatterND", rows, numbers.with_axis(1), filled)

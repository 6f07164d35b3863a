"""Rows are taken with all they have, and fused by what has not seen them."""

from dataclasses import dataclass, fields

import numpy as np

from ocfuse.fusion import LpFusion, SumRule
from ocfuse.scores import MinMax
from ocfuse.tuning.crossfit import ScoredRows, crossfitted_scores, fit_fusion
from tests.tuning.cases import scored_rows


def test_take_keeps_every_field():
    rows = scored_rows()
    chosen = np.arange(len(rows.y)) % 3 == 0
    taken = rows.take(chosen)
    for field in fields(ScoredRows):
        np.testing.assert_array_equal(getattr(taken, field.name), getattr(rows, field.name)[chosen])


def test_held_out_rows_do_not_matter():
    rows = scored_rows()
    fused = crossfitted_scores(rows, MinMax(), LpFusion())
    S = rows.S.copy()
    S[np.flatnonzero(rows.fold == 1)[1:]] *= 100
    again = crossfitted_scores(ScoredRows(S, rows.y, rows.X, rows.fold), MinMax(), LpFusion())
    first = np.flatnonzero(rows.fold == 1)[0]
    assert fused[first] == again[first]
    assert np.isnan(fused[rows.fold < 0]).all()


def test_scores_are_clipped_where_weights_are_learned_only():
    rows = scored_rows()
    S = rows.S.copy()
    S[-1] = -1e12
    normaliser, fusion = fit_fusion(ScoredRows(S, rows.y, rows.X, rows.fold), MinMax(), SumRule())
    assert fusion.fuse(normaliser.transform(S[-1:]))[0] < -1e10


def test_subclass_with_more_fields_is_kept_whole():
    @dataclass(frozen=True)
    class Kinds(ScoredRows):
        kind: np.ndarray

    rows = scored_rows()
    kinds = Kinds(rows.S, rows.y, rows.X, rows.fold, np.arange(len(rows.y)))
    np.testing.assert_array_equal(kinds.take(kinds.y < 0).kind, np.flatnonzero(rows.y < 0))

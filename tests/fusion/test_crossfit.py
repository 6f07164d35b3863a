"""Rows are taken with all they have, and fused by what has not seen them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ocfuse.fusion import CompetenceFusion, LpFusion, SumRule
from ocfuse.fusion.crossfit import Ballot, ballot_for, crossfitted_scores, fit_fusion
from ocfuse.scores import MinMax
from tests.tuning.cases import scored_rows


def test_take_keeps_every_table():
    rows = scored_rows()
    chosen = np.arange(len(rows.y)) % 3 == 0
    taken = rows.take(chosen)
    for name in ("S", "y", "X", "fold", "kind", "seen"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(rows, name)[chosen])
    assert taken.ballot == rows.ballot


@pytest.mark.parametrize("fusion", [LpFusion(), CompetenceFusion()])
def test_held_out_rows_do_not_matter(fusion):
    rows = scored_rows()
    fused = crossfitted_scores(rows, MinMax(), fusion)
    S, seen = rows.S.copy(), rows.seen.copy()
    others = np.flatnonzero(rows.fold == 1)[1:]
    S[others] *= 100
    seen[others] *= 100
    again = crossfitted_scores(replace(rows, S=S, seen=seen), MinMax(), fusion)
    first = np.flatnonzero(rows.fold == 1)[0]
    assert fused[first] == again[first]
    assert np.isnan(fused[rows.fold < 0]).all()


def test_scores_are_clipped_where_weights_are_learned_only():
    rows = scored_rows()
    S = rows.S.copy()
    S[-1] = -1e12
    normaliser, fusion = fit_fusion(replace(rows, S=S), MinMax(), SumRule())
    assert fusion.fuse(normaliser.transform(S[-1:]))[0] < -1e10


def test_evidence_holds_one_comparison_per_kind_and_the_gap():
    rows = scored_rows()
    evidence = rows.evidence()
    normal = rows.y > 0
    seen, unseen = rows.seen[normal], rows.S[normal]
    truth = np.repeat([1, 0], len(seen))
    gap = [roc_auc_score(truth, np.r_[a, b]) for a, b in zip(seen.T, unseen.T, strict=True)]
    kind = [roc_auc_score(rows.y, s) for s in rows.S.T]
    np.testing.assert_allclose(evidence.auc, np.column_stack([kind, gap]))
    assert evidence.labels == ["gauss", "seen"]


def test_no_evidence_without_pseudo_negatives_and_seen_scores():
    rows = scored_rows(n_pseudo=0)
    assert replace(rows, seen=np.full(rows.S.shape, np.nan), ballot=Ballot()).evidence() is None


def test_kinds_that_share_moments_fade_with_the_columns():
    few, many = ballot_for(["gauss", "mirror"], 1000, 5), ballot_for(["gauss", "mirror"], 100, 500)
    assert few.kinds["gauss"] > 0.99
    assert many.kinds["gauss"] < 0.02
    assert few.kinds["mirror"] == many.kinds["mirror"] == 1.0
    assert few.seen < 0.01 < 0.98 < many.seen


def test_two_generators_of_one_name_stay_apart():
    assert list(ballot_for(["swap", "swap"], 10, 2).kinds) == ["swap", "swap 1"]

"""Laws of the criteria."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion import LocalLpFusion, LpFusion, SingleBest, SumRule
from ocfuse.fusion.base import BaseFusion
from ocfuse.metrics import auc
from ocfuse.scores import MinMax
from ocfuse.tuning import RPAU, LabelledAUC, PseudoNegativeAUC, Search, Stability, make_criterion
from ocfuse.tuning.search import PAPER_P
from ocfuse.tuning.splits import fold_splits
from tests.tuning.cases import scored_rows

EVERY = [PseudoNegativeAUC(), LabelledAUC(), RPAU(), RPAU("percent"), Stability()]
SEEDS = st.integers(0, 2**31 - 1)


class Column(BaseFusion):
    """Trust one member."""

    def __init__(self, j=0):
        self.j = j

    def _fit(self, Z, y, X, c):
        pass

    def _fuse(self, Z, X):
        return Z[:, self.j]

    def _trust(self):
        return np.eye(self.n_members_)[self.j]


def test_every_row_is_held_out_once():
    rows = scored_rows(n_real=6)
    splits = fold_splits(rows)
    assert len(splits) == 4
    held_out = np.vstack([split.rows.S for split in splits])
    assert sorted(map(tuple, held_out)) == sorted(map(tuple, rows.S))
    for split in splits:
        both = {*map(tuple, split.learned.S), *map(tuple, split.rows.S)}
        assert len(both) == len(rows.S)
        assert (split.rows.fold < 0).sum() == 20


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS)
def test_value_ignores_the_scale_of_each_member(criterion, seed):
    rng = np.random.default_rng(seed)
    rows = scored_rows(n_real=8, seed=seed)
    other = replace(rows, S=rows.S * rng.uniform(0.1, 10, 4) + rng.normal(size=4))
    values = [criterion.value(r, MinMax(), SumRule()) for r in (rows, other)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS)
def test_areas_are_those_of_the_held_out_scores(seed):
    rows = scored_rows(n_real=8, seed=seed)
    # a member's own score needs no learning, and ranks are kept by any one scale
    class_of = np.where(rows.fold < 0, 0, rows.y)
    for criterion, label in ((PseudoNegativeAUC(), 0), (LabelledAUC(), -1)):
        chosen = (class_of == 1) | (class_of == label)
        expected = auc(rows.y[chosen], rows.S[chosen, 2])
        normaliser = Fixed()
        assert criterion.value(rows, normaliser, Column(2)) == pytest.approx(expected)


class Fixed(MinMax):
    """No scaling."""

    def _fit(self, columns):
        self.shift_, self.scale_ = np.zeros(len(columns)), np.ones(len(columns))


@pytest.mark.parametrize("criterion", [PseudoNegativeAUC(), LabelledAUC()], ids=repr)
def test_areas_prefer_the_better_member(criterion):
    rows = scored_rows(n_real=10)
    values = [criterion.value(rows, MinMax(), Column(j)) for j in range(4)]
    assert values == sorted(values)


def test_pseudo_negatives_are_judged_by_fusions_that_have_not_seen_them():
    rng = np.random.default_rng(0)
    rows = scored_rows(d=30, n=60, n_pseudo=60)
    noise = replace(rows, S=rng.normal(size=rows.S.shape))
    # in-sample the fusion of 30 columns of noise tells both classes apart
    assert abs(PseudoNegativeAUC().value(noise, MinMax(), LpFusion(nonneg=False)) - 0.5) < 0.12


class TestRPAU:
    def test_formulas(self):
        rows = scored_rows()
        A = []
        for split in fold_splits(rows):
            scale = MinMax(5).fit(split.learned.S[split.learned.y > 0])
            A.extend(1 - scale.transform(split.rows.S[split.rows.y > 0])[:, 1])
        A = np.array(A)
        power = np.sum((A[A > 1] - 1) ** 2) / np.sum(A**2)
        assert RPAU().value(rows, MinMax(1), Column(1)) == pytest.approx(-power)
        percent = 100 * np.mean(A > 1)
        assert RPAU("percent").value(rows, MinMax(1), Column(1)) == pytest.approx(-percent)

    def test_pseudo_negatives_do_not_count(self):
        rows = scored_rows()
        other = replace(rows, S=np.where(rows.fold[:, None] < 0, rows.S - 50, rows.S))
        for kind in ("power", "percent"):
            values = [RPAU(kind).value(r, MinMax(), SumRule()) for r in (rows, other)]
            assert values[0] == values[1]

    def test_raw_scores_favour_large_p_and_the_average_does_not(self):
        """Members that are copies: the weights have one direction, for every p."""
        rng = np.random.default_rng(0)
        rows = scored_rows(d=5, n_pseudo=0)
        S = np.tile(rng.normal(size=(len(rows.y), 1)), (1, 5))
        rows = replace(rows, S=S)
        raw = []
        for p in PAPER_P:
            Z = MinMax().fit(S).transform(S)
            w = LpFusion(p=p).fit(Z).w_
            raw.append(np.mean(Z @ w > 1))  # above unity taken for good
        assert raw == sorted(raw)
        assert raw[-1] > raw[0] + 0.3
        for kind in ("power", "percent"):
            search = Search(RPAU(kind)).fit(rows, MinMax(), LpFusion())
            values = search.results_["value"]
            assert np.ptp(values) < 1e-3 * abs(values).max()
            assert search.best_params_ == {"fusion__p": 2.0}

    def test_where_nothing_is_above_unity_the_middle_norm_is_taken(self):
        rows = scored_rows(n_pseudo=0)
        # most rows at the ends of the range, so that no held-out row is outside it
        inside = replace(rows, S=np.sign(rows.S) + 0.0)
        search = Search(RPAU()).fit(inside, MinMax(), LpFusion())
        assert (search.results_["value"] == 0).all()
        assert (search.results_["tie_break"] == 0).all()
        assert search.best_params_ == {"fusion__p": 2.0}

    def test_unknown_kind(self):
        with pytest.raises(InvalidInputError, match='"power" or "percent"'):
            RPAU("sum").value(scored_rows(), MinMax(), SumRule())


class TestStability:
    def test_halves_share_neither_rows_nor_members(self):
        rows = scored_rows()
        splits = Stability().splits(rows)
        assert len(splits) == 8
        for a, b in zip(splits[::2], splits[1::2], strict=True):
            assert (a.rows.y > 0).all()
            np.testing.assert_array_equal(a.rows.X, b.rows.X)
            learned = [{*map(tuple, split.learned.X)} for split in (a, b)]
            assert not learned[0] & learned[1]
            assert not {*map(tuple, a.rows.X)} & (learned[0] | learned[1])
            assert not {*a.learned.S.ravel()} & {*b.learned.S.ravel()}
            assert a.learned.S.shape[1] + b.learned.S.shape[1] == 4

    def test_limits(self):
        rng = np.random.default_rng(0)
        rows = scored_rows(n=400)
        same = replace(rows, S=np.tile(rng.normal(size=(len(rows.y), 1)), (1, 4)))
        assert Stability().value(same, MinMax(), SumRule()) == pytest.approx(1.0)
        noise = replace(rows, S=rng.normal(size=rows.S.shape))
        assert abs(Stability().value(noise, MinMax(), SumRule())) < 0.15
        constant = replace(rows, S=np.ones(rows.S.shape))
        assert Stability().value(constant, MinMax(), SumRule()) == 0.0

    def test_averaging_good_members_beats_trusting_one(self):
        rng = np.random.default_rng(1)
        rows = scored_rows(d=8, n=400, n_pseudo=200)
        truth = rng.normal(size=(600, 1)) - 2.0 * (rows.y < 0)[:, None]
        rows = replace(rows, S=truth + rng.normal(size=(600, 8)))
        even = Stability().value(rows, MinMax(), SumRule())
        assert even > Stability().value(rows, MinMax(), SingleBest()) + 0.1

    def test_members_of_noise_are_better_left_out(self):
        rng = np.random.default_rng(1)
        rows = scored_rows(d=12, n=400, n_pseudo=400)
        anomalous = (rows.y < 0)[:, None]
        truth = rng.normal(size=(800, 1)) - 4.0 * anomalous
        good = truth + rng.normal(size=(800, 6))
        rows = replace(rows, S=np.hstack([good, rng.normal(size=(800, 6))]))
        learned = Stability().value(rows, MinMax(), LpFusion(p=4 / 3))
        assert learned > Stability().value(rows, MinMax(), SumRule()) + 0.05

    def test_one_member(self):
        with pytest.raises(InvalidInputError, match="halves of the members"):
            Stability().value(scored_rows(d=1), MinMax(), SumRule())


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (PseudoNegativeAUC(), "needs pseudo-negatives"),
        (LabelledAUC(), "needs labelled anomalies"),
    ],
)
def test_missing_anomalies(criterion, message):
    with pytest.raises(InvalidInputError, match=message):
        criterion.value(scored_rows(n_pseudo=0), MinMax(), SumRule())


def test_pseudo_negatives_are_no_labels():
    with pytest.raises(InvalidInputError, match="labelled anomalies"):
        LabelledAUC().value(scored_rows(), MinMax(), SumRule())


@pytest.mark.parametrize("name", ["pseudo-negatives", "labels", "rpau", "stability"])
def test_names(name):
    criterion = make_criterion(name)
    rows = scored_rows(n_real=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = {clone(criterion).value(rows, MinMax(), LocalLpFusion()) for _ in range(2)}
    assert len(values) == 1


def test_names_that_are_none():
    with pytest.raises(InvalidInputError, match="'stability'"):
        make_criterion("auc")
    with pytest.raises(InvalidTypeError, match="RPAU"):
        make_criterion(RPAU)

"""What reported figures must obey."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.paper.published import (
    BestOfAll,
    Contradiction,
    auc_below_gmean,
    published_contradictions,
    published_single_above_members,
    published_table,
    worst_average_precision,
)
from ocfuse.metrics import auc, gmean


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9), st.integers(2, 20))
def test_no_scores_break_the_law(seed, n_normal, n_anomalies, levels):
    # any threshold, ties included, and means over repetitions
    rng = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_normal, n_anomalies])
    figures = []
    for _ in range(3):
        scores = rng.integers(0, levels, len(y)) + rng.normal() * (y + 1)
        scores = np.round(scores)
        predicted = np.where(scores >= rng.choice(scores), 1, -1)
        figures.append((auc(y, scores), gmean(y, predicted)))
    areas, means = np.array(figures).T
    assert not auc_below_gmean(areas, means, whole=1.0).any()
    assert not auc_below_gmean(areas.mean(), means.mean(), whole=1.0)


def test_the_law_is_sharp():
    # one normal below all anomalies, the threshold between the two
    y, scores = [1, 1, 1, 1, -1, -1], [3, 3, 3, 0, 1, 1]
    predicted = np.where(np.array(scores) >= 2, 1, -1)
    area, mean = auc(y, scores), gmean(y, predicted)
    assert area == pytest.approx(mean**2)
    assert not auc_below_gmean(area, mean, whole=1.0)
    assert auc_below_gmean(area - 1e-6, mean, whole=1.0)


def test_gaps_and_rounding():
    assert not auc_below_gmean([np.nan, 50.0], [99.0, np.nan]).any()
    assert auc_below_gmean(80.999, 90.0)
    assert not auc_below_gmean(80.999, 90.0, rounding=0.005)


def test_the_paper_breaks_it_once():
    # the same column is printed in two tables
    assert published_contradictions() == [
        Contradiction(name, "D5", "ALP", 92.2, 97.88) for name in ("rpau", "pseudo-negative")
    ]


def test_printed_single_best_is_above_all_members():
    found = published_single_above_members()
    assert found[:2] == [
        BestOfAll("rpau", "D1", 99.9, 95.89),
        BestOfAll("rpau", "D2", 97.49, 92.13),
    ]
    assert len(found) == 16
    for cell in found:
        table = published_table(cell.table, "auc")
        members = [table.cell(cell.set_name, name)[0] for name in ("GMM", "SVDD", "GP", "KPCA")]
        assert cell.member == max(members) < cell.single
    assert {"D4", "D9"}.isdisjoint(cell.set_name for cell in found)


def test_worst_order_of_the_hsr_test_set():
    # 60 anomalous and 7 normal trials
    worst = worst_average_precision(60, 7)
    harmonic = [np.sum(1.0 / np.arange(1, n + 1)) for n in (67, 7)]
    assert worst == pytest.approx(1 - 7 / 60 * (harmonic[0] - harmonic[1]))
    assert worst == pytest.approx(0.744, abs=5e-4)
    assert published_table("hsr", "auc_pr").cell("D11", "Thoduka 2021")[0] / 100 < worst


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(0, 30))
def test_worst_average_precision_is_scikit_learns_of_the_worst_order(n_positive, n_negative):
    y = np.repeat([0, 1], [n_negative, n_positive])
    expected = average_precision_score(y, -np.arange(len(y)))
    assert worst_average_precision(n_positive, n_negative) == pytest.approx(expected)


def test_refuses():
    with pytest.raises(InvalidInputError, match="one shape"):
        auc_below_gmean([1.0], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="n_positive must be at least 1"):
        worst_average_precision(0, 5)

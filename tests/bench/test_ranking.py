"""Ranks and tests of hand-made results, against other implementations."""

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from ocfuse.lab.paper.beside import summarise
from ocfuse.lab.paper.published import published_table
from ocfuse.lab.paper.ranking import Ranking, omnibus_sheet, pair_sheet, rank_sheet
from ocfuse.lab.paper.sheet import GAP, Bold
from tests.bench.records import failure, record

SYSTEMS = ("Pure2 (interior point)", "Sum rule", "KPCA", "Min rule")
SETS = [f"D{i}" for i in range(1, 11)]


def scores():
    return np.random.default_rng(0).permutation(40).reshape(10, 4) * 2.5


def results():
    table = scores()
    return [
        record("rpau", row, s, 0, auc=table[i, j])
        for j, row in enumerate(SYSTEMS)
        for i, s in enumerate(SETS)
    ]


def ranking(found=None):
    ours = summarise(results() if found is None else found, "rpau", "auc")
    return Ranking(ours, published_table("rpau", "auc"))


def text(cell):
    return cell.text if isinstance(cell, Bold) else cell


def test_mean_ranks():
    rows = {row[0]: [text(c) for c in row[1:]] for row in rank_sheet(ranking(), "n", "t").rows}
    three = rankdata(-scores()[:, :3], axis=1).mean(axis=0)
    four = rankdata(-scores(), axis=1).mean(axis=0)
    for j, system in enumerate(SYSTEMS):
        assert rows[system][2] == (f"{three[j]:.2f}" if j < 3 else GAP)
        assert rows[system][3] == f"{four[j]:.2f}"
    # the printed rank, and that among the three systems that are here
    assert rows["KPCA"][0] == "9.90"
    assert rows["Min rule"][:3] == [GAP] * 3


def test_printed_ranks_and_p_values_stand_in_the_sheets():
    complete = [record("rpau", row, s, 0) for row in published_table("rpau").systems for s in SETS]
    rows = rank_sheet(ranking(complete), "n", "t").rows
    assert [text(row[1]) for row in rows] == [text(row[2]) for row in rows]
    assert text(rows[1][1]) == "2.75"
    tests = omnibus_sheet(ranking(complete), "n", "t").rows
    assert tests[0][5] == tests[1][5] == "1.091e-07"
    assert tests[1][1:5] == ["10", "11", "52.1045", "10"]


def test_skillings_and_mack_equals_friedman_without_gaps():
    row = omnibus_sheet(ranking(), "n", "t").rows[2]
    expected = friedmanchisquare(*scores()[:, :3].T)
    assert float(row[3]) == pytest.approx(expected.statistic, abs=1e-4)
    assert float(row[5]) == pytest.approx(expected.pvalue, rel=1e-3)
    assert float(row[6]) == pytest.approx(expected.pvalue, abs=0.05)
    without = omnibus_sheet(ranking(), "n", "t").rows[4]
    assert without[1] == "9"


def test_pairs():
    found = pair_sheet(ranking(), "n", "t")
    table = scores()
    row = next(row for row in found.rows if row[0] == "Sum rule")
    gap = table[:, 0] - table[:, 1]
    assert row[1] == f"{gap.mean():+.2f}"
    assert row[2] == f"{(gap > 0).sum()}/0/{(gap < 0).sum()}"
    assert float(row[3]) == pytest.approx(wilcoxon(gap, method="exact").pvalue, rel=1e-2)
    assert found.rules[0].startswith("Pure2 (interior point) against")


def test_a_system_without_results_is_a_gap():
    kept = [r for r in results() if r["row"] != "KPCA"]
    found = kept + [failure("rpau", "KPCA", s, 0) for s in SETS]
    rows = {row[0]: row for row in pair_sheet(ranking(found), "n", "t").rows}
    assert rows["KPCA"][1:5] == [GAP] * 4
    no_control = [r for r in results() if not r["row"].startswith("Pure2")]
    assert ranking(no_control).control() is None
    assert pair_sheet(ranking(no_control), "n", "t").rows

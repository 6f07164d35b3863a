"""The list of cells that are far off, exactly, on a hand-made case; and their reasons."""

import math
from dataclasses import replace

import pytest

from ocfuse.lab.paper.account import deviation_sheets
from ocfuse.lab.paper.deviations import (
    FLOOR,
    REASONS,
    Difference,
    differences,
    evidence,
    pooled,
    reason_of,
)
from ocfuse.lab.paper.published import published_table
from tests.lab.paper.records import record

NAN = math.nan


def cells(*found):
    return {(c.measure, c.system, c.set_name): c for c in differences(*found)}


def at(table, row, set_name, auc, gmean, best=99.0):
    """Return three repetitions about given means, with a deviation of 1."""
    return [
        record(table, row, set_name, s, auc=auc + d, gmean=gmean + d, best_gmean=best)
        for s, d in enumerate((-1.0, 0.0, 1.0))
    ]


def test_list_is_exact():
    # printed: LOF on D1 99.17 +- 0.7 and 92.83 +- 1.1, on D2 95.72 +- 2.8 and 86.80 +- 4.9
    std = {"D1": math.sqrt((1 + 0.7**2) / 2), "D2": math.sqrt((1 + 2.8**2) / 2)}
    # three repetitions of ours, ten of the paper
    error = {name: value * math.sqrt(1 / 3 + 1 / 10) for name, value in std.items()}
    results = [
        *at("rpau", "LOF", "D1", 99.17 - 2.01 * error["D1"], 92.83),
        *at("rpau", "LOF", "D2", 95.72 - 1.99 * error["D2"], 86.80 - 20),
        *at("pseudo-negative", "LOF", "D1", 99.17 - 2.01 * error["D1"], 92.83),
        *at("rpau", "Max rule", "D1", 10.0, 10.0),
    ]
    found = cells(results)
    assert len(found) == 4  # once each, though LOF is in two tables; nothing of what is ours
    far = {place for place, cell in found.items() if cell.is_far}
    assert far == {("auc", "LOF", "D1"), ("gmean", "LOF", "D2")}
    cell = found["auc", "LOF", "D1"]
    assert (cell.std, cell.error) == pytest.approx((std["D1"], error["D1"]))
    assert cell.difference == pytest.approx(-2.01 * error["D1"])
    assert not cell.is_far_out
    assert found["gmean", "LOF", "D2"].is_far_out
    reasons, listed = deviation_sheets(list(found.values()))
    assert [row[:3] for row in listed.rows] == [["D1", "LOF", "AUC"], ["D2", "LOF", "G-mean"]]
    assert [row[:3] for row in reasons.rows] == [["threshold", "0", "1"], ["unknown", "1", "0"]]


def test_pooled_deviation():
    assert pooled(0.0, 0.0) == FLOOR
    assert pooled(NAN, NAN) == FLOOR
    assert pooled(NAN, 3.0) == 3.0
    assert pooled(4.0, 3.0) == pytest.approx(math.sqrt(12.5))


CELL = Difference(
    *("auc", "D2", "Pure2 RPAU", "local", 97.0, 99.5, 0.5, 0.5, {"best_gmean": 95.0}),
    *(NAN, False, NAN, NAN, NAN, NAN),
)
MEMBER = replace(
    CELL, system="KPCA RPAU", group="member", ours=97.0, paper=80.0, lowest=90.0, highest=98.0
)
GMEAN = replace(
    CELL, measure="gmean", ours=60.0, paper=75.0, at={"best_gmean": 76.0}, auc_errors=0.0
)


@pytest.mark.parametrize(
    ("cell", "key"),
    [
        (replace(CELL, set_name="D4"), "glass"),
        (replace(CELL, set_name="D4", is_contradictory=True), "contradiction"),
        (replace(CELL, group="rival"), "quoted"),
        (CELL, "unknown"),
        (replace(CELL, linear=98.0), "beyond weights"),
        (replace(CELL, linear=99.2), "weights"),
        (replace(CELL, paper=90.0, members=3.0), "stronger members"),
        (replace(CELL, paper=90.0, members=-3.0), "unknown"),
        (MEMBER, "weaker than any candidate"),
        (replace(MEMBER, paper=92.0), "another candidate"),
        (replace(MEMBER, paper=99.0), "better than any candidate"),
        (replace(MEMBER, lowest=NAN, highest=NAN), "unknown"),
        (GMEAN, "threshold"),
        (replace(GMEAN, paper=90.0), "unknown"),
        (replace(GMEAN, paper=90.0, auc_errors=-5.0), "as the AUC"),
        (replace(GMEAN, paper=40.0), "threshold"),
        (replace(GMEAN, paper=40.0, auc_errors=5.0), "as the AUC"),
        (replace(GMEAN, paper=40.0, auc_errors=-5.0), "unknown"),
        (replace(CELL, system="LOF", set_name="D3", group="detector"), "neighbours"),
    ],
)
def test_reasons(cell, key):
    assert reason_of(cell).key == key
    assert isinstance(evidence(cell), str)


def test_reasons_have_words_and_the_last_fits_all():
    assert len({reason.key for reason in REASONS}) == len(REASONS)
    assert all(reason.text.endswith(".") for reason in REASONS)
    assert REASONS[-1].applies(CELL)


def test_bounds_reach_the_cells():
    results = [
        *at("rpau", "KPCA", "D1", 97.0, 90.0),
        *at("rpau", "Pure2 (interior point)", "D1", 97.0, 90.0),
        *at("rpau", "Single-best", "D1", 97.0, 90.0),
        *at("comparison", "Non-pure2", "D1", 97.0, 90.0),
    ]
    bounds = {("D1", "kpca lowest"): 95.0, ("D1", "kpca highest"): 99.0}
    bounds |= {
        ("D1", "gmm lowest"): 60.0,
        ("D1", "linear rpau"): 98.0,
        ("D1", "linear labels"): 99.5,
    }
    found = cells(results, bounds)
    assert (found["auc", "KPCA RPAU", "D1"].lowest, found["auc", "KPCA RPAU", "D1"].highest) == (
        95,
        99,
    )
    assert found["auc", "Single-best RPAU", "D1"].lowest == 60.0
    assert found["auc", "Pure2 RPAU", "D1"].linear == 98.0
    assert found["auc", "Non-pure2", "D1"].linear == 99.5
    assert math.isnan(found["auc", "KPCA RPAU", "D1"].linear)
    # one of the four members is here: its difference is the strength of the members
    printed, _ = published_table("rpau").cell("D1", "KPCA")
    assert found["auc", "Pure2 RPAU", "D1"].members == pytest.approx(97.0 - printed)

"""Ours beside the printed figures, recomputed by hand."""

import statistics

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.paper.beside import beside, is_highest, plain_sheet, sheet_beside, summarise
from ocfuse.lab.paper.published import published_table
from ocfuse.lab.paper.sheet import GAP, Bold
from tests.bench.records import failure, hand_made, record

RESULTS = [
    *(record("rpau", "LOF", "D1", s, auc=a) for s, a in enumerate((90.0, 91.5, 95.0))),
    *(record("rpau", "LOF", "D4", s, auc=60.0) for s in range(3)),
    *(record("rpau", "Max rule", "D1", s, auc=96.0) for s in range(3)),
    record("rpau", "Max rule", "D4", 0, auc=50.0),
    failure("rpau", "Max rule", "D4", 1),
    *(failure("rpau", "IF", "D1", s) for s in range(3)),
    *(record("rpau", "IF", "D4", s, auc=60.0) for s in range(2)),
]


def sheet():
    ours = summarise(RESULTS, "rpau", "auc")
    return sheet_beside(beside(ours, published_table("rpau", "auc")), "n", "t", "Note.")


def text(cell):
    return cell.text if isinstance(cell, Bold) else cell


def test_mean_and_deviation():
    ours = summarise(RESULTS, "rpau", "auc")
    assert (ours.sets, ours.systems) == (("D1", "D4"), ("LOF", "Max rule", "IF"))
    values = (90.0, 91.5, 95.0)
    assert ours.cell("D1", "LOF") == pytest.approx((sum(values) / 3, statistics.stdev(values)))
    np.testing.assert_array_equal(ours.counts, [[3, 3, 0], [3, 1, 2]])
    assert np.isnan(ours.cell("D1", "IF")).all()
    assert ours.cell("D4", "Max rule")[0] == 50.0
    assert np.isnan(ours.cell("D4", "Max rule")[1])  # one repetition has no deviation
    assert np.isnan(ours.cell("D9", "LOF")).all()
    np.testing.assert_array_equal(np.isnan(ours.columns(["LOF", "none"])), [[0, 1], [0, 1]])


def test_lines_of_the_sheet():
    found = sheet()
    assert list(found.header) == ["system", "", "D1", "D4 †", "mean"]
    deviation = statistics.stdev((90.0, 91.5, 95.0))
    rows = [[text(cell) for cell in row] for row in found.rows]
    assert rows[0] == ["LOF", "ours", f"92.17 ± {deviation:.2f}", "60.00 ± 0.00", "92.17"]
    # printed: 99.17 and 91.01; Glass is not in the mean
    assert rows[1][2:] == ["99.17 ± 0.70", "91.01 ± 4.30", "99.17"]
    assert rows[2][2:] == ["-7.00", "-31.01", "-7.00"]
    assert "point 25" in found.note


def test_a_missing_cell_is_a_gap_and_not_zero():
    found = sheet()
    ours, paper, difference = ([text(c) for c in row] for row in found.rows[3:6])
    assert ours == ["IF", "ours", GAP, "60.00 ± 0.00", GAP]
    assert paper[2] == "90.92 ± 1.60"
    assert difference[2] == GAP
    raw = dict(
        zip(found.raw[0], next(r for r in found.raw[1] if r[:2] == ("D1", "IF")), strict=True)
    )
    assert np.isnan(raw["ours"])
    assert raw["repetitions"] == 0
    line = next(row for row in found.csv().splitlines() if row.startswith("D1,IF"))
    assert line == "D1,IF,yes,,,0,90.92,1.6,,no"


def test_what_the_paper_lacks_is_below_a_rule():
    found = sheet()
    assert found.rules == {6: "ours, not in the paper"}
    assert [text(c) for c in found.rows[6]] == [
        "Max rule",
        "ours",
        "96.00 ± 0.00",
        "50.00",
        "96.00",
    ]
    assert len(found.rows) == 7


def test_only_the_best_of_ours_are_bold():
    bold = {(row[0], j) for row in sheet().rows for j, c in enumerate(row) if isinstance(c, Bold)}
    assert bold == {("Max rule", 2), ("LOF", 3), ("IF", 3), ("Max rule", 4)}


def test_equal_to_what_is_shown_is_equal():
    table = np.array([[1.001, 1.004, np.nan], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(is_highest(table), [[True, True, False], [False] * 3])


def test_plain_sheet():
    found = plain_sheet(summarise(hand_made(), "rpau", "ap"), "n", "t", "")
    assert list(found.header) == ["system", "D1", "D4 †", "D5", "mean"]
    assert all(len(row) == 5 for row in found.rows)


def test_no_record_of_a_table():
    with pytest.raises(InvalidInputError, match="'none'"):
        summarise(RESULTS, "none", "auc")

"""What limits the figures: counted from records by hand."""

import pytest

from ocfuse.lab.paper.account import bound, limit_lines, limit_sheets, once, unsolved
from tests.lab.paper.records import failure, hand_made, record


def fusion(system, set_name, seed, table="comparison", **choices):
    known = {
        "values": [1.0] * 4,
        "ties": [0, 2, 0, 0],
        "candidates": [0.6, 0.8, 0.9],
        "p": 2.0,
        "p_value": 0.9,
        "p_ties": 0,
        "gap": 1e-5,
        "solved": 1.0,
    }
    return record(table, system, set_name, seed) | {"choices": known | choices}


def rows(results, name):
    (sheet,) = [sheet for sheet in limit_sheets(results) if sheet.name == name]
    return [list(row) for row in sheet.rows]


RESULTS = [
    fusion("Pure1 RPAU", "D1", 0, gap=0.02, solved=0.5),
    fusion("Pure1 RPAU", "D5", 0),
    fusion("Pure1 RPAU", "D5", 1, solved=0.9, gap=2e-4),
    failure("comparison", "Pure1 RPAU", "D1", 1),
    fusion("Pure2 RPAU", "D1", 0, candidates=[-0.2, -0.1, 0.0], p_ties=8, p_value=0.0),
    # the same result in another table
    fusion("Pure2 (interior point)", "D1", 0, table="rpau", candidates=[-0.2, -0.1, 0.0]),
    fusion("Pure2 pseudo-negative", "D5", 0, candidates=[0.991, 1.0, 1.0]),
    fusion("Pure2 pseudo-negative", "D5", 1, candidates=[0.98, 1.0, 1.0]),
    fusion("Pure2 pseudo-negative", "D1", 0, candidates=[0.3, 0.54, 0.7]),
    fusion("Pure2 pseudo-negative", "D1", 1, candidates=[0.3, 0.56, 0.7]),
]


def test_a_result_in_two_tables_counts_once():
    assert len(list(once(RESULTS))) == len(RESULTS) - 2


def test_unsolved_fits_are_counted_by_system():
    assert unsolved(RESULTS) == (
        "2 of 8 fits of lp fusions have problems that did not reach the tolerance of the solver: "
        "Pure1 RPAU 2 of 3."
    )
    assert unsolved(RESULTS[4:]).startswith("0 of 5 fits")
    found = rows(RESULTS, "convergence")
    assert found[0] == ["Pure1 RPAU", "3", "2", "80.0", "0.02"]
    assert [row[0] for row in found] == ["Pure1 RPAU", "Pure2 RPAU", "Pure2 pseudo-negative"]
    lost = rows([fusion("Pure1 RPAU", "D1", 0, gap=None, solved=0.0)], "convergence")
    assert lost[0][-1] == "-"


def test_criteria_that_cannot_tell():
    assert rows(RESULTS, "criteria") == [
        ["RPAU", "D1", "-0.200", "-0.100", "0.000", "-", "-", "1", "0.5"],
        ["pseudo-negatives", "D1", "0.300", "0.550", "0.700", "0", "1", "0", "0.5"],
        ["pseudo-negatives", "D5", "0.986", "1.000", "1.000", "1", "0", "0", "0.5"],
    ]
    assert limit_lines(RESULTS)[0] == (
        "RPAU is the same for all nine norms, at one percentile rho or another, in 1 of 1 "
        "repetitions of the local fusion, which then takes p = 2; an end of the grid is chosen in "
        "0. The best value is 0, no validation row being outside, in 1."
    )
    (line,) = [line for line in limit_lines(RESULTS) if "chooses by" in line]
    assert line == (
        "The AUC that chooses by pseudo-negatives, of 4 repetitions: saturated in 1 (D5 1), near "
        "chance in 1 (D1 1)."
    )


def test_repeated_rows_are_told_from_the_records():
    results = hand_made()
    for entry in results:
        share = {"D1": 3.0 + entry["seed"], "D4": 0.0, "D5": 60.0}[entry["set"]]
        entry["repeated"] = {"normals": share, "anomalies": 0.0}
    line = next(line for line in limit_lines(results) if "equal a training normal" in line)
    assert "of the normals D5 60 %, D1 4 %; of the anomalies under 1 % anywhere." in line
    assert rows(results, "rows")[0] == ["D1", "4.0", "0.0", "99", "5.0"]


def test_few_validation_rows_cannot_promise():
    results = hand_made()
    assert "strictly a conformal promise." in limit_lines(results)[-1]
    for entry in results:
        entry["n_validation"] = {"D1": 99, "D4": 15, "D5": 10}[entry["set"]]
    assert "6.2 % on D4 (15 rows), 9.1 % on D5 (10 rows)." in limit_lines(results)[-1]


@pytest.mark.parametrize(("n", "rate"), [(10, 1 / 11), (14, 1 / 15), (19, 0.05), (44, 2 / 45)])
def test_bound(n, rate):
    assert bound(n) == pytest.approx(rate)

"""Ranks and tests of our results, and critical-difference diagrams, parsed as XML."""

import itertools
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.lab.paper.beside import summarise
from ocfuse.lab.paper.published import published_table
from ocfuse.lab.paper.ranking import (
    Ranking,
    critical_difference_diagram,
    joined,
    omnibus_sheet,
    pair_sheet,
    rank_sheet,
)
from ocfuse.lab.paper.sheet import GAP, Bold
from ocfuse.stats import critical_difference, mean_ranks
from tests.lab.paper.records import failure, record

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


SVG = "{http://www.w3.org/2000/svg}"


def parsed(k, n_sets=12, seed=0, names=None, **options):
    table = np.random.default_rng(seed).random((n_sets, k)) + np.linspace(0, 0.4, k)
    names = names or [f"system <{j}>" for j in range(k)]
    return (
        table,
        names,
        ElementTree.fromstring(critical_difference_diagram(table, names, **options)),
    )


def texts(root):
    return list(root.iter(SVG + "text"))


def label_of(root, name):
    (found,) = [element for element in texts(root) if element.text.startswith(name + " (")]
    return found


def test_bars_join_what_is_within_the_critical_difference():
    ranks = np.array([1.0, 1.5, 3.0, 3.2, 6.0])
    assert joined(ranks, 1.0) == [(0, 1), (2, 3)]
    assert joined(ranks, 2.1) == [(0, 2), (1, 3)]
    assert joined(ranks, 9.0) == [(0, 4)]
    assert joined(ranks, 0.1) == []


@pytest.mark.parametrize("k", [2, 7, 28])
def test_every_system_is_named_with_its_mean_rank(k):
    table, names, root = parsed(k, title="Ranks & more")
    for name, rank in zip(names, mean_ranks(table), strict=True):
        assert label_of(root, name).text == f"{name} ({rank:.2f})"
    assert root.find(SVG + "title").text == "Ranks & more"
    assert all(name in root.find(SVG + "desc").text for name in names)


@pytest.mark.parametrize("k", [2, 7, 28, 60])
def test_nothing_overlaps_or_leaves_the_sheet(k):
    names = [f"a system of a rather long name, number {j}" for j in range(k)]
    _, _, root = parsed(k, names=names)
    _, _, width, height = map(float, root.get("viewBox").split())
    boxes = []
    for element in texts(root):
        long, x, y = 6.5 * len(element.text), float(element.get("x")), float(element.get("y"))
        start = {"start": x, "middle": x - long / 2, "end": x - long}
        left = start[element.get("text-anchor", "start")]
        assert left >= 0
        assert left + long <= width
        assert 10 <= y <= height
        boxes.append((left, left + long, y))
    for (a, b, y), (c, d, z) in itertools.combinations(boxes, 2):
        assert b <= c or d <= a or abs(y - z) >= 13


def test_ranks_are_in_their_place_on_the_axis():
    table, _, root = parsed(9)
    figures = {
        int(element.text): float(element.get("x"))
        for element in texts(root)
        if element.text.isdigit()
    }
    slope, start = np.polyfit(list(figures), list(figures.values()), 1)
    starts = sorted(float(path.get("d").split()[1]) for path in root.iter(SVG + "path"))
    expected = start + slope * np.sort(mean_ranks(table))
    np.testing.assert_allclose(starts, expected, atol=0.2)
    bars = [line for line in root.iter(SVG + "line") if line.get("stroke-width") == "4"]
    gap = critical_difference(9, 12)
    assert len(bars) == len(joined(np.sort(mean_ranks(table)), gap)) > 0
    for bar in bars:
        assert float(bar.get("x2")) - float(bar.get("x1")) - 8 <= slope * gap + 0.3


def test_highlighted_systems_are_bold_and_coloured():
    _, names, root = parsed(6, highlight=["system <1>", "system <4>"])
    for name in names:
        is_shown = name in ("system <1>", "system <4>")
        label = label_of(root, name)
        assert (label.get("font-weight") == "bold") == is_shown
        assert (label.get("fill") == "#0072B2") == is_shown


def test_gaps_are_allowed_and_level_systems_too():
    table = np.array([[1.0, np.nan, 2.0], [1.0, 2.0, 3.0]])
    ElementTree.fromstring(critical_difference_diagram(table, ["a", "b", "c"]))
    ElementTree.fromstring(critical_difference_diagram(np.ones((3, 2)), ["a", "b"]))


def test_refuses_names_that_do_not_fit():
    table = np.ones((3, 2))
    with pytest.raises(InvalidInputError, match="all 2 systems"):
        critical_difference_diagram(table, ["a"])
    with pytest.raises(InvalidInputError, match=r"highlight must hold names of systems. Got c\."):
        critical_difference_diagram(table, ["a", "b"], highlight=["c"])
    with pytest.raises(InvalidTypeError, match="lists of names"):
        critical_difference_diagram(table, ["a", "b"], highlight="a")
    for names, highlight in (([1, 2], ()), (["a", None], ()), (["a", "b"], [3])):
        with pytest.raises(InvalidTypeError, match="must hold strings"):
            critical_difference_diagram(table, names, highlight=highlight)

"""The page of results says what the results say."""

import json

import numpy as np
import pytest

from benchmarks.robots.measures import Scored, measure
from benchmarks.robots.our_systems import OURS, Learned
from benchmarks.robots.page import MOTION_PAGE, PAGE, RESULTS, Results, page, with_motion
from benchmarks.robots.thresholds import by_rule
from tests.benchmarks.test_robots import recordings

NAMES = {
    "camera": ("KPCA RPAU", "GP RPAU", "pooled, recipe", "ours: knn alone", "motion U-Net", OURS),
    "joints": ("GMM RPAU", OURS),
    "both": ("SVDD pseudo-negative", "motion U-Net", OURS),
}


@pytest.fixture(scope="module")
def results():
    """Return results of systems that guess."""
    rng, data = np.random.default_rng(0), recordings()
    scored = [
        Scored(view, name, rng.normal(size=40), rng.normal(size=60))
        for view, names in NAMES.items()
        for name in names
    ]
    learned = {s.view: Learned([s], rng.normal(size=80), {}) for s in scored if s.name == OURS}
    return Results(
        {"systems": [measure(s, data) for s in scored], "thresholds": by_rule(learned, data)}
    )


def row(text, words):
    [line] = [line for line in text.splitlines() if line.startswith(f"| {words} |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_means_are_those_of_the_results(results):
    expected = [
        f"{results.mean(view, OURS, level):.1f}" for view in NAMES for level in ("frame", "run")
    ]
    assert row(page(results), "**ours**") == expected


def test_who_was_not_there_has_an_empty_cell(results):
    cells = row(page(results), "motion U-Net, after Thoduka et al. (2021)")
    assert [bool(cell) for cell in cells] == [True, True, False, False, True, True]


def test_the_best_member_is_the_best(results):
    best = max(results.mean("camera", name) for name in NAMES["camera"][:2])
    assert row(page(results), "best member of the paper (pure, in hindsight)")[0] == f"{best:.1f}"


def test_the_figures_of_the_rival_are_renewed_and_nothing_else(results):
    text = "Before.\n| camera | 1.0 | 2.0 |\n| camera and joints | 3.0 | 4.0 |\nAfter.\n"
    renewed = with_motion(text, results)
    for words, view in (("camera", "camera"), ("camera and joints", "both")):
        cells = [f"{results.mean(view, 'motion U-Net', level):.1f}" for level in ("frame", "run")]
        assert row(renewed, words) == cells
    assert renewed.splitlines()[0] == "Before."
    assert renewed.splitlines()[-1] == "After."


def test_the_pages_are_made_from_the_results_that_are_here():
    data = json.loads(RESULTS.read_text(encoding="utf-8"))["data"]
    if "thresholds" not in data:
        pytest.skip("the results are older than this page: run make bench-robots")
    here = Results(data)
    assert PAGE.read_text(encoding="utf-8") == page(here)
    text = MOTION_PAGE.read_text(encoding="utf-8")
    assert text == with_motion(text, here)

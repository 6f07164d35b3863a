"""The instrument that scale is measured with: rows, processes, rates, tables."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from benchmarks.scale import child, growth
from benchmarks.scale.curve import Line, curves
from benchmarks.scale.data import feature_anomalies, features, features_and_fresh, planted
from benchmarks.scale.rates import MARGIN, fitted, with_rates
from benchmarks.scale.task import Task, rows_of, system_of
from ocfuse import FusedDetector
from ocfuse.ensemble import plan


def test_planted_rows():
    few, many = planted(100, 1_000), planted(300, 1_000)
    assert few.X.shape == (100, 64)
    np.testing.assert_array_equal(few.test, many.test)  # what is tested does not depend on n
    kinds, counts = np.unique(few.kind, return_counts=True)
    assert dict(zip(kinds.tolist(), counts.tolist(), strict=True)) == {
        "dependency": 33,
        "global": 33,
        "local": 33,
        "normal": 901,
    }
    assert few.is_anomaly.sum() == 99
    assert not {tuple(row) for row in many.X} & {tuple(row) for row in many.test}


def test_features_are_positive_skewed_and_fresh_rows_are_of_their_source():
    X, fresh = features_and_fresh(3_000, 3_000, 16)
    assert (X > 0).all()
    assert np.mean(X, axis=0).mean() > np.median(X, axis=0).mean()
    np.testing.assert_allclose(X.mean(axis=0), fresh.mean(axis=0), rtol=0.2)
    assert not {tuple(row) for row in X} & {tuple(row) for row in fresh}
    np.testing.assert_array_equal(features(50, 16), features(50, 16))


def test_anomalies_keep_columns_and_break_rows():
    rows = features(500, 16)
    strange = feature_anomalies(rows)
    assert 0.15 < np.mean(strange != rows) < 0.3
    for j in range(16):
        assert set(strange[:, j]) <= set(rows[:, j])


def test_half_of_the_feature_rows_that_are_scored_are_anomalies():
    rows = rows_of(Task("any", "features", 50, 8, n_test=100))
    assert rows.X.shape == (50, 8)
    assert rows.is_anomaly.sum() == 50
    assert rows.test.shape == (100, 8)


@pytest.mark.slow
def test_a_process_that_takes_too_long_or_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(child, "CACHE", tmp_path)
    found = child.run_task(Task("IsolationForest", "planted", 100, n_test=1_000))
    assert found["auc"] > 50
    assert found["peak"] >= found["before"] > 0
    # it is stored, and not measured again
    assert child.run_task(Task("IsolationForest", "planted", 100, n_test=1_000)) == found
    assert child.run_task(Task("LocalOutlierFactor", "planted", 30_000, cpu=1))["failure"] == (
        "more than 1 CPU s"
    )
    assert "No module named" in child.run_child("benchmarks.scale.unheard_of", [])["failure"]
    with pytest.raises(KeyError, match="unheard of"):
        system_of("unheard of")


def test_rates_are_enough_in_bytes_and_in_the_middle_in_seconds():
    rng = np.random.default_rng(0)
    found = []
    for n in (10, 100, 1_000, 10_000):
        counts = {"start": 1.0, "cell": float(n), "square": float(n * n)}
        bytes_ = 5e3 + 16.0 * n
        seconds = (1e-3 + 2e-6 * n + 1e-9 * n * n) * rng.uniform(0.8, 1.25)
        held = {"start": 1.0, "cell": float(n)}
        found.append({"peak": bytes_, "fit": seconds, "counts": {"peak": held, "fit": counts}})
    for kind, low, high in (("peak", MARGIN, MARGIN), ("fit", 0.8, 1.25)):
        rate = fitted(found, kind)
        ratio = [
            sum(rate[name] * amount for name, amount in one["counts"][kind].items()) / one[kind]
            for one in found
        ]
        assert low - 1e-6 <= min(ratio) <= max(ratio) <= high + 1e-6
        assert min(rate.values()) >= 0


def test_bytes_that_are_counted_are_planned_once_at_least():
    found = [
        {"peak": 1e6 * n, "counts": {"peak": {"start": 1.0, "cell": 1e6 * n, "rare": 10.0}}}
        for n in (1, 10, 100)
    ]
    rate = fitted(found, "peak")
    assert rate["cell"] == pytest.approx(MARGIN)
    assert rate["rare"] == pytest.approx(1)
    assert rate["start"] == 0


def test_rates_are_written_into_the_plan():
    source = Path(plan.__file__).read_text()
    written = with_rates(source, plan.RATES | {"model": {"start": 1e-9, "cell": 2.5}})
    found = {"__name__": plan.__name__}
    exec(compile(written, "plan", "exec"), found)
    assert found["RATES"]["model"] == {"start": 1e-9, "cell": 2.5}
    assert found["RATES"]["fit"] == plan.RATES["fit"]
    rest = (text[text.index("class Job") :] for text in (source, written))
    assert next(rest) == next(rest)


@pytest.mark.parametrize("name", growth.OURS)
def test_ours_can_be_had_by_name(name):
    assert isinstance(system_of(name), FusedDetector)


def test_a_table_says_what_was_not_run():
    done = {"fit": {"cpu": 2.0}}
    cells = {"a": {10: done, 20: done}, "b": {10: {"failure": "more than 9 CPU s"}}}
    table = growth.table("Fit", cells, lambda found: str(found["fit"]["cpu"]))
    assert table.rows == [["a", "2.0", "2.0"], ["b", "more than 9 CPU s", "not run"]]


def test_curves_are_drawn_to_scale():
    lines = [Line("ours", [(1_000, 1.0), (10_000, 10.0), (100_000, 100.0)], True)]
    tree = ElementTree.fromstring(curves({"fit": lines}, "rows"))
    dots = [
        (float(dot.get("cx")), float(dot.get("cy"))) for dot in tree.iter() if "circle" in dot.tag
    ]
    assert len(dots) == 3
    (ax, ay), (bx, by), (cx, cy) = dots
    assert bx - ax == pytest.approx(cx - bx)
    assert ay - by == pytest.approx(by - cy)
    assert ay > cy

"""Comparisons on a user's own rows: fair splits, shared members, plain words."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ocfuse import FusedDetector, show_progress
from ocfuse.compare import DEFAULT, FUSIONS, RULES, Comparison, Draws, SharedFit, compare
from ocfuse.detectors import pool
from ocfuse.detectors.neighbours import KNN
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError, InvalidTypeError
from ocfuse.fusion import rules


def rows(n_normals=120, n_anomalies=30, seed=0):
    """Return a ball of normals and anomalies around a place beside it."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(n_normals, 3)), rng.normal(2, 1, size=(n_anomalies, 3))])
    return X, np.repeat([1, -1], [n_normals, n_anomalies])


@pytest.fixture(scope="module")
def found():
    return compare(*rows(), members="light", n_splits=3)


def test_everything_is_compared(found):
    members = [name for name, _ in pool.make_pool("light")]
    assert found.systems == [DEFAULT, *members, *RULES, *FUSIONS]
    assert len(found.records) == 3 * len(found.systems)
    assert {record["kind"] for record in found.records} == {"detector", "member", "rule", "fusion"}
    for record in found.records:
        assert "failure" not in record
        assert 0 <= record["false_alarms"] <= 1
        assert record["auc"] >= record["gmean"] ** 2 - 1e-12
        assert record["seconds"] >= 0


def test_the_default_detector_is_the_trust_fusion_of_the_shared_members(found):
    areas = dict(zip(found.systems, found.values("auc").T, strict=True))
    np.testing.assert_array_equal(areas[DEFAULT], areas["trust"])


def test_normals_of_a_group_are_never_parted():
    X, y = rows()
    groups = np.arange(len(y)) // 7 % 11
    for split in range(5):
        drawn = Draws(X, y, 1000, split, groups).draw(split)
        fresh = drawn.test[drawn.is_normal]
        parts = [set(groups[part]) for part in (drawn.train, drawn.validation, fresh)]
        assert all(parts)
        assert len(set.union(*parts)) == sum(map(len, parts)) == 11
        assert sum(map(len, (drawn.train, drawn.validation, fresh))) == (y == 1).sum()
        assert (~drawn.is_normal).sum() == (y == -1).sum()
    with pytest.raises(InvalidInputError, match=r"At least 5 groups.*Got 2"):
        Draws(X, y, 1000, 0, groups % 2)


def test_shared_members_are_those_of_a_detector_fitted_alone():
    X, y = rows()
    split = Draws(X, y, 1000, 0).draw(0)
    detector = FusedDetector("light", fusion="median", random_state=5)
    fused = SharedFit(X, split, detector).fuse("median")
    alone = detector.fit(X[split.train])
    np.testing.assert_allclose(fused.test, alone.score_samples(X[split.test]), rtol=1e-10)


@pytest.mark.slow
def test_members_are_fitted_once_for_all_rules_and_fusions(monkeypatch):
    fitted = []
    original = pool.Pool.fit
    monkeypatch.setattr(
        pool.Pool, "fit", lambda self, *a, **k: (fitted.append(1), original(self, *a, **k))[1]
    )
    compare(*rows(), members=[KNN(1), KNN(5)], n_splits=2)
    # a pool for all of them and one inside the default detector, in each split
    assert len(fitted) == 4


def test_summary_is_the_mean_over_the_splits(found):
    summary = found.summary()
    means = [row["auc"] for row in summary]
    assert means == sorted(means, reverse=True)
    assert np.mean([row["rank"] for row in summary]) == pytest.approx((len(summary) + 1) / 2)
    for row in summary:
        values = [r["auc"] for r in found.records if r["system"] == row["system"]]
        assert row["auc"] == pytest.approx(np.mean(values))
        assert row["auc_sd"] == pytest.approx(np.std(values, ddof=1))
        assert (row["failed"], row["failure"]) == (0, None)


@pytest.mark.slow
def test_a_seed_fixes_everything_but_seconds(found):
    again = compare(*rows(), members="light", n_splits=3)
    other = compare(*rows(), members="light", n_splits=1, random_state=1)
    for measure in ("auc", "gmean", "false_alarms"):
        np.testing.assert_array_equal(found.values(measure), again.values(measure))
    assert (found.values("auc")[:1] != other.values("auc")).any()


def test_no_label_of_a_test_row_reaches_a_system():
    X, y = rows()
    other = X.copy()
    other[y < 0] += 100.0  # anomalies elsewhere change what is measured, and no score of normals
    detector = FusedDetector("light", random_state=0)
    split = Draws(X, y, 1000, 0).draw(0)
    first, second = (SharedFit(table, split, detector) for table in (X, other))
    for fusion in ("competence", "lp", "stacking"):
        np.testing.assert_array_equal(
            first.fuse(fusion).test[split.is_normal], second.fuse(fusion).test[split.is_normal]
        )


def test_splits_part_the_normals_and_test_all_anomalies():
    X, y = rows(100, 20)
    draws = Draws(X, y, 1000, 0)
    for split in (draws.draw(0), draws.draw(1)):
        everything = np.concatenate([split.train, split.validation, split.test])
        np.testing.assert_array_equal(np.sort(everything), np.arange(120))
        assert (len(split.train), len(split.validation)) == (60, 20)
        assert (y[split.train] > 0).all()
        assert (y[split.validation] > 0).all()
        np.testing.assert_array_equal(split.is_normal, y[split.test] > 0)
    assert set(draws.draw(0).train) != set(draws.draw(1).train)


def test_large_tables_are_sampled():
    X, y = rows(300, 100)
    split = Draws(X, y, 50, 0).draw(0)
    assert (len(split.train), len(split.validation), len(split.test)) == (30, 10, 10 + 50)


def test_rows_with_unknown_labels_are_left_out():
    X, y = rows()
    y[::7] = 0
    draws = Draws(X, y, 1000, 0)
    split = draws.draw(0)
    used = np.concatenate([split.train, split.validation, split.test])
    assert (y[used] != 0).all()
    assert draws.n_normals == (y > 0).sum()


@pytest.mark.slow
def test_a_gap_that_training_had_not_is_judged_as_a_detector_judges_it():
    X, y = rows()
    X[-1, 0] = np.nan
    found = compare(pd.DataFrame(X), y, members="light", n_splits=2)
    assert found.n_judged == 2
    assert found.tested == [(24, 30), (24, 30)]
    assert "24 other normals and 30 of 30 anomalies are tested" in found.notes()[0]
    assert found.notes()[-1].startswith("2 tested rows, over all splits, had a gap")
    X[y < 0, 0] = np.nan
    found = compare(X, y, members="light", n_splits=1)
    assert found.n_judged == 30
    assert all(row["auc"] is not None for row in found.summary())


@pytest.mark.slow
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
def test_categories_and_gaps_of_a_data_frame(make):
    X, y = rows()
    X[::5, 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["mode"] = np.where(np.arange(len(y)) % 2, "on", "off")
    found = compare(make(frame), y, members="light", n_splits=1)
    assert found.n_judged == 0
    assert all(row["auc"] > 0.5 for row in found.summary())
    assert found.summary()[0]["auc_sd"] is None  # one split has no deviation


@pytest.mark.slow
def test_a_failing_rule_is_named_and_the_others_go_on(monkeypatch):
    def refuse(self, Z, X):
        raise ValueError("no good")

    monkeypatch.setattr(rules.MedianRule, "_fuse", refuse)
    found = compare(*rows(), members="light", n_splits=2)
    last = found.summary()[-1]
    assert (last["system"], last["auc"], last["failed"]) == ("median", None, 2)
    assert last["failure"] == "ValueError: no good"
    assert "median" not in found.level()


@pytest.mark.parametrize(("n_normals", "n_anomalies"), [(29, 30), (120, 4), (120, 0)])
def test_too_few_rows(n_normals, n_anomalies):
    message = f"At least 30 rows .* and 5 labelled .* Got {n_normals} and {n_anomalies}"
    with pytest.raises(InvalidInputError, match=message):
        compare(*rows(n_normals, n_anomalies))


@pytest.mark.slow
def test_few_rows_are_told():
    with pytest.warns(FewSamplesWarning, match=r"30 normals leave 6 .* Use at least 95 normals"):
        compare(*rows(30, 40), members=[KNN(1)], n_splits=1)
    with pytest.warns(FewSamplesWarning, match="6 tested anomalies are few: each is worth 0.17"):
        compare(*rows(120, 6), members=[KNN(1)], n_splits=1)
    with pytest.warns(FewSamplesWarning, match="5 tested anomalies are few: each is worth 0.20"):
        found = compare(*rows(120, 5), members=[KNN(1)], n_splits=1)
    assert found.notes()[0].startswith("1 random split of the same rows")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"n_splits": 0}, InvalidInputError),
        ({"n_splits": 2.5}, InvalidTypeError),
        ({"max_rows": 10}, InvalidInputError),
        ({"random_state": -1}, InvalidInputError),
        ({"false_alarm_rate": 1.5}, InvalidInputError),
    ],
)
def test_wrong_settings(wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        compare(*rows(), **wrong)


def test_what_is_not_told_from_the_best():
    areas = {"a": [0.90, 0.91, 0.92], "b": [0.91, 0.89, 0.92], "c": [0.80, 0.81, 0.82]}
    records = [
        {"split": i, "system": name, "kind": "rule", "auc": value}
        for name, values in areas.items()
        for i, value in enumerate(values)
    ]
    found = Comparison(records, 100, 10, 3, 0.05)
    assert found.level() == ["a", "b"]
    notes = " ".join(found.notes())
    assert "no test of significance holds" in notes
    assert "Not told from the best here: a, b." in notes


@pytest.mark.slow
def test_progress_is_told():
    steps = []
    with show_progress(lambda *step: steps.append(step)):
        compare(*rows(), members=[KNN(1)], n_splits=2)
    assert steps == [
        ("compare", "split 1", 0, 2),
        ("compare", "split 2", 1, 2),
        ("compare", "done", 2, 2),
    ]


def test_a_comparison_is_a_table_in_notebooks_and_as_a_frame(found):
    frame = found.to_frame()
    assert frame["system"].tolist() == [row["system"] for row in found.summary()]
    page = found._repr_html_()
    assert page.startswith("<table><thead><tr><th>system</th><th>kind</th><th>AUC</th>")
    assert page.count("<tr>") == 1 + len(frame)
    assert page.count("<li>") == len(found.notes())


def test_names_of_systems_are_no_html():
    records = [
        {"split": 0, "system": name, "kind": "member", "auc": 0.5, "failure": "no"}
        for name in ("<b>", "knn")
    ]
    assert "<b>" not in Comparison(records, 10, 5, 1, 0.05)._repr_html_()

"""What a report shows is what the detector says, and no more is computed than shown."""

import numpy as np
import polars as pl
import pytest

from ocfuse import FusedDetector
from ocfuse.ensemble import report
from ocfuse.ensemble.report import report_data
from ocfuse.exceptions import InvalidInputError, SuspectRowsWarning
from ocfuse.explain import readable
from ocfuse.report import words
from tests.report import examples

#: The rows of the example hold a category that training has not.
pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")


@pytest.fixture(scope="module")
def data():
    return examples.full_data()


def test_scores_and_alarms_are_the_detectors(data):
    detector, rows = examples.fitted(), examples.new_rows()
    assert np.array_equal(data.scores, detector.score_samples(rows))
    assert np.array_equal(data.p_values, detector.p_values(rows))
    assert np.array_equal(data.is_alarm, detector.predict(rows) < 0)


def test_the_lowest_rows_are_explained(data):
    assert np.array_equal(data.rows, np.argsort(data.scores, kind="stable")[: len(data.rows)])
    assert len(data.rows) == max(data.is_alarm.sum(), report.FEWEST_EXPLAINED)
    assert np.allclose(data.explanation.score, data.scores[data.rows])


def test_readings_are_values_of_the_tables(data):
    rows, training = examples.new_rows(), examples.normal_rows(200, 0)
    for i, row in enumerate(data.rows):
        for reading in data.readings[i]:
            assert reading.cell == rows[reading.name][row]
            assert readable(rows[reading.name][row])[:4] == reading.value[:4]
            theirs = training[reading.name].sort_values(ignore_index=True)
            if reading.name == examples.HOSTILE:
                assert "open (" in reading.usual
            else:
                assert reading.judgement.facts == {"low": theirs[5], "high": theirs[194]}
        costs = [reading.cost for reading in data.readings[i] if not reading.is_new]
        assert costs == sorted(costs, reverse=True)


def test_gaps_and_unknown_categories_are_readable():
    values = np.random.default_rng(0).normal(size=40)
    column = [None if i == 1 else value for i, value in enumerate(values.tolist())]
    frame = pl.DataFrame({"a": column, "b": ["x", None, "y", "x"] * 10})
    detector = FusedDetector("light", random_state=0).fit(frame)
    assert detector.explain(frame[:2]).values == [[values[0], "x"], [None, None]]
    assert "missing" in detector.report(frame).html
    assert [readable(value) for value in (None, np.nan, 1 / 3, "ab")] == [
        "missing",
        "missing",
        "0.3333",
        "ab",
    ]


def test_work_is_bounded(monkeypatch):
    monkeypatch.setattr(report, "MOST_SCORED", 0)
    monkeypatch.setattr(report, "MOST_POINTS", 30)
    few = report_data(examples.fitted(), examples.new_rows(), title="")
    assert len(few.rows) == report.FEWEST_EXPLAINED
    assert len(few.embedding.points) <= 60 + len(few.rows)
    new = few.embedding.rows[few.embedding.is_new]
    assert set(few.rows) <= set(new)


def test_map_tells_anomalies_from_normal_rows(data):
    points, is_new, rows = data.embedding.points, data.embedding.is_new, data.embedding.rows
    odd = is_new & (rows >= examples.N_NORMAL)
    centre = points[~is_new].mean(axis=0)
    far = np.linalg.norm(points - centre, axis=1)
    assert far[odd].min() > np.median(far[~is_new])


@pytest.mark.parametrize("n_columns", [1, 2])
def test_few_columns_and_a_single_row(n_columns):
    rng = np.random.default_rng(0)
    detector = FusedDetector("light", random_state=0).fit(rng.normal(size=(60, n_columns)))
    page = detector.report(np.full((1, n_columns), 9.0))
    assert "1 of 1 row raises an alarm" in page.html


def test_names_and_times_must_fit():
    detector, rows = examples.fitted(), examples.new_rows()
    for wrong in ({"ids": ["a"]}, {"feature_names": ["a"]}, {"time": [1.0]}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            detector.report(rows, **wrong)


def test_rows_are_called_as_in_the_data_frame():
    rows = examples.new_rows().set_axis([f"r{i}" for i in range(68)])
    assert report_data(examples.fitted(), rows, title="").ids[:2] == ["r0", "r1"]


def test_card_tells_the_two_tables_apart(data):
    name = "SHA-256 of the rows of this report, as the members see them"
    first = data.card[name]
    assert len(first) == 64
    assert first != data.card["SHA-256 of the rows learned from, as the members see them"]
    assert first == examples.bare_data().card[name]
    assert data.card[examples.HOSTILE] == examples.HOSTILE


def test_labels_and_times_that_say_nothing_are_left_out_with_a_remark():
    n = len(examples.new_rows())
    nothing = {"y": np.zeros(n), "time": np.full(n, np.datetime64("NaT", "ms"))}
    data = report_data(examples.fitted(), examples.new_rows(), title="", **nothing)
    assert data.labels is None
    assert data.times is None
    assert [remark.split(":")[0] for remark in data.remarks[-2:]] == [
        "No row has a label that says normal or anomaly",
        "No row has a time that can be read",
    ]


def test_groups_are_what_the_page_counts():
    rows = examples.normal_rows(200, 0)
    detector = FusedDetector("light", false_alarm_rate=0.1, random_state=0)
    detector.fit(rows, groups=np.arange(200) // 20)
    data = report_data(detector, examples.new_rows(), title="")
    assert (data.n_groups, data.n_independent) == (10, 10)
    page = detector.report(examples.new_rows()).html
    assert "in 9 of 10 cases with 10 groups." in page
    assert "count groups, not rows" in page
    assert examples.bare_data().n_independent == len(examples.fitted().normal_scores_)
    np.testing.assert_array_equal(data.p_values, detector.p_values(examples.new_rows()))
    assert data.threshold_rate == detector.threshold_rate_
    detector.calibrate(rows)
    assert report_data(detector, rows, title="").n_groups is None


def test_what_was_left_out_and_what_is_suspect_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[7] = 1e4
    detector = FusedDetector("light", random_state=0).fit(X)
    data = report_data(detector, X, title="")
    listed = data.card["Training rows left out, too far outside"]
    assert listed == "1 (of the training table, counted from 0: 7)"
    # one row of the table was not learned from, and the others need not be told apart
    assert any("learned from" in remark for remark in data.remarks)
    assert report_data(detector, X + 0.1, title="").remarks == []


def test_a_group_far_outside_is_told():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(180, 3)), 40 + rng.normal(size=(20, 3))])
    with pytest.warns(SuspectRowsWarning, match="20 of 200"):
        detector = FusedDetector("light", random_state=0).fit(X)
    remarks = report_data(detector, X[:30], title="").remarks
    assert len(remarks) == 1
    assert "20 of 200 training rows lie far from the others" in remarks[0]


def test_members_that_failed_are_told(monkeypatch):
    detector = examples.fitted()
    monkeypatch.setattr(detector.pool_, "dropped_", {"knn-9": "Too few rows."})
    (remark,) = report_data(detector, examples.new_rows(), title="").remarks
    assert remark == "Member knn-9 failed in training and is not used: Too few rows."


def test_a_moved_threshold_says_nothing_of_too_few_rows():
    detector, rows = examples.fitted(), examples.new_rows()
    before = detector.offset_, detector.threshold_rate_
    detector.set_threshold(0.3)
    try:
        data = report_data(detector, rows, title="")
        assert data.threshold_rate == pytest.approx(detector.threshold_rate_)
        assert "too few" not in " ".join(words.notes(data))
    finally:
        detector.offset_, detector.threshold_rate_ = before


def test_reporting_changes_nothing_but_the_clock():
    detector = examples.fitted()
    before = detector.offset_, detector.score_samples(examples.new_rows()).tolist()
    first, second = (detector.report(examples.new_rows()).html for _ in range(2))
    assert (detector.offset_, detector.score_samples(examples.new_rows()).tolist()) == before
    assert sum(a != b for a, b in zip(first.split("\n"), second.split("\n"), strict=True)) <= 1

"""The sentences say what the numbers say."""

from dataclasses import replace

import numpy as np
import pytest

from ocfuse.report import words
from ocfuse.report.data import ReportData
from ocfuse.scores import ConformalCalibrator
from tests.report import examples


def with_alarms(share, n=1000, rate=0.05) -> ReportData:
    """Rows of which a share raises an alarm."""
    scores = np.where(np.arange(n) < share * n, -1.0, 1.0)
    normal = np.where(np.arange(999) < rate * 1000 - 1, -2.0, 1.0)
    changes = {"offset": 0.0, "calibrator": ConformalCalibrator().fit(normal)}
    return replace(examples.bare_data(), scores=scores, ids=[str(i) for i in range(n)], **changes)


def with_left_out(data, n_left_out) -> ReportData:
    """The same, with so many training rows left out."""
    return replace(data, calibrator=ConformalCalibrator().fit(data.normal_scores, n_left_out))


@pytest.mark.parametrize(
    ("share", "head", "verdict"),
    [
        (0.0, "None of the 1,000 rows raises an alarm", "None does."),
        (0.001, "1 of 1,000 rows raises an alarm", "So the alarm may well be chance"),
        (0.055, "55 of 1,000 rows raise an alarm", "may well be chance"),
        (0.09, "90 of 1,000 rows raise an alarm", "about 40 of them are more than chance"),
        (0.2, "200 of 1,000 rows raise an alarm", "not chance"),
        (0.8, "800 of 1,000 rows raise an alarm", "another source or state"),
    ],
)
def test_headline_and_verdict(share, head, verdict):
    data = with_alarms(share)
    assert words.headline(data) == head
    assert verdict in words.verdict(data)
    assert "about 50 would" in words.verdict(data)


def test_first_look_names_the_lowest_row():
    data = examples.full_data()
    text = words.first_look(data)
    lowest = int(np.argmin(data.scores))
    assert data.ids[lowest] in text
    assert f"09:{lowest}" in text or "10:0" in text
    assert "pressure is 1" in text


def test_labels_are_counted():
    text = words.label_words(examples.full_data())
    assert text.startswith("Of 8 rows labelled anomaly, 8 (100 %) raise an alarm; of 60 rows")
    assert words.label_words(examples.bare_data()) is None


def test_notes_come_when_they_are_due():
    data = examples.bare_data()
    assert words.notes(with_left_out(data, 0)) == []
    lowest = replace(data, wanted_rate=0.001, offset=data.normal_scores[0])
    assert "too few" in words.notes(lowest)[0]
    moved = replace(with_left_out(data, 0), wanted_rate=0.001)  # by the user, not for want of rows
    assert words.notes(moved) == []
    assert words.notes(replace(data, remarks=["Mind the gap."]))[0] == "Mind the gap."
    left_out = with_left_out(data, 1)
    assert "1 training row far outside the others was" in words.notes(left_out)[0]
    assert "More than half" in words.notes(with_alarms(0.9))[0]
    low = np.full(len(data.scores), np.quantile(data.normal_scores, 0.1))
    drifted = replace(data, scores=low, offset=data.normal_scores[0])
    assert "drifted" in words.notes(drifted)[-1]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.00123, "0.12 %"), (0.05, "5.0 %"), (0.123, "12 %"), (1.0, "100 %")],
)
def test_percent(share, text):
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.000"), (-26.19, "\N{MINUS SIGN}26.190"), (0.00123, "1.23e\N{MINUS SIGN}03")],
)
def test_number(value, text):
    assert words.number(value) == text


def test_new_groups_are_seldom_called_more_than_chance():
    rng, calls = np.random.default_rng(0), {"rows": 0, "groups": 0}
    known = {"rows": None, "groups": np.repeat(np.arange(20), 60)}

    def draw():
        return (1.5 * rng.normal(size=(20, 1)) + rng.normal(size=(20, 60))).ravel()

    for _ in range(100):
        normal, fresh = draw(), draw()
        for kind, groups in known.items():
            calibrator = ConformalCalibrator().fit(normal, groups=groups)
            changes = {"calibrator": calibrator, "offset": calibrator.threshold(0.05)[0]}
            data = replace(examples.bare_data(), scores=fresh, **changes)
            calls[kind] += "So most" in words.verdict(data)
    assert calls["groups"] <= 5 < 15 < calls["rows"]


def test_normal_rows_are_seldom_called_more_than_chance():
    rng, calls = np.random.default_rng(0), 0
    for _ in range(200):
        normal = np.sort(rng.normal(size=60))
        changes = {"calibrator": ConformalCalibrator().fit(normal), "offset": normal[2]}
        data = replace(examples.bare_data(), scores=rng.normal(size=300), **changes)
        calls += "may well be chance" not in words.verdict(data)
    assert calls / 200 < 0.08

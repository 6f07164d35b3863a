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
    assert "usually " in text


def test_a_common_value_is_not_called_unusual():
    data = examples.full_data()
    common = next(r for found in data.readings for r in found if r.name == "pressure")
    common = replace(common, judgement=replace(common.judgement, is_unusual=False))
    assert words.reason_words(common) == "usual alone, unusual together with the others"


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


def labelled(n_anomalies, found, n_others, left, other_label=0, rate=0.05) -> ReportData:
    """Labelled anomalies and other rows, so many of which raise an alarm."""
    is_alarm = np.r_[np.arange(n_anomalies) < found, np.arange(n_others) < left]
    n = len(is_alarm)
    data = with_alarms(0, n=n, rate=rate)
    labels = np.repeat([-1, other_label], [n_anomalies, n_others])
    return replace(data, scores=np.where(is_alarm, -1.0, 1.0), labels=labels)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        # 73 of 77 found among 2,000 rows: all alarms together are what chance would raise
        ((77, 73, 1923, 20), "The 73 alarms of rows labelled anomaly are not chance. The other 20"),
        ((77, 73, 1923, 20), "The other 20, taken together, may well be chance."),
        ((77, 73, 1923, 400), "are more than chance, which explains about 96."),
        ((77, 73, 1923, 1), "The other one may well be chance."),
        ((77, 73, 1923, 0), "The 73 alarms of rows labelled anomaly are not chance."),
        ((20, 1, 980, 0), "The 1 alarm of rows labelled anomaly is no more than chance."),
        ((20, 0, 980, 49), "So the alarms, taken together, may well be chance."),
        ((77, 73, 923, 46, 1), "The 46 alarms of rows labelled normal are no more than the rate"),
        ((77, 73, 923, 200, 1), "more than the rate explains: these rows differ from training"),
        ((0, 0, 1000, 50, 1), "The 50 alarms of rows labelled normal are no more than the rate"),
        ((900, 900, 100, 5), "The other 5, taken together, may well be chance."),
    ],
)
def test_the_verdict_knows_the_labels(numbers, says):
    assert says in words.verdict(labelled(*numbers))


def test_alarms_of_labelled_anomalies_are_no_sign_of_another_source():
    data = labelled(900, 900, 100, 5)
    assert "another source" not in words.verdict(data)
    assert words.MANY_ALARMS not in words.notes(data)
    assert words.MANY_ALARMS in words.notes(labelled(100, 100, 900, 800))


def reached(n_normal, wanted, offset=None) -> ReportData:
    """A threshold that rests on so many rows."""
    calibrator = ConformalCalibrator().fit(np.arange(n_normal, dtype=float))
    place = calibrator.threshold(wanted)[0] if offset is None else offset
    changes = {"calibrator": calibrator, "offset": place, "wanted_rate": wanted}
    return replace(examples.bare_data(), **changes)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (reached(99, 0.05), "the stated false-alarm rate is 5.0 %."),
        (reached(62, 0.05), "is 5.0 %, and with 62 normal rows 4.8 % can be reached."),
        (reached(9, 0.05), "is 5.0 %, and with 9 normal rows only 10 % can be reached."),
        (reached(99, 0.05, offset=20.0), "the stated false-alarm rate is 21 %."),
    ],
)
def test_the_stated_rate_is_the_one_that_was_asked_for(data, says):
    assert says in words.verdict(data)

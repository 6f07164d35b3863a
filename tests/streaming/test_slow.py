"""Slow change in a live stream: what the monitor tells, what outlives a restart."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.detectors import GMM, KNN
from ocfuse.exceptions import DriftWarning
from ocfuse.scores import ChangeTest, ConformalCalibrator, SourceChange
from ocfuse.streaming import LiveMonitor, StreamDetector, StreamTable
from ocfuse.streaming.resume import SavedStream, resume_stream, save_stream
from ocfuse.streaming.slow import SlowChange, SlowSettings, change_words, judged_again, stream_block

BOTH = SlowSettings(adaptive=True, change=0.01)


def run(seed, n=150):
    flow, noise = np.random.default_rng(seed).normal(size=(2, n))
    return pd.DataFrame({"flow": flow, "current": flow / 2 + 0.1 * noise})


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    runs = pd.concat([run(i).assign(run=f"run{i}") for i in range(10)], ignore_index=True)
    detector = FusedDetector([("gmm", GMM(1)), ("knn", KNN(5))], false_alarm_rate=0.1)
    model = StreamTable(StreamDetector(detector, windows=(5,)), group="run").fit(runs)
    return model.save(tmp_path_factory.mktemp("models") / "m.ocf")


@pytest.fixture
def model(file):
    return load(file)


def follow(monitor, table, start=0):
    """Return rows and records of a table, which is scored at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        frame, log = monitor.model.follow(table.assign(run="live"))
    results = frame[["score", "p_value", "is_anomaly"]].to_dict("records")
    rows = [{"row": start + i, "columns": {}, **found} for i, found in enumerate(results)]
    told = list(monitor.follow(rows, None, log))
    return [row for row, _ in told], [record for _, records in told for record in records]


def test_nothing_is_other_without_the_settings(file):
    plain, off = LiveMonitor(load(file)), LiveMonitor(load(file), slow=SlowSettings())
    assert off.slow is None
    both = [follow(monitor, run(50)) for monitor in (plain, off)]
    np.testing.assert_equal(both[0][0], both[1][0])
    assert "shift" not in both[0][0][-1]


def test_scores_p_values_and_alarms_are_of_one_scale(file):
    monitor, plain = LiveMonitor(load(file), slow=BOTH), LiveMonitor(load(file))
    monitor.slow.rolling.speed = 50.0
    table = run(60, n=2500)
    table["current"] += 0.05  # a little off
    rows, _ = follow(monitor, table)
    raw, _ = follow(plain, table)
    detector = monitor.model.detector_
    assert rows[-1]["shift"] < 0
    for row, one in zip(rows[10:], raw[10:], strict=True):
        assert row["score"] == pytest.approx(one["score"] - row["shift"])
        assert row["p_value"] == detector.conformal_.p_values([row["score"]])[0]
        assert row["is_anomaly"] == (row["score"] < detector.offset_)
    late = slice(2000, None)
    assert sum(r["is_anomaly"] for r in rows[late]) < sum(r["is_anomaly"] for r in raw[late])
    assert np.isnan(rows[0]["score"])  # windows were not full
    assert rows[0]["p_value"] is not None


def test_a_lasting_change_is_told_once_with_what_it_is_worth(file):
    monitor = LiveMonitor(load(file), slow=SlowSettings(change=0.01), names={"stream": "line"})
    block = monitor.slow.test.block
    assert block >= 5
    _, before = follow(monitor, run(70, n=60 * block))
    table = run(71, n=60 * block)
    table["current"] += 0.25
    rows, after = follow(monitor, table, start=60 * block)
    assert not [record for record in before if record["kind"] == "changed"]
    (record,) = [record for record in after if record["kind"] == "changed"]
    assert record["row"] < 100 * block
    assert (record["chance"], record["direction"], record["block"]) == (0.01, "lower", block)
    assert record["stream"] == "line"
    assert abs(record["row"] - record["rows"] - 60 * block) < 25 * block
    assert "shift" not in rows[0]  # the threshold stays
    assert monitor.n_changes == 1
    assert monitor.n_alarms >= 1
    json.dumps(record)


def test_a_restart_goes_on_with_window_shift_and_capital(file, tmp_path):
    table = run(80, n=1400)
    table["current"] += 0.05
    whole = LiveMonitor(load(file), slow=BOTH)
    whole.slow.rolling.speed = 5.0
    expected, _ = follow(whole, table)
    first = LiveMonitor(load(file), slow=BOTH)
    first.slow.rolling.speed = 5.0
    rows, _ = follow(first, table[:1200])
    save_stream(tmp_path / "state", first.model, slow=first.slow)
    model = load(file)
    second = LiveMonitor(model, slow=BOTH)
    second.slow.rolling.speed = 5.0
    found = resume_stream(tmp_path / "state", model)
    second.slow.go_on_from(found.slow)
    more, _ = follow(second, table[1200:], start=1200)
    assert more[-1]["shift"] == expected[-1]["shift"] != 0
    scores = [[row["score"] for row in part] for part in (rows + more, expected)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-9)
    assert second.slow.test.capital == pytest.approx(whole.slow.test.capital)


def test_what_was_saved_under_other_settings_is_left_out(model):
    conformal = model.detector_.conformal_
    before = SlowChange.of(model.detector_, BOTH, block=7)
    before.rolling.shift = -1.0
    for settings, block, same in (
        (BOTH, 7, (True, True)),
        (SlowSettings(True, 0.02), 7, (True, False)),
        (BOTH, 8, (True, False)),
    ):
        now = SlowChange.of(model.detector_, settings, block)
        now.go_on_from(before)
        assert (now.rolling is before.rolling, now.test is before.test) == same
    model.stream_.detector_.set_threshold(offset=float(conformal.scores_[3]))
    moved = SlowChange.of(model.detector_, BOTH, block=7)
    moved.go_on_from(before)
    assert moved.shift == 0.0
    moved.go_on_from(None)
    off = SlowChange()
    off.go_on_from(before)
    assert (off.rolling, off.test, off.shift) == (None, None, 0.0)
    assert SavedStream.slow is None  # of files of before


def test_single_rows_are_compared_with_those_that_the_detector_has_not_seen():
    rng = np.random.default_rng(0)
    detector = FusedDetector({"gmm": GMM(1), "knn": KNN(5)}, random_state=0)
    detector.fit(rng.normal(size=(200, 2)))
    settings = SlowSettings(change=0.05)
    # out-of-fold scores are nearly, but not quite, those of fresh rows
    assert len(SlowChange.of(detector, settings).test._before) == 0
    detector.calibrate(rng.normal(size=(300, 2)))
    assert len(SlowChange.of(detector, settings).test._before) == 300
    assert len(SlowChange.of(detector, settings, block=5).test._before) == 0


def test_blocks_of_thinned_rows_are_counted_in_all_rows():
    scores = np.full(4000, np.nan)
    scores[::4] = np.random.default_rng(0).normal(size=1000)
    assert stream_block(scores, 30) == 32  # eight of the rows with a score
    assert stream_block(np.full(10, np.nan), 30) == 30


def test_a_change_in_words():
    slow = SlowChange(test=ChangeTest(0.01, block=30))
    record = slow.record(SourceChange(0.01, 200, 50, is_lower=False))
    assert (record["rows"], record["tested"]) == (1500, 6000)
    words = change_words(record)
    assert "more normal than before for about 1,500 rows" in words
    assert "a chance of 0.01 at most" in words
    conformal = ConformalCalibrator().fit([1.0, 2.0, 3.0])
    assert judged_again({"score": float("nan")}, 1.0, conformal, 1.5) == {}

"""`ocfuse fit --events` learns from verdicts, and replaces no model unasked."""

import hashlib
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.serve.event_rows import EventRows, kept_row, packed
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.samples import Sample
from ocfuse.streaming import StreamDetector, StreamTable
from ocfuse.tables import open_source
from ocfuse.tables.judged import HeldOutVerdicts


def run(seed, both=0.0, current=0.0, n=90):
    """Return two channels that go together, for some rows moved both or one of them."""
    flow, noise = np.random.default_rng(seed).normal(size=(2, n))
    frame = pd.DataFrame({"flow": flow, "current": flow + noise / 5})
    frame.loc[40:60, ["flow", "current"]] += both
    frame.loc[40:60, "current"] += current
    return frame


def record(store, model, frame):
    """Keep the first alarm in a run as the service does; return its number."""
    scores = model.score(frame)["score"].to_numpy()
    tracker, around = model.stream_.tracker(), EventRows(2, model.stream_.view_.n_remembered)
    for i, (row, score) in enumerate(zip(frame.to_dict("records"), scores, strict=True)):
        was_on = tracker.is_on
        tracker.update(score)
        if tracker.is_on and not was_on and around.event is None:
            threshold = float(model.detector_.offset_)
            around.begin(store.begin(Sample("pump", "line", i, float(i), score, threshold)))
        around.add(kept_row(i, float(i), score, row), is_event=tracker.is_on)
    event, rows = around.kept()
    store.keep_rows(event, packed(rows), len(rows))
    return event


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """Return a folder with data, a model, and events with verdicts."""
    folder = tmp_path_factory.mktemp("line")
    (folder / "data").mkdir()
    for i in range(8):
        run(i).to_csv(folder / "data" / f"run{i}.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        light = FusedDetector("light", random_state=0, false_alarm_rate=0.13)
        frame = open_source(folder / "data").read()
        model = StreamTable(StreamDetector(light, windows=(5,))).fit(frame)
    model.save(folder / "pump.ocf")
    store = EventStore(folder / "events.db")
    for i in range(8):
        store.judge(record(store, model, run(50 + i, both=3.0)), "false alarm", "Ada")
        store.judge(record(store, model, run(60 + i, current=2.0)), "real", "Ada")
    store.judge(record(store, model, run(70, current=2.0)), "unknown", "Ada")
    store.judge(store.begin(Sample("pump", "line", 0, 0.0, -9.0, 0.0)), "real", "Ada")
    store.judge(store.begin(Sample("fan", "line", 0, 0.0, -9.0, 0.0)), "real", "Ada")
    store.close()
    return folder


@pytest.fixture
def fit(line, run_command):
    """Return what runs the command, which returns exit code, output and errors in one line."""

    def fit(out, *more, events="events.db"):
        code, text, err = run_command(
            "fit", line / "data", "--events", line / events, "--model", line / "pump.ocf",
            "-o", out, *more,
        )  # fmt: skip
        return code, text, " ".join(err.split())

    return fit


def checksum(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_verdicts_are_learned_and_told_on_held_out_events(line, fit, tmp_path, monkeypatch):
    monkeypatch.setattr(HeldOutVerdicts, "most_folds", 2)
    before = checksum(line / "events.db"), checksum(line / "pump.ocf")
    code, text, err = fit(tmp_path / "new.ocf", "--json")
    assert code == 0, err
    told = json.loads(text)
    assert told["without_rows"] == [18]
    counts = told["held_out"]
    assert counts["false_alarms"]["events"] == counts["real"]["events"] == 8
    assert counts["false_alarms"]["quiet_before"] == 0
    assert counts["false_alarms"]["quiet_after"] > 0
    assert counts["real"]["alarm_before"] == counts["real"]["alarm_after"] == 8
    assert load(tmp_path / "new.ocf").card_["verdicts"] == {"real": 8, "false alarm": 8}
    assert (checksum(line / "events.db"), checksum(line / "pump.ocf")) == before
    code, _, err = fit(tmp_path / "new.ocf")
    assert code in (2, 3)
    assert "--force" in err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--members", "light"], "learns with the settings of --model"),
        (["--stream"], "learns with the settings of --model"),
        (["--served-as", "belt"], "fan, pump"),
        (["--served-as", "fan"], "none has rows"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_words(fit, tmp_path, more, words):
    code, _, err = fit(tmp_path / "new.ocf", *more)
    assert code in (2, 3)
    assert words in err
    assert not (tmp_path / "new.ocf").exists()


@pytest.mark.parametrize(
    ("name", "words"), [("gone.db", "no file of events"), ("pump.ocf", "as a file of events")]
)
def test_a_file_that_holds_no_events_is_refused(fit, tmp_path, name, words):
    code, _, err = fit(tmp_path / "new.ocf", events=name)
    assert code in (2, 3)
    assert words in err

"""A restart of the program is no restart of the stream."""

import json
import os
import time
import warnings
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocfuse import FusedDetector, load
from ocfuse.cli.app import run
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import StreamDetector, StreamTable
from ocfuse.streaming.resume import SavedStream, StateFolder, resume_stream, save_stream


def rows(seed, n=80, **more):
    flow, noise = np.random.default_rng(seed).normal(size=(2, n))
    return pd.DataFrame(more | {"time": np.arange(n) * 1.0, "flow": flow, "current": flow + noise})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the files of a model with times and of one without."""
    folder = tmp_path_factory.mktemp("models")
    runs = pd.concat([rows(i, file=f"run{i}") for i in range(8)], ignore_index=True)
    light = FusedDetector("light", random_state=0, false_alarm_rate=0.13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, table in (("timed", runs), ("plain", runs.drop(columns="time"))):
            time_column = "time" if name == "timed" else None
            model = StreamTable(StreamDetector(light, windows=(3, 7)), time=time_column)
            model.fit(table).save(folder / name)
    return {name: folder / name for name in ("timed", "plain")}


@pytest.fixture(scope="module")
def fresh(files):
    """Return what returns a model at the beginning of a stream, as another process would."""
    models = {name: load(path) for name, path in files.items()}

    def fresh(name):
        model = copy(models[name])
        model.stream_ = copy(model.stream_)
        return model.restart()

    return fresh


@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.integers(0, 79), max_size=3), name=st.sampled_from(["timed", "plain"]))
def test_scores_and_events_are_those_without_a_restart(fresh, tmp_path, cuts, name):
    frame = rows(99, file="new")
    frame.loc[30:45, "current"] += 4.0
    if name == "plain":
        frame = frame.drop(columns="time")
    whole = fresh(name)
    expected = whole.score_rows(frame)["score"].to_numpy()
    tracker = whole.stream_.tracker(2, 3)
    ended = [event for score in expected if (event := tracker.update(score))]
    path, found, events = tmp_path / "line.state", [], []
    path.unlink(missing_ok=True)
    edges = [0, *sorted(cuts), len(frame)]
    for begin, end in pairwise(edges):
        model = fresh(name)
        tracker = model.stream_.tracker(2, 3)
        saved = resume_stream(path, model)
        assert (saved is None) == (not path.exists())
        tracker = tracker if saved is None else saved.tracker_like(tracker)
        if end > begin:
            scores = model.score_rows(frame.iloc[begin:end])["score"].to_numpy()
            events += [event for score in scores if (event := tracker.update(score))]
            found.append(scores)
        save_stream(path, model, tracker)
    # a row alone and one among others may be rounded otherwise
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-12, atol=1e-12)
    assert [replace(event, lowest=0.0) for event in events] == [
        replace(event, lowest=0.0) for event in ended
    ]
    np.testing.assert_allclose(
        [event.lowest for event in events], [event.lowest for event in ended], rtol=1e-12
    )


def test_after_a_gap_in_time_windows_start_again(fresh, tmp_path):
    model = fresh("timed")
    model.score_rows(rows(5, n=20, file="new"))
    save_stream(tmp_path / "s", model)
    again = fresh("timed")
    resume_stream(tmp_path / "s", again)
    later = rows(6, n=10, file="new")
    later["time"] += 500.0
    scores = again.score_rows(later)["score"]
    assert scores.isna().tolist() == [True] * 6 + [False] * 4
    assert again.counts["gap"] == 1


def test_a_state_that_is_of_no_use_is_refused_in_words(files, fresh, tmp_path, monkeypatch):
    timed, plain = fresh("timed"), fresh("plain")
    assert resume_stream(tmp_path / "none", timed) is None
    other = tmp_path / "other"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = pd.concat([rows(i + 50, file=f"run{i}") for i in range(8)], ignore_index=True)
        light = FusedDetector("light", random_state=0, false_alarm_rate=0.13)
        save_stream(other, StreamTable(StreamDetector(light, windows=(5,))).fit(runs))
    with pytest.raises(InvalidInputError, match=r"other is left out.*another model"):
        resume_stream(other, timed)
    with pytest.raises(InvalidInputError, match="no state of a stream"):
        resume_stream(files["timed"], timed)
    (tmp_path / "damaged").write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match="damaged is left out"):
        resume_stream(tmp_path / "damaged", timed)
    for model, is_refused in ((plain, True), (timed, False)):
        save_stream(tmp_path / "old", model)
        monkeypatch.setattr(SavedStream, "most_seconds", -1.0)
        if is_refused:
            with pytest.raises(InvalidInputError, match="without times do not tell"):
                resume_stream(tmp_path / "old", model)
        else:
            assert resume_stream(tmp_path / "old", model) is not None


def test_states_of_streams_are_bounded_and_apart(tmp_path, monkeypatch):
    folder = StateFolder(tmp_path / "states")
    pairs = [("a", "b"), ("ab", ""), ("a", "../b"), ("a", "\ud800")]
    files = {folder.file(*pair) for pair in pairs}
    assert len(files) == len(pairs)
    assert all(file.parent == tmp_path / "states" for file in files)
    for i, file in enumerate(sorted(files)):
        file.write_bytes(b"")
        os.utime(file, (time.time() - i, time.time() - i))
    os.utime(sorted(files)[3], (0, 0))
    monkeypatch.setattr(StateFolder, "most_files", 2)
    StateFolder(tmp_path / "states")
    assert sorted(folder.file("a", "b").parent.iterdir()) == sorted(files)[:2]


def test_watch_goes_on_after_a_restart_of_the_command(files, fresh, tmp_path, capfd):
    frame = rows(7, n=30).drop(columns="time")
    expected = fresh("plain").score_rows(frame.assign(file="new"))["score"]
    scores = []
    for part in (frame[:17], frame[17:]):
        part.to_csv(tmp_path / "part.csv", index=False)
        with pytest.raises(SystemExit):
            run(
                [
                    *("watch", str(files["plain"]), str(tmp_path / "part.csv"), "--all", "--json"),
                    *("--state", str(tmp_path / "line.state")),
                ]
            )
        lines = map(json.loads, capfd.readouterr().out.splitlines())
        scores += [line["score"] for line in lines if line["kind"] == "row"]
    np.testing.assert_allclose(
        np.array(scores, dtype=float), expected.to_numpy(), rtol=0, atol=1e-10
    )

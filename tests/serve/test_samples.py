"""Samples for those who look on: bounded, in order, and nothing that matters left out."""

import threading
from dataclasses import replace

import pytest

from ocfuse.serve import samples as module
from ocfuse.serve.samples import History, Live, Sample, Viewer, thin

SOURCE = ("pump", "line")


def sample(seq, score=1.0, **changes):
    plain = Sample(*SOURCE, seq=seq, time=float(seq), score=score, threshold=0.0)
    return replace(plain, **changes)


def watching(live, source=SOURCE, notify=lambda: None):
    viewer = live.join(notify)
    live.watch(viewer, source)
    return viewer


def test_a_viewer_gets_the_samples_of_its_stream_in_order():
    live = Live()
    viewer = watching(live)
    for i in range(20):
        live.publish(sample(i))
        live.publish(sample(i, stream="other"))
    assert [s.seq for s in live.drain(viewer)] == list(range(20))
    assert live.drain(viewer) == []
    assert live.sources == [("pump", "line"), ("pump", "other")]


def test_pictures_do_not_wait_for_viewers():
    live = Live()
    viewer = watching(live)
    live.publish(sample(0, thumbnail=b"picture"))
    assert [s.thumbnail for s in live.drain(viewer)] == [None]


def test_who_opens_late_sees_the_last_minutes():
    live = Live(seconds=600, most=1000)
    for i in range(5):
        live.publish(sample(i, alarm="begin", thumbnail=b"picture"))
    viewer = live.join(lambda: None)
    before = live.watch(viewer, SOURCE)
    assert [s.seq for s in before] == list(range(5))
    assert all(s.thumbnail is None for s in before)
    live.publish(sample(5))
    assert [s.seq for s in live.drain(viewer)] == [5]
    assert live.watch(viewer, ("un", "known")) == []


def test_history_keeps_the_lowest_of_what_comes_fast_and_forgets():
    history = History(seconds=10, most=10)
    scores = {0.0: 5.0, 0.3: 2.0, 0.6: 4.0, 1.5: 7.0, 1.6: None, 3.0: 6.0}
    for at, score in scores.items():
        history.add(sample(0, score), at)
    assert [s.score for s in history.samples(3.0)] == [2.0, 7.0, 6.0]
    assert [s.score for s in history.samples(11.0)] == [7.0, 6.0]
    for i in range(100):
        history.add(sample(i, alarm="begin"), 20.0)
    assert len(history.samples(20.0)) == 10


def test_a_slow_viewer_misses_plain_samples_and_no_alarm():
    live = Live()
    viewer = watching(live)
    marks = {500: "begin", 700: "end", 9_000: "begin"}
    lowest = {i: -float(i) for i in (601, 602, 8_001)}
    for i in range(10_000):
        live.publish(sample(i, lowest.get(i, 1.0), alarm=marks.get(i)))
    kept = live.drain(viewer)
    assert len(kept) <= Viewer.most_waiting + 1
    assert {s.seq: s.alarm for s in kept if s.alarm} == marks
    assert min(s.score for s in kept) == -8_001
    assert [s.seq for s in kept] == sorted(s.seq for s in kept)


def test_a_viewer_that_takes_nothing_is_given_up():
    live = Live()
    viewer = watching(live)
    for i in range(Viewer.patience * Viewer.most_waiting + 1):
        assert not viewer.is_lost
        live.publish(sample(i, alarm="begin"))
    assert viewer.is_lost


def test_thinning_keeps_order_and_lowest():
    samples = [sample(i, score) for i, score in enumerate([3.0, None, 2.0, 2.0, 9.0])]
    assert [s.seq for s in thin(samples)] == [0, 2, 4]


def test_viewers_are_notified_once_until_they_drain():
    live, calls = Live(), []
    viewer = watching(live, notify=lambda: calls.append(1))
    for i in range(10):
        live.publish(sample(i))
    assert len(calls) == 1
    live.drain(viewer)
    live.publish(sample(10))
    assert len(calls) == 2
    live.publish(sample(0, model="new"))  # a stream that it may want to choose
    assert len(calls) == 3


def test_viewers_come_and_go():
    live = Live()
    assert not live.has_viewers
    viewer = watching(live)
    assert live.has_viewers
    live.leave(viewer)
    assert not live.has_viewers


def test_streams_are_bounded(monkeypatch):
    now = iter(range(10_000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    live = Live(most_sources=50)
    for i in range(50):
        live.publish(sample(0, stream=f"{i:05}"))
    live.publish(sample(1, stream="00000"))
    live.publish(sample(0, stream="last"))
    assert len(live.sources) == 50
    names = {stream for _, stream in live.sources}
    assert {"00000", "last"} <= names
    assert "00001" not in names


@pytest.mark.parametrize("n_viewers", [0, 8])
def test_publishing_never_waits_for_viewers(n_viewers):
    """Nor do several threads that publish wait for each other for ever."""
    live = Live()
    for _ in range(n_viewers):
        watching(live)

    def publish():
        for i in range(1_000):
            live.publish(sample(i))

    threads = [threading.Thread(target=publish) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(live.watch(live.join(lambda: None), SOURCE)) >= 1

"""Watching frame by frame: scores as of the whole run, events as of its scores."""

import threading
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError, SuspectInputWarning
from ocfuse.streaming import events
from ocfuse.streaming.events import MAX_UNSCORED
from ocfuse.vision import (
    Features,
    Frame,
    FrameWarning,
    PatchGaussian,
    PatchKNN,
    PictureDetector,
    open_frames,
)
from ocfuse.vision.fit import N_STEPS, Stillness
from ocfuse.vision.live import FrameQueue
from ocfuse.vision.watch import FrameWatch, RepeatMonitor, Seen
from tests.vision.cases import Blocks, runs
from tests.vision.framecases import Scripted, numbered


def watched(watch, frames):
    """Return all moments."""
    return [m for m in [*map(watch.take, frames), watch.finish()] if m is not None]


@given(
    scores=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.3, 1.0]), min_size=1, max_size=60),
    min_frames=st.integers(1, 4),
    leave=st.sampled_from([0.0, 0.5]),
    hold=st.sampled_from([0, 0, 1, 3, 9]),
)
def test_frames_one_by_one_give_the_events_of_the_whole_run(scores, min_frames, leave, hold):
    watch = FrameWatch(Scripted(scores), leave, min_frames, hold=hold)
    moments = watched(watch, numbered(len(scores)))
    ended = [moment.ended for moment in moments if moment.ended]
    expected = events(scores, 0.0, leave, min_frames, hold=hold)
    assert watch.n_events == len(expected)
    assert [
        (a.start.frame.index, a.last.frame.index + 1, a.raised.frame.index, a.worst.score)
        for a in ended
    ] == [(e.start, e.stop, e.raised, e.lowest) for e in expected]
    new = [moment.alarm.number for moment in moments if moment.is_new]
    assert new == [alarm.number for alarm in ended] == list(range(1, len(expected) + 1))


@pytest.mark.parametrize(("last", "is_interrupted"), [(-1.0, True), (0.0, False)])
def test_an_event_is_over_only_if_its_end_was_seen(last, is_interrupted):
    watch = FrameWatch(Scripted([1.0, -1.0, -1.0, last]), 0.5, 2)
    (ended,) = [moment.ended for moment in watched(watch, numbered(4)) if moment.ended]
    assert ended.is_interrupted is is_interrupted
    assert watch.finish() is None


@pytest.mark.parametrize(("missing", "n_events"), [(MAX_UNSCORED, 1), (MAX_UNSCORED + 1, 2)])
def test_an_event_ends_where_frames_are_missing(missing, n_events):
    frames = numbered(40)
    del frames[10 : 10 + missing]
    watch = FrameWatch(Scripted([-1.0] * 40), min_frames=1)
    moments = watched(watch, frames)
    assert watch.n_events == n_events
    ended = [m.ended for m in moments if m.ended]
    assert ended[0].last.frame.index == (9 if n_events == 2 else 39)
    if n_events == 2:
        both = next(m for m in moments if m.ended)
        assert both.is_new  # one ends and the next begins with the same frame
        assert (both.alarm.number, both.ended.number) == (2, 1)


def test_dropped_frames_are_not_missing():
    """Who scores every 20th frame only still raises an event, and only one."""
    frames = [replace(frame, n_dropped=19) for frame in numbered(200)[19::20]]
    watch = FrameWatch(Scripted([-1.0] * 200), min_frames=3)
    moments = watched(watch, frames)
    assert [moment.is_new for moment in moments[:4]] == [False, False, True, False]
    assert watch.n_events == 1
    both = [replace(frames[0], n_dropped=19), replace(frames[1], n_dropped=19 - MAX_UNSCORED - 1)]
    watch = FrameWatch(Scripted([-1.0] * 200), min_frames=1)
    watched(watch, both)
    assert watch.n_events == 2  # of these more than ten are missing


def test_a_slow_machine_with_a_camera_raises_events():
    """While a frame is scored 15 others come."""
    given, scored = threading.Semaphore(0), threading.Semaphore(0)

    class Camera:
        is_live = True

        def __iter__(self):
            for start in range(0, 120, 15):
                yield from numbered(120)[start : start + 15]
                given.release()
                scored.acquire(timeout=60)
            given.release(9)  # nobody waits for the last ones

        def __str__(self):
            return "camera 0"

    watch = FrameWatch(Scripted([-1.0] * 120))
    queue = FrameQueue(Camera())

    def slowly(frame):
        given.acquire(timeout=60)
        watch.take(frame)
        scored.release()
        return frame

    with pytest.warns(FrameWarning, match="frames of camera 0 were dropped") as told:
        taken = list(map(slowly, queue))
    assert len(told) == 1
    assert queue.n_dropped + len(taken) == 120
    assert len(taken) < 15
    assert watch.n_events == 1


def test_frames_numbered_anew_are_no_gap():
    watch = FrameWatch(Scripted([-1.0] * 40), min_frames=1)
    watched_twice = [*map(watch.take, numbered(30)), *map(watch.take, numbered(5))]
    assert watch.n_events == 1
    assert all(m.ended is None for m in watched_twice)


@pytest.fixture(scope="module")
def fitted():
    """Return a detector that knows the progress of the task."""
    pictures, run, progress = runs(n_runs=5)
    members = [("gaussian", PatchGaussian()), ("knn", PatchKNN())]
    detector = PictureDetector(Blocks(), members=members, false_alarm_rate=0.2, random_state=0)
    return detector.fit(pictures, groups=run, context=progress)


def test_scores_are_those_of_the_detector_and_the_sum_of_their_parts(fitted):
    pictures, _, progress = runs(n_runs=1, seed=7)
    pictures[4:8, 44:60, 4:20] = 20
    source = open_frames(pictures, progress=progress)
    watch = FrameWatch(fitted)
    moments = watched(watch, source)
    scores = [m.seen.score for m in moments if m.seen]
    np.testing.assert_allclose(scores, fitted.score_samples(pictures, progress), atol=1e-3)
    np.testing.assert_allclose(scores, fitted.score_samples(source), atol=1e-3)
    for moment in moments[:-1]:
        assert sum(moment.seen.members.values()) == pytest.approx(moment.seen.score)
    (event,) = [m.ended for m in moments if m.ended]
    assert (event.start.frame.index, event.last.frame.index) == (4, 7)
    y, x = watch.explain(event.worst).place()
    assert (y, x) == pytest.approx((52 / 64, 12 / 64), abs=0.15)
    watch.explains_events = True
    again = [m.seen.score for m in watched(watch, source) if m.seen]
    np.testing.assert_allclose(again, scores, atol=1e-6)


def test_progress_that_nobody_tells_is_asked_for(fitted):
    with pytest.raises(InvalidInputError, match=r"open_frames\(\.\.\., progress=\.\.\.\)"):
        FrameWatch(fitted).take(Frame(0, 0.0, runs(1)[0][0]))


def test_progress_in_other_units_is_told_once(fitted):
    picture = runs(1)[0][0]
    watch = FrameWatch(fitted)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for i, progress in enumerate((0.5, 1.5, 50.0, 60.0)):
            watch.explain(watch.take(Frame(i, 0.0, picture, progress)).seen)
    (warning,) = told
    assert warning.category is SuspectInputWarning
    assert "0 to 1 in training, and is 50 now" in str(warning.message)
    assert warning.filename == __file__


def test_an_event_ends_between_threshold_and_usual_score(fitted):
    leave = FrameWatch(fitted).tracker.leave
    assert fitted.offset_ < leave < np.median(fitted.normal_scores_)


def test_memory_does_not_grow_with_the_event():
    watch, taken = FrameWatch(Scripted([-1.0])), []
    for i in range(400):
        frame = Frame(i, 0.0, np.zeros((4, 4, 3), dtype=np.uint8))
        taken += [weakref.ref(frame.image), weakref.ref(watch.take(frame).seen)]
    del frame
    assert watch.n_events == 1
    # the last three, and those at which the event began, was raised, and was at its worst
    assert sum(known() is not None for known in taken) <= 2 * 6


def frames_with(noise, n=60, frozen=range(0)):
    """Return the features of a camera with noise, whose picture stands still for a while."""
    rng = np.random.default_rng(1)
    rows = 10 + noise * rng.normal(size=(n, 20))
    for i in frozen:
        rows[i] = rows[frozen[0]]
    return rows


def repeats_of(monitor, rows):
    """Return state, frame and first frame of what is told."""
    told = []
    for i, row in enumerate(rows):
        seen = Seen(Frame(i, i / 30, np.zeros((1, 1, 3))), 0.0, {}, {"x": Features(row[None], {})})
        told += monitor.take(seen)
    told += monitor.finish()
    return [(one.state, one.frame.index, one.since.index) for one in told]


def test_a_camera_that_repeats_its_picture_is_told_and_that_it_moves_again():
    stillness = Stillness.learn(frames_with(0.1))
    assert stillness.most == 10
    told = repeats_of(RepeatMonitor(stillness), frames_with(0.1, frozen=range(20, 45)))
    assert told == [("begin", 31, 20), ("end", 45, 20)]
    # nearly the same picture: a hundredth of the noise
    nearly = frames_with(0.1, frozen=range(20, 45))
    nearly += 0.001 * np.random.default_rng(2).normal(size=nearly.shape)
    assert repeats_of(RepeatMonitor(stillness), nearly) == told
    told = repeats_of(RepeatMonitor(stillness), nearly[:40])
    assert told == [("begin", 31, 20), ("interrupted", 39, 20)]


def test_pictures_that_stand_still_as_long_as_in_training_are_no_event():
    training = frames_with(0.1, n=300, frozen=range(20, 35))
    stillness = Stillness.learn(training)
    assert stillness.most == 2 * 14 + 10
    assert not repeats_of(RepeatMonitor(stillness), frames_with(0.1, frozen=range(10, 35)))
    rests = Stillness.learn(frames_with(0.1, n=300, frozen=range(100, 200)))
    assert not repeats_of(RepeatMonitor(rests), frames_with(0.1, frozen=range(0, 60)))
    assert not repeats_of(RepeatMonitor(None), frames_with(0.0))


def resting(n=150, rest=range(0), noise=0.1, speed=1.0, seed=3):
    """Return the features of a scene that moves, and rests for a while, seen with noise."""
    rng = np.random.default_rng(seed)
    moves = [0.0 if i in rest else 1.0 for i in range(n)]
    place = np.cumsum(moves)[:, None] * speed * 2.0 * np.pi / 10
    circle = np.hstack([np.cos(place + j) for j in range(20)])
    return 10 + circle + noise * rng.normal(size=(n, 20))


def test_a_scene_that_hardly_moves_is_told_though_no_picture_repeats():
    stillness = Stillness.learn(resting(300))
    monitor = RepeatMonitor(stillness)
    told = repeats_of(monitor, resting(rest=range(60, 110), seed=4))
    (began, frame, since), (ended, _, of) = told
    assert (began, ended) == ("begin", "end")
    assert 60 <= since == of <= frame <= 60 + N_STEPS
    assert not monitor.is_still
    assert not repeats_of(RepeatMonitor(stillness), resting(seed=5))
    # as slow as ever in training, and a scene that rests there, too
    assert not repeats_of(RepeatMonitor(stillness), resting(speed=0.9, seed=6))
    rests = Stillness.learn(resting(300, rest=range(100, 150)))
    assert not repeats_of(RepeatMonitor(rests), resting(rest=range(60, 110), seed=4))
    until_the_end = repeats_of(RepeatMonitor(stillness), resting(rest=range(60, 150), seed=4))
    assert [state for state, _, _ in until_the_end] == ["begin", "interrupted"]


def test_a_scene_that_hardly_moves_is_told_in_words():
    rows = resting(rest=range(60, 110), seed=4)
    monitor = RepeatMonitor(Stillness.learn(resting(300)))
    found = []
    for i, row in enumerate(rows):
        seen = Seen(Frame(i, i / 30, np.zeros((1, 1, 3))), 0.0, {}, {"x": Features(row[None], {})})
        found += monitor.take(seen)
        assert monitor.is_on is False
    begin, end = found
    assert (begin.kind, end.kind) == ("still", "still")
    assert begin.text == f"the scene hardly moves since frame {begin.since.index}"
    assert end.text == f"the picture moves again from frame {end.frame.index}"
    assert end.n_frames == end.frame.index - begin.since.index


def test_a_video_teaches_how_alike_frames_are(fitted):
    pictures, _, _ = runs(n_runs=1, n_frames=60, seed=3)
    members = [("gaussian", PatchGaussian())]
    detector = PictureDetector(Blocks(), members=members, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = open_frames(pictures)
        source.is_sequence = True  # as of a video
        detector.fit(source)
    watch = FrameWatch(detector)
    moments = [watch.take(Frame(i, i / 30, pictures[min(i, 30)])) for i in range(50)]
    (told,) = [repeat for moment in moments for repeat in moment.repeats]
    assert told.text == "the camera repeats its picture since frame 30"
    assert watch.n_repeats == 1
    assert fitted.stillness_ is None or fitted.stillness_.distance > 0

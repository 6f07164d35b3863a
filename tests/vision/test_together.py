"""Pictures and sensors together: which row is of which frame, and what both say."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import StreamDetector, StreamTable
from ocfuse.vision import Frame
from ocfuse.vision.together import PICTURES, SENSORS, SensorRows, SharedScale, share_rate
from ocfuse.vision.watch import FrameWatch
from tests.vision.framecases import Scripted

STEP = 0.1
N_ROWS = 60


def joints(seed=0, n=N_ROWS, strange=range(0)):
    """Return rows of a joint whose torque follows its angle, but for some rows."""
    rng = np.random.default_rng(seed)
    angle = rng.normal(size=n)
    torque = 3 * angle + 0.05 * rng.normal(size=n)
    torque[list(strange)] += 2
    return pd.DataFrame({"time": STEP * np.arange(n), "angle": angle, "torque": torque})


@pytest.fixture(scope="module")
def model():
    """Return a model of the joint."""
    runs = pd.concat([joints(i).assign(run=f"run{i}") for i in range(20)])
    detector = FusedDetector("light", random_state=0)
    stream = StreamDetector(detector, windows=(3,), max_rows=300)
    return StreamTable(stream, time="time", group="run").fit(runs)


def beside(model, table, scores=(), **more):
    """Return the rows of a run beside pictures with these scores."""
    return SensorRows(Scripted(scores), model, table.assign(run="new"), **more)


def frame(i, time=None):
    picture = np.full((1, 1, 3), i, dtype=np.uint8)
    return Frame(i, STEP * i if time is None else time, picture)


def test_both_scales_put_the_threshold_at_0_and_what_is_usual_at_1(model):
    scale = SharedScale.of(model.detector_)
    assert scale.shared(model.offset_) == 0
    assert scale.shared(np.median(model.detector_.normal_scores_)) == pytest.approx(1)
    assert scale.own(scale.shared(-3.5)) == pytest.approx(-3.5)
    flat = SharedScale.of(Scripted([], offset=-1.0))  # its one normal score is at 0
    assert (flat.shared(-2.0), flat.unit) == (-1.0, 1.0)


@given(
    times=st.lists(st.integers(0, 1000), min_size=2, max_size=40, unique=True),
    moment=st.integers(-50, 1100),
)
def test_the_row_of_a_frame_is_the_last_one_that_is_not_later(times, moment):
    rows = SensorRows.__new__(SensorRows)  # times alone, without a model
    rows.times, rows._is_checked = np.array(times, dtype=float), True
    rows._sort()
    found = rows.row_of(frame(0, float(moment)))
    earlier = [i for i, time in enumerate(times) if time <= moment]
    nearest = max(earlier, key=lambda i: times[i], default=None)
    limit = 1.5 * np.median(np.diff(np.sort(times)))
    assert found == (nearest if earlier and moment - times[nearest] <= limit else None)


def test_the_lower_of_both_is_the_score_and_each_is_told(model):
    strange = joints(30, strange=range(40, 50))
    scores = [1.0] * N_ROWS
    scores[20:25] = [-0.5] * 5
    watch = FrameWatch(Scripted(scores), sensors=beside(model, strange, scores))
    moments = [watch.take(frame(i)) for i in range(N_ROWS)]
    seen = [moment.seen for moment in moments]
    for one in seen:
        assert one.score == np.nanmin(list(one.members.values()))
    first, second = (moment.ended for moment in moments if moment.ended)
    assert watch.speaking(first.worst) == [PICTURES]
    assert watch.readings(first.worst) == []
    assert watch.speaking(second.worst) == [SENSORS]
    assert watch.readings(second.worst)[0].name == "torque"
    assert (first.start.frame.index, first.last.frame.index) == (20, 24)
    assert 40 <= second.start.frame.index <= 42
    expected = model.score(strange.assign(run="x"))["score"]
    own = watch.sensors.scales[SENSORS]
    np.testing.assert_allclose(
        [own.own(one.members[SENSORS]) for one in seen], expected, equal_nan=True
    )
    assert watch.severity(second.worst) == pytest.approx(
        float(model.detector_.conformal_.severity([own.own(second.worst.score)])[0]), abs=1e-6
    )


def test_frames_without_a_row_are_judged_by_the_pictures_alone(model):
    rows = beside(model, joints(31).iloc[:30])
    watch = FrameWatch(Scripted([1.0] * 30 + [-1.0] * 10), sensors=rows)
    for i in range(40):
        moment = watch.take(frame(i))
    assert moment.alarm.start.frame.index == 30
    assert np.isnan(moment.seen.members[SENSORS])
    # the first windows are not full, and the last row is of one frame more
    assert (rows.n_without_row, rows.n_without_picture) == (2 + 9, 0)


def test_frames_without_a_picture_are_judged_by_the_sensors_alone(model):
    rows = beside(model, joints(32, strange=range(25, 55)))
    watch = FrameWatch(Scripted([1.0] * 60), sensors=rows)
    frames = [frame(i) for i in range(50) if not 20 <= i < 45]
    moments = [moment for one in frames for moment in watch.moments(one)]
    assert [moment.seen.frame.index for moment in moments] == list(range(50))
    raised = next(moment.alarm for moment in moments if moment.is_new)
    assert 25 <= raised.start.frame.index <= 27
    assert np.isnan(raised.raised.members[PICTURES])
    after = list(watch.rest())
    assert [moment.seen.frame.index for moment in after] == list(range(50, 60))
    assert any(moment.ended for moment in after)
    assert rows.n_without_picture == 25 + 10
    assert watch.n_events == 1


def test_a_sensor_that_fails_is_told_with_its_frame(model):
    table = joints(33)
    table.loc[30:, "torque"] = np.nan
    watch = FrameWatch(Scripted([1.0] * N_ROWS), sensors=beside(model, table))
    told = [(i, e) for i in range(N_ROWS) for e in watch.take(frame(i)).failures]
    assert [(e.kind, e.channel, e.since) for _, e in told] == [("missing", "torque", 30)]
    assert told[0][0] == told[0][1].row
    assert watch.n_failures == 1


def test_rows_of_another_clock_are_refused(model):
    rows = beside(model, joints(34))
    with pytest.raises(InvalidInputError, match=r"begin at 5000\.000 s.*0\.000 to 5\.900 s"):
        rows.row_of(frame(0, 5000.0))
    rows = beside(model, joints(34).assign(time=lambda t: t["time"] + 1.7e9))
    with pytest.raises(InvalidInputError, match="not the same clock"):
        rows.row_of(frame(0))


def test_without_times_rows_are_counted_and_must_be_as_many(model):
    rows = beside(model, joints(35), n_frames=N_ROWS)
    assert [rows.row_of(frame(i, np.nan)) for i in (0, 7, 59, 60)] == [0, 7, 59, None]
    rows = beside(model, joints(35), n_frames=50)
    with pytest.raises(InvalidInputError, match="Got 60 rows in the rows for 50 frames"):
        rows.row_of(frame(0, np.nan))


class Settable:
    """A model of pictures whose thresholds are written down."""

    false_alarm_rate, threshold_rate_ = 0.3, np.nan

    def set_threshold(self, rate):
        self.threshold_rate_ = rate


def test_each_model_has_half_of_the_rate(model):
    pictures = Settable()
    before = model.stream_.threshold_rate_
    assert share_rate(pictures, model) == pytest.approx(0.15 + model.stream_.threshold_rate_)
    assert pictures.threshold_rate_ == 0.15
    assert model.stream_.threshold_rate_ <= 0.15 + 1e-12
    share_rate(pictures, model, 0.2)
    assert pictures.threshold_rate_ == 0.1
    with pytest.raises(InvalidInputError, match="false_alarm_rate must be in"):
        share_rate(pictures, model, 1.5)
    model.set_threshold(before)

"""Channels behind a score, with what is usual of them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse import FusedDetector
from ocfuse.exceptions import DriftWarning
from ocfuse.streaming import ChannelReading, Course
from ocfuse.streaming.channels import row_readings
from tests.streaming.cases import fitted, learned, normal, quick


def test_a_reading_is_told_with_as_many_digits_as_its_spread_needs():
    assert str(ChannelReading("rpm", 1437.8, 1450.2, 3.1, 0.5)) == "rpm 1,438 (usual 1,450 +- 3)"
    assert (
        str(ChannelReading("a", 0.01234, 0.01, 0.0005, 1.0)) == "a 0.0123 (usual 0.0100 +- 0.0005)"
    )
    assert str(ChannelReading("mode", "AUTO", "MANUAL (99 %)", None, 1.0)) == (
        "mode AUTO (usual MANUAL (99 %))"
    )


@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.floats(0, 1e6),
    st.sampled_from(["level", "slope"]),
)
def test_values_that_differ_by_more_than_their_spread_are_not_told_alike(
    value, usual, spread, kind
):
    text = str(ChannelReading("x", value, usual, spread, 1.0, kind))
    shown, _, rest = text.removeprefix("x slope ").removeprefix("x ").partition(" (usual ")
    if abs(value - usual) > max(spread, 1e-3):
        assert shown != rest.partition(" +- ")[0]


def test_a_stream_names_the_channel_that_is_off_with_its_value_and_what_is_usual():
    stream = fitted()
    live = normal(120, 5)
    live[100:, 1] += 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        scores, log = stream.follow(live)
    worst = int(np.nanargmin(scores))
    first, *_ = stream.readings(log, worst)
    assert first.name == "x1"
    assert first.kind == "level"
    assert first.value == pytest.approx(live[worst - 4 : worst + 1, 1].mean())
    assert abs(first.usual - 10) < 2 < abs(first.value - first.usual)
    assert first.share > 0.5
    again = [str(one) for one in stream.readings(log, 110)]
    assert again == [str(one) for one in stream.readings(log, 110)]
    assert [str(one) for one in stream.readings()] == [
        str(one) for one in stream.readings(log, 119)
    ]
    assert not stream.readings(log, 3)  # no score as yet


def test_a_channel_that_is_missing_is_told_as_such():
    stream = fitted()
    live = normal(300, 5)
    live[60:, 0] = np.nan
    live[250:, 1] += 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        _, log = stream.follow(live)
    assert stream.readings()[0].name == "x1"
    named = [one for row in range(100, 300) for one in stream.readings(log, row)]
    lost = [one for one in named if one.name == "x0"]
    assert lost
    for one in lost:
        assert str(one).startswith("x0 missing (usual ")
        assert one.as_dict()["value"] == "missing"
        assert one.stands_out
        assert one.share > 0


def test_channels_that_read_as_usual_are_not_named_beside_others():
    stream, n_several = fitted(), 0
    for seed in range(8):
        live = normal(60, seed)
        live[40:, seed % 3] += 4
        stream.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)
            _, log = stream.follow(live)
        for row in range(20, 60, 4):
            found = stream.readings(log, row)
            n_several += len(found) > 1
            assert len(found) == 1 or all(one.stands_out for one in found)
            for one in found:
                assert one.stands_out == (abs(one.value - one.usual) > one.spread)
    assert n_several


def test_with_a_course_values_are_told_in_their_own_units():
    n = 60
    progress = np.tile(np.linspace(0, 1, n), 8)
    runs = np.repeat(np.arange(8), n)
    X = normal(8 * n, 0, c=2) + 100 * progress[:, np.newaxis]
    stream = learned(quick(0.2, course=Course()), X, runs=runs, context=progress)
    live = normal(n, 9, c=2) + 100 * progress[:n, np.newaxis]
    live[40:, 0] += 30
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        stream.follow(live, context=progress[:n])
    first = stream.readings()[0]
    assert first.name == "x0"
    assert first.value == pytest.approx(live[-5:, 0].mean(), abs=10)  # the course is steep
    assert abs(first.usual - 110) < 10
    low, high = stream.sensors_.band(np.array([[0.5]]))
    assert low[0, 0] < 60 < high[0, 0]


def test_columns_behind_a_row_are_told_with_what_is_usual_and_categories_in_words():
    rng = np.random.default_rng(0)
    load = rng.normal(size=400)
    table = pd.DataFrame(
        {
            "load": load,
            "heat": 50 + 10 * load + rng.normal(size=400),
            "mode": rng.choice(["auto", "hand"], size=400),
        }
    )
    detector = FusedDetector("light", random_state=0).fit(table)
    odd = pd.DataFrame({"load": [1.0, 0.0], "heat": [40.0, 50.0], "mode": ["auto", "broken"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        why = detector.explain(odd)
    hot = next(one for one in row_readings(why, detector, 0) if one.name == "heat")
    assert hot.value == 40.0
    assert abs(hot.usual - 60) < 3  # at this load, not on average
    assert 0 < hot.spread < 4
    mode = row_readings(why, detector, 1)[0]
    assert str(mode).startswith("mode broken (usual ")
    assert mode.spread is None
    assert len(row_readings(why, detector, 0, count=1)) == 1

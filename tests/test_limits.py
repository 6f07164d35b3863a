"""Limits: what always raises an alarm, beside scores that do not know of it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse import FusedDetector, load
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, SuspectInputWarning, TableError
from ocfuse.limits import ValueLimits, check_limits
from ocfuse.serve.scoring import scorer_of
from ocfuse.tables import TableDetector

LIMITS = {"temp": (None, 3.5), "level": (-3.0, 4.0)}
cells = st.floats(-10, 10) | st.sampled_from([np.nan, np.inf, -np.inf])


def table(n=200, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 3)).clip(-2.9, 2.9)
    return pd.DataFrame(X, columns=["temp", "level", "flow"])


@pytest.fixture(scope="module")
def detector():
    return FusedDetector("light", random_state=0, limits=LIMITS).fit(table())


@pytest.fixture(scope="module")
def model():
    return TableDetector(FusedDetector("light", random_state=0), limits=LIMITS).fit(table())


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_a_limit_is_broken_exactly_beyond_it(rows):
    limits = ValueLimits(["a", "b"], np.arange(2), np.array([-1.0, -np.inf]), np.array([2.0, 3.0]))
    found = limits.broken(np.array(rows, dtype=float).reshape(-1, 2))
    for (a, b), words in zip(rows, found, strict=True):
        expected = ["a above 2"] * (a > 2) + ["a below -1"] * (a < -1) + ["b above 3"] * (b > 3)
        assert words == "; ".join(expected)


def test_limits_alarm_whatever_the_score_is_and_change_no_score(detector):
    plain = FusedDetector("light", random_state=0).fit(table())
    fresh = table(100, 1)
    fresh.loc[3, "level"] = -5.0
    np.testing.assert_array_equal(detector.score_samples(fresh), plain.score_samples(fresh))
    np.testing.assert_array_equal(detector.p_values(fresh), plain.p_values(fresh))
    assert detector.offset_ == plain.offset_
    detector.set_threshold(offset=-1e12)  # the score alone raises none
    try:
        assert np.flatnonzero(detector.predict(fresh) < 0).tolist() == [3]
    finally:
        detector.set_threshold(0.05)
    assert detector.broken_limits(fresh)[3] == "level below -3"
    assert (detector.broken_limits(fresh) != "").sum() == 1


def test_gaps_break_no_limit_and_arrays_and_polars_do_as_pandas(detector):
    fresh = table(20, 1)
    fresh.loc[4, "temp"], fresh.loc[5, "temp"] = np.nan, 9.0
    found = detector.broken_limits(fresh)
    assert np.flatnonzero(found != "").tolist() == [5]
    assert detector.broken_limits(pl.from_pandas(fresh)).tolist() == found.tolist()
    by_place = FusedDetector("light", random_state=0, limits={0: (None, 3.5)}).fit(
        table().to_numpy()
    )
    assert by_place.broken_limits(fresh.to_numpy())[5] == "x0 above 3.5"


def test_training_rows_that_break_a_limit_are_counted(tmp_path):
    rows = table()
    rows.loc[[7, 9], "temp"] = 3.6
    with pytest.warns(SuspectInputWarning, match="2 of 200 training rows break a limit"):
        found = FusedDetector("light", random_state=0, limits=LIMITS).fit_predict(rows)
    assert (found[[7, 9]] == -1).all()
    y = np.zeros(200)
    y[[7, 9]] = -1  # said to be faults: nothing to warn of
    FusedDetector("light", random_state=0, limits=LIMITS).fit(rows, y)


def test_limits_are_saved(detector, tmp_path):
    again = load(detector.save(tmp_path / "model.ocf"))
    assert (
        str(again.limits_)
        == str(detector.limits_)
        == "temp above 3.5, level above 4, level below -3"
    )
    assert again.predict(table(5, 1).assign(temp=99.0)).tolist() == [-1] * 5


def test_explanations_and_reports_mark_rules(detector):
    fresh = table(30, 1)
    fresh.loc[3, "level"] = -3.01
    detector.set_threshold(offset=-1e12)
    try:
        found = detector.explain(fresh)
        page = str(detector.report(fresh).html)
    finally:
        detector.set_threshold(0.05)
    assert found.is_anomaly.tolist() == [i == 3 for i in range(30)]
    assert found.reason(3) == "limit broken: level below -3"
    assert "limit broken, whatever the score: level below -3" in found.describe(3)
    assert "limit" not in found.describe(2)
    assert "1 row of this report break" in page


def test_tables_have_a_column_of_rules(model):
    fresh = table(50, 1)
    fresh.loc[3, "level"] = -5.0
    found = model.score(fresh, why=True)
    assert found.columns.tolist() == ["score", "p_value", "is_anomaly", "rule", "why"]
    assert found["rule"].notna().sum() == 1
    assert found.loc[3, "rule"] == "level below -3"
    assert found.loc[3, "is_anomaly"]
    assert found.loc[3, "why"].startswith("limit broken: level below -3")
    plain = TableDetector(FusedDetector("light", random_state=0)).fit(table())
    np.testing.assert_array_equal(plain.score(fresh)["score"], found["score"])
    assert "rule" not in plain.score(fresh)


def test_a_row_without_a_score_may_break_a_limit(model):
    fresh = table(3, 1).astype(object)
    fresh.loc[1, "flow"], fresh.loc[1, "temp"] = "oops", 9.0
    with pytest.warns(UserWarning, match="Rows without a score"):
        found = model.score(fresh, keep_going=True)
    assert np.isnan(found.loc[1, "score"])
    assert found.loc[1, "is_anomaly"]
    assert found.loc[1, "rule"] == "temp above 3.5"


def test_an_id_column_named_rule_gets_another_name():
    rows = table().assign(rule=np.arange(200))
    model = TableDetector(FusedDetector("light", random_state=0), limits=LIMITS, id="rule")
    found = model.fit(rows).score(rows.head(3))
    assert found.columns.tolist() == ["id", "score", "p_value", "is_anomaly", "rule"]


def test_the_service_marks_rules(model):
    scorer = scorer_of(model)
    found = scorer.score_cells([(0.1, 0.2, 0.3), (0.1, -7.0, 0.3)])
    assert found.rule == [None, "level below -3"]
    assert found.is_anomaly[1]
    assert found.part(slice(1, 2)).rule == ["level below -3"]
    assert (
        scorer_of(FusedDetector("light", random_state=0).fit(table()))
        .score_cells([(0.1, 0.2, 0.3)])
        .rule
        is None
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"temp": (90, 20)}, "lowest value above its highest"),
        ({"temp": (None, None)}, "finite numbers or None"),
        ({"temp": (None, np.inf)}, "finite numbers or None"),
        ({"temp": (0, np.nan)}, "finite numbers or None"),
        ({"temp": 90}, "must be the lowest and the highest"),
        ({"temp": ("a", 90)}, "finite numbers or None"),
        ({"temp": (True, 90)}, "finite numbers or None"),
    ],
)
def test_limits_that_make_no_sense_are_refused(given, words):
    with pytest.raises(InvalidInputError, match=words):
        check_limits(given)


def test_limits_of_columns_that_are_not_there_or_hold_no_numbers():
    rows = table(60).assign(kind=["a", "b"] * 30)
    with pytest.raises(InvalidInputError, match="Did you mean 'temp'"):
        FusedDetector("light", limits={"tmp": (0, 1)}).fit(rows)
    with pytest.raises(InvalidInputError, match="limits names 'kind', which holds text"):
        FusedDetector("light", limits={"kind": (0, 1)}).fit(rows)
    with pytest.raises(TableError, match="limits names column 'kind', which holds text"):
        TableDetector(limits={"kind": (0, 1)}).fit(rows)
    with pytest.raises(InvalidTypeError, match="must be a dict"):
        FusedDetector("light", limits=[("temp", 90)]).fit(rows)

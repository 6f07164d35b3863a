"""Gaps where training had none, and values where it had none."""

import numpy as np
import pandas as pd
import pytest

import ocfuse
from ocfuse import FeatureEncoder, FusedDetector
from ocfuse.exceptions import CellsWarning, IgnoredColumnsWarning, InvalidInputError
from ocfuse.tables import TableDetector

RATE = 0.05


def plants(n=400, seed=0):
    """Four numbers, two of which follow the first, and a category that follows its sign."""
    rng = np.random.default_rng(seed)
    load = rng.normal(size=n)
    return pd.DataFrame(
        {
            "load": load,
            "heat": load + 0.3 * rng.normal(size=n),
            "flow": load**2 + 0.3 * rng.normal(size=n),
            "noise": rng.normal(size=n),
            "gear": np.where(load + 0.2 * rng.normal(size=n) > 0, "high", "low"),
        }
    )


@pytest.fixture(scope="module")
def model():
    detector = FusedDetector("light", false_alarm_rate=RATE, random_state=0)
    return TableDetector(detector).fit(plants())


def with_gaps(frame, columns):
    """One gap in every row, in one column after another."""
    frame = frame.astype({"gear": object})
    for i, row in enumerate(frame.index):
        frame.loc[row, columns[i % len(columns)]] = None
    return frame


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
@pytest.mark.parametrize("column", ["load", "heat", "flow", "noise", "gear"])
def test_normal_rows_with_a_gap_keep_the_stated_rate(model, column):
    rows = plants(800, seed=1)
    scores = model.score(with_gaps(rows, [column]))
    assert scores["is_anomaly"].mean() <= RATE + 3 * np.sqrt(RATE * (1 - RATE) / 800) + 0.01
    # the gap takes a value that is as normal as can be: p-values become wider, not narrower
    assert scores["p_value"].mean() >= model.score(rows)["p_value"].mean() - 0.02


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
def test_anomalies_with_a_gap_elsewhere_are_still_found(model):
    rows = plants(200, seed=2)
    rows["noise"] += 8.0
    found = model.score(with_gaps(rows, ["load", "heat", "flow", "gear"]))["is_anomaly"]
    assert found.mean() >= 0.98
    rows = plants(200, seed=2)
    rows["heat"] = rows["load"] + 6
    assert model.score(with_gaps(rows, ["flow", "noise", "gear"]))["is_anomaly"].mean() >= 0.95


def test_one_gap_is_told_and_does_not_stop_the_others(model):
    rows = plants(50, seed=3)
    expected = model.score(rows)
    rows.loc[7, "heat"] = np.nan
    told = "heat: no value, though training had no gaps there; judged by the other columns: row 7"
    with pytest.warns(CellsWarning, match=told):
        scores = model.score(rows)
    assert scores["score"].notna().all()
    pd.testing.assert_frame_equal(scores.drop(7), expected.drop(7), rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
def test_what_a_gap_means_can_be_changed_without_learning_again(model, tmp_path):
    rows = with_gaps(plants(20, seed=4), list(plants(1)))
    model = ocfuse.load(model.save(tmp_path / "m.ocf"))
    model.detector_.set_gaps("alarm")
    assert model.score(rows)["is_anomaly"].all()
    why = model.explain(rows)
    gaps = rows.isna().to_numpy()
    assert (why.attributions.argmax(axis=1) == gaps.argmax(axis=1)).mean() >= 0.95
    model.detector_.set_gaps("refuse")
    with pytest.raises(InvalidInputError, match=r"training: load \(row 0\), heat.*gaps='judge'"):
        model.score(rows)
    with pytest.raises(InvalidInputError, match="gaps must be one of"):
        model.detector_.set_gaps("fill")


@pytest.mark.slow
def test_arrays_and_frames_are_judged_alike():
    X = plants().drop(columns="gear")
    named = FusedDetector("light", random_state=0).fit(X)
    plain = FusedDetector("light", random_state=0).fit(X.to_numpy())
    rows = X.iloc[:8].copy()
    rows.iloc[3, 1] = np.nan
    with pytest.warns(CellsWarning, match="heat: no value"):
        expected = named.score_samples(rows)
    with pytest.warns(CellsWarning, match="1: no value"):
        np.testing.assert_array_equal(plain.score_samples(rows.to_numpy()), expected)


def test_the_encoder_settles_it_when_learning():
    encoder = FeatureEncoder(gaps="alarm")
    detector = FusedDetector("light", random_state=0, encoder=encoder).fit(plants())
    with pytest.warns(CellsWarning):
        assert (detector.predict(with_gaps(plants(20, seed=5), ["noise"])) < 0).all()


def test_a_column_that_was_empty_and_now_holds_values_is_a_change():
    frame = plants().assign(comment=None)
    detector = FusedDetector("light", random_state=0)
    with pytest.warns(IgnoredColumnsWarning, match=r"comment \(no value in any row\)"):
        model = TableDetector(detector).fit(frame)
    rows = frame.iloc[:40]
    expected = model.score(rows)
    pd.testing.assert_frame_equal(model.score(rows.drop(columns="comment")), expected)
    changed = rows.assign(comment=["leaks", *[None] * 39])
    told = r"comment: values, though training had none there \('leaks'\): row 0"
    with pytest.warns(CellsWarning, match=told):
        scores = model.score(changed)
    assert scores["is_anomaly"][0]
    with pytest.warns(CellsWarning):
        why = model.explain(changed)
    assert why.feature_names[int(why.attributions[0].argmax())] == "comment"
    pd.testing.assert_frame_equal(scores.drop(0), expected.drop(0), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_gaps_of_labelled_anomalies_only():
    frame = plants().assign(fault=0)
    frame.loc[:19, ["noise", "fault"]] = [np.nan, 1]
    detector = FusedDetector("light", random_state=0)
    model = TableDetector(detector, label="fault").fit(frame)
    assert model.score(frame.iloc[20:])["is_anomaly"].mean() <= 0.1


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
def test_reasons_mark_every_row_that_is_judged_without_a_column(model):
    rows = plants(30, seed=3)
    rows = rows[~model.score(rows)["is_anomaly"].to_numpy(bool)][:5].reset_index(drop=True)
    rows.loc[[1, 2], "heat"] = np.nan
    rows.loc[[2, 3], "noise"] = 50.0
    assert model.judged_without(rows) == ["", "heat", "heat", "", ""]
    why = model.score(rows, why=True)["why"]
    assert why[1] == "judged without heat"
    assert why[2].startswith("noise 50")
    assert why[2].endswith("; judged without heat")
    assert "judged" not in why[3]
    assert why[[0, 4]].isna().all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
def test_p_values_of_rows_with_a_gap_are_wider_on_average(model):
    rows = plants(300, seed=5)
    expected = model.score(rows)
    for name in rows:
        scores = model.score(with_gaps(rows, [name]))
        assert scores["p_value"].mean() >= expected["p_value"].mean()
        assert scores["is_anomaly"].mean() <= expected["is_anomaly"].mean() + 0.01


def test_an_empty_column_is_no_category_and_its_first_value_is_shown():
    rows = plants(120).assign(remark="")
    with pytest.warns(IgnoredColumnsWarning, match=r"remark \(no value in any row\)\.$"):
        model = TableDetector(FusedDetector("light", random_state=0)).fit(rows)
    later = plants(3, seed=2).assign(remark=["", "leak", ""])
    with pytest.warns(CellsWarning, match=r"remark: values, though .* \('leak'\): row 1"):
        scores = model.score(later, why=True)
    assert scores["is_anomaly"][1]
    assert scores["why"][1].startswith("remark leak, never seen in training, usually missing")


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
def test_a_row_without_any_value_is_not_normal(model):
    rows = plants(3, seed=1).astype(object)
    rows.iloc[1] = None
    rows.iloc[2, 1:] = None  # judged by what is left
    assert model.score(rows)["is_anomaly"].tolist() == [False, True, False]


@pytest.mark.parametrize("blank", ["", " ", "nan"])
def test_a_text_column_without_a_word_in_it_is_left_out_and_told(blank):
    rows = plants(60).assign(remark=blank)
    with pytest.warns(IgnoredColumnsWarning, match="remark"):
        detector = FusedDetector("light", random_state=0).fit(rows)
    assert np.isfinite(detector.explain(rows[:2]).score).all()

"""StreamTable: runs by file or column, whole or as they come, and cells that hold no number."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.detectors import GMM, KNN
from ocfuse.exceptions import (
    ColumnMismatchError,
    FewSamplesWarning,
    InvalidInputError,
    InvalidTypeError,
    RowsWarning,
    TableError,
    TableWarning,
)
from ocfuse.streaming import Course, StreamDetector, StreamTable
from ocfuse.tables import TableDetector

MEMBERS = [("gmm", GMM(1)), ("knn", KNN(3))]
N, LONGEST = 120, 12


def run(seed, name=None, n=N):
    """Return a run of a pump, as a table is read: text."""
    rng = np.random.default_rng(seed)
    flow = rng.normal(size=n)
    when = pd.date_range("2024-03-01", periods=n, freq="s") + pd.Timedelta(hours=seed)
    frame = pd.DataFrame({"when": when.strftime("%F %T"), "flow": flow, "current": flow / 2})
    frame["current"] += 0.1 * rng.normal(size=n)
    return frame if name is None else frame.assign(file=name)


def runs(n=10):
    return pd.concat([run(i, f"run{i}.csv") for i in range(n)], ignore_index=True)


def stream(**params):
    detector = FusedDetector(MEMBERS, false_alarm_rate=0.1, random_state=0)
    return StreamDetector(detector, windows=(5, LONGEST), **params)


@pytest.fixture(scope="module")
def model():
    return StreamTable(stream()).fit(runs())


@pytest.fixture
def faulty():
    frame = run(50)
    frame.loc[80:, "current"] += 2
    return frame


def test_scores_are_those_of_the_stream_detector(model, faulty):
    X = faulty[["flow", "current"]].to_numpy()
    table = model.score(faulty)
    expected = model.stream_.score_run(X, pd.to_datetime(faulty["when"]).to_numpy())
    np.testing.assert_array_equal(table["score"], expected)
    assert list(table.columns) == ["when", "score", "p_value", "is_anomaly"]
    assert table["score"].isna().sum() == LONGEST - 1
    assert not table["is_anomaly"][: LONGEST - 1].any()
    assert table["p_value"].isna().equals(table["score"].isna())
    assert table["is_anomaly"][80 + LONGEST :].all()


def test_runs_are_the_files_of_a_folder(model):
    assert model.card_["runs"] == 10
    assert model.run_column == "file"
    assert model.stream_.detector_.n_groups_ == 10
    table = model.score(runs(3))
    assert table["score"].isna().sum() == 3 * (LONGEST - 1)
    assert list(table.columns)[:2] == ["file", "when"]
    alone = model.score(run(1, "run1.csv"))
    np.testing.assert_allclose(table["score"][N : 2 * N], alone["score"], rtol=1e-12, atol=1e-12)


def test_text_reads_as_numbers(model, faulty):
    text = faulty.astype(str)
    np.testing.assert_array_equal(model.score(text)["score"], model.score(faulty)["score"])


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1,), (7, 30), (N,)])
def test_rows_as_they_come_score_as_the_whole(model, sizes):
    frame = runs(2)
    whole = model.score(frame)
    model.restart()
    found, start = [], 0
    while start < len(frame):
        size = sizes[len(found) % len(sizes)]
        found.append(model.score_rows(frame.iloc[start : start + size]))
        start += size
    live = pd.concat(found)
    np.testing.assert_allclose(live["score"], whole["score"], rtol=1e-12, atol=1e-12)
    assert live.drop(columns=["score", "p_value"]).equals(whole.drop(columns=["score", "p_value"]))
    assert model.counts["seen"] == 2 * N


def test_score_leaves_the_live_stream_alone(model, faulty):
    model.restart().score_rows(faulty[:60])
    model.score(faulty)
    rest = model.score_rows(faulty[60:])
    np.testing.assert_allclose(rest["score"], model.score(faulty)["score"][60:], rtol=1e-12)
    assert model.counts["seen"] == N


def test_saved_and_loaded(model, faulty, tmp_path):
    again = load(model.save(tmp_path / "pump.ocf"))
    assert again.score(faulty).equals(model.score(faulty))
    assert again.card_ == model.card_


def test_what_is_no_number_is_missing_and_counted(model, faulty):
    strange = faulty.astype(str)
    strange.loc[40, "flow"] = "ERR"
    strange.loc[41, "current"] = "inf"
    strange.loc[42, "current"] = ""
    gaps = faulty.copy()
    gaps.loc[40, "flow"] = gaps.loc[41, "current"] = gaps.loc[42, "current"] = np.nan
    model.restart()
    with pytest.warns(RowsWarning, match="2 rows|row 40"):
        found = model.score_rows(strange)
    np.testing.assert_array_equal(found["score"], model.score(gaps)["score"])
    assert model.counts["unreadable"] == 2


def test_late_and_repeated_rows_are_counted_over_runs(model):
    model.restart()
    first, second = run(1, "a"), run(2, "b")
    first = first.iloc[[*range(50), 49, 48, *range(50, N)]]
    model.score_rows(pd.concat([first, second], ignore_index=True))
    assert model.run_ == "b"
    assert (model.counts["repeated"], model.counts["late"]) == (1, 1)
    assert model.counts["seen"] == 2 * N + 2


def test_a_column_of_text_is_another_column(model, faulty):
    with pytest.raises(ColumnMismatchError, match="flow"):
        model.score(faulty.assign(flow="high"))
    with pytest.raises(ColumnMismatchError, match="Missing: current"):
        model.score(faulty.drop(columns="current"))


def test_further_columns_are_told_once(model, faulty):
    model.restart()
    more = faulty.assign(humidity=1.0)
    with pytest.warns(TableWarning, match="humidity"):
        model.score_rows(more[:20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score_rows(more[20:40])


def test_categories_are_named(faulty):
    frame = runs().assign(mode=["on", "off"] * 600)
    with pytest.warns(TableWarning, match=r"mode \(text with 2 different values\).*left out"):
        StreamTable(stream()).fit(frame)
    assert StreamTable(stream(), ignore="mode").fit(frame).schema_.features == ["flow", "current"]


def test_interleaved_runs_are_refused(model):
    mixed = pd.concat([run(1, "a"), run(2, "b")]).sort_values("when", kind="stable")
    mixed["when"] = run(1)["when"].iloc[0]
    mixed = mixed.iloc[[0, N, 1, N + 1]]
    with pytest.raises(InvalidInputError, match="must follow each other"):
        model.score(mixed)


def test_a_counter_among_the_channels_is_told():
    frame = runs().assign(step=np.tile(np.arange(N), 10))
    with pytest.warns(TableWarning, match="'step' rises in every row.*time='step'"):
        StreamTable(stream()).fit(frame)


@pytest.mark.slow
def test_context_is_no_channel():
    frame = runs().assign(progress=np.tile(np.linspace(0, 1, N), 10))
    model = StreamTable(stream(course=Course(11)), context="progress").fit(frame)
    assert model.stream_.channels_ == ["flow", "current"]
    assert "context of the rows" in model.schema_.left_out
    new = run(50).assign(progress=np.linspace(0, 1, N))
    assert model.score(new)["score"].notna().sum() == N - LONGEST + 1
    with pytest.raises(TableError, match="'progress' is missing"):
        model.score(run(50))


@pytest.mark.slow
def test_rows_without_a_context_have_no_score_but_cannot_be_learned():
    frame = runs().assign(progress=np.tile(np.linspace(0, 1, N), 10))
    model = StreamTable(stream(), context="progress").fit(frame)
    new = run(50).assign(progress=np.linspace(0, 1, N).astype(str))
    whole = model.score(new)["score"]
    new.loc[[70, 71, 72], "progress"] = ["", "far", "inf"]
    with pytest.warns(RowsWarning, match="without a context.*: 3 rows.*row 70"):
        table = model.restart().score_rows(new)
    assert table.index[table["score"].isna()].tolist() == [*range(LONGEST - 1), 70, 71, 72]
    assert not table["is_anomaly"][70:73].any()
    np.testing.assert_allclose(table["score"][:70], whole[:70], rtol=1e-12)
    assert model.counts["context"] == 3
    assert model.begin_run().counts["context"] == 3
    frame.loc[7, "progress"] = np.nan
    with pytest.raises(TableError, match="no number in row 7"):
        StreamTable(stream(), context="progress").fit(frame)


class TestStates:
    """A machine whose flow is high while it runs by itself, and low in other hands."""

    @staticmethod
    def run(seed, name=None):
        mode = np.where(np.arange(N) // 40 == 1, "MANUAL", "AUTO")
        frame = run(seed, name).assign(mode=mode)
        frame["flow"] += np.where(mode == "AUTO", 10.0, 0.0)
        return frame

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls):
        frame = pd.concat([cls.run(i, f"run{i}.csv") for i in range(10)], ignore_index=True)
        return StreamTable(stream(course=Course()), context="mode").fit(frame)

    def test_are_what_channels_are_measured_in(self, model):
        assert model.stream_.view_.course.mean_[:, 0] == pytest.approx([10, 0], abs=0.5)
        normal, wrong = self.run(50), self.run(50)
        wrong.loc[60:75, "mode"] = "AUTO"  # with the flow of other hands
        assert model.score(normal)["is_anomaly"][LONGEST:].mean() < 0.3
        assert model.score(wrong)["is_anomaly"][62:70].all()

    def test_that_training_did_not_have_are_told_and_have_no_score(self, model):
        new = self.run(50)
        new.loc[[70, 71], "mode"] = ["SERVICE", ""]
        model.restart()
        with pytest.warns(RowsWarning) as told:
            table = model.score_rows(new)
        assert sorted(str(each.message) for each in told) == [
            "Rows in a state of 'mode' that training did not have, without a score: row 70.",
            "Rows without a context, which have no score: row 71.",
        ]
        assert table.index[table["score"].isna()].tolist() == [*range(LONGEST - 1), 70, 71]
        assert (model.counts["state"], model.counts["context"]) == (1, 1)

    def test_are_kept_in_the_file_and_read_plainly(self, model, tmp_path):
        again = load(model.save(tmp_path / "m.ocf"))
        new = self.run(50)
        scores = again.score(new)["score"]
        np.testing.assert_array_equal(scores, model.score(new)["score"])
        reader = again.plain_reader(list(new.columns))
        rows = [list(map(str, row)) for row in new.to_numpy()]
        plain, _ = again.restart().follow_plain(reader.read(rows))
        np.testing.assert_allclose(plain, scores, rtol=1e-12)
        assert reader.read([[*rows[0][:3], "SERVICE"]]) is None
        (mode,) = (c for c in again.schema_.columns if c.name == "mode")
        assert mode.reason == "context of the rows, as asked for: AUTO, MANUAL"

    def test_are_few_and_known_to_be_learned(self):
        frame = pd.concat([self.run(i, f"run{i}.csv") for i in range(10)], ignore_index=True)
        frame["note"] = [f"note {i}" for i in range(len(frame))]
        with pytest.raises(TableError, match="1,200 different texts"):
            StreamTable(stream(), context="note", ignore="mode").fit(frame)
        frame = frame.drop(columns="note")
        with pytest.warns(TableWarning, match="say context='mode'. They are left out"):
            assert StreamTable(stream()).fit(frame).channels == ["flow", "current"]
        with pytest.raises(TableError, match="The channels of a stream are numbers"):
            StreamTable(stream()).fit(frame[["mode", "file"]])
        frame.loc[3, "mode"] = None
        with pytest.raises(TableError, match="holds no state in row 3"):
            StreamTable(stream(), context="mode").fit(frame)


@pytest.mark.parametrize(
    ("context", "words"),
    [("nosuch", "context must name .* Got context='nosuch'"), ("when", "both context and time")],
)
def test_a_context_that_cannot_be_one_is_called_so(context, words):
    with pytest.raises(InvalidInputError, match=words):
        StreamTable(stream(), context=context, time="when").fit(runs())


def test_runs_are_found_among_the_scores(model):
    table = model.score(runs(2))
    assert model.runs_in(table).unique().tolist() == ["run0.csv", "run1.csv"]
    assert model.runs_in(model.score(run(1))) is None
    named = runs().rename(columns={"file": "score"})
    other = StreamTable(stream(), group="score").fit(named)
    assert other.runs_in(other.score(named[:150])).unique().tolist() == ["run0.csv", "run1.csv"]


def test_warnings_speak_of_runs():
    with pytest.warns(FewSamplesWarning, match=r"10 runs are too few .* 19 runs; .* 0\.091\.$"):
        StreamTable(stream()).fit(runs()).stream_.set_threshold(0.05)


def test_explanation_by_channel(model, faulty):
    found = model.explain(faulty, [100, 110])
    assert found.feature_names == model.stream_.feature_names_
    scores = model.score(faulty)["score"]
    np.testing.assert_allclose(found.score, scores[[100, 110]], rtol=1e-12)
    costs = model.channel_costs(found)
    assert costs.shape == (2, 2)
    np.testing.assert_allclose(costs.sum(axis=1), found.attributions.sum(axis=1))
    assert (costs[:, 1] > costs[:, 0]).all()
    assert len(model.explain(faulty[:20])) == 20 - LONGEST + 1


def test_report(model, faulty):
    page = model.report(faulty, name="new.csv").html
    assert "Anomalies in new.csv" in page
    assert f"{LONGEST - 1} rows without a score left out" in page
    with pytest.raises(TableError, match="needs 12 rows of its run"):
        model.report(faulty[:5])


def test_a_report_shows_the_course_of_channels_and_what_they_read_in_events(model, faulty):
    faulty.loc[40:44, "flow"] = np.nan
    page = model.report(faulty).html
    drawn = json.loads(page.split('id="data">')[1].split("</script>")[0])["timeline"]["channels"]
    assert drawn[0]["name"] == "current"
    scored = faulty["current"][LONGEST - 1 :]
    np.testing.assert_allclose(drawn[0]["value"], scored, rtol=1e-5)
    assert drawn[1]["value"].count(None) == 5
    inside = (scored > drawn[0]["low"]) & (scored < drawn[0]["high"])
    assert inside[:60].mean() > 0.8 > 0.2 > inside[80:].mean()
    assert re.search(r"<span>current [-\d.]+ \(usual [-\d.]+ \+- [\d.]+\)", page)


@pytest.mark.slow
def test_calibrate_moves_the_threshold(model):
    fresh = StreamTable(stream()).fit(runs())
    before = fresh.detector_.offset_
    restless = runs()
    restless[["flow", "current"]] *= 3
    fresh.calibrate(restless)
    assert fresh.detector_.offset_ < before


def test_labels_are_a_column():
    frame = runs()
    frame.loc[100:110, "current"] += 9
    frame["state"] = "ok"
    frame.loc[100:120, "state"] = "broken"
    detector = StreamTable(stream(), label="state").fit(frame).detector_
    # row 120 is the first of the next run and has no score
    n_others = len(detector.training_scores_) - len(detector.training_rows_)
    assert n_others - len(detector.trimmed_rows_) == 20


def test_wrong_detectors():
    for wrong in (FusedDetector(), TableDetector()):
        with pytest.raises(InvalidTypeError, match="must be a StreamDetector"):
            StreamTable(wrong).fit(runs())


def test_reasons_beside_rows_of_a_stream_are_readings_of_channels(model, faulty):
    scores = model.restart().score_rows(faulty, why=True)
    told = scores["why"].notna()
    assert told.equals(scores["is_anomaly"].eq(True).fillna(False).astype(bool))
    assert scores["why"][100].startswith("current ")
    assert model.restart().score_rows(faulty, why="all")["why"].notna().sum() == N - LONGEST + 1
    with pytest.warns(RowsWarning, match="without a reason"):
        few = model.restart().score_rows(faulty, why=True, most_explained=2)
    assert few["why"].notna().sum() == 2


def test_rows_without_a_score_are_unknown_if_all_are(model):
    assert model.n_unknown(9, 100) == 0
    assert model.n_unknown(100, 100) == 100

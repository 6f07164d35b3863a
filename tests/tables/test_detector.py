"""The whole way: a table, a model, a file, scores."""

import inspect
import subprocess
import sys
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import OneClassSVM

import ocfuse
from ocfuse import FusedDetector
from ocfuse.ensemble.score import BLOCK_ROWS
from ocfuse.exceptions import (
    ColumnMismatchError,
    FewSamplesWarning,
    InvalidInputError,
    InvalidTypeError,
    NotEnoughMemoryError,
    OcfuseWarning,
    RowsWarning,
    TableError,
    TableWarning,
)
from ocfuse.system.packages import install_line
from ocfuse.tables import TableDetector, open_source

# a column of the pumps is constant
pytestmark = pytest.mark.filterwarnings("ignore:Columns with the same value")


def light():
    return FusedDetector("light", random_state=0, negatives="uniform")


@pytest.fixture(scope="module")
def model(pumps):
    return TableDetector(light()).fit(pumps)


def test_parameters():
    model = TableDetector(light(), label="a", normal="b", ignore=["c"], id="d", time="e", group="f")
    copied = clone(model)
    assert copied.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copied.detector is not model.detector
    assert copied.set_params(detector__false_alarm_rate=0.2).detector.false_alarm_rate == 0.2


def test_scores_are_those_of_the_detector(model, pumps):
    scores = model.score(pumps)
    assert scores.columns.tolist() == ["part_id", "when", "score", "p_value", "is_anomaly"]
    features = model.schema_.features_of(pumps)
    assert np.array_equal(scores["score"], model.detector_.score_samples(features))
    assert np.array_equal(scores["p_value"], model.detector_.p_values(features))
    assert np.array_equal(scores["is_anomaly"], model.detector_.predict(features) == -1)
    assert scores["part_id"].tolist() == pumps["part_id"].tolist()
    assert scores["when"].tolist() == pumps["when"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet", "t.feather"])
@pytest.mark.parametrize("chunk_rows", [1, 37])
def test_chunks_score_like_the_whole_table(model, pumps, tmp_path, name, chunk_rows):
    # Other rows than those of training, whose scores are tied with those of the calibration.
    chosen = pumps.iloc[:60].assign(flow=pumps["flow"] + 0.1)
    ending = name.split(".", 1)[1].split(".")[0]
    if ending in ("csv", "tsv"):
        chosen.to_csv(tmp_path / name, index=False, sep="\t" if ending == "tsv" else ",")
    else:
        getattr(chosen, f"to_{ending}")(tmp_path / name)
    chunks = open_source(tmp_path / name, chunk_rows=chunk_rows).chunks()
    scores = pd.concat([model.score(chunk) for chunk in chunks])
    whole = model.score(chosen)
    # A product of matrices is rounded differently for other numbers of rows: 1e-15, no more.
    close = {"check_dtype": False, "rtol": 0, "atol": 1e-12}
    pd.testing.assert_frame_equal(scores, whole, **close)


@pytest.mark.slow
@pytest.mark.parametrize("members", ["default", "light"])
def test_chunks_of_whole_blocks_give_the_same_bits(pumps, members, monkeypatch):
    """Also for training rows, whose scores are tied with those of the calibration."""
    assert inspect.signature(open_source).parameters["chunk_rows"].default % BLOCK_ROWS == 0
    monkeypatch.setattr("ocfuse.ensemble.score.BLOCK_ROWS", 20)
    rows = pumps.drop(columns=["state", "flag"]).iloc[:110]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)
        model = TableDetector(FusedDetector(members, random_state=0)).fit(rows)
    parts = [model.score(rows.iloc[start : start + 40]) for start in range(0, 110, 40)]
    pd.testing.assert_frame_equal(pd.concat(parts), model.score(rows), check_exact=True)


@pytest.mark.slow
def test_saved_and_loaded(model, pumps, tmp_path):
    loaded = ocfuse.load(model.save(tmp_path / "m.ocf"))
    assert loaded.schema_ == model.schema_
    assert loaded.card_ == model.card_
    pd.testing.assert_frame_equal(loaded.score(pumps), model.score(pumps))


def test_card(model, pumps):
    card = model.card_
    assert (card["rows"], card["columns"]) == (len(pumps), 7)
    assert card["versions"]["ocfuse"] == ocfuse.__version__
    assert card["settings"]["members"] == "light"
    assert card["time"].endswith("+00:00")


@pytest.mark.slow
def test_checksum_tells_data_not_formats(model, pumps, tmp_path):
    pumps.to_csv(tmp_path / "t.csv", index=False)
    same = TableDetector(light()).fit(open_source(tmp_path / "t.csv").read())
    assert same.card_["sha256"] == model.card_["sha256"]
    assert np.array_equal(same.score(pumps)["score"], model.score(pumps)["score"])
    other = TableDetector(light()).fit(pumps.assign(flow=pumps["flow"] + 1e-9))
    assert other.card_["sha256"] != model.card_["sha256"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
def test_labels_are_learned_from(pumps):
    labelled = pumps.assign(judged=["ok"] * 225 + [None] * 5 + ["leak"] * 10)
    labelled.loc[230:, "flow"] += 30
    model = TableDetector(light(), label="judged").fit(labelled)
    features = model.schema_.features_of(labelled)
    assert "judged" not in features
    alone = light().fit(features, [1] * 225 + [0] * 5 + [-1] * 10)
    assert np.array_equal(model.score(labelled)["score"], alone.score_samples(features))


def test_unusual_rows_raise_alarms(model, pumps):
    odd = pumps.iloc[:4].copy()
    odd["flow"] = [90.0, -50.0, 20.0, 20.0]
    odd.loc[2, "state"] = "burning"
    odd.loc[3, "fixed"] = 90.0
    with pytest.warns(TableWarning, match="burning"):
        scores = model.score(odd)
    assert scores["is_anomaly"].tolist()[:2] == [True, True]
    assert (scores["score"] < model.score(pumps.iloc[:4].assign(flow=20.0))["score"]).all()


def test_explanation_names_the_columns(model, pumps):
    odd = pumps.iloc[[5]].assign(flow=90.0)
    explanation = model.explain(odd)
    assert explanation.feature_names == model.schema_.features
    assert explanation.feature_names[int(np.argmax(explanation.attributions[0]))] == "flow"


def test_a_name_that_is_taken(pumps):
    frame = pumps.rename(columns={"part_id": "score"})
    result = TableDetector(light(), id="score").fit(frame).score(frame)
    assert result.columns.tolist() == ["id", "when", "score", "p_value", "is_anomaly"]
    assert result["id"].tolist() == pumps["part_id"].tolist()


def test_names_that_are_taken_twice(pumps):
    frame = pumps.rename(columns={"part_id": "score", "when": "id"})
    result = TableDetector(light(), id="score", time="id").fit(frame).score(frame)
    assert result.columns.tolist() == ["id_2", "id", "score", "p_value", "is_anomaly"]
    assert result["id"].tolist() == pumps["when"].tolist()
    assert result["id_2"].tolist() == pumps["part_id"].tolist()


def test_rows_that_cannot_be_scored_may_be_left_out(model, pumps):
    odd = pumps.iloc[:8].astype({"flow": object})
    odd.loc[1, "flow"], odd.loc[2, "flow"], odd.loc[3, "flow"] = "BAD", None, np.inf
    odd.loc[4, "state"] = None
    odd.loc[5, "gaps"] = np.nan
    with pytest.raises(ColumnMismatchError, match="BAD"):
        model.score(odd)
    model = deepcopy(model)
    model.detector_.set_gaps("refuse")
    with pytest.warns(RowsWarning, match="Rows without a score.*: 4 rows, the first of them row 1"):
        scores = model.score(odd, keep_going=True)
    bad = scores.loc[[1, 2, 3, 4]]
    assert bad["score"].isna().all()
    assert bad["p_value"].isna().all()
    assert bad["is_anomaly"].isna().all()
    assert scores["part_id"].tolist() == pumps["part_id"].tolist()[:8]
    good = model.score(pumps.loc[[0, 5, 6, 7]].assign(gaps=odd["gaps"]))
    pd.testing.assert_frame_equal(scores.loc[[0, 5, 6, 7]], good, rtol=0, atol=1e-10)
    with pytest.warns(RowsWarning, match="8 rows"):
        assert model.score(odd.assign(flow="BAD"), keep_going=True)["score"].isna().all()
    with pytest.raises(ColumnMismatchError, match="Missing: flow"):
        model.score(pumps.drop(columns="flow"), keep_going=True)


@pytest.mark.slow
def test_truth_is_the_same_through_every_door(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "on": rng.random(60) < 0.5})
    frame["kind"] = rng.choice(["a", "b"], 60)
    frame.loc[3, "kind"] = None
    frame.to_parquet(tmp_path / "t.parquet")
    words = frame.assign(on=frame["on"].map({True: "TRUE", False: "FALSE"}), kind=frame["kind"])
    words.to_csv(tmp_path / "t.csv", index=False, na_rep="None")
    doors = [frame, *(open_source(tmp_path / name).read() for name in ("t.csv", "t.parquet"))]
    models = [TableDetector(light()).fit(learned) for learned in doors]
    expected = models[0].score(frame)
    for model in models:
        for later in doors:
            assert np.array_equal(model.score(later)["score"], expected["score"])


@pytest.mark.slow
@pytest.mark.parametrize("normal", [None, "normal"])
def test_normal_and_unknown_rows_alone(pumps, normal):
    labelled = pumps.assign(plant=["normal", ""] * 120)
    model = TableDetector(light(), label="plant", normal=normal).fit(labelled)
    alone = light().fit(model.schema_.features_of(labelled), [1, np.nan] * 120)
    assert model.detector_.offset_ == alone.offset_
    assert "Anomalies in" in model.report(labelled.iloc[:30]).html


@pytest.mark.slow
def test_labels_that_were_all_normal(pumps):
    model = TableDetector(light(), label="label").fit(pumps.assign(label=1))
    with pytest.warns(RowsWarning, match="labels not seen in training, taken for unknown: 15 rows"):
        model.report(pumps.iloc[:30].assign(label=[0, 1] * 15))


@pytest.mark.slow
def test_a_folder_of_runs(model, pumps, tmp_path):
    for i in (1, 2, 10):
        pumps.iloc[i * 20 : i * 20 + 20].to_csv(tmp_path / f"{i}.csv", index=False)
    source = open_source(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)
        plain = TableDetector(light()).fit(source.read())
        grouped = TableDetector(light(), group="file").fit(source.read())
    files = [f"{i}.csv" for i in (1, 2, 10) for _ in range(20)]
    assert grouped.schema_.groups_of(source.read()) == files
    assert "file" not in plain.schema_.features
    for each in (plain, grouped):
        assert each.score(source.read())["file"].tolist() == files
        assert "file" not in each.score(pumps)
    assert model.score(source.read())["file"].tolist() == files


def test_refusals(model, pumps, tmp_path):
    with pytest.raises(ColumnMismatchError, match="Missing: flow"):
        model.score(pumps.drop(columns="flow"))
    with pytest.raises(ColumnMismatchError, match="Missing: flow"):
        model.explain(pumps.drop(columns="flow"))
    with pytest.raises(InvalidTypeError, match=r"must be a FusedDetector\. Got OneClassSVM"):
        TableDetector(OneClassSVM()).fit(pumps)
    with pytest.raises(NotFittedError):
        TableDetector().save(tmp_path / "m.ocf")


@pytest.mark.slow
def test_a_fit_that_fails_changes_nothing(model, pumps):
    model = deepcopy(model)
    before = model.score(pumps)
    with pytest.raises(TableError, match="infinity"):
        model.fit(pumps.assign(flow=np.inf))
    pd.testing.assert_frame_equal(model.score(pumps), before)


@pytest.mark.slow
def test_without_pandas(write):
    """The module can be imported, for instance by `load`; a table then names the extra."""
    path = write("t.csv", "a\n1\n")
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['pyarrow'] = None\n"
        "from ocfuse.tables import open_source\n"
        f"open_source({str(path)!r}).read()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert install_line("tool") in run.stderr


@pytest.mark.slow
def test_groups_are_held_out_together():
    """Without groups rows of new runs raise far more alarms than stated."""
    rng = np.random.default_rng(0)
    run, mixing = np.repeat(np.arange(60), 10), rng.normal(size=(4, 4))
    levels = np.vstack([rng.normal(size=(60, 4))[run], rng.normal(size=(300, 4))])
    table = pd.DataFrame(levels @ mixing + rng.normal(scale=0.1, size=levels.shape))
    frame, fresh = table[:600].assign(run=run), table[600:].assign(run=0)
    detector = FusedDetector("light", random_state=0)
    told, blind = (
        TableDetector(detector, **settings).fit(frame).score(fresh)["is_anomaly"].mean()
        for settings in ({"group": "run"}, {"ignore": "run"})
    )
    assert told < 0.1 < blind


@pytest.mark.parametrize(
    ("n", "group", "words"),
    [(30, None, "30 normal rows are few"), (200, "run", "20 groups are few"), (200, None, None)],
)
def test_few_rows_are_told_with_what_may_happen(n, group, words):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 2)))
    frame["run"] = np.arange(n) // 10 % 20
    model = TableDetector(light(), group=group, ignore=() if group else "run")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame)
    told = [str(w.message) for w in caught if w.category is FewSamplesWarning]
    assert [words in text for text in told] == ([] if words is None else [True])


def test_fresh_rows_move_the_threshold(model, pumps):
    model = deepcopy(model)
    fresh = pumps.iloc[:50].assign(flow=pumps["flow"] + 0.1)
    expected = np.sort(model.score(fresh)["score"])
    assert model.calibrate(fresh) is model
    assert np.array_equal(model.detector_.normal_scores_, expected)


def test_a_report_knows_the_columns(model, pumps):
    html = model.report(pumps.iloc[:40], name="plant.csv").html
    for text in ("Anomalies in plant.csv", pumps["part_id"].iloc[0], model.card_["sha256"]):
        assert str(text) in html


@pytest.mark.slow
def test_a_report_says_that_times_are_in_utc(model, pumps):
    tied = pumps.assign(when=pumps["when"].dt.tz_localize("Asia/Tokyo"))
    assert "in UTC" in TableDetector(light()).fit(tied).report(tied.iloc[:20]).html
    assert "in UTC" not in model.report(pumps.iloc[:20]).html


def test_a_report_without_a_single_time(model, pumps):
    with pytest.warns(RowsWarning, match="no times as in training"):
        assert model.report(pumps.iloc[:20].assign(when="noon")).html


@pytest.mark.slow
def test_columns_that_there_is_no_memory_for_are_refused_before_each_is_looked_at(monkeypatch):
    looked_at = []
    monkeypatch.setattr("ocfuse.tables.schema.infer_column", looked_at.append)
    monkeypatch.setattr("ocfuse.ensemble.plan.available_bytes", lambda: 2**29)
    cells = np.full((30, 30_000), "1.5", dtype=object)
    frame = pd.DataFrame(cells, columns=[f"c{j}" for j in range(30_000)])
    with pytest.raises(NotEnoughMemoryError, match="30 rows of 30,000 columns"):
        TableDetector().fit(frame)
    assert looked_at == []


def test_alarms_have_reasons_if_asked_for(model, pumps):
    odd = pumps.iloc[:4].copy()
    odd.loc[odd.index[1], "flow"] = 900.0
    scores = model.score(odd, why=True)
    assert scores.columns[-1] == "why"
    assert scores["why"].notna().tolist() == scores["is_anomaly"].tolist()
    assert scores["why"].iloc[1].startswith("flow 900, usually ")
    assert model.score(odd, why="all")["why"].notna().all()
    plain = model.score(odd)
    assert plain.equals(scores.drop(columns="why"))


def test_a_row_has_the_reason_that_it_has_alone(model, pumps):
    together = model.score(pumps.iloc[:6], why="all")["why"].tolist()
    assert together == [model.score(pumps.iloc[[i]], why="all")["why"].iloc[0] for i in range(6)]


def test_reasons_are_bounded_and_what_is_left_is_told(model, pumps):
    odd = pumps.iloc[:4].assign(flow=900.0)
    with pytest.warns(RowsWarning, match="without a reason.* 3 rows, the first of them row 1"):
        assert model.score(odd, why=True, most_explained=1)["why"].notna().sum() == 1
    with pytest.raises(InvalidInputError, match="why must be"):
        model.score(odd, why="none")


def test_a_table_with_a_column_called_why(pumps):
    frame = pumps.rename(columns={"part_id": "why"})
    scores = TableDetector(light(), id="why").fit(frame).score(frame.iloc[:2], why="all")
    assert scores["why"].tolist() == frame["why"].iloc[:2].tolist()
    assert scores.iloc[:, -1].notna().all()


def test_one_category_may_be_named_by_itself():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"z": rng.normal(size=60), "zip": rng.choice([10115, 20095], 60)})
    model = TableDetector(FusedDetector("light", random_state=0), categories="zip").fit(table)
    assert [column.kind for column in model.schema_.columns] == ["number", "category"]
    assert model.detector_.encoder_.categorical_.tolist() == [False, True]


def test_chosen_rows_are_explained(model, pumps):
    rows = [5, 2]
    chosen, given = model.explain(pumps, rows), model.explain(pumps.iloc[rows])
    assert np.array_equal(chosen.score, given.score)
    assert np.array_equal(chosen.attributions, given.attributions)


def test_the_threshold_of_a_table_is_that_of_its_detector(model):
    moved = deepcopy(model)
    assert moved.set_threshold(offset=0.25) is moved
    assert moved.offset_ == moved.detector_.offset_ == 0.25
    assert moved.threshold_rate_ == moved.detector_.threshold_rate_ != model.threshold_rate_
    with pytest.raises(NotFittedError):
        TableDetector().set_threshold(0.1)

"""What is told of columns, and what is refused afterwards."""

import re
import warnings
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import (
    CellsWarning,
    ColumnMismatchError,
    InvalidInputError,
    InvalidTypeError,
    RowsWarning,
    TableError,
    TableWarning,
)
from ocfuse.persistence import load, save
from ocfuse.tables import Schema, open_source

N = 40
NUMBERS = np.random.default_rng(0).normal(size=N)


def kind_of(values, name="a"):
    frame = pd.DataFrame({name: values, "other": NUMBERS[: len(values)]})
    column = Schema.infer(frame).columns[0]
    return column.kind, column.reason


def as_text(frame):
    """Return the frame as a CSV file would give it."""
    return frame.map(lambda cell: "" if pd.isna(cell) else str(cell)).astype("string")


@pytest.mark.parametrize(
    ("values", "name", "kind", "reason"),
    [
        (NUMBERS, "a", "number", "numbers"),
        ([*NUMBERS[:-1], None], "a", "number", "numbers, 1 of 40 cells empty"),
        ([2.5] * N, "a", "number", "always 2.5; only a change of it will count"),
        ([1, 2] * 20, "machine_id", "number", "numbers"),
        (range(0, 2 * N, 2), "a", "number", "numbers"),
        (range(0, 2 * N, 2), "Part-ID", "id", "a different whole number in every row"),
        (range(0, 2 * N, 2), "partId", "id", "named like an id"),
        (range(7, N + 7), "a", "id", "counts the rows"),
        (range(0, 2 * N, 2), "Unnamed: 0", "id", "named like an id"),
        ([f"w{i}" for i in range(N)], "uuid", "id", "a different text in every row"),
        ([f"w{i}" for i in range(N)], "a", "ignored", "text with 40 different values in 40 rows"),
        (["x", "y"] * 20, "a", "category", "text with 2 different values"),
        (["x", None] * 20, "a", "category", "always 'x', 20 of 40 cells empty"),
        ([True, False] * 20, "a", "category", "text with 2 different values"),
        (["1", "A", "2", "B"] * 10, "a", "category", "text with 4 different values"),
        (["NA", "DE"] * 20, "a", "category", "text with 2 different values"),
        ([None] * N, "a", "empty", "no value in any row"),
        (["NA"] * N, "a", "empty", "no value in any row"),
        (pd.date_range("2024-01-01", periods=N), "a", "time", "dates or times"),
        (["2024-01-01", "2024-01-02"] * 20, "a", "time", "dates or times"),
        (["01/02/2024", "03/04/2024"] * 20, "a", "ignored", "days may be months"),
        (np.sort(NUMBERS), "timestamp", "time", "numbers that rise from row to row"),
        (np.sort(NUMBERS), "a", "number", "numbers"),
        (NUMBERS, "time", "number", "numbers"),
        (np.arange(N) // 2 + 1_700_000_000, "timestamp", "time", "numbers that rise"),
        ([*range(0, 40, 2), *range(0, 40, 2)], "ts", "time", "numbers that rise"),
        ([None, *np.sort(NUMBERS)[1:]], "timestamp_ms", "time", "numbers that rise"),
        (["a.csv", "b.csv"] * 20, "file", "ignored", "names the file of every row"),
        (["2024-01-01 00:00:00+02", "2024-01-02 00:00:00"] * 20, "a", "ignored", "only some have"),
        (pd.to_timedelta(NUMBERS, unit="s"), "a", "ignored", "neither numbers nor text: timedelta"),
        ([[1]] * N, "a", "ignored", "neither numbers nor text: list"),
        ([date(2024, 1, 1), date(2024, 1, 2)] * 20, "a", "time", "dates or times"),
        (pd.Categorical([1, 2] * 20), "a", "category", "text with 2 different values"),
        ([b"x"] * N, "a", "ignored", "neither numbers nor text: bytes"),
    ],
)
@pytest.mark.filterwarnings("ignore:Columns with the same value")
@pytest.mark.filterwarnings("ignore:.*is learned as a feature")
def test_kinds(values, name, kind, reason):
    found = kind_of(values, name)
    assert found[0] == kind
    assert reason in found[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Columns with the same value")
def test_all_formats_are_told_alike(pumps, tmp_path):
    """The same table as text and with its types: the same kinds, the same features."""
    expected = ["id", "time", *["number"] * 4, "category", "ignored", "number", "category"]
    pumps.to_csv(tmp_path / "t.csv", index=False)
    pumps.to_csv(tmp_path / "t.txt", index=False, sep=";", decimal=",")
    pumps.to_parquet(tmp_path / "t.parquet")
    typed = Schema.infer(pumps)
    assert [column.kind for column in typed.columns] == expected
    features = typed.features_of(pumps)
    for name in ("t.csv", "t.txt", "t.parquet"):
        frame = open_source(tmp_path / name, chunk_rows=50).read()
        schema = Schema.infer(frame)
        assert schema == typed
        pd.testing.assert_frame_equal(schema.features_of(frame), features)
        assert schema.times_of(frame).equals(typed.times_of(pumps))
        assert schema.ids_of(frame).tolist() == pumps["part_id"].tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Columns with the same value")
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_chunks_are_read_by_the_schema(pumps, tmp_path, chunk_rows):
    pumps.iloc[:60].to_csv(tmp_path / "t.csv", index=False)
    source = open_source(tmp_path / "t.csv", chunk_rows=chunk_rows)
    frame = source.read()
    schema = Schema.infer(frame)
    parts = pd.concat([schema.features_of(chunk) for chunk in source.chunks()])
    pd.testing.assert_frame_equal(parts, schema.features_of(frame))
    times = pd.concat([schema.times_of(chunk) for chunk in source.chunks()])
    pd.testing.assert_series_equal(times, schema.times_of(frame))


def test_what_the_user_says_goes_first():
    frame = pd.DataFrame(
        {
            "id": range(0, 2 * N, 2),
            "code": ["a", "b"] * 20,
            "when": pd.date_range("2024-01-01", periods=N),
            "hour": NUMBERS,
            "x": NUMBERS,
            "y": NUMBERS,
            "state": ["ok", "leak"] * 20,
        }
    )
    schema = Schema.infer(frame, label="state", ignore="y", id="code", time="hour")
    kinds = ["ignored", "id", "ignored", "time", "number", "ignored", "label"]
    assert [column.kind for column in schema.columns] == kinds
    assert schema.columns[0].reason.startswith("another id: ")
    assert schema.columns[2].reason.startswith("another time: ")
    reason = "as asked for: 20 normal, 20 anomalies, 0 unknown; normal is ok"
    assert schema.columns[6].reason == reason
    assert schema.features == ["x"]
    assert schema.labels_of(frame).tolist() == [1, -1] * 20
    assert schema.ids_of(frame).tolist() == ["a", "b"] * 20
    assert schema.times_of(frame).tolist() == NUMBERS.tolist()
    assert schema.labels_of(frame[["x"]]) is None
    assert schema.ids_of(frame[["x"]]) is None
    assert schema.times_of(frame[["x"]]) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label": "z"}, "label must name a column of the table: a, b, c. Got label='z'"),
        ({"ignore": ["a", "z"]}, "ignore must name a column"),
        ({"id": "a", "ignore": "a"}, "cannot be both id and ignore"),
        ({"time": "c"}, "cannot be read as a time: text with 2 different values"),
        ({"normal": "x"}, "needs a label column"),
    ],
)
def test_settings_that_cannot_be_meant(settings, message):
    frame = pd.DataFrame({"a": [1.0, 2, 4], "b": [3.0, 2, 1], "c": ["x", "y", "x"]})
    frame = pd.concat([frame] * 4, ignore_index=True)
    with pytest.raises(InvalidInputError, match=message):
        Schema.infer(frame, **settings)


def test_labels_among_the_features_are_asked_about():
    frame = pd.DataFrame({"x": NUMBERS, "Label": [0, 1] * 20})
    with pytest.warns(TableWarning, match=r"'Label' looks like labels.* label='Label' or ignore="):
        Schema.infer(frame)
    frame["changepoint"] = [0, 1] * 20
    with pytest.warns(TableWarning, match=r"'changepoint' looks like labels.*say ignore="):
        Schema.infer(frame, label="Label", normal=0)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("timestamp", NUMBERS, r"like a time, .* say time='timestamp' or ignore='timestamp'"),
        ("machine_id", [1, 2] * 20, r"like an id, .* say id='machine_id', group='machine_id' or"),
        ("machine_id", ["a", "b"] * 20, "like an id"),
        ("body mass index", NUMBERS, None),
    ],
)
def test_names_of_times_and_ids_among_the_features_are_asked_about(name, values, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Schema.infer(pd.DataFrame({"x": NUMBERS, name: values}))
    assert len(caught) == (message is not None)
    assert message is None or re.search(message, str(caught[0].message))


@pytest.mark.parametrize("most", ["temperatures", "codes"])
def test_mixed_types_name_the_rows(most):
    cells = [f"{value:.2f}" if most == "temperatures" else "7" for value in NUMBERS]
    cells[3], cells[20] = "error", "1,5"
    frame = pd.DataFrame({"a": cells, "b": NUMBERS})
    message = r"Column 'a' holds numbers, but not in row 3 \('error'\), row 20 \('1,5'\)\. Correct"
    with pytest.raises(TableError, match=message):
        Schema.infer(frame)
    frame.loc[3, "a"] = "1,5"
    with pytest.raises(TableError, match=r"say decimal=','"):
        Schema.infer(frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": []}), "no rows"),
        (pd.DataFrame({"a": list("xyzw")}), r"no column of numbers.*Only one column was found"),
        (pd.DataFrame({"id": ["x", "y"], "b": [None, None]}), r"id \(a different text"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "same name: a"),
        (pd.DataFrame({"a": [1.0, np.inf, 2.0]}), r"'a' holds infinity in row 1 \(inf\)"),
        (pd.DataFrame({"a": ["1", "2", "-Infinity"]}), r"infinity in row 2 \('-Infinity'\)"),
    ],
)
def test_tables_that_cannot_be_learned_from(frame, message):
    with pytest.raises(TableError, match=message):
        Schema.infer(frame)


def test_infinity_is_to_be_emptied(frame):
    schema = Schema.infer(frame)
    frame.loc[4, "flow"] = np.inf
    with pytest.raises(TableError, match="or such cells empty: they are then judged by the others"):
        schema.check(frame)
    with pytest.raises(TableError, match="or such cells empty"):
        Schema.infer(frame)


@pytest.mark.parametrize("cell", ["1.234,56", "1,234.56", "12 345,5"])
@pytest.mark.parametrize("n", [2, 30])
def test_marks_for_thousands_are_read_where_all_cells_agree(cell, n):
    frame = pd.DataFrame({"x": NUMBERS, "a": [cell + str(i % n) for i in range(N)]})
    schema = Schema.infer(frame)
    assert schema.columns[1].kind == "number"
    whole = cell.replace(" ", "").replace(",", ".")
    expected = float(whole.replace(".", "", whole.count(".") - 1) + "0")
    assert schema.features_of(frame)["a"][0] == expected
    frame["a"] = [cell, *(str(number).replace(".", "·") for number in NUMBERS[1:])]
    assert Schema.infer(frame).columns[1].kind == "ignored"


@pytest.mark.parametrize("cell", ["1.234,56", "12 345,5"])
def test_marks_for_thousands_in_some_cells_are_told(cell):
    frame = pd.DataFrame({"x": NUMBERS, "a": [cell, *map(str, NUMBERS[1:])]})
    with pytest.raises(TableError, match=r"not in row 0 .*Write numbers without marks"):
        Schema.infer(frame)


@pytest.mark.parametrize("table", [[[1, 2]], "a.csv", np.ones(3), None])
def test_no_tables(table):
    with pytest.raises(InvalidTypeError, match="A data frame or an array"):
        Schema.infer(table)


def test_other_tables_are_taken():
    pl = pytest.importorskip("polars")
    features = Schema.infer(np.c_[NUMBERS, NUMBERS]).features
    assert features == ["x0", "x1"]
    assert Schema.infer(pl.DataFrame({"a": NUMBERS})).features == ["a"]
    assert Schema.infer(pd.DataFrame({5: NUMBERS})).features == ["5"]


# -- tables that come later --------------------------------------------------------


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "flow": NUMBERS,
            "gaps": [None, *NUMBERS[1:]],
            "state": ["on", "off"] * 20,
            "part_id": [f"p{i}" for i in range(N)],
        }
    )


def test_order_and_types_of_storage_do_not_matter(frame):
    schema = Schema.infer(frame)
    expected = schema.features_of(frame)
    for other in (frame[frame.columns[::-1]], as_text(frame), frame.astype({"state": "category"})):
        pd.testing.assert_frame_equal(schema.features_of(other), expected)


def test_all_that_does_not_fit_is_told_at_once(frame):
    schema = Schema.infer(frame.assign(more=NUMBERS))
    other = frame.rename(columns={"flow": "Flow"}).assign(new=1)
    with pytest.raises(ColumnMismatchError, match=r"Missing: flow, more\. Extra: Flow, new\.") as e:
        schema.check(other)
    assert e.value.missing == ("flow", "more")
    assert e.value.extra == ("Flow", "new")
    assert "Is 'Flow' the column 'flow'? Then rename it." in str(e.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("flow", "much", r"Of another type: flow holds no number in row 4 \('much'\)\."),
        ("flow", True, r"flow holds no number in row 4 \(True\)"),
        ("flow", "1,5", r"row 4 \('1,5'\)\. If it is a decimal comma, say decimal=','\."),
    ],
)
def test_cells_of_another_type(frame, name, value, message):
    schema = Schema.infer(frame)
    frame = frame.astype({name: object})
    frame.loc[4, name] = value
    with pytest.raises(ColumnMismatchError, match=message) as e:
        schema.check(frame.iloc[2:])
    assert len(e.value.wrong) == 1


def test_missing_columns_and_wrong_cells_are_told_together(frame):
    schema = Schema.infer(frame.assign(more=NUMBERS))
    with pytest.raises(ColumnMismatchError, match=r"Missing: more\. Of another type: flow holds"):
        schema.check(frame.assign(flow="much", gaps=np.inf))


def test_numbers_in_place_of_text_are_another_type_unless_few(frame):
    """As text, whose types say nothing; a few numbers may be new categories."""
    schema = Schema.infer(frame)
    table = as_text(frame.assign(state=NUMBERS))
    with pytest.raises(ColumnMismatchError, match="state holds numbers, expected text: row 0"):
        schema.check(table)
    with pytest.warns(CellsWarning, match="5 rows"):
        schema.check(table.iloc[:5])


def test_cells_of_several_columns_are_told_at_once(frame):
    schema = Schema.infer(frame)
    frame.loc[4, ["flow", "state"]] = None
    with pytest.warns(CellsWarning, match=r"flow: no value[^:]*: row 4\n  state: no value"):
        schema.check(frame)
    many = pd.DataFrame({f"c{i}": [*map(str, NUMBERS[:-1]), "x"] for i in range(6)})
    with pytest.raises(TableError, match=r"'c0' .*'c3' .* 2 more columns have such cells"):
        Schema.infer(many)


@pytest.mark.parametrize(("values", "is_told"), [([1], True), (["a"], True), ([1, None], False)])
def test_constant_columns_are_warned_of_once(frame, values, is_told):
    frame["same"] = values * (N // len(values))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Schema.infer(frame)
    assert [("same value in every row: same." in str(w.message)) for w in caught] == [
        True
    ] * is_told


def test_decimal_commas_are_not_ignored_as_text(frame):
    frame["level"] = ["7", *(f"{x:.3f}".replace(".", ",") for x in NUMBERS[1:])]
    with pytest.raises(TableError, match=r"'level' holds numbers with commas: row 1 .*decimal=','"):
        Schema.infer(frame)


def test_groups(frame):
    schema = Schema.infer(frame, group="state")
    assert "state" not in schema.features
    assert schema.groups_of(frame) == list(frame["state"])
    assert Schema.infer(frame).groups_of(frame) is None
    frame.loc[3, "state"] = None
    with pytest.raises(TableError, match=r"'state' names no group in row 3"):
        schema.groups_of(frame)
    with pytest.raises(InvalidInputError, match="cannot be both label and group"):
        Schema.infer(frame, label="state", group="state")


def test_columns_of_another_type(frame):
    schema = Schema.infer(frame)
    times = pd.date_range("2024-01-01", periods=N)
    with pytest.raises(ColumnMismatchError, match=r"flow holds times, .*, state holds [fF]loat64"):
        schema.check(frame.assign(flow=times, state=NUMBERS))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("flow", np.inf, r"Column 'flow' holds infinity in row 4 \('?inf'?\)"),
        ("gaps", -np.inf, r"Column 'gaps' holds infinity in row 4"),
    ],
)
def test_cells_that_are_refused(frame, name, value, message):
    schema = Schema.infer(frame)
    frame.loc[4, name] = value
    for table in (frame, as_text(frame)):
        with pytest.raises(TableError, match=message):
            schema.check(table)


def test_gaps_where_training_had_some(frame):
    frame.loc[[4, 5], "gaps"] = None
    Schema.infer(frame).check(frame)


def test_what_is_only_warned_of(frame):
    schema = Schema.infer(frame)
    with pytest.warns(TableWarning, match="not there in training and are not used: new"):
        schema.check(frame.assign(new=1))
    with pytest.warns(TableWarning, match="id column 'part_id' is missing"):
        schema.check(frame.drop(columns="part_id"))
    frame.loc[[1, 2, 7], "state"] = ["broken", "odd", "odd"]
    told = r"state: new values.* \('broken', 'odd'\): 3 rows, the first of them row 1"
    with pytest.warns(CellsWarning, match=told):
        schema.check(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema.check(frame.iloc[10:])


def test_times_that_cannot_be_read(frame):
    frame["when"] = "2024-01-01"
    schema = Schema.infer(frame)
    frame.loc[3, "when"] = "noon"
    frame.loc[4, "when"] = ""
    with pytest.warns(
        RowsWarning, match=r"'when' .* no times as in training.*: row 3 \('noon'\)\."
    ):
        assert schema.times_of(frame).isna().sum() == 2
    with pytest.warns(RowsWarning, match="no times"):
        shown = schema.shown_times_of(frame)
    assert shown.iloc[2:4].tolist() == ["2024-01-01 00:00:00", "noon"]
    assert shown.isna().sum() == 1


def test_times_in_another_format(frame):
    when = pd.date_range("2024-03-10 20:00", periods=N, freq="1h")
    schema = Schema.infer(frame.assign(when=when.astype(str)))
    for format in ("%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"):
        assert schema.times_of(frame.assign(when=when.strftime(format))).tolist() == when.tolist()
    one_day = frame.assign(when=["03/04/2024"] * N)
    with pytest.warns(RowsWarning, match="no times as in training"):
        assert schema.shown_times_of(one_day).tolist() == ["03/04/2024"] * N


@pytest.mark.parametrize("as_type", [str, lambda times: times])
def test_times_with_and_without_zones(frame, as_type):
    when = pd.Series(pd.date_range("2024-01-01", periods=N, freq="1h"))
    naive, aware = frame.assign(when=when), frame.assign(when=when.dt.tz_localize("Asia/Tokyo"))
    if as_type is str:
        naive, aware = as_text(naive), as_text(aware)
    plain, tied = Schema.infer(naive), Schema.infer(aware)
    assert (plain.times_are_utc, tied.times_are_utc) == (False, True)
    assert not Schema.infer(frame).times_are_utc
    with pytest.warns(RowsWarning, match="with a time zone, unlike in training; they are shown in"):
        assert plain.times_of(aware).iloc[0] == pd.Timestamp("2023-12-31 15:00")
    with pytest.warns(RowsWarning, match=f"without a time zone, .* taken for UTC: {N} rows"):
        assert tied.times_of(naive).iloc[0] == pd.Timestamp("2024-01-01", tz="UTC")


def test_days_that_may_be_months_are_told_when_asked_for(frame):
    frame["when"] = [f"03/04/2024 10:{i:02d}" for i in range(N)]
    with pytest.raises(
        TableError, match=r"days may be months, such as '03/04.*Write times as 2024"
    ):
        Schema.infer(frame, time="when")


def test_labels_that_training_has_not_seen(frame):
    frame["fault"] = [0, 1] * 20
    schema = Schema.infer(frame, label="fault")
    frame.loc[3, "fault"] = 2
    with pytest.warns(RowsWarning, match=r"'fault' holds labels not seen.*: row 3 \(2\)"):
        assert schema.labels_of(frame)[:4].tolist() == [1, -1, 1, 0]


def test_wrong_delimiter_is_told(frame, write):
    schema = Schema.infer(frame)
    path = write("t.csv", frame.to_csv(sep=":", index=False))
    with pytest.raises(ColumnMismatchError, match=r"Only one column was found.*delimiter=' '"):
        schema.check(open_source(path).read())
    with pytest.raises(
        ColumnMismatchError, match=r"Missing: flow\. Extra: flow2\. Is 'flow2'"
    ) as e:
        schema.check(frame.rename(columns={"flow": "flow2"}))
    assert "Only one column" not in str(e.value)
    schema.check(open_source(path, ":").read())


NAMES = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4, unique=True)
CELLS = st.one_of(
    st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6),
    st.lists(st.sampled_from(["on", "off", "ä;"]), min_size=6, max_size=6),
    st.lists(st.sampled_from([1.5, 2.5, None]), min_size=6, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.lists(st.datetimes(), min_size=6, max_size=6),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data(), NAMES)
def test_round_trip(tmp_path_factory, data, names):
    """A schema accepts its own table as it is, row by row and as text, and survives a file."""
    frame = pd.DataFrame({name: data.draw(CELLS) for name in names}).assign(x=NUMBERS[:6])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # names such as "y" look like labels
        schema = Schema.infer(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = schema.features_of(frame)
        rows = pd.concat([schema.features_of(frame.iloc[[i]]) for i in range(6)])
        text = schema.features_of(as_text(frame))
    pd.testing.assert_frame_equal(rows, features)
    pd.testing.assert_frame_equal(text, features)
    path = tmp_path_factory.getbasetemp() / "schema.ocf"
    save(schema, path)
    assert load(path) == schema

"""Frames of every library: the same values give the same scores, to the bit."""

import importlib
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ocfuse import FeatureEncoder, FusedDetector
from ocfuse.detectors import GMM, KNN
from ocfuse.encoder import check_table, take_rows
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.frame_columns import FrameColumns, read_frame
from ocfuse.paper import PaperDetector
from ocfuse.streaming import StreamDetector
from ocfuse.tables import TableDetector

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

RNG = np.random.default_rng(0)
N = 80
COLUMNS = {
    "flow": [None if i == 7 else float(v) for i, v in enumerate(RNG.normal(size=N))],
    "count": [None if i == 9 else int(v) for i, v in enumerate(RNG.integers(0, 50, N))],
    "mode": [[None, "slow", "fast", "off"][i % 13 % 4] for i in range(N)],
    "open": [[True, False, None][i % 7 % 3] for i in range(N)],
    "temp": RNG.normal(20, 3, N).tolist(),
}
ARROW = pa.table(COLUMNS)
NEW = ARROW.slice(0, 12)


def test_a_reader_of_batches_is_refused_with_the_call_to_make():
    with pytest.raises(InvalidTypeError, match=r"RecordBatchReader.*\.read_all\(\)"):
        read_frame(ARROW.to_reader())


def pandas(table):
    return table.to_pandas()


def pandas_arrow(table):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def pandas_nullable(table):
    return table.to_pandas().convert_dtypes()


def polars_lazy(table):
    return pl.from_arrow(table).lazy()


def arrow_chunked(table):
    return pa.concat_tables([table.slice(0, 5), table.slice(5)])


def arrow_dictionary(table):
    if "mode" not in table.column_names:
        return table
    place = table.column_names.index("mode")
    return table.set_column(place, "mode", table["mode"].dictionary_encode())


def duckdb_relation(table):
    return pytest.importorskip("duckdb").from_arrow(table)


def modin_frame(table):
    return pytest.importorskip("modin.pandas").DataFrame(table.to_pandas())


def record_batch(table):
    return table.combine_chunks().to_batches()[0]


def narwhals_frame(table):
    return importlib.import_module("narwhals").from_native(table)


LIBRARIES = [
    pandas,
    pandas_arrow,
    pandas_nullable,
    pl.from_arrow,
    polars_lazy,
    lambda table: table,
    arrow_chunked,
    arrow_dictionary,
    duckdb_relation,
    modin_frame,
    record_batch,
    narwhals_frame,
]
NAMES = [getattr(f, "__name__", "").strip("<>") for f in LIBRARIES]
MEMBERS = [("knn", KNN()), ("gmm", GMM(n_components=1))]


def detector():
    return FusedDetector(MEMBERS, fusion="sum", random_state=0)


@pytest.fixture(scope="module")
def of_pandas():
    return detector().fit(pandas(ARROW))


@pytest.mark.parametrize("library", LIBRARIES, ids=NAMES)
def test_the_same_values_give_the_same_scores(library, of_pandas):
    fitted = detector().fit(library(ARROW))
    expected = of_pandas.score_samples(pandas(NEW))
    np.testing.assert_array_equal(fitted.score_samples(library(NEW)), expected)
    np.testing.assert_array_equal(of_pandas.score_samples(library(NEW)), expected)
    assert fitted.feature_names_in_.tolist() == list(COLUMNS)
    assert fitted.encoder_.categorical_.tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("library", LIBRARIES, ids=NAMES)
def test_tables_and_explanations_are_the_same(library, of_pandas):
    model = TableDetector(detector()).fit(library(ARROW))
    expected = TableDetector(detector()).fit(pandas(ARROW)).score(pandas(NEW))
    found = model.score(library(NEW))
    np.testing.assert_array_equal(found["score"], expected["score"])
    why, wanted = of_pandas.explain(library(NEW)), of_pandas.explain(pandas(NEW))
    np.testing.assert_array_equal(why.attributions, wanted.attributions)
    assert [why.reason(i) for i in range(12)] == [wanted.reason(i) for i in range(12)]


@pytest.mark.parametrize("library", LIBRARIES, ids=NAMES)
def test_all_methods_take_them(library, of_pandas):
    rows = library(NEW)
    assert set(of_pandas.predict(rows)) <= {1, -1}
    assert of_pandas.plan(rows).n_columns >= 5
    assert of_pandas.transform(rows).shape == (12, 2)
    assert "</html>" in str(of_pandas.report(rows).html)


@pytest.mark.parametrize("library", LIBRARIES, ids=NAMES)
def test_encodings_are_the_same_to_the_bit(library):
    expected = FeatureEncoder().fit(pandas(ARROW)).transform(pandas(NEW))
    found = FeatureEncoder().fit(library(ARROW)).transform(library(NEW))
    np.testing.assert_array_equal(found, expected)


def test_the_detector_of_the_paper_takes_them():
    numbers = ARROW.select(["temp", "flow"]).slice(10)
    paper = PaperDetector(p=2.0, rho=4.0, random_state=0)
    expected = paper.fit(pandas(numbers)).score_samples(pandas(numbers))
    for rows in (numbers, pl.from_arrow(numbers).lazy()):
        fitted = PaperDetector(p=2.0, rho=4.0, random_state=0).fit(rows)
        np.testing.assert_array_equal(fitted.score_samples(rows), expected)


@pytest.mark.parametrize("library", LIBRARIES, ids=NAMES)
def test_streams_take_them(library):
    samples = ARROW.select(["temp", "flow"])
    expected = StreamDetector(detector(), windows=(3,)).fit(pandas(samples).to_numpy())
    fitted = StreamDetector(detector(), windows=(3,)).fit(library(samples))
    np.testing.assert_array_equal(
        fitted.score_run(library(samples)), expected.score_run(pandas(samples).to_numpy())
    )
    names = fitted.explain(library(samples), rows=[5]).feature_names
    assert {name.split()[0] for name in names} == {"temp", "flow"}


@pytest.mark.parametrize("rows", [COLUMNS, ARROW.to_pylist()], ids=["dict", "dicts"])
def test_what_a_frame_can_be_made_of_is_told(rows, of_pandas):
    with pytest.raises(InvalidTypeError, match=r"Got .*dicts?\. pandas\.DataFrame\(X\) makes"):
        of_pandas.score_samples(rows)
    with pytest.raises(InvalidTypeError, match=r"Got (dict|list)\. pandas\.DataFrame\(\.\.\.\)"):
        TableDetector(detector()).fit(rows)


def test_text_in_a_stream_is_refused():
    for frame in (ARROW, pl.from_arrow(ARROW).lazy(), pandas(ARROW)):
        with pytest.raises(InvalidInputError, match="Samples must be numbers"):
            StreamDetector(detector(), windows=(3,)).fit(frame)


def test_a_query_is_run_once(of_pandas):
    runs = []

    def count(frame):
        runs.append(len(frame))
        return frame

    rows = pl.from_arrow(NEW).lazy().map_batches(count)
    expected = of_pandas.predict(pandas(NEW))
    for call in (of_pandas.score_samples, of_pandas.predict, of_pandas.explain, of_pandas.report):
        runs.clear()
        call(rows)
        assert runs == [12], call
    np.testing.assert_array_equal(of_pandas.predict(rows), expected)


def test_a_gap_of_an_arrow_dictionary_is_a_gap():
    values = pa.array(["u", "v", None, "u"]).dictionary_encode()
    frame = read_frame(pa.table({"a": values}))
    assert next(frame.iter_columns()).tolist() == ["u", "v", None, "u"]


def test_a_dictionary_of_numbers_holds_categories_as_in_pandas():
    codes = pa.array([1, 2, 1, 3] * 5).dictionary_encode()
    table = pa.table({"code": codes, "x": np.arange(20.0) % 7})
    found = FeatureEncoder().fit(table)
    assert found.categorical_.tolist() == [True, False]
    expected = FeatureEncoder().fit(table.to_pandas()).transform(table.to_pandas())
    np.testing.assert_array_equal(found.transform(table), expected)


def test_times_with_a_zone_are_the_same_moments():
    when = pd.date_range("2024-03-30", periods=30, freq="2h", tz="Europe/Berlin")
    table = pa.table({"when": pa.array(when), "x": np.arange(30.0) % 7})
    frames = [table.to_pandas(), pl.from_arrow(table), table]
    encoders = [FeatureEncoder(time="when").fit(frame) for frame in frames]
    assert {e.zone_ for e in encoders} == {"Europe/Berlin"}
    codes = [e.read(frame) for e, frame in zip(encoders, frames, strict=True)]
    np.testing.assert_array_equal(codes[1], codes[0])
    np.testing.assert_array_equal(codes[2], codes[0])


def test_decimals_are_numbers_and_dates_are_refused_alike():
    prices = [Decimal("1.25"), None, Decimal("3.5"), Decimal("2")] * 4
    days = [date(2024, 1, 1 + i) for i in range(16)]
    table = pa.table({"price": prices, "x": np.arange(16.0) % 5})
    expected = FeatureEncoder().fit(table.to_pandas()).transform(table.to_pandas())
    for frame in (table, pl.from_arrow(table)):
        np.testing.assert_array_equal(FeatureEncoder().fit(frame).transform(frame), expected)
    for frame in (dated := table.append_column("day", pa.array(days)), pl.from_arrow(dated)):
        with pytest.raises(InvalidTypeError, match=r"day \(dates or durations\)"):
            FeatureEncoder().fit(frame)


def test_labels_groups_and_context_may_be_columns_of_any_library():
    y = np.where(np.arange(N) % 10 == 0, -1, 1)
    runs, context = np.arange(N) % 20, np.linspace(0, 1, N)
    fused = FusedDetector(MEMBERS, random_state=0)
    expected = fused.fit(ARROW, y, runs, context).score_samples(NEW, context[:12])
    for column in (pl.Series, pd.Series, lambda values: pa.chunked_array([pa.array(values)])):
        given = [column(values) for values in (y, runs, context)]
        fitted = FusedDetector(MEMBERS, random_state=0).fit(ARROW, *given)
        np.testing.assert_array_equal(fitted.score_samples(NEW, column(context[:12])), expected)


def test_rows_of_frames_are_taken_by_position():
    table = check_table(ARROW)
    assert isinstance(table, FrameColumns)
    some = take_rows(table, np.array([3, 1]))
    assert some.shape == (2, 5)
    assert next(some.iter_columns()).tolist() == [COLUMNS["flow"][3], COLUMNS["flow"][1]]


def test_empty_and_doubled_columns_are_refused():
    with pytest.raises(InvalidInputError, match="at least one row"):
        check_table(pa.table({"a": pa.array([], type=pa.float64())}))
    with pytest.raises(InvalidInputError, match="Column names must be unique"):
        check_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_another_order_of_columns_is_noticed_in_any_library(of_pandas):
    for rows in (NEW, pl.from_arrow(NEW).lazy()):
        with pytest.raises(ValueError, match="feature names should match"):
            of_pandas.score_samples(rows.select(list(COLUMNS)[::-1]))


def test_frames_of_dask_are_refused_with_advice(of_pandas):
    frame = pytest.importorskip("dask.dataframe").from_pandas(pandas(NEW), npartitions=2)
    for call in (of_pandas.score_samples, detector().fit, TableDetector(detector()).fit):
        with pytest.raises(InvalidTypeError, match=r"ocfuse\.distributed .* X\.compute\(\)"):
            call(frame)

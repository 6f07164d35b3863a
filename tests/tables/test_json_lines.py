"""JSON lines: the same table as in CSV and Parquet, and errors that say where."""

import gzip
import io
import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse import FusedDetector
from ocfuse.detectors.pool import make_pool
from ocfuse.exceptions import TableError
from ocfuse.tables import TableDetector, open_source
from ocfuse.tables.json_lines import JsonLinesSource, read_object

ROWS = '{"a": 1.50, "b": {"on": true, "name": "x"}}\n\n{"a": null, "b": {"name": "ü"}, "c": "1"}\n'
CELLS = [["1.50", "true", "x", ""], ["", "", "ü", "1"]]


@pytest.mark.parametrize("chunk_rows", [2, 10])
@pytest.mark.parametrize("name", ["t.jsonl", "t.NDJSON", "t.jsonl.gz"])
def test_cells_are_text_as_in_csv(write, name, chunk_rows):
    content = ROWS.encode("utf-8-sig")
    path = write(name, gzip.compress(content) if name.endswith("gz") else content)
    source = open_source(path, chunk_rows=chunk_rows)
    assert source.columns == ["a", "b.on", "b.name", "c"]
    assert source.description == "JSON lines"
    for _ in range(2):
        assert source.read().to_numpy().tolist() == CELLS
    assert source.bytes_read == source.n_bytes


def test_standard_input_may_be_json(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b'{"a": 1}'))))
    source = open_source("-")
    assert source.read().to_numpy().tolist() == [["1"]]
    with pytest.raises(TableError, match="read only once"):
        source.read()


def test_files_of_a_folder_may_be_json(write, tmp_path):
    write("1.csv", "a\n1\n")
    write("2.jsonl", '{"a": 2}\n')
    assert open_source(tmp_path).read().to_numpy().tolist() == [["1", "1.csv"], ["2", "2.jsonl"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"a": 1',
            "Line 2 of t.jsonl cannot be read. It is no JSON at its end; it may be cut off: copy",
        ),
        ('{"a" 1}', "It is no JSON from character 6 on: '1}'"),
        ("[1, 2]", "It is no JSON object. Expected names and values"),
        ('{"a": [1]}', "'a' holds a list"),
        ('{"a": {"b": {"c": 1}}}', "'a.b' holds objects too deep inside each other"),
        ('{"a": 1, "a": 2}', "two values of the name 'a'"),
        ('{"a": {"b": 1}, "a.b": 2}', "two values of the name 'a.b'"),
        ('{"a": "\\ud83d"}', "half of a character"),
        ("[" * 100_000, "too deep"),
        ('{"z": 1}', "Line 2 of t.jsonl has values that none of the first 1 lines names: z."),
    ],
)
def test_errors_say_where_and_what(write, line, message):
    path = write("t.jsonl", f'{{"a": 1}}\n{line}\n')
    with pytest.raises(TableError, match=re.escape(message)):
        open_source(path, chunk_rows=1).read()


def test_an_empty_file_and_names_from_outside_are_refused(write):
    with pytest.raises(TableError, match="is empty"):
        open_source(write("t.jsonl", "\n"))
    with pytest.raises(TableError, match="names its columns itself"):
        open_source(write("t.jsonl", ROWS), columns=["a"])


@given(st.text() | st.text('{}[]",:1.eE+-ntfau \\'))
def test_any_line_is_read_or_refused_in_words(line):
    try:
        cells = read_object(line)
    except TableError:
        return
    assert all(isinstance(text, str) for pair in cells.items() for text in pair)


CELL = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(st.dictionaries(st.text(max_size=5), CELL, min_size=1))
def test_every_cell_comes_through(row):
    text = json.dumps(row)
    found = read_object(text)
    assert list(found) == list(row)
    for name, cell in row.items():
        said = found[name]
        if cell is None:
            assert said == ""
        elif isinstance(cell, bool):
            assert said == str(cell).lower()
        elif isinstance(cell, str):
            assert said == cell
        else:
            assert float(said) == float(cell) or (math.isnan(cell) and said == "NaN")


def test_names_of_columns_may_be_given_for_csv(write):
    for text in ("1,2\n3,4\n", "sep=;\n1;2\n3;4\n", "a,b\n1,2\n3,4\n"):
        source = open_source(write("t.csv", text), columns=["a", "b"])
        assert source.read().to_dict("list") == {"a": ["1", "3"], "b": ["2", "4"]}
    with pytest.raises(TableError, match=r"Line 1 of t\.csv has 2 values, but there are 3 column"):
        open_source(write("t.csv", "1,2\n3,4\n"), columns=["a", "b", "c"]).read()
    with pytest.raises(TableError, match="names its columns itself"):
        open_source(write("t.parquet", b""), columns=["a"])


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flow": rng.normal(size=60), "on": rng.choice(["yes", "no"], 60)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = make_pool("knn-1,knn-5")
        return TableDetector(FusedDetector(members, fusion="mean")).fit(frame)


FLOW = st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float) | st.none()


@settings(max_examples=20)
@given(
    rows=st.lists(
        st.tuples(FLOW, st.sampled_from(["yes", "no", None, "later"])), min_size=1, max_size=9
    )
)
@pytest.mark.filterwarnings("ignore")
def test_a_table_has_the_same_scores_in_csv_json_and_parquet(rows, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    frame = pd.DataFrame(rows, columns=["flow", "on"]).astype({"flow": float, "on": "string"})
    frame["n"] = range(len(frame))
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    lines = [json.dumps({"flow": flow, "on": on, "n": i}) for i, (flow, on) in enumerate(rows)]
    (folder / "t.jsonl").write_text("\n".join(lines))
    found = [model.score(open_source(folder / f"t.{kind}").read()) for kind in KINDS]
    pd.testing.assert_frame_equal(found[0], found[1], check_exact=True)
    pd.testing.assert_frame_equal(found[0], found[2], check_exact=True)


KINDS = ("csv", "jsonl", "parquet")


def test_a_stream_can_be_read_once():
    source = JsonLinesSource(io.BytesIO(ROWS.encode()), "stream", 10)
    assert len(source.read()) == 2
    with pytest.raises(TableError, match="only once"):
        source.read()

import io
import json
from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.serve.decoding import _is_deep, decode
from ocfuse.serve.errors import ServeError
from ocfuse.serve.settings import Limits

JSON, CSV = "application/json", "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
LIMITS = Limits(rows=5, columns=4, nesting=4, body_bytes=2**20)


def arrow(table, **options):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def refused(body, kind=JSON, limits=LIMITS):
    with pytest.raises(ServeError) as caught:
        decode(body, kind, limits)
    return caught.value.status, caught.value.code


def test_json():
    rows = [{"a": 1, "b": "x", "c": None, "d": True}, [1, 2.5]]
    assert decode(json.dumps({"rows": rows}).encode(), JSON, LIMITS) == rows
    assert decode(json.dumps(rows).encode(), JSON, LIMITS) == rows
    assert decode(b"\xef\xbb\xbf[]", JSON, LIMITS) == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "not_json"),
        (b"{", 400, "not_json"),
        (b'[{"a": NaN}]', 400, "not_json"),
        (b'[{"a": -Infinity}]', 400, "not_json"),
        (b"[" + b"1" * 5000 + b"]", 400, "not_json"),
        (b"\xff\xfe[", 400, "not_json"),
        ("[]".encode("utf-16"), 400, "not_json"),
        (b'[{"a": 1, "a": 2}]', 422, "named_twice"),
        (b'{"rows": [], "rows": [{}]}', 422, "named_twice"),
        (b"[[[[[1]]]]]", 422, "nested_too_deep"),
        (b"[" * 100_000, 422, "nested_too_deep"),
        (b'{"a":' * 100_000, 422, "nested_too_deep"),
        (b'[{"a": "\\ud800"}]', 422, "broken_text"),
        (b'[{"\\uDFFFa": 1}]', 422, "broken_text"),
        (b'[["\\ude00\\ud83d"]]', 422, "broken_text"),
        (b'["\xed\xa0\x80"]', 400, "not_json"),
        (b"7", 422, "not_rows"),
        (b'{"lines": []}', 422, "not_rows"),
        (b'{"rows": 3}', 422, "not_rows"),
        (b'["a"]', 422, "not_rows"),
        (b'[{"a": [1]}]', 422, "nested_cells"),
        (b"[[[1]]]", 422, "nested_cells"),
        (b"[{},{},{},{},{},{}]", 413, "too_many_rows"),
        (b"[[1,2,3,4,5]]", 422, "too_many_columns"),
    ],
)
def test_json_that_is_refused(body, status, code):
    assert refused(body) == (status, code)


def test_brackets_in_text_are_no_nesting():
    rows = [{"a": "[[[[[{{{\\", "b": '"[[[['}]
    assert decode(json.dumps(rows).encode(), JSON, LIMITS) == rows


def test_whole_characters_may_be_written_in_halves():
    for text in ("\\ud83d\\ude00", "\\\\ud83d", "\\u00e9 \\ud7ff \\ue000"):
        (row,) = decode(b'[["%s"]]' % text.encode(), JSON, LIMITS)
        assert row == [json.loads(f'"{text}"')]


words = st.text('[]{}"\\\\a', max_size=3)
nested = st.recursive(
    words,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(words, inner, min_size=1, max_size=2)
    ),
    max_leaves=5,
)


def depth(value):
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inner), default=0)
    return 0


@given(nested)
@settings(max_examples=50)
def test_depth_is_that_of_the_value(value):
    body = json.dumps(value).encode()
    real = depth(value)
    assert not _is_deep(body, max(real, 1))
    assert real < 2 or _is_deep(body, real - 1)


def test_csv():
    frame = decode(b"a;b\n1,5;x\n2,5;y\n", CSV, LIMITS)
    assert frame.to_dict("list") == {"a": ["1.5", "2.5"], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"a,b\n", 422),
        (b"a,b\n1\n", 422),
        (b"a,a\n1,2\n", 422),
        (b"a,b\n" + b"1,2\n" * 6, 413),
        (b"a,b,c,d,e\n1,2,3,4,5\n", 422),
        (b"\x1f\x8b\x08\x00", 422),
    ],
)
def test_csv_that_is_refused(body, status):
    assert refused(body, CSV)[0] == status


def test_arrow():
    table = pa.table(
        {
            "a": [1.5, None],
            "n": pa.array([1, None], pa.int32()),
            "t": pa.array(["x", "y"]).dictionary_encode(),
            "w": pd.to_datetime(["2024-01-01", "2024-01-02"]),
        }
    )
    frame = decode(arrow(table), ARROW, LIMITS)
    assert list(frame.columns) == ["a", "n", "t", "w"]
    assert frame["t"].tolist() == ["x", "y"]
    assert frame["n"].isna().tolist() == [False, True]


def test_arrow_that_is_refused():
    good = arrow(pa.table({"a": [1.0, 2.0]}))
    assert refused(b"", ARROW) == (400, "not_arrow")
    assert refused(good[:60], ARROW) == (400, "not_arrow")
    assert refused(good[:-20], ARROW)[0] == 400
    assert refused(arrow(pa.table({"a": np.zeros(6)})), ARROW) == (413, "too_many_rows")
    wide = pa.table({f"c{j}": [1.0] for j in range(5)})
    assert refused(arrow(wide), ARROW) == (422, "too_many_columns")
    assert refused(arrow(pa.table({"a": [[1.0]]})), ARROW) == (422, "unusable_rows")
    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    assert refused(arrow(twice), ARROW) == (422, "unusable_rows")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_arrow_is_refused_before_it_is_unpacked(compression):
    many = Limits(rows=10**9)
    bomb = arrow(pa.table({"a": np.zeros(10**6)}), compression=compression)
    assert len(bomb) < 10**5
    assert refused(bomb, ARROW, many) == (415, "compressed")
    text = pa.table({"a": pa.array(["x" * 100_000]).dictionary_encode()})
    assert refused(arrow(text, compression=compression), ARROW) == (415, "compressed")


def test_a_dictionary_may_not_repeat_long_texts():
    table = pa.table(
        {"a": pa.DictionaryArray.from_arrays(np.zeros(5000, np.int32), ["x" * 10_000])}
    )
    limits = Limits(body_bytes=2**20)
    assert len(arrow(table)) < limits.body_bytes
    assert refused(arrow(table), ARROW, limits) == (413, "cells_too_large")


@pytest.mark.parametrize("column", [pa.nulls(5000), pa.array([True, None] * 2500)])
def test_cells_that_take_no_bytes_are_counted(column):
    """They do take some in a data frame."""
    wide = arrow(pa.table({f"c{j}": column for j in range(200)}))
    limits = Limits(body_bytes=2**20)
    assert len(wide) < limits.body_bytes
    assert refused(wide, ARROW, limits) == (413, "cells_too_large")


@given(st.data())
@settings(max_examples=50)
def test_damaged_arrow_is_refused_or_read(data):
    body = bytearray(arrow(pa.table({"a": [1.0, 2.0], "t": ["x", "yz"]})))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ServeError):
        assert len(decode(bytes(body), ARROW, LIMITS)) <= LIMITS.rows


def test_other_types_are_refused():
    assert refused(b"x", "text/plain") == (415, "unknown_content_type")

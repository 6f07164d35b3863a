"""The rows around an event are kept, a bounded number of them."""

import csv
import io
import json
import math

from hypothesis import given
from hypothesis import strategies as st

from ocfuse.serve.event_rows import (
    EventRows,
    as_csv,
    kept_row,
    packed,
    packed_within,
    stretches,
    unpacked,
)

#: For every row whether an event is on, and its score.
courses = st.lists(st.tuples(st.booleans(), st.floats(-9, 9)), max_size=400)


def follow(course, around):
    """Let rows pass as a stream does; return what was kept whenever it was to be written."""
    event, found = None, []
    for seq, (is_on, score) in enumerate(course):
        begins, ends = is_on and event is None, not is_on and event is not None
        if begins:
            event = seq
            around.begin(event)
        elif ends:
            event = None
            around.end()
        is_complete = around.add(kept_row(seq, 0.0, score, [seq]), is_event=is_on)
        if begins or ends or is_complete:
            found.append(around.kept())
    return found


@given(courses, st.integers(1, 50_000), st.integers(0, 40))
def test_what_is_kept_is_bounded_in_order_and_of_the_event(course, n_columns, n_reach):
    around = EventRows(n_columns, n_reach)
    most = around.n_before + around.n_first + around.n_lowest + around.n_after + 3 * n_reach
    for event, rows in follow(course, around):
        seqs = [row["seq"] for row in rows]
        assert seqs == sorted(set(seqs))
        assert event in seqs
        assert rows[seqs.index(event)]["is_event"]
        assert len(rows) <= most
        assert (len(rows) - 5) * n_columns <= 5 * around.most_cells
        assert all(row["is_event"] == course[row["seq"]][0] for row in rows)
        first = [row["is_event"] for row in rows if row["seq"] < event]
        assert len(first) <= around.n_before + n_reach


def test_the_lowest_row_of_a_long_event_is_kept_with_those_that_its_score_depends_on():
    course = [(False, 1.0)] * 100 + [(True, -0.001 * i) for i in range(500)] + [(False, 1.0)] * 30
    around = EventRows(2, n_reach=29)
    _, rows = follow(course, around)[-1]
    before, first, lowest = (
        [row["seq"] for row in rows if begin <= row["seq"] < end]
        for begin, end in ((0, 100), (100, 300), (300, 600))
    )
    assert before == list(range(11, 100))
    assert first == list(range(100, 160))
    assert lowest == list(range(551, 600))
    assert [len(part) for part in stretches(rows)] == [149, 49 + 20]
    assert rows[-1]["seq"] == 619


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda cells: st.dictionaries(st.text(max_size=5), cells, max_size=3),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(st.text(max_size=5), values, max_size=4), max_size=5))
def test_rows_come_back_as_they_were_stored(cells):
    rows = [{**kept_row(i, 1.5, -math.inf, row), "is_event": True} for i, row in enumerate(cells)]
    expected = json.loads(json.dumps(rows).replace("-Infinity", "null").replace("Infinity", "null"))
    assert unpacked(packed(rows)) == expected
    assert all(row["score"] is None for row in unpacked(packed(rows)))


@given(st.lists(st.text(max_size=60), max_size=12), st.integers(8, 300))
def test_of_rows_that_are_too_large_the_last_ones_stay(texts, most):
    rows = [{"seq": i, "values": {"x": text}} for i, text in enumerate(texts)]
    data, n = packed_within(rows, most)
    assert unpacked(data) == rows[len(rows) - n :]
    assert len(data) <= most or n == 0
    if len(packed(rows)) <= most:
        assert n == len(rows)


def test_what_cannot_be_read_is_no_row():
    assert unpacked(b"damaged") == []


def test_rows_as_csv_have_the_columns_of_all_and_no_formulas():
    rows = [
        {**kept_row(0, 1.0, 0.5, {"=a": "=1+1", "b": 2.0}), "is_event": False},
        {**kept_row(1, 2.0, None, [3.0, 4.0]), "is_event": True},
    ]
    lines = list(csv.reader(io.StringIO(as_csv(rows, ["b", "c"]))))
    assert lines == [
        ["seq", "time", "score", "is_event", "'=a", "b", "c"],
        ["0", "1.0", "0.5", "0", "'=1+1", "2.0", ""],
        ["1", "2.0", "", "1", "", "3.0", "4.0"],
    ]


def test_columns_of_the_model_keep_their_names_in_csv():
    row = {**kept_row(0, 1.0, 0.5, {"time": "10:00", "time_2": 7, "score": 3}), "is_event": False}
    header, line = csv.reader(io.StringIO(as_csv([row], [])))
    assert header == ["seq", "time_3", "score_2", "is_event", "time", "time_2", "score"]
    assert line == ["0", "1.0", "0.5", "0", "10:00", "7", "3"]

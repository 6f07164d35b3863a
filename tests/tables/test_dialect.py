import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.tables.text import check_dialect, sniff_decimal, sniff_delimiter, with_point

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=3, max_size=3),
    st.sampled_from(",;\t|"),
)
def test_delimiter_is_found_whatever_the_cells_hold(rows, delimiter):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    assert sniff_delimiter(text.getvalue().splitlines(keepends=True)) == delimiter


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a;b;c\n1,5;2,5;3,5\n", ";"),
        ("time;x, m;y, m\n1;2;3\n", ";"),
        ("a\tb, c\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a\n1\n", ","),
        ("a:b\n1:2\n", ","),
        ('"a;b",c\n"1;2",3\n', ","),
    ],
)
def test_delimiter(text, delimiter):
    assert sniff_delimiter(text.splitlines(keepends=True)) == delimiter


@pytest.mark.parametrize(
    ("cells", "delimiter", "decimal"),
    [
        (["1,5", "a"], ";", ","),
        (["0,125"], "\t", ","),
        (["1234,567"], ";", ","),
        (["1,5", "1.5"], ";", "."),
        (["1,5"], ",", "."),
        (["1", "2", "a,b"], ";", "."),
    ],
)
def test_decimal(cells, delimiter, decimal):
    assert sniff_decimal([cells], delimiter, "f.csv") == decimal


def test_thousands_are_asked_about():
    with pytest.raises(TableError, match=r"'1,234', which may mean 1\.234 or 1234"):
        sniff_decimal([["1,234"]], ";", "f.csv")


def test_only_numbers_get_a_point():
    cells = ["1,5", " -2,25e-3", "a,b", "1,2,3", "x 1,5", "7"]
    assert with_point(cells) == ["1.5", " -2.25e-3", "a,b", "1,2,3", "x 1,5", "7"]


@pytest.mark.parametrize(
    ("delimiter", "decimal"), [("", None), (";;", None), ('"', None), (1, None), (None, "x")]
)
def test_bad_settings(delimiter, decimal):
    with pytest.raises(InvalidInputError, match=r"must be .* Got"):
        check_dialect(delimiter, decimal)

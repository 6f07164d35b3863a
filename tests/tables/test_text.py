"""Text files: good, odd and bad ones, and their dialects."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import sys
import warnings

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError, TableError, TableWarning
from ocfuse.tables import open_source
from ocfuse.tables.text import (
    Lines,
    TextSource,
    block_table,
    check_dialect,
    sniff_decimal,
    sniff_delimiter,
    with_point,
)

ROWS = "a,ü\n1,x\n2,y\n"
CELLS = [["1", "x"], ["2", "y"]]
BOM16 = codecs.BOM_UTF16_BE


def cells(source):
    return cells_of(source.read())


def cells_of(frame):
    return frame.to_numpy().tolist()


@pytest.mark.parametrize(
    "content",
    [
        ROWS.encode(),
        ROWS.encode("utf-8-sig"),
        ROWS.encode("utf-16"),
        BOM16 + ROWS.encode("utf-16-be"),
        ROWS.replace("\n", "\r\n").encode(),
        ROWS.replace(",", ", ").encode(),
        ROWS.replace("\n", "\n\n").encode(),
        ROWS.rstrip().encode(),
        ROWS.replace("x", '"x"').encode(),
    ],
)
@pytest.mark.parametrize("chunk_rows", [1, 2, 10])
def test_the_same_table_in_many_forms(write, content, chunk_rows):
    source = open_source(write("t.CSV", content), chunk_rows=chunk_rows)
    assert source.columns == ["a", "ü"]
    assert cells(source) == CELLS
    assert cells(source) == CELLS  # again
    assert source.n_bytes == source.bytes_read == len(content)


PACKERS = {
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", PACKERS)
def test_other_compressions(write, ending):
    table = ("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(20_000))).encode()
    packed = PACKERS[ending](table)
    source = open_source(write(f"t.csv{ending}", packed))
    assert source.read()["b"].tolist()[-1] == str(19_999**2)
    with pytest.raises(TableError, match=r"is cut off or damaged|cannot be read"):
        open_source(write(f"u.csv{ending}", packed[: len(packed) // 2])).read()
    with pytest.raises(TableError, match=f"Give it a name that ends in {ending}"):
        open_source(write("v.csv", packed))


@pytest.mark.parametrize("name", ["t.csv.gz", "t.TSV.GZ"])
def test_compressed(write, name):
    source = open_source(write(name, gzip.compress(ROWS.encode())))
    assert cells(source) == CELLS
    assert source.bytes_read == source.n_bytes


def test_a_compressed_line_without_end(write, monkeypatch):
    monkeypatch.setattr("ocfuse.tables.text.Lines.longest_line", 1000)
    path = write("t.csv.gz", gzip.compress(b"a,b\n" + b"1" * 10**6))
    with pytest.raises(TableError, match=r"t\.csv\.gz has a line of more than 1,000 bytes"):
        open_source(path)


def test_a_quote_is_no_separator(write):
    """Python 3.13 would not have it."""
    assert open_source(write("t.csv", b'sep="\n1\n')).columns == ['sep="']


def test_western_letters_are_read_with_a_warning(write):
    path = write("t.csv", ROWS.encode("latin-1"))
    with pytest.warns(TableWarning, match=r"t\.csv is not in UTF-8 \(line 1\).*Windows-1252"):
        source = open_source(path)
    assert source.columns == ["a", "ü"]


def test_letters_do_not_depend_on_chunks(write):
    text = "a\n" + "".join(f"ü{i}\n" for i in range(50))
    path = write("t.csv", text.encode() + "ä\n".encode("cp1252") + "ö\n".encode())
    found = []
    for chunk_rows in (7, 1000):
        with pytest.warns(TableWarning, match="line 52"):
            found.append(cells(open_source(path, chunk_rows=chunk_rows)))
    assert found[0] == found[1]
    assert found[0][-2:] == [["ä"], ["ö"]]


def test_decimal_comma(write):
    source = open_source(write("t.csv", "a;b\n1,5;x,y\n-2,25;z\n"))
    assert cells(source) == [["1.5", "x,y"], ["-2.25", "z"]]
    assert source.description == "text, separated by semicolon, decimal comma"
    path = write("t.csv", "a\tb\n1,250\t1\n")
    assert cells(open_source(path, decimal=",")) == [["1.250", "1"]]
    assert cells(open_source(path, decimal=".")) == [["1,250", "1"]]


def test_quoted_cells_may_span_lines(write):
    source = open_source(write("t.csv", 'a,b\n"1\n2",3\n4,"5,""6"\n'), chunk_rows=1)
    assert cells(source) == [["1\n2", "3"], ["4", '5,"6']]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12),
    st.integers(1, 13),
    st.sampled_from(",;\t|"),
)
def test_every_cell_comes_through(rows, chunk_rows, delimiter):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([("left", "right"), *rows])
    stream = io.BytesIO(text.getvalue().encode())
    source = open_source(stream, delimiter, chunk_rows, decimal=".")
    frames = list(source.chunks())
    assert [tuple(row) for frame in frames for row in frame.to_numpy().tolist()] == rows
    assert [len(frame) for frame in frames[:-1]] == [chunk_rows] * (len(frames) - 1)
    assert pd.concat(frames).index.tolist() == list(range(len(rows)))


def outcome(content, chunk_rows, decimal=None, *, least_lines):
    """Return all that a user may see of a text: frames, progress, warnings and the error."""
    seen = []
    with warnings.catch_warnings(record=True) as news, pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(TextSource, "least_lines", least_lines)
        try:
            source = open_source(io.BytesIO(content), chunk_rows=chunk_rows, decimal=decimal)
            seen.append((source.columns, source.description))
            for frame in source.chunks():
                seen.append((cells_of(frame), list(frame.dtypes), source.bytes_read))
        except TableError as error:
            seen.append(str(error))
    return seen, [str(warning.message) for warning in news]


def same_by_both(content, chunk_rows, decimal=None):
    by_csv_module = outcome(content, chunk_rows, decimal, least_lines=sys.maxsize)
    assert outcome(content, chunk_rows, decimal, least_lines=1) == by_csv_module


#: Cells that both readers take, and what they may read differently.
PLAIN = ["1", "-2.5e-310", "", "a b", "é", '"a, b"', '"q""q"', '" x"', "7 ", "NA"]
ODD = [
    *(
        " 1",
        "  ",
        '"',
        '""',
        '"""',
        'x"y',
        '"z"y',
        ' "s"',
        '"a\nb"',
        '"a\r\nb"',
        "\r",
        "\0",
        "\ufeff",
    ),
    *("\t", "\x0b", "\x1c", "\u2028", "\u0661", "1,5", "1.234", "1.234,5", ",5", "1,", "+1", "1_0"),
    *("0x1", "inf", "nan", "1e", "\\", "'", ";", "|", "\n"),
]


@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    st.lists(
        st.lists(st.sampled_from(PLAIN) | st.sampled_from(ODD), max_size=4)
        | st.lists(st.sampled_from(PLAIN), min_size=3, max_size=3),
        max_size=8,
    ),
    st.sampled_from(",;\t|: "),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    st.sampled_from([1, 2, 3, 100]),
    st.sampled_from([None, ",", "."]),
)
def test_both_readers_give_the_same(rows, delimiter, end, encoding, chunk_rows, decimal):
    lines = [delimiter.join(row) for row in (["p", "q", "r"], *rows)]
    same_by_both(end.join(lines).encode(encoding, errors="ignore"), chunk_rows, decimal)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.binary(max_size=60), st.sampled_from([1, 2, 100]))
def test_both_readers_give_the_same_of_any_bytes(content, chunk_rows):
    same_by_both(b"a,b\n1,2\n" + content, chunk_rows)
    same_by_both(b"a\n1\n" + content, chunk_rows)


@pytest.mark.parametrize(
    "rows",
    [
        b"1,2\n3\n",  # the first error counts
        b"1,2\n3,4,5\n\xe9,1\n6\n",
        b"1,2\n\n\n3,4\n5,6\n\xe9,8\n",
        b'1,2\n"3\n",4\n5,6\n7\n',
        b'1,2\n"3,",4\n',
        b'1,"2,"3\n4,5\n',
        b"\xef\xbb\xbf1,2\n",
        b"1, 2\n 3,  4\n",
        b'1, "2"\n',
        b'"a, b", 2\n',
        b"1,2\r3,4\n",
        b"1,2\r\n\r\n3,4\r",
        b"1,%b\n" % (b"x" * csv.field_size_limit()),
        b"1,%b\n" % (b"x" * (csv.field_size_limit() + 1)),
        b"1,\xed\xa0\x80\n",  # half a pair of surrogates
        b"\n\n\n",
    ],
)
@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
def test_both_readers_give_the_same_of_odd_rows(rows, chunk_rows):
    same_by_both(b"a,b\n" + rows, chunk_rows)


def test_an_error_in_the_bytes_comes_after_one_in_the_rows():
    content = BOM16 + "a,b\n1,2\n3\n4,5\n".encode("utf-16-be") + b"\xd8\0\0x"
    same_by_both(content, 100)
    (*_, error), _ = outcome(content, 1, least_lines=1)
    assert "Line 3" in error


def lines_of(text):
    return text.encode().splitlines(keepends=True)


@pytest.mark.parametrize(
    "text",
    ["1,x\n,y\n", "1,x", "1,x\r\n2,y\r\n", '"1","x, y"\n"","z ""q"""\n', "é,ü\n", " 1, 2\n"],
)
def test_lines_that_pyarrow_reads(text):
    table = block_table(lines_of(text), ["a", "b"], ",")
    expected = list(csv.reader(text.splitlines(), skipinitialspace=True))
    assert [list(row.values()) for row in table.to_pylist()] == expected


@pytest.mark.parametrize(
    "text",
    [
        *("1\n", "1,2,3\n", '1,"2\n', '1,"2"3\n', '1,2"3"\n', '1, "2"\n', '"1", 2\n', '1,"2,"3\n'),
        *("1,2\r3,4\n", "1,2\r\r\n", "1,\0\n", "\ufeff1,2\n", "1," + "x" * 200_000),
    ],
)
def test_lines_that_are_left_to_the_csv_module(text):
    assert block_table(lines_of(text), ["a", "b"], ",") is None


def test_quoted_line_ends_are_left_to_the_csv_module():
    assert block_table([b'1,"2\n', b'3"\n'], ["a", "b"], ",") is None
    assert block_table([b"1 2\n"], ["a", "b"], " ") is None


@pytest.mark.parametrize(("cell", "n_lines", "n_tried"), [("1.5", 1, 50), ('a"b', 1001, 9)])
def test_which_reader_takes_the_lines_of_a_file(monkeypatch, write, cell, n_lines, n_tried):
    """All but the names by pyarrow; or all by the csv module, and pyarrow is tried less often."""
    read, tried, read_rows = [], [], TextSource._read

    def counted_read(source, *arguments):
        found = read_rows(source, *arguments)
        read.append(found[1])
        return found

    def counted_table(raws, *arguments):
        tried.append(len(raws))
        return block_table(raws, *arguments)

    monkeypatch.setattr(TextSource, "_read", counted_read)
    monkeypatch.setattr("ocfuse.tables.text.block_table", counted_table)
    source = open_source(write("t.csv", "a,b\n" + f"1,{cell}\n" * 1000), chunk_rows=20)
    assert [len(frame) for frame in source.chunks()] == [20] * 50
    assert sum(read) == n_lines
    assert len(tried) == n_tried


def test_decimal_commas_in_many_lines(write):
    """The same by pyarrow: only numbers get a point, and points mark thousands."""
    columns = [["1,5"] * 20, ["1,5", "", "7", "-2,25e3"] * 5, ["1,5", "1.234,5", "a,b", " 2,5"] * 5]
    rows = "".join(";".join(row) + "\n" for row in zip(*columns, strict=True))
    source = open_source(write("t.csv", f"a;b;c\n{rows}"))
    expected = [with_point([cell.lstrip(" ") for cell in column]) for column in columns]
    assert cells(source) == [list(row) for row in zip(*expected, strict=True)]


def test_names_that_are_not_there(write):
    source = open_source(write("t.csv", ",a,\n0,1,2\n"))
    assert source.columns == ["Unnamed: 0", "a", "Unnamed: 2"]


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ROWS.encode())))
    source = open_source("-")
    assert (source.name, source.n_bytes) == ("standard input", None)
    assert cells(source) == CELLS
    assert source.bytes_read == len(ROWS.encode())
    with pytest.raises(TableError, match="only once"):
        source.read()


def test_a_stream_is_not_read_ahead():
    """What `watch` rests on: with chunks of one row, a row is there as soon as it came."""
    lines = iter([b"a,b\n", b"1,2\n", b"3,4\n"])

    class Slow:
        def readline(self):
            return next(lines, b"")

    chunks = open_source(Slow(), chunk_rows=1).chunks()
    assert next(chunks).to_numpy().tolist() == [["1", "2"]]
    assert next(lines) == b"3,4\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv is empty"),
        ("\n \n", "t.csv is empty"),
        ("a,b\n", "t.csv has column names, but no rows"),
        ("a,b,a\n1,2,3\n", "t.csv has columns of the same name: a"),
        ("a,b\n1,2\n3\n", "Line 3 of t.csv has 1 values, but there are 2 column names"),
        ('a,b\n"1\n1",2\n\n3,4,5\n', "Line 5 of t.csv has 3 values"),
        ('a,b\n1,2\n3,"4', "line 3: a quote was opened and not closed"),
        ('a,b\n1,"2"3\n', "line 2: .*expected after"),
        ("a,b\r1,2\r", "lines end in CR alone|no line of column names"),
        (b"a,b\0\n1,2\n", "zero bytes"),
        ("a,b\n1,2\n".encode("utf-16-le"), "zero bytes"),
        (b"PK\x03\x04workbook", "an archive, or a workbook. Give a workbook a name"),
        (gzip.compress(b"a\n1\n", mtime=0), "is compressed"),
        (BOM16 + b"\0a\0\n\xd8\0\0x", "not the UTF-16"),
        ("a;b\n1;12,345\n", r"'12,345', which may mean 12\.345 or 12345"),
    ],
)
def test_bad_files(write, content, message):
    with pytest.raises(TableError, match=message):
        open_source(write("t.csv", content)).read()


def test_cut_off_compressed_file(write):
    packed = gzip.compress(("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(20_000))).encode())
    path = write("t.csv.gz", packed[: len(packed) // 2])
    with pytest.raises(TableError, match=r"t\.csv\.gz is cut off or damaged"):
        open_source(path).read()


def test_line_for_spreadsheets(write):
    """Excel's first line names the separator; lines are still counted right."""
    path = write("t.csv", "sep=;\r\na;b\r\n1,5;x\r\n2,5;y\r\n".encode("utf-8-sig"))
    source = open_source(path)
    assert source.columns == ["a", "b"]
    assert cells(source) == cells(source) == [["1.5", "x"], ["2.5", "y"]]
    assert cells(open_source(io.BytesIO(path.read_bytes()))) == [["1.5", "x"], ["2.5", "y"]]
    assert cells(open_source(write("t.csv", "sep=:\na:b\n1:2\n"))) == [["1", "2"]]
    with pytest.raises(TableError, match=r"Line 4 of t\.csv has 1 values"):
        open_source(write("t.csv", "sep=;\na;b\n1;2\n3\n")).read()


@pytest.mark.parametrize("first", ["# exported by PI 2024", "Report; of July", "Plant 3\nLine 7"])
def test_lines_above_the_names_are_named(write, first):
    rows = "".join(f"{i};{i + 1};{i + 2}\n" for i in range(20))
    line = first.count("\n") + 2
    message = f"begin with column names, but with '{first[:6]}.*in line {line}: delete"
    with pytest.raises(TableError, match=message):
        open_source(write("t.csv", f"{first}\na;b;c\n{rows}"))


def test_a_column_of_decimal_commas_has_no_preamble(write):
    with pytest.raises(TableError, match=r"Line 2 of t\.csv has 2 values"):
        open_source(write("t.csv", "flow\n1,5\n2,5\n3,5\n")).read()


def test_header_of_numbers_is_told(write):
    with pytest.warns(TableWarning, match="holds numbers only and was taken as column names"):
        open_source(write("t.csv", "1,2\n3,4\n"))


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


def test_a_file_that_was_closed_before_its_reader_is_no_error(tmp_path):
    """As happens where both are collected, the file first."""
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n1,2\n3,4\n")
    lines = Lines(file, "rows")
    rows = iter(lines)
    next(rows)
    lines._file.close()
    rows.close()
    assert lines.bytes_read == 0

"""Tables in workbooks."""

import sys
import zipfile
from xml.sax.saxutils import escape

import pytest

from ocfuse.exceptions import MissingPackageError, TableError, TableWarning
from ocfuse.tables import open_source
from ocfuse.tables.excel import ExcelSource

pytest.importorskip("python_calamine")

SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
STYLES = (
    f'<styleSheet {SPACE}><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="22"/></cellXfs></styleSheet>'
)


def cell(value):
    """A cell as Excel writes it; (serial number, style) is a date or a time."""
    if value is None:
        return "<c/>"
    if isinstance(value, tuple):
        return f'<c s="{value[1]}"><v>{value[0]}</v></c>'
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value!r}</v></c>"


def workbook(path, **sheets):
    """Write a workbook, as small as Excel takes it."""
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" '
        f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/styles.xml": STYLES,
    }
    names, links = "", f'<Relationship Id="s" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    for i, (name, rows) in enumerate(sheets.items(), 1):
        names += f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>'
        target = f"worksheets/sheet{i}.xml"
        links += f'<Relationship Id="r{i}" Type="{RELATIONS}/worksheet" Target="{target}"/>'
        lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        parts[f"xl/{target}"] = f"<worksheet {SPACE}><sheetData>{lines}</sheetData></worksheet>"
    parts["xl/workbook.xml"] = (
        f'<workbook {SPACE} xmlns:r="{RELATIONS}"><sheets>{names}</sheets></workbook>'
    )
    parts["xl/_rels/workbook.xml.rels"] = (
        f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


ROWS = [
    ["id", "flow", "on", "state", "day", "when"],
    [1.0, 0.1, True, "ok", (45413.0, 1), (45413.5, 2)],
    [2.0, -3e-07, False, None, (45414.0, 1), None],
    [3.0, None, True, "a, b", None, (45415.75, 2)],
]
CSV = """id,flow,on,state,day,when
1,0.1,true,ok,2024-05-01,2024-05-01 12:00:00
2,-3e-07,false,,2024-05-02,
3,,true,"a, b",,2024-05-03 18:00:00
"""


def test_a_sheet_is_read_as_the_same_table_in_csv(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    expected = open_source(tmp_path / "t.csv").read()
    source = open_source(workbook(tmp_path / "t.xlsx", Sheet1=ROWS))
    assert source.read().to_dict("list") == expected.to_dict("list")
    assert source.description == "workbook, sheet Sheet1"
    assert source.bytes_read == source.n_bytes


def test_chunks_are_read_one_after_another(tmp_path):
    path = workbook(tmp_path / "t.xlsx", S=[["a"], *([float(i)] for i in range(7))])
    chunks = list(open_source(path, chunk_rows=3).chunks())
    assert [len(chunk) for chunk in chunks] == [3, 3, 1]
    assert [v for chunk in chunks for v in chunk["a"]] == [str(i) for i in range(7)]
    assert chunks[2].index.tolist() == [6]


def test_of_several_sheets_the_first_that_is_filled_is_read_and_the_others_are_named(tmp_path):
    path = workbook(tmp_path / "t.xlsx", Empty=[], May=[["a"], [1.0]], June=[["b"], [2.0]])
    with pytest.warns(TableWarning, match="several sheets: May, June. 'May' was read"):
        assert open_source(path).columns == ["a"]
    assert open_source(path, sheet="June").columns == ["b"]
    with pytest.raises(TableError, match=r"no sheet 'July'\. It has Empty, May, June"):
        open_source(path, sheet="July")


def test_rows_that_are_empty_are_passed_over_and_names_may_be_missing(tmp_path):
    path = workbook(tmp_path / "t.xlsx", S=[[None], ["a", None], [None, None], [1.0, 2.0]])
    assert open_source(path).read().to_dict("list") == {"a": ["1"], "Unnamed: 1": ["2"]}


@pytest.mark.parametrize(
    ("sheets", "words"),
    [
        ({"S": []}, "t.xlsx is empty"),
        ({"S": [["a"]]}, "column names, but no rows"),
        ({"S": [["a", "a"], [1.0, 2.0]]}, "columns of the same name: a"),
    ],
)
def test_workbooks_without_a_table_are_refused(tmp_path, sheets, words):
    with pytest.raises(TableError, match=words):
        open_source(workbook(tmp_path / "t.xlsx", **sheets)).read()


@pytest.mark.parametrize("content", [b"", b"no workbook", b"PK\x03\x04" + bytes(40)])
def test_damaged_workbooks_are_refused(tmp_path, content):
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(TableError, match=r"t\.xlsx cannot be read; it may be cut off, damaged"):
        open_source(tmp_path / "t.xlsx")


def test_a_small_file_that_would_take_all_memory_is_refused(tmp_path, monkeypatch):
    path = workbook(tmp_path / "t.xlsx", S=[["a"], ["x" * 20_000]])
    monkeypatch.setattr(ExcelSource, "most_bytes", 20_000)
    with pytest.raises(TableError, match="more than 20,000, which are read at once"):
        open_source(path)


def test_a_sheet_of_another_file_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    with pytest.raises(TableError, match="no workbook and has no sheets"):
        open_source(tmp_path / "t.csv", sheet="May")


def test_the_extra_is_named_where_the_reader_is_missing(tmp_path, monkeypatch):
    path = workbook(tmp_path / "t.xlsx", S=ROWS)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingPackageError, match=r"to read workbooks.*\[excel\]"):
        open_source(path)

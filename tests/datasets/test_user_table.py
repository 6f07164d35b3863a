"""Tables of the user's: three formats, one meaning, and errors that help."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocfuse.datasets import load_table
from ocfuse.exceptions import (
    DatasetError,
    DatasetUnavailableError,
    InvalidInputError,
    InvalidTypeError,
    MissingPackageError,
)
from ocfuse.system import packages

X = np.array([[1.5, -2.0], [np.nan, 0.25], [3.0, 1e-9]])
LABELS = ["ok", "bad", "ok"]


def write(path, X, labels):
    """Write a table in the format that the ending of the path names."""
    names = [f"x{j}" for j in range(X.shape[1])]
    if path.suffix == ".npz":
        np.savez(path, X=X, kind=np.array(labels))
    elif path.suffix == ".parquet":
        columns = {name: X[:, j] for j, name in enumerate(names)}
        pq.write_table(pa.table({"kind": labels} | columns), path)
    else:
        rows = [
            ",".join([label, *("" if np.isnan(v) else repr(float(v)) for v in row)])
            for label, row in zip(labels, X, strict=True)
        ]
        path.write_text("\n".join([",".join(["kind", *names]), *rows]) + "\n")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_formats(tmp_path, suffix):
    table = load_table(write(tmp_path / f"mine{suffix}", X, LABELS), label="kind", normal="ok")
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == [1, -1, 1]
    assert table.labels.tolist() == LABELS
    assert table.feature_names == ("x0", "x1")
    assert table.name == "mine"
    assert table.about is None
    assert repr(table) == "<Dataset mine: 3 rows (2 normal), 2 features>"


@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    values=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=4),
        elements=st.floats(allow_infinity=False),
    ),
    data=st.data(),
)
def test_formats_agree_to_the_last_bit(tmp_path, values, data):
    classes = st.sampled_from(["a", "b", "two words", "ä"])
    labels = data.draw(st.lists(classes, min_size=len(values), max_size=len(values)))
    for suffix in (".csv", ".npz", ".parquet"):
        path = write(tmp_path / f"mine{suffix}", values, labels)
        table = load_table(path, label="kind", normal=labels[0])
        np.testing.assert_array_equal(table.X, values)
        assert [label == labels[0] for label in labels] == (table.y == 1).tolist()


@pytest.mark.parametrize("labels", [[0, 1, 0], [0.0, 1.0, 0.0], [False, True, False]])
def test_number_as_label(tmp_path, labels):
    np.savez(tmp_path / "a.npz", X=X, y=labels)
    for normal in (0, "0", [0]):
        table = load_table(tmp_path / "a.npz", label="y", normal=normal)
        assert table.y.tolist() == [1, -1, 1]


def test_several_normal_classes_and_another_delimiter(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;kind\n1;a\n2;b\n3;c\n")
    table = load_table(path, label="kind", normal=["a", "c"], delimiter=";")
    assert table.y.tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ("x,kind\n", r"Got shape \(0, 1\)"),
        ("kind\nok\n", r"Got shape \(1, 0\)"),
        ("x,kind\n1,ok,3\n", r"must have 2 values.*Got 3 in row 1. Is the delimiter ','\?"),
        ("x,kind\n1,ok\nred,ok\n", "Column 'x' of .* must hold numbers. Got 'red' in row 2"),
        ("x,kind\n1,ok\n2,\n", "Row 2 has none"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        load_table(path, label="kind", normal="ok")


def test_bad_arguments(tmp_path):
    path = write(tmp_path / "a.csv", X, LABELS)
    with pytest.raises(InvalidInputError, match=r"label.*Got 'kinds'. Did you mean 'kind'\?"):
        load_table(path, label="kinds", normal="ok")
    with pytest.raises(InvalidInputError, match=r"normal.*Got 'fine'. Known are bad, ok"):
        load_table(path, label="kind", normal="fine")
    with pytest.raises(InvalidInputError, match="at least one class"):
        load_table(path, label="kind", normal=[])
    with pytest.raises(DatasetUnavailableError, match=r"b.csv, which is not one"):
        load_table(tmp_path / "b.csv", label="kind", normal="ok")
    path.rename(tmp_path / "a.xlsx")
    with pytest.raises(InvalidInputError, match=r"must end in .csv, .parquet or .npz. Got a.xlsx"):
        load_table(tmp_path / "a.xlsx", label="kind", normal="ok")


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_broken_file(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"not what it seems")
    with pytest.raises(DatasetError, match="cannot be read as"):
        load_table(path, label="kind", normal="ok")


def test_bad_arrays(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=X)
    with pytest.raises(DatasetError, match=r"must hold the arrays X and y. It holds X"):
        load_table(path, label="y", normal=0)
    np.savez(path, X=X, y=[0, 1])
    with pytest.raises(DatasetError, match="one label per row"):
        load_table(path, label="y", normal=0)
    np.savez(path, X=np.array([["a"]]), y=[0])
    with pytest.raises(DatasetError, match="table of numbers"):
        load_table(path, label="y", normal=0)
    np.savez(path, X=np.array([[object()]]), y=[0])
    with pytest.raises(DatasetError, match="cannot be read"):
        load_table(path, label="y", normal=0)


@pytest.mark.parametrize(
    "column", [["a", "b"], np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[s]")]
)
def test_parquet_column_that_holds_no_numbers(tmp_path, column):
    pq.write_table(pa.table({"kind": ["ok", "bad"], "when": column}), tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match=r"Column 'when' of .* must hold numbers"):
        load_table(tmp_path / "a.parquet", label="kind", normal="ok")


def test_missing_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", X, LABELS)

    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(packages.importlib, "import_module", refuse)
    with pytest.raises(MissingPackageError, match=r"pyarrow is needed to read .*\[tool\]"):
        load_table(path, label="kind", normal="ok")


@pytest.mark.parametrize("suffix", [".CSV", ".Npz", ".PARQUET"])
def test_the_case_of_the_ending_does_not_count(tmp_path, suffix):
    path = write(tmp_path / f"a{suffix.lower()}", X, LABELS).rename(tmp_path / f"mine{suffix}")
    table = load_table(path, label="kind", normal="ok")
    np.testing.assert_array_equal(table.X, X)


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(tmp_path, suffix, value):
    path = write(tmp_path / f"a{suffix}", np.array([[1.0, 2.0], [np.nan, value]]), ["ok", "bad"])
    with pytest.raises(DatasetError, match=rf"'x1' of .* finite numbers. Got {value} in row 2"):
        load_table(path, label="kind", normal="ok")


@pytest.mark.parametrize("delimiter", ["ab", "", "\n", '"'])
def test_delimiter_is_one_character(tmp_path, delimiter):
    path = write(tmp_path / "a.csv", X, LABELS)
    with pytest.raises(InvalidInputError, match="delimiter must be one character"):
        load_table(path, label="kind", normal="ok", delimiter=delimiter)


def test_delimiter_is_a_string(tmp_path):
    path = write(tmp_path / "a.csv", X, LABELS)
    with pytest.raises(InvalidTypeError, match="delimiter must be a character"):
        load_table(path, label="kind", normal="ok", delimiter=None)


def test_another_encoding_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,kind\n1,größer\n", encoding="latin-1")
    with pytest.raises(DatasetError, match=r"neither text in UTF-8 .* Save text in .* UTF-8"):
        load_table(path, label="kind", normal="ok")


def test_field_without_end(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,kind\n1,"' + "o" * 200_000)
    with pytest.raises(DatasetError, match="cannot be read as CSV: field larger"):
        load_table(path, label="kind", normal="ok")

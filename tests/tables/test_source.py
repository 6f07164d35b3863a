"""Parquet, Feather, NumPy's files and folders."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.tables import open_source
from ocfuse.tables.source import RowsFile

TYPED = pa.table(
    {
        "whole": pa.array([1, None, 3], pa.int32()),
        "big": pa.array([2**60 + 1, None, 1], pa.int64()),
        "real": pa.array([0.5, None, 1.5]),
        "yes": pa.array([True, None, False]),
        "word": pa.array(["a", None, "b"]),
        "coded": pa.array(["a", "b", "a"]).dictionary_encode(),
        "money": pa.array([Decimal("1.25"), None, Decimal("2")]),
        "day": pa.array([date(2024, 1, 2), None, date(2024, 1, 3)]),
    }
)


def write_parquet(table, path):
    pq.write_table(table, path, row_group_size=2)


def write_feather(table, path):
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=2)


WRITERS = {"t.parquet": write_parquet, "t.feather": write_feather}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("chunk_rows", [1, 2, 3])
def test_types_do_not_depend_on_chunks(tmp_path, name, chunk_rows):
    WRITERS[name](TYPED, tmp_path / name)
    source = open_source(tmp_path / name, chunk_rows=chunk_rows)
    frames = list(source.chunks())
    assert max(map(len, frames)) <= chunk_rows
    assert all((frame.dtypes == frames[0].dtypes).all() for frame in frames)
    whole = source.read()
    assert whole["big"].iloc[0] == 2**60 + 1
    assert whole["coded"].tolist() == ["a", "b", "a"]
    assert whole["money"].iloc[0] == 1.25
    assert whole["day"].iloc[2] == pd.Timestamp("2024-01-03")
    assert source.bytes_read == source.n_bytes == (tmp_path / name).stat().st_size


def test_an_index_of_pandas_is_a_column(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="when"))
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_source(tmp_path / "t.parquet").read().columns.tolist() == ["a", "when"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.9])
def test_cut_off_files(tmp_path, name, kept):
    path = tmp_path / name
    WRITERS[name](TYPED, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept if kept > 1 else kept * len(content))])
    with pytest.raises(TableError, match=f"{name} cannot be read"):
        open_source(path).read()


@pytest.mark.parametrize("name", WRITERS)
def test_no_rows(tmp_path, name):
    WRITERS[name](TYPED.slice(0, 0), tmp_path / name)
    with pytest.raises(TableError, match="no rows"):
        open_source(tmp_path / name).read()


def test_damage_within_a_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.arange(10_000) * 7919 % 10_007}), path)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(TableError, match="cannot be read"):
        open_source(path).read()


def test_arrays(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "t.npy", X)
    source = open_source(tmp_path / "t.npy", chunk_rows=3)
    assert source.columns == ["x0", "x1", "x2"]
    assert [len(frame) for frame in source.chunks()] == [3, 1]
    assert np.array_equal(source.read().to_numpy(), X)
    np.savez(tmp_path / "t.npz", X=X, y=[0, 0, 1, 0], other=np.ones(7))
    frame = open_source(tmp_path / "t.npz", chunk_rows=3).read()
    assert frame.columns.tolist() == ["x0", "x1", "x2", "y"]
    assert frame["y"].tolist() == [0, 0, 1, 0]
    np.savez(tmp_path / "t.npz", X)
    assert np.array_equal(open_source(tmp_path / "t.npz").read().to_numpy(), X)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones(3)}, r"rows and columns of numbers. Got an array of shape \(3,\)"),
        ({"X": np.array([["a"]])}, "type <U1"),
        ({"a": np.ones((2, 2)), "b": np.ones((2, 2))}, "as array 'X'. Got a, b"),
        ({"X": np.array([[{}]], dtype=object)}, "hold objects"),
        ({"X": np.ones((0, 3))}, "no rows"),
    ],
)
def test_bad_arrays(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=message):
        open_source(tmp_path / "t.npz").read()


def test_cut_off_array(tmp_path):
    np.save(tmp_path / "t.npy", np.ones((100, 3)))
    (tmp_path / "t.npy").write_bytes((tmp_path / "t.npy").read_bytes()[:500])
    with pytest.raises(TableError, match="cut off"):
        open_source(tmp_path / "t.npy")


def cut(path, n_bytes):
    """Cut a file in place, as a writer that begins anew does."""
    with path.open("r+b") as file:
        file.truncate(n_bytes)


def test_an_array_that_is_cut_while_it_is_read(tmp_path):
    """A memory map would end the program with SIGBUS."""
    path = tmp_path / "t.npy"
    np.save(path, np.ones((50_000, 3)))
    chunks = open_source(path, chunk_rows=1000).chunks()
    assert len(next(chunks)) == 1000
    cut(path, 30_000)
    with pytest.raises(TableError, match="cut off while it was read"):
        list(chunks)


def test_a_feather_file_that_is_cut_while_it_is_read(tmp_path):
    path = tmp_path / "t.feather"
    frame = pd.DataFrame({"x": np.arange(50_000.0)})
    frame.to_feather(path, compression="uncompressed", chunksize=5000)
    chunks = open_source(path, chunk_rows=5000).chunks()
    assert len(next(chunks)) == 5000
    cut(path, 60_000)
    with pytest.raises(TableError, match="cut off"):
        list(chunks)


def test_arrays_of_columns_and_of_many_axes(tmp_path):
    X = np.arange(24.0).reshape(6, 4)
    np.save(tmp_path / "t.npy", np.asfortranarray(X))
    assert np.array_equal(open_source(tmp_path / "t.npy", chunk_rows=4).read().to_numpy(), X)
    np.save(tmp_path / "t.npy", X.reshape(3, 2, 4))
    rows = RowsFile(tmp_path / "t.npy")
    assert np.array_equal(rows[1], X.reshape(3, 2, 4)[1])
    assert np.array_equal(rows[1:9], X.reshape(3, 2, 4)[1:])
    with pytest.raises(TableError, match="rows and columns"):
        open_source(tmp_path / "t.npy")


def test_folder(tmp_path, write):
    write("b.csv", "y;x\n4;3\n")
    write("a.csv", "x,y\n1,2\n")
    write("c.csv", "x,y\n")
    write(".hidden.csv", "z\n1\n")
    write("notes.md", "nothing")
    source = open_source(tmp_path)
    assert source.columns == ["x", "y", "file"]
    assert source.read().to_numpy().tolist() == [["1", "2", "a.csv"], ["3", "4", "b.csv"]]
    assert source.read().index.tolist() == [0, 1]
    assert source.bytes_read == source.n_bytes
    write("d.csv", "x,z\n1,2\n")
    message = r"d.csv has other columns than a.csv.*missing are y, new are z"
    with pytest.raises(TableError, match=message):
        source = open_source(tmp_path).read()
    write("d.csv", "x\n1\n")
    with pytest.raises(TableError, match=r"missing are y\. Move it"):
        source = open_source(tmp_path).read()


def test_files_are_read_in_the_order_of_their_numbers(tmp_path, write):
    for i in (10, 9, 1, 2):
        write(f"run{i}.csv", f"x\n{i}\n")
    frame = open_source(tmp_path).read()
    assert frame["x"].tolist() == ["1", "2", "9", "10"]
    assert frame["file"].tolist()[2:] == ["run9.csv", "run10.csv"]


def test_a_column_of_files_stays(tmp_path, write):
    write("a.csv", "x,file\n1,z\n")
    assert open_source(tmp_path).read().to_numpy().tolist() == [["1", "z"]]


def test_folder_without_tables(tmp_path, write):
    write("notes.md", "nothing")
    with pytest.raises(TableError, match=r"Got notes\.md"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.docx", "Convert or rename it"),
        ("t.json", "Convert or rename it"),
        ("t.parquet.gz", "must end in"),
    ],
)
def test_unknown_formats(write, name, message):
    with pytest.raises(TableError, match=message):
        open_source(write(name, "x"))


def test_no_such_file(tmp_path):
    with pytest.raises(TableError, match="There is no file"):
        open_source(tmp_path / "t.csv")


@pytest.mark.parametrize("chunk_rows", [0, -1, 1.5, True])
def test_chunk_rows(chunk_rows):
    with pytest.raises(InvalidInputError, match="chunk_rows must be at least 1"):
        open_source("t.csv", chunk_rows=chunk_rows)


def test_long_rows_come_in_smaller_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("ocfuse.tables.source.Source.max_cells", 40)
    np.save(tmp_path / "wide.npy", np.arange(60.0).reshape(6, 10))
    source = open_source(tmp_path / "wide.npy")
    assert [len(chunk) for chunk in source.chunks()] == [4, 2]
    assert np.array_equal(source.read().to_numpy(float), np.arange(60.0).reshape(6, 10))


def test_runs_of_a_robot_are_folders_with_states(tmp_path):
    for i in range(2):
        (tmp_path / f"trial_{i}").mkdir()
        pd.DataFrame({"time": [0.0, 0.1], "x": [i, i]}).to_parquet(
            tmp_path / f"trial_{i}" / "states.parquet"
        )
    (tmp_path / "cell.json").write_text("{}")
    found = open_source(tmp_path).read()
    assert found["file"].tolist() == ["trial_0", "trial_0", "trial_1", "trial_1"]
    assert found["x"].tolist() == [0, 0, 1, 1]

"""Lines as they come: whole ones only, through growth, replacement and cuts."""

import itertools
import os

import pytest

from ocfuse.cli import watch_rows as module
from ocfuse.cli.watch_rows import lines_of_file, lines_of_growing_file, lines_of_stdin
from ocfuse.exceptions import InvalidInputError


@pytest.fixture
def growing(tmp_path, monkeypatch):
    """Return a file, and what reads all that is new in it."""
    monkeypatch.setattr(module, "PAUSE", 0)
    path, told = tmp_path / "log.csv", []
    path.write_bytes(b"")
    batches = lines_of_growing_file(path, told.append)

    def read():
        # two empty batches in a row: nothing more is there
        found, n_empty = [], 0
        for batch in batches:
            found += batch
            n_empty = 0 if batch else n_empty + 1
            if n_empty == 3:
                return found

    return path, read, told


def append(path, text):
    with path.open("ab") as file:
        file.write(text)


def test_a_partial_line_is_waited_for(growing):
    path, read, told = growing
    assert read() == []
    append(path, b"a,b\n1,")
    assert read() == [b"a,b"]
    append(path, b"2\n3")
    assert read() == [b"1,2"]
    append(path, b",4\n")
    assert read() == [b"3,4"]
    assert told == []


def test_a_replaced_file_is_read_to_its_end_and_the_new_one_from_its_start(growing):
    path, read, told = growing
    append(path, b"1\n")
    assert read() == [b"1"]
    append(path, b"2\n3")
    path.rename(path.with_suffix(".1"))
    assert read() == [b"2"]  # there is no new file yet
    append(path.with_suffix(".1"), b"3\n")
    path.write_bytes(b"4\n")
    assert read() == [b"33", b"4"]
    assert len(told) == 1
    assert "replaced" in told[0]


def test_a_cut_file_is_read_from_its_start(growing):
    path, read, told = growing
    append(path, b"1\n2\nlost")
    assert read() == [b"1", b"2"]
    path.write_bytes(b"3\n")
    assert read() == [b"3"]
    assert len(told) == 1
    assert "cut" in told[0]


def test_stdin_gives_empty_lists_while_nothing_comes(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.01)
    reader, writer = os.pipe()
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        batches = lines_of_stdin()
        assert next(batches) == []
        os.write(writer, b"a,b\n1,")
        assert next(batch for batch in batches if batch) == [b"a,b"]
        assert next(batches) == []
        os.write(writer, b"2")
        os.close(writer)
        assert [batch for batch in batches if batch] == [[b"1,2"]]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 65_536])
@pytest.mark.parametrize("text", [b"", b"a", b"a\n", b"a\r\nbc\n\nd", b"\n\n"])
def test_lines_do_not_depend_on_blocks(tmp_path, monkeypatch, block, text):
    monkeypatch.setattr(module, "BLOCK", block)
    path = tmp_path / "t"
    path.write_bytes(text)
    found = list(itertools.chain.from_iterable(lines_of_file(path)))
    assert found == [line.removesuffix(b"\n") for line in text.splitlines(keepends=True)]


def test_endless_line_is_no_table(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"x" * 5_000_000)
    with pytest.raises(InvalidInputError, match="longer than 4,194,304 bytes"):
        list(lines_of_file(path))

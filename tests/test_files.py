import pytest

from ocfuse.files import write_atomically


def test_an_old_file_is_replaced(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch, error):
    target = tmp_path / "a"
    target.write_bytes(b"old")

    def fail(number):
        raise error

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(type(error)):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]

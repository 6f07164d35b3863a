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


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*none"):
        write_atomically(tmp_path / "none" / "a", b"")


def test_an_error_names_the_file_that_the_user_knows(tmp_path, monkeypatch):
    def fail(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(tmp_path / "a", b"new")
    assert caught.value.filename == str(tmp_path / "a")

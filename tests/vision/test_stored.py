import numpy as np
import pytest

from ocfuse.vision import FeatureStore
from tests.vision.cases import Blocks, scene

PICTURES = [scene(i / 3, seed=i) for i in range(3)]


class Counting(Blocks):
    """Counts how often it is asked."""

    calls = pictures = 0

    def _run(self, x):
        Counting.calls += 1
        Counting.pictures += len(x)
        return super()._run(x)


@pytest.fixture
def store(tmp_path):
    Counting.calls = Counting.pictures = 0
    return FeatureStore(tmp_path / "features")


def same(a, b):
    return (a.pooled == b.pooled).all() and all((a.maps[s] == b.maps[s]).all() for s in a.maps)


def test_features_are_computed_once(store):
    first = store.extract(Counting(), PICTURES)
    second = store.extract(Counting(), PICTURES)
    third = FeatureStore(store.folder).extract(Counting(), PICTURES)
    assert Counting.calls == 1
    assert same(first, second)
    assert same(first, third)
    assert same(first, Blocks().extract(PICTURES).halved())


def test_a_picture_is_found_wherever_it_stands(store):
    whole = store.extract(Counting(), PICTURES)
    again = store.extract(Counting(), [PICTURES[2], PICTURES[0], PICTURES[2]])
    assert Counting.calls == 1
    assert same(again, whole.take([2, 0, 2]))
    new = scene(0.9, seed=9)
    mixed = store.extract(Counting(), [new, *PICTURES, new])
    assert Counting.pictures == 4  # the new one alone, and once
    assert same(mixed.take([1, 2, 3]), whole)
    assert same(mixed.take([4]), mixed.take([0]))
    assert len(list(store.folder.iterdir())) == 2


def test_other_pictures_and_other_networks_are_other_features(store):
    store.extract(Counting(), PICTURES)
    changed = [PICTURES[0].copy(), *PICTURES[1:]]
    changed[0][5, 5, 0] ^= 1
    found = store.extract(Counting(), changed)
    assert Counting.pictures == 4
    assert same(found, Blocks().extract(changed).halved())
    store.extract(Counting(size=32), PICTURES)
    assert Counting.pictures == 7


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_file_is_computed_again(store, damage):
    first = store.extract(Counting(), PICTURES)
    (path,) = store.folder.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0xFF
    kept = {"cut": content[: len(content) // 2], "flip": content, "empty": b"", "other": b"x" * 99}
    path.write_bytes(bytes(kept[damage]))
    for _ in range(2):
        assert same(first, FeatureStore(store.folder).extract(Counting(), PICTURES))
        assert Counting.calls == 2  # and repaired


def test_no_pickle_is_read(store):
    store.extract(Counting(), PICTURES)
    (path,) = store.folder.iterdir()
    with np.load(path) as arrays:
        keys = arrays["keys"]
    np.savez(path, keys=keys, pooled=np.array([{"a": 1}], dtype=object))
    FeatureStore(store.folder).extract(Counting(), PICTURES)
    assert Counting.calls == 2


def test_a_disk_that_fails_removes_nothing(store, monkeypatch):
    first = store.extract(Counting(), PICTURES)
    (path,) = store.folder.iterdir()

    def fail(*args, **options):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("ocfuse.vision.extract.np.load", fail)
    found = FeatureStore(store.folder).extract(Counting(), PICTURES[:1])
    assert same(found, first.take([0]))
    assert Counting.calls == 2
    assert path.exists()

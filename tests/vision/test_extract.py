"""From frames to features, batch by batch, and features kept on disk."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.vision import FeatureStore, extract, open_frames
from ocfuse.vision.extract import read_all, read_batches
from tests.vision.cases import Blocks, needs, scene

needs("PIL.Image")

PICTURES = np.stack([scene(i / 150, seed=i) for i in range(150)])


def test_all_batches_are_there_in_sixteen_bits():
    source = open_frames(PICTURES)
    batch = read_all(source, {"a": Blocks(), "b": Blocks(32)})
    batches = list(read_batches(source, {"a": Blocks(), "b": Blocks(32)}))
    assert [len(b) for b in batches] == [64, 64, 22]
    assert batch.index.tolist() == list(range(150))
    for name, features in batch.features.items():
        assert features.maps[8].dtype == features.pooled.dtype == np.float16
        for stride, values in features.maps.items():
            expected = np.concatenate([b.features[name].maps[stride] for b in batches])
            assert np.allclose(values, expected, rtol=1e-3, atol=1e-4)
        pooled = np.concatenate([b.features[name].pooled for b in batches])
        assert np.allclose(features.pooled, pooled, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("is_known", [True, False], ids=["length known", "length unknown"])
def test_too_many_pictures_are_refused_before_memory_is_full(monkeypatch, is_known):
    source = open_frames(PICTURES)
    pictures = source if is_known else iter(source)
    each = Blocks().extract([PICTURES[0]]).halved().n_bytes
    left = 100 * each  # after the first batch 36 more

    def free():
        nonlocal left
        left -= 64 * each
        return left + 64 * each + extract.working_memory(each)

    monkeypatch.setattr(extract, "available_bytes", free)
    words = "150 pictures" if is_known else "128 pictures"
    with pytest.raises(InvalidInputError, match=f"{words}.*enough for about 100"):
        read_all(pictures, {"a": Blocks()})


def test_what_learning_takes_grows_with_the_features(monkeypatch):
    """Few small pictures need little, and large ones more than their features."""
    monkeypatch.setattr(extract, "available_bytes", lambda: 350e6)
    extract.require_memory(10, 0, 37e3)  # of the default network
    with pytest.raises(InvalidInputError, match=r"0\.00 GB, learning 0\.87 GB more, and 0\.35 GB"):
        extract.require_memory(10, 0, 109e3)  # with 224 x 224 pixels
    with pytest.raises(InvalidInputError, match="enough for about 1,459 pictures"):
        extract.require_memory(3400, 0, 37e3)
    extract.require_memory(3400, 2000, 37e3)


FEW = [scene(i / 3, seed=i) for i in range(3)]


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
    first = store.extract(Counting(), FEW)
    second = store.extract(Counting(), FEW)
    third = FeatureStore(store.folder).extract(Counting(), FEW)
    assert Counting.calls == 1
    assert same(first, second)
    assert same(first, third)
    assert same(first, Blocks().extract(FEW).halved())


def test_a_picture_is_found_wherever_it_stands(store):
    whole = store.extract(Counting(), FEW)
    again = store.extract(Counting(), [FEW[2], FEW[0], FEW[2]])
    assert Counting.calls == 1
    assert same(again, whole.take([2, 0, 2]))
    new = scene(0.9, seed=9)
    mixed = store.extract(Counting(), [new, *FEW, new])
    assert Counting.pictures == 4  # the new one alone, and once
    assert same(mixed.take([1, 2, 3]), whole)
    assert same(mixed.take([4]), mixed.take([0]))
    assert len(list(store.folder.iterdir())) == 2


def test_other_pictures_and_other_networks_are_other_features(store):
    store.extract(Counting(), FEW)
    changed = [FEW[0].copy(), *FEW[1:]]
    changed[0][5, 5, 0] ^= 1
    found = store.extract(Counting(), changed)
    assert Counting.pictures == 4
    assert same(found, Blocks().extract(changed).halved())
    store.extract(Counting(size=32), FEW)
    assert Counting.pictures == 7


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_file_is_computed_again(store, damage):
    first = store.extract(Counting(), FEW)
    (path,) = store.folder.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0xFF
    kept = {"cut": content[: len(content) // 2], "flip": content, "empty": b"", "other": b"x" * 99}
    path.write_bytes(bytes(kept[damage]))
    for _ in range(2):
        assert same(first, FeatureStore(store.folder).extract(Counting(), FEW))
        assert Counting.calls == 2  # and repaired


def test_no_pickle_is_read(store):
    store.extract(Counting(), FEW)
    (path,) = store.folder.iterdir()
    with np.load(path) as arrays:
        keys = arrays["keys"]
    np.savez(path, keys=keys, pooled=np.array([{"a": 1}], dtype=object))
    FeatureStore(store.folder).extract(Counting(), FEW)
    assert Counting.calls == 2


def test_a_disk_that_fails_removes_nothing(store, monkeypatch):
    first = store.extract(Counting(), FEW)
    (path,) = store.folder.iterdir()

    def fail(*args, **options):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("ocfuse.vision.extract.np.load", fail)
    found = FeatureStore(store.folder).extract(Counting(), FEW[:1])
    assert same(found, first.take([0]))
    assert Counting.calls == 2
    assert path.exists()

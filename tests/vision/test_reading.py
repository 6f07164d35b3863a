import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.vision import extract, open_frames
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

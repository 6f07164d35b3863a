import numpy as np

from ocfuse.vision.defects import with_defects, with_swaps
from tests.vision.cases import features, scene


def test_defects_change_a_small_part_of_a_picture():
    pictures = [scene(i / 5, seed=i) for i in range(5)]
    made, kind = with_defects(pictures, 10, np.random.default_rng(0))
    assert len(made) == 10 * 4
    again, _ = with_defects(pictures, 10, np.random.default_rng(0))
    assert all((a == b).all() for a, b in zip(made, again, strict=True))
    for i, picture in enumerate(made):
        difference = np.abs(picture.astype(int) - pictures[i % 10 % 5].astype(int)).max(axis=2) > 2
        assert picture.dtype == np.uint8
        assert 0 < difference.sum() < 0.5 * difference.size, kind[i]
    assert (pictures[0] == scene(0, seed=0)).all()  # not touched


def test_swaps_change_some_positions():
    normal = features(20)
    made, kind = with_swaps(normal, 30, np.random.default_rng(0))
    assert len(made) == 30
    assert set(kind) == {0}
    for i in range(30):
        changed = (made.maps[8][i] != normal.maps[8][i % 20]).any(axis=2)
        assert changed.sum() <= 4
    assert (made.maps[8] != normal.maps[8][np.arange(30) % 20]).any()

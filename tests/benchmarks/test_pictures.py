"""The parts of the benchmark on pictures that a mistake would make flattering."""

import numpy as np
import pytest

from benchmarks.pictures.tiles import by_kind
from benchmarks.pictures.tileset import FREE, Tiles, load_tiles, same_tile


def exposures(n_tiles=12, seed=0):
    """Return every tile at three exposures, noise added."""
    rng = np.random.default_rng(seed)
    tiles = rng.normal(size=(n_tiles, 16, 16))
    shots = [100 + gain * tiles + 2 * rng.normal(size=tiles.shape) for gain in (8.0, 15.0, 25.0)]
    pictures = np.clip(np.concatenate(shots), 0, 255).astype(np.uint8)
    return pictures, np.repeat(["exp1", "exp2", "exp3"], n_tiles), np.tile(np.arange(n_tiles), 3)


def test_pictures_of_one_tile_are_found():
    pictures, exposure, truth = exposures()
    found = same_tile(pictures, exposure)
    assert len(np.unique(found)) == 12
    assert all(len(np.unique(found[truth == t])) == 1 for t in range(12))


def test_a_split_keeps_tiles_together_and_learns_no_defect():
    pictures, _, tile = exposures()
    kind = np.where(np.arange(36) == 5, "MT_Crack", FREE)
    tiles = Tiles(pictures, kind, tile)
    for seed in range(5):
        train, test = tiles.split(seed)
        assert not set(tile[train]) & set(tile[test])
        assert (kind[train] == FREE).all()
        assert sorted([*train, *test]) == list(range(36))


def test_areas_by_kind():
    kind = np.array([FREE, FREE, "MT_A", "MT_B"])
    assert by_kind(np.array([2.0, 3.0, 1.0, 4.0]), kind, ["MT_A", "MT_B"]) == [100, 0, 50]


@pytest.mark.slow
def test_the_real_tiles_are_grouped_as_the_report_says(data):
    if not (data / "images" / "magnetic_tile_96.npz").is_file():
        pytest.skip("the magnetic tiles are not in OCFUSE_DATA")
    sizes = np.bincount(load_tiles().tile)
    assert len(sizes) == 228
    assert (sizes == 6).sum() == 154

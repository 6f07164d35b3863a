"""Shrink the pictures of magnetic tiles for docs/tutorials/tiles.md.

``python examples/shrink_tiles.py tiles`` reads ``tiles/MT_*/Imgs/*.jpg``, a clone of
the repository of Huang et al., and writes one file into the folder OCFUSE_DATA.
"""

import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIZE = (96, 96)


def _shrunk(path: Path) -> NDArray[np.uint8]:
    return np.asarray(Image.open(path).convert("L").resize(SIZE, Image.Resampling.BOX))


def main(source: str, data: str) -> None:
    """Write the pictures, kinds and names to images/magnetic_tile_96.npz."""
    paths = sorted(Path(source).glob("MT_*/Imgs/*.jpg"))
    if not paths:
        sys.exit(f"No picture {source}/MT_*/Imgs/*.jpg. Name the folder of the cloned repository.")
    pictures = np.stack([_shrunk(path) for path in paths])
    target = Path(data) / "images" / "magnetic_tile_96.npz"
    target.parent.mkdir(parents=True, exist_ok=True)
    kinds, names = zip(*((path.parts[-3], path.name) for path in paths), strict=True)
    np.savez_compressed(target, X=pictures, y=np.array(kinds), name=np.array(names))
    print(f"{target} written: {len(paths)} pictures")


if __name__ == "__main__":
    main(sys.argv[1], os.environ["OCFUSE_DATA"])

"""Picture of the documentation's first page: ``python -m benchmarks.pictures.marked``.

Pictures of simulated runs of a belt are learned; ``ocfuse score --overlays`` marks what lies on the
belt of another run and does not belong there.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from ocfuse.lab.belt import BeltRun, belt_run

OUT = Path(__file__).parents[2] / "docs" / "images" / "belt-marked.png"
#: Normal runs, and every which picture of them is learned.
RUNS, EVERY = 12, 10
#: Run and picture with a foreign object.
ODD, SHOWN = 106, 59
#: Part of the picture that is shown, and how many times as large.
BOX, TIMES = (0, 18, 128, 98), 5


def write(run: BeltRun, frames: range, folder: Path, start: str) -> None:
    """Write some pictures of a run."""
    folder.mkdir(exist_ok=True)
    for k in frames:
        Image.fromarray(run.frames[k]).save(folder / f"{start}-{k:03}.png")


def main() -> None:
    """Learn, score and write the marked picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(RUNS):
            write(belt_run(seed), range(0, 100, EVERY), folder / "good", f"{seed:02}")
        write(belt_run(ODD, "foreign object"), range(SHOWN, SHOWN + 1), folder / "new", "odd")
        fit = "fit good/ --single -o belt.ocf"
        score = "score belt.ocf new/ -o scores.csv --overlays marked/"
        for line in (fit, score):
            subprocess.run([sys.executable, "-m", "ocfuse", *line.split()], cwd=folder, check=True)
        marked = Image.open(next((folder / "marked").iterdir())).convert("RGB").crop(BOX)
        size = marked.width * TIMES, marked.height * TIMES
        marked.resize(size, Image.Resampling.BICUBIC).quantize(128).save(OUT, optimize=True)


if __name__ == "__main__":
    main()

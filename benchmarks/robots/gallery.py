"""Draw docs/images/cell-gallery.jpg: ``python -m benchmarks.robots gallery``."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

from ocfuse.lab.robot_cell import CellPlan
from ocfuse.lab.robot_cell.cell import PlannedRun, make_run
from ocfuse.lab.robot_cell.run import Recording
from ocfuse.lab.robot_cell.task import intervals
from ocfuse.vision.trials import KINDS, TYPES

FILE = Path(__file__).parents[2] / "docs" / "images" / "cell-gallery.jpg"
#: Kinds of each half of the picture; "" is a normal run.
HALVES = (["", *KINDS[1], *KINDS[3]], [*KINDS[2], *KINDS[4]])
N_SHOWN = 5
PLAN = CellPlan(train=0, validation=0, test=0, n_frames=80, seed=5)


def main() -> None:
    """Make one run of each kind, and draw five frames of each; anomalous ones have a red frame."""
    n_rows = max(map(len, HALVES))
    # a narrow column between the halves has room for names
    columns = [*range(N_SHOWN), *range(N_SHOWN + 1, 2 * N_SHOWN + 1)]
    widths = [1.0] * N_SHOWN + [0.3] + [1.0] * N_SHOWN
    figure, axes = plt.subplots(
        n_rows, len(widths), figsize=(11.2, 1.04 * n_rows), width_ratios=widths
    )
    for place in axes.flat:
        place.axis("off")
    for half, kinds in enumerate(HALVES):
        for row, kind in enumerate(kinds):
            places = axes[row, columns[half * N_SHOWN : (half + 1) * N_SHOWN]]
            draw_run(places, kind, number=half * n_rows + row)
    figure.subplots_adjust(0.03, 0.005, 0.998, 0.995, wspace=0.04, hspace=0.04)
    figure.savefig(FILE, dpi=110, pil_kwargs={"quality": 82})
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")


def draw_run(places: np.ndarray, kind: str, number: int) -> None:
    """Draw some frames of a run in a row."""
    run = make_run(PLAN, PlannedRun(number, "test", kind))
    is_anomalous = run.is_anomalous()
    for place, i in zip(places, shown(run), strict=True):
        place.axis("on")
        place.imshow(run.frames[i])
        place.set_xticks([])
        place.set_yticks([])
        for spine in place.spines.values():
            spine.set_visible(bool(is_anomalous[i]))
            spine.set_color("crimson")
            spine.set_linewidth(2.5)
    number = next((number for number, kinds in KINDS.items() if kind in kinds), 0)
    name = f"{number} {TYPES[number]}\n{kind}" if kind else "normal"
    places[0].set_ylabel(name, fontsize=7)


def shown(run: Recording) -> np.ndarray:
    """Return five frames: one before the anomaly, if there is one, and some from then on."""
    spans = intervals(run.is_anomalous())
    if not spans:
        return np.linspace(2, PLAN.n_frames - 10, N_SHOWN).astype(int)
    begin, end = spans[0]
    if end < PLAN.n_frames - 1:
        return np.linspace(max(begin - 2, 0), end + 1, N_SHOWN).astype(int)
    return np.minimum(max(begin, 2) + np.array([-2, 4, 9, 20, 40]), end)


if __name__ == "__main__":
    main()

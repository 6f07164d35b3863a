"""Draw pictures of the simulated cell into docs/images: ``python -m benchmarks.robots gallery``.

One of every kind of run, and the paper's two figures of robots, remade.
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ocfuse.lab.robot_cell import CellPlan
from ocfuse.lab.robot_cell.cell import PlannedRun, make_run
from ocfuse.lab.robot_cell.run import Recording
from ocfuse.lab.robot_cell.task import intervals
from ocfuse.vision.trials import KINDS, TYPES

IMAGES = Path(__file__).parents[2] / "docs" / "images"
#: Kinds of each half of the picture; "" is a normal run.
HALVES = (["", *KINDS[1], *KINDS[3]], [*KINDS[2], *KINDS[4]])
N_SHOWN = 5
PLAN = CellPlan(train=0, validation=0, test=0, n_frames=80, seed=5)


#: Runs of which the paper's first figure shows frames in turn, and panels of its second.
SEQUENCES = ("", "full", "block")
PANELS = {"normal operation": "", "camera occlusion": "partial", "path obstruction": "block"}
N_IN_TURN = 8


def main() -> None:
    """Draw all pictures."""
    draw_kinds()
    draw_sequences()
    draw_panels()


def draw_kinds() -> None:
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
            run = make_run(PLAN, PlannedRun(half * n_rows + row, "test", kind))
            places = axes[row, columns[half * N_SHOWN : (half + 1) * N_SHOWN]]
            draw_run(places, run, kind, shown(run))
    figure.subplots_adjust(0.03, 0.005, 0.998, 0.995, wspace=0.04, hspace=0.04)
    save(figure, "cell-gallery.jpg")


def draw_sequences() -> None:
    """Draw frames of whole runs in turn, a normal one first, as the paper's figure of the HSR."""
    size = (1.25 * N_IN_TURN, 1.28 * len(SEQUENCES))
    figure, axes = plt.subplots(len(SEQUENCES), N_IN_TURN, figsize=size)
    for number, (places, kind) in enumerate(zip(axes, SEQUENCES, strict=True)):
        run = make_run(PLAN, PlannedRun(number, "test", kind))
        draw_run(places, run, kind, np.linspace(2, PLAN.n_frames - 6, N_IN_TURN).astype(int))
    figure.subplots_adjust(0.035, 0.01, 0.995, 0.99, wspace=0.04, hspace=0.04)
    save(figure, "paper-frames.jpg")


def draw_panels() -> None:
    """Draw one frame each of normal operation, occlusion and obstruction, as the paper's panels."""
    figure, axes = plt.subplots(1, len(PANELS), figsize=(9.0, 3.3))
    for number, (place, (title, kind)) in enumerate(zip(axes, PANELS.items(), strict=True)):
        run = make_run(PLAN, PlannedRun(number, "test", kind))
        spans = intervals(run.is_anomalous())
        middle = (spans[0][0] + spans[0][1]) // 2 if spans else PLAN.n_frames // 2
        place.imshow(run.frames[middle])
        place.set_title(title, fontsize=10)
        place.axis("off")
    figure.subplots_adjust(0.005, 0.005, 0.995, 0.92, wspace=0.03)
    save(figure, "paper-panels.jpg")


def save(figure: Figure, name: str) -> None:
    """Write a picture, and say how large it is."""
    file = IMAGES / name
    figure.savefig(file, dpi=110, pil_kwargs={"quality": 82})
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


def draw_run(places: np.ndarray, run: Recording, kind: str, frames: np.ndarray) -> None:
    """Draw some frames of a run in a row; anomalous ones have a red frame."""
    is_anomalous = run.is_anomalous()
    for place, i in zip(places, frames, strict=True):
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

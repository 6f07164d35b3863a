"""Draw the figures of docs/mathematics.md into docs/images.

norms.svg: the ball of weights for several norms with its best point, and how far
members are trusted by their competence. scales.svg: where two detectors with the same
members raise alarms, one with one scale everywhere, one with a local scale.
held_out.svg: scores of training rows seen and held out, beside those of fresh rows.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from ocfuse import FusedDetector
from ocfuse.detectors import KPCA
from ocfuse.fusion import CompetenceFusion
from ocfuse.solvers.ball import LpBall

#: Colours that the colour-blind tell apart.
BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#777777"
NORMS = ((8 / 7, "8/7"), (6 / 5, "6/5, the default"), (2.0, "2"), (np.inf, "inf"))
STYLES = (("o", "-", BLUE), ("s", "-", ORANGE), ("^", "--", GREEN), ("x", ":", PINK))


def draw_balls(ax: Any) -> None:
    """Draw the weights of two members that a norm allows, and those that are best."""
    competence = np.array([1.0, 0.7])
    angle = np.linspace(0.0, np.pi / 2.0, 91)
    directions = np.stack([np.cos(angle), np.sin(angle)])
    for (p, _), (marker, line, colour) in zip(NORMS, STYLES, strict=True):
        ax.plot(*directions / np.linalg.norm(directions, ord=p, axis=0), line, color=colour)
        best = LpBall(p, nonneg=True).maximiser(competence)
        ax.plot(*best, marker, color=colour, markersize=9)
    ax.annotate("", 0.4 * competence, (0.0, 0.0), arrowprops={"arrowstyle": "->"})
    ax.text(0.3, 0.15, "competence")
    ax.set_aspect("equal")
    ax.set_xlabel("weight of member 1")
    ax.set_ylabel("weight of member 2")


def draw_trust(ax: Any) -> None:
    """Draw the trust in six members whose competence falls from 1 to 0.5."""
    competence = np.linspace(1.0, 0.5, 6)
    for (p, name), (marker, line, colour) in zip(NORMS, STYLES, strict=True):
        v = LpBall(p, nonneg=True).maximiser(competence)
        ax.plot(competence, v / v.sum(), marker + line, color=colour, label=f"p = {name}")
    ax.invert_xaxis()
    ax.set_xlabel("competence of the member")
    ax.set_ylabel("trust")
    ax.legend(frameon=False)


def draw_scales(ax: Any) -> None:
    """Draw the lines of alarm around a dense and a sparse cluster of normals."""
    rng = np.random.default_rng(0)
    dense, sparse = rng.normal(0, 0.25, (150, 2)), rng.normal((4, 0), 1.0, (150, 2))
    X = np.vstack([dense, sparse])
    grid = np.stack(np.meshgrid(np.linspace(-2.5, 8, 120), np.linspace(-4, 4, 90)), axis=-1)
    ax.scatter(*X.T, s=6, color=GREY)
    for k, colour, style in ((0, ORANGE, "--"), (20, BLUE, "-")):
        margin = _margin(X, grid.reshape(-1, 2), k).reshape(grid.shape[:2])
        ax.contour(grid[..., 0], grid[..., 1], margin, [0.0], colors=colour, linestyles=style)
        ax.plot([], [], style, color=colour, label="local scale" if k else "one scale everywhere")
    ax.set_aspect("equal")
    ax.legend(frameon=False, loc="upper right")


def _margin(X: NDArray[np.float64], rows: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    fusion = CompetenceFusion(n_neighbors=k)
    detector = FusedDetector(fusion=fusion, random_state=0).fit(X)
    return detector.decision_function(rows)


def draw_held_out(ax: Any) -> None:
    """Draw what one member says of training rows it has and has not seen, and of fresh ones."""
    rng = np.random.default_rng(0)
    X, target = load_breast_cancer(return_X_y=True)
    train, fresh = np.split(rng.permutation(X[target == 1]), [180])
    detector = FusedDetector([("kpca", KPCA(width=0.25))], fusion="sum", random_state=0).fit(train)
    kinds = (
        ("training rows, seen", detector.score_samples(train), GREY, ":"),
        ("training rows, held out", detector.normal_scores_, BLUE, "-"),
        ("fresh normal rows", detector.score_samples(fresh), ORANGE, "--"),
    )
    for name, scores, colour, line in kinds:
        share = np.arange(1, len(scores) + 1) / len(scores)
        ax.step(np.sort(scores), share, where="post", color=colour, linestyle=line, label=name)
    ax.axvline(detector.offset_, color="black", linewidth=0.8)
    ax.annotate("threshold for 5 %", (detector.offset_, 0.6), (4, 0), textcoords="offset points")
    ax.set_xlabel("score")
    ax.set_ylabel("share of rows with a lower score")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.08, 1.0))


#: Names of the files, and what is drawn into them from left to right.
FIGURES = {
    "held_out": (draw_held_out,),
    "norms": (draw_balls, draw_trust),
    "scales": (draw_scales,),
}


def main(folder: str = "docs/images") -> None:
    """Draw the figures and write the files."""
    # the same files every time, and text that is text
    mpl.rcParams.update({"svg.hashsalt": "ocfuse", "svg.fonttype": "none"})
    for name, parts in FIGURES.items():
        size = (4.5 * len(parts) + 1, 4)
        figure, axes = plt.subplots(1, len(parts), figsize=size, layout="constrained")
        for draw, ax in zip(parts, np.atleast_1d(axes), strict=True):
            draw(ax)
        target = Path(folder) / f"{name}.svg"
        figure.savefig(target, metadata={"Date": None})
        plt.close(figure)
        print(f"{target} written")


if __name__ == "__main__":
    main(*sys.argv[1:])

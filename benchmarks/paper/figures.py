"""One picture for each claim of docs/reproduction.md, as SVG with text as text."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ocfuse.lab.paper.algorithm import algorithm_1, closed_form_per_sample, printed_barrier_gradient
from ocfuse.lab.paper.beside import GLASS, summarise, table_beside
from ocfuse.lab.paper.published import (
    published_contradictions,
    published_table,
    worst_average_precision,
)
from ocfuse.lab.paper.ranking import (
    CONTRASTS,
    Contrast,
    Ranking,
    critical_difference_diagram,
)
from ocfuse.lab.paper.systems import FAMILIES, TABLES
from ocfuse.lab.paper.tables import geometric_ratio
from ocfuse.solvers import solve
from ocfuse.tuning.search import PAPER_P

Records = Sequence[dict[str, Any]]

#: Colours that the colour-blind tell apart (Okabe and Ito); every one has a marker of its own.
BLACK, ORANGE, BLUE, GREEN, RED = "#222222", "#E69F00", "#0072B2", "#009E73", "#D55E00"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ocfuse",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
#: The figures of the videos that the paper compares itself with.
N_ANOMALOUS, N_NORMAL = 60, 7


def draw(results: Records, ablation: Path, out: Path) -> list[str]:
    """Write all pictures and return their names."""
    out.mkdir(parents=True, exist_ok=True)
    plots: dict[str, Callable[[Axes], None]] = {
        "random-labels.svg": random_labels,
        "algorithm-1.svg": finite_weights,
        "auc-pr.svg": average_precisions,
        "auc-and-gmean.svg": lambda axes: law(axes, results),
        "agreement.svg": lambda axes: agreement(axes, results),
        "thresholds.svg": lambda axes: thresholds(axes, results),
        "local-and-global.svg": lambda axes: local_and_global(axes, results),
        "solvers.svg": lambda axes: speeds(axes, ablation),
    }
    for name, plot in plots.items():
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(6.4, 3.9), layout="constrained")
            plot(figure.add_subplot())
            figure.savefig(out / name, metadata={"Date": None, "Creator": None})
    ranking = Ranking(summarise(results, "rpau", "auc"), published_table("rpau", "auc"))
    for name, table in (
        ("ranks-printed.svg", ranking.printed_table),
        ("ranks-measured.svg", ranking.table),
    ):
        whose = "printed" if "printed" in name else "our"
        diagram = critical_difference_diagram(
            table,
            ranking.systems,
            highlight=[str(ranking.control())],
            title=f"Mean ranks in AUC, members and fusions tuned by RPAU, {whose} results",
        )
        (out / name).write_text(diagram, encoding="utf-8")
    return [*plots, "ranks-printed.svg", "ranks-measured.svg"]


def random_labels(axes: Axes) -> None:
    """Show that eq. 2 learns labels that mean nothing."""
    S, y = _random_scores()
    alone, shared = [], []
    for p in PAPER_P:
        W = closed_form_per_sample(S, y, p)
        alone.append(100 * np.mean(np.sign(np.sum(S * W, axis=1)) == y))
        shared.append(100 * np.mean(np.sign(S @ solve(S, y, p=p).w) == y))
    _norms(axes)
    places = range(len(PAPER_P))
    axes.plot(places, alone, "o-", color=RED, label="eq. 2: a weight vector for each sample")
    axes.plot(places, shared, "s--", color=BLUE, label="one weight vector for all")
    axes.set(ylabel="training labels met (%)", ylim=(0, 105))
    axes.set_title("Labels drawn at random are learned without an error", loc="left")
    axes.legend(loc="lower right")


def finite_weights(axes: Axes) -> None:
    """Show how many weight vectors of Algorithm 1 are numbers."""
    S, y = _random_scores()
    variants: list[tuple[str, str, str, dict[str, Any]]] = [
        ("as printed", "o", RED, {}),
        ("started inside the ball", "s", ORANGE, {"start": 0.9}),
        ("... and the sign repaired", "^", BLUE, {"start": 0.9, "barrier": _right_sign}),
    ]
    _norms(axes)
    for shift, (label, marker, colour, options) in enumerate(variants):
        shares = [
            100 * np.mean(np.isfinite(algorithm_1(S, y, p, **options)).all(axis=1)) for p in PAPER_P
        ]
        places = np.arange(len(PAPER_P)) + 0.15 * (shift - 1)
        axes.plot(places, shares, marker, color=colour, label=label)
    axes.set(ylabel="weight vectors that are numbers (%)", ylim=(-5, 105))
    axes.set_title("Algorithm 1, 50 epochs, 500 samples", loc="left")
    axes.legend(loc="center left")


def average_precisions(axes: Axes) -> None:
    """Show where the AUC-PR of videos can lie at all."""
    table = published_table("hsr", "auc_pr")
    printed = dict(zip(table.systems, table.mean[0], strict=True))
    worst = 100 * worst_average_precision(N_ANOMALOUS, N_NORMAL)
    chance = 100 * N_ANOMALOUS / (N_ANOMALOUS + N_NORMAL)
    earlier = printed.pop("Thoduka 2021")
    axes.axvspan(0, worst, color="#dddddd", zorder=0)
    axes.text(worst / 2, 3.45, "no order of the 67 videos is here", ha="center")
    marks = [
        (earlier, 0, "v", RED, f"quoted for comparison, {earlier:.1f}"),
        (worst, 1, "|", BLACK, f"worst order, {worst:.1f}"),
        (chance, 2, "D", ORANGE, f"random order, about {chance:.1f}"),
        (max(printed.values()), 3, "o", BLUE, f"the paper, {max(printed.values()):.1f}"),
    ]
    for x, y, marker, colour, label in marks:
        axes.plot(x, y, marker, color=colour, markersize=9)
        axes.text(x - 2, y, label, ha="right", va="center")
    axes.set(xlim=(0, 100), ylim=(-0.6, 3.9), yticks=[], xlabel="AUC-PR per video (%)")
    axes.set_title("60 anomalous and 7 normal videos", loc="left")


def law(axes: Axes, results: Records) -> None:
    """Show AUC and G-mean of every cell, and the least AUC that a G-mean allows."""
    ours: list[list[float]] = [[], []]
    printed: list[list[float]] = [[], []]
    for name in TABLES:
        both = [table_beside(results, name, measure) for measure in ("auc", "gmean")]
        for i, found in enumerate(both):
            ours[i] += found.ours.mean.ravel().tolist()
            printed[i] += found.paper.ravel().tolist()
    axes.plot(ours[1], ours[0], ".", color="#999999", label="ours", zorder=1)
    axes.plot(printed[1], printed[0], "o", color=BLUE, mfc="none", label="printed", zorder=2)
    for cell in published_contradictions()[:1]:
        axes.plot(cell.gmean, cell.auc, "X", color=RED, markersize=10, zorder=3)
        axes.annotate(
            f"{cell.system} on {cell.set_name}, printed",
            (cell.gmean, cell.auc),
            (12, 98),
            arrowprops={"arrowstyle": "-", "color": RED},
            color=RED,
        )
    g = np.linspace(0, 100, 101)
    axes.fill_between(g, 0, g**2 / 100, color="#dddddd", zorder=0)
    axes.text(88, 55, "AUC < G²:\nimpossible", ha="center")
    axes.set(xlim=(0, 101), ylim=(40, 102), xlabel="G-mean (%)", ylabel="AUC (%)")
    axes.set_title("Every cell of the three tables", loc="left")
    axes.legend(loc="lower left")


def agreement(axes: Axes, results: Records) -> None:
    """Show our AUC against the printed one, by kind of system."""
    both = [table_beside(results, name, "auc") for name in ("rpau", "pseudo-negative")]
    kinds = [
        ("members", "o", ORANGE, lambda row: row in FAMILIES),
        ("fusions", "s", BLUE, lambda row: row.startswith("Pure") or row == "Sum rule"),
        ("LOF, isolation forest, ALP", "^", GREEN, lambda row: row in ("LOF", "IF", "ALP")),
    ]
    for label, marker, colour, holds in kinds:
        points = [
            (found.paper[i, j], found.ours.mean[i, j], set_name == GLASS)
            for found in both
            for j, row in enumerate(found.ours.systems)
            for i, set_name in enumerate(found.ours.sets)
            if holds(row)
        ]
        others = np.array([point[:2] for point in points if not point[2]])
        glass = np.array([point[:2] for point in points if point[2]])
        axes.plot(*others.T, marker, color=colour, label=label, markersize=5)
        if len(glass):
            axes.plot(*glass.T, marker, color=colour, mfc="none", markersize=6)
    axes.plot([], [], "o", color=BLACK, mfc="none", label="hollow: Glass")
    axes.plot([50, 100], [50, 100], "-", color=BLACK, linewidth=0.8)
    axes.set(xlim=(30, 101), ylim=(45, 101), xlabel="printed AUC (%)", ylabel="our AUC (%)")
    axes.set_title("Members and fusions, tuned by RPAU and by pseudo-negatives", loc="left")
    axes.legend(loc="upper left", fontsize=9)


def thresholds(axes: Axes, results: Records) -> None:
    """Show the printed G-mean beside ours, at fixed thresholds and at the best one."""
    for measure, marker, colour, label in (
        ("gmean", "s", ORANGE, "ours, threshold for 5 % false alarms"),
        ("gmean_20", "^", GREEN, "ours, threshold for 20 % false alarms"),
        ("best_gmean", "o", BLUE, "ours, best threshold in hindsight"),
    ):
        points = []
        for name in ("rpau", "pseudo-negative"):
            found = table_beside(results, name, measure, "gmean")
            kept = found.ours.is_reproducible
            points += list(
                zip(found.paper[kept].ravel(), found.ours.mean[kept].ravel(), strict=True)
            )
        axes.plot(*np.array(points).T, marker, color=colour, mfc="none", label=label, markersize=5)
    axes.plot([50, 100], [50, 100], "-", color=BLACK, linewidth=0.8)
    axes.set(xlim=(50, 101), ylim=(0, 101), xlabel="printed G-mean (%)", ylabel="our G-mean (%)")
    axes.set_title("Members and fusions, without Glass", loc="left")
    axes.legend(loc="lower right", fontsize=9)


def local_and_global(axes: Axes, results: Records) -> None:
    """Show the gain of local over global weights on every set."""
    found = [
        c
        for c in CONTRASTS
        if c.question == "local against global weights" and "signed" not in c.first
    ]
    labels = ("RPAU", "pseudo-negatives", "real anomalies")
    ours = summarise(results, "comparison", "auc")
    for k, contrast in enumerate(found):
        for whose, colour, marker, gaps in (
            ("printed", ORANGE, "o", _printed_gaps(contrast, ours.sets)),
            ("ours", BLUE, "s", _gaps(ours.columns([contrast.first, contrast.second]))),
        ):
            kept = gaps[ours.is_reproducible]
            shift = k + (-0.15 if whose == "printed" else 0.15)
            spread = np.linspace(-0.08, 0.08, len(kept))
            name = whose if k == 0 else None
            axes.plot(shift + spread, kept, marker, color=colour, mfc="none", label=name)
            axes.plot([shift - 0.12, shift + 0.12], [np.nanmean(kept)] * 2, color=colour)
    axes.axhline(0, color=BLACK, linewidth=0.8)
    axes.set(xticks=range(3), ylabel="AUC, local less global (points)")
    axes.set_xticklabels([f"tuned by {label}" for label in labels])
    axes.set_title("Local against global weights, nine sets, mean as a line", loc="left")
    axes.legend(loc="upper right")


def speeds(axes: Axes, ablation: Path) -> None:
    """Show how much faster the interior point is than Frank-Wolfe, printed and measured."""
    cells = json.loads(ablation.read_text(encoding="utf-8"))["data"]["local non-pure"]
    places = np.arange(len(cells))
    series = [
        ("the paper", "o", ORANGE, [(c["printed"], False) for c in cells]),
        ("plain Frank-Wolfe", "s", BLUE, [geometric_ratio(c, "paper") for c in cells]),
        ("strong Frank-Wolfe", "^", GREEN, [geometric_ratio(c, "strong") for c in cells]),
    ]
    for k, (label, marker, colour, found) in enumerate(series):
        x = places + 0.15 * (k - 1)
        values = np.array([value for value, _ in found])
        is_bound = np.array([bound for _, bound in found])
        axes.plot(x, values, marker, color=colour, label=label, markersize=5)
        axes.plot(x[is_bound], 1.25 * values[is_bound], "^", color=colour, mfc="none", markersize=3)
    axes.axhline(1, color=BLACK, linewidth=0.8)
    axes.set(yscale="log", ylabel="time over that of the interior point")
    axes.set_xticks(places, [f"{c['tol']:.0e}".replace("e-0", "e-") for c in cells], fontsize=8)
    for k, p in enumerate(("32/31", "8/7", "2", "100")):
        axes.text(3 * k + 1, axes.get_ylim()[0] * 0.30, f"p = {p}", ha="center", va="top")
    axes.set_title("Local non-pure problems; small triangle: at least so much", loc="left")
    axes.legend(loc="upper left", fontsize=9)


def _printed_gaps(contrast: Contrast, sets: Sequence[str]) -> np.ndarray:
    table = published_table(contrast.table, "auc")
    rows = [table.sets.index(name) for name in sets]
    return (table.column(contrast.first) - table.column(contrast.second))[rows]


def _gaps(columns: np.ndarray) -> np.ndarray:
    return columns[:, 0] - columns[:, 1]


def _random_scores(n: int = 500, d: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(size=(n, d)), rng.choice([-1.0, 1.0], size=n)


def _right_sign(w: np.ndarray, p: np.ndarray, mu: float) -> np.ndarray:
    return -printed_barrier_gradient(w, p, mu)


def _norms(axes: Axes) -> None:
    names = ["32/31", "16/15", "8/7", "4/3", "2", "4", "8", "10", "100"]
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel("norm p of the paper's grid")

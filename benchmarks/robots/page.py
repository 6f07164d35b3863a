"""Write docs/robots-results.md from the results: ``python -m benchmarks.robots page``."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.robots.measures import Figures, mean_area
from benchmarks.robots.our_systems import OURS
from benchmarks.robots.recordings import UNSEEN
from benchmarks.robots.tables import delay_text, on_before_text, type_names
from benchmarks.robots.thresholds import BY_RUN
from benchmarks.robots.views import VIEWS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "robots" / "cell.json"
PAGE, MOTION_PAGE = ROOT / "docs" / "robots-results.md", ROOT / "docs" / "robots.md"
MEMBERS = ("KPCA", "SVDD", "GP", "GMM")
MOTION = "motion U-Net"
PROMISED = ("RPAU", "pseudo-negative")
#: Rows of the first table: what they are called, and which system they are of.
ROWS = {
    "Pure2 of the paper, RPAU": "Pure2 RPAU",
    "Pure2 of the paper, pseudo-negatives": "Pure2 pseudo-negative",
    "Non-pure2 of the paper, 16 labelled runs": "Non-pure2",
    "pooled features or joints: sum rule": "{}, sum rule",
    "the same: `FusedDetector()`": "{}, recipe",
    "motion U-Net, after Thoduka et al. (2021)": MOTION,
    "nearest patches, without progress": "ours: knn alone, without progress",
    "**ours**": OURS,
}
#: What those that differ are called in each view.
PLAIN = {"camera": "pooled", "joints": "joints", "both": "both"}

TEXT = """\
# How well it works on the simulated cell

`make bench-robots` makes the cell if it is not there (`OCFUSE_CELL` names one that is) and writes
the tables to `benchmarks/results/robots`; `python -m benchmarks.robots page` writes this page from
them, do not edit it. The tables have the form of the paper's table of LiRAnomaly, which is not
public. All figures are from {normal} normal and {strange} anomalous runs that nothing was learned
from or chosen on.

Mean of the four types, AUC-ROC in %:

{means}

Ours is, with the camera, `PictureDetector` with the progress of the task as context; with the
joints, `StreamDetector` with a `Course`, which measures them from what is usual at their progress;
with both, `join_lowest` of the two scores.

Ours by type, AUC-ROC of frames in %; kinds never seen are {unseen}, which no choice has seen,
against normal runs alone:

{types}

Alarms of ours at a nominal 1 %. *By run* is the rule of the library: the held-out runs of training
and the validation runs cannot promise 1 %, so that the threshold is the lowest score of all. *By
frame*: 1 % of the frames of the validation runs. *On before*: anomalies that began while an alarm
was on, which has found nothing. By type: in how many of the others an alarm was raised, and the
median time to it.

{alarms}

What helps, and what does not, in points of the mean AUC-ROC of frames:

{gains}

- What matters is the place in the picture and the progress of the task: grasp failures look like
  any grasp, only at the wrong moment.
- On pooled features 8 points of the recipe over the sum rule were hoped for, from an older cell
  with weaker members. Here the members are nearly alike, and there is little to choose among.
- Joints see nothing of an occlusion, and of an obstacle only when it is touched.

A warning about levels: with joints the motion U-Net has {motion_run} by run and {motion_frame} by
frame, where the paper compared a figure by run with one by frame ([the rival](robots.md)). AUC-PR
is in the tables beside its prevalence, which by run is {prevalence} %.

One simulated robot, one camera, one task: see [what it is not](robots.md).

The recordings of the Toyota HSR are measured in the same way where they are present
(`OCFUSE_TOYOTA` names their folder); they were not present here.
"""


class Results:
    """What the benchmark found, by view and name.

    Parameters
    ----------
    data : dict
        The entry "data" of its JSON file.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.found = {(each["view"], each["name"]): each for each in data["systems"]}

    def mean(self, view: str, name: str, level: str = "frame") -> float | None:
        """Return the mean over the types, or None if there is no such row."""
        figures = self.found.get((view, name))
        return None if figures is None else mean_area(figures, level)

    def best(self, view: str, names: Iterable[str]) -> str:
        """Return the system with the best mean by frame, in hindsight."""
        there = [name for name in names if (view, name) in self.found]
        return max(there, key=lambda name: mean_area(self.found[view, name]), default="")


def main() -> None:
    """Write the page, and the figures of the rival on the other one."""
    results = Results(json.loads(RESULTS.read_text(encoding="utf-8"))["data"])
    PAGE.write_text(page(results), encoding="utf-8")
    text = MOTION_PAGE.read_text(encoding="utf-8")
    MOTION_PAGE.write_text(with_motion(text, results), encoding="utf-8")
    print(f"{PAGE} and the rival in {MOTION_PAGE}")


def page(results: Results) -> str:
    """Return the page."""
    ours = results.found["camera", OURS]
    first = next(iter(ours["types"].values()))
    return TEXT.format(
        normal=len(ours["alarms"]["false alarms"]),
        strange=len(ours["runs"]),
        means=mean_table(results),
        types=type_table(results),
        alarms=alarm_table(results),
        gains=gain_table(results),
        unseen=", ".join(f"`{kind}`" for kind in unseen(ours)),
        motion_run=shown(results.mean("both", MOTION, "run")),
        motion_frame=shown(results.mean("both", MOTION)),
        prevalence=f"{first['run']['prevalence']:.1f}",
    )


def with_motion(text: str, results: Results) -> str:
    """Return a text with the figures of the rival renewed."""
    for words, view in (("camera", "camera"), ("camera and joints", "both")):
        cells = [shown(results.mean(view, MOTION, level)) for level in ("frame", "run")]
        row = f"| {words} | {' | '.join(cells)} |"
        text = re.sub(rf"^\| {words} \| .*$", row, text, flags=re.MULTILINE)
    return text


def mean_table(results: Results) -> str:
    """Return the means of the systems that a reader will look for."""
    hindsight = [f"{member} {words}" for member in MEMBERS for words in PROMISED]
    rows: dict[str, Callable[[str], str]] = {
        "best member of the paper (pure, in hindsight)": lambda v: results.best(v, hindsight)
    }
    rows |= {words: lambda v, name=name: name.format(PLAIN[v]) for words, name in ROWS.items()}  # type: ignore[misc]
    lines = []
    for words, name in rows.items():
        cells = [
            shown(results.mean(view, name(view), level))
            for view in VIEWS
            for level in ("frame", "run")
        ]
        lines.append([words, *cells])
    return table(["", *(f"{view}: {what}" for view in VIEWS for what in ("frames", "runs"))], lines)


def type_table(results: Results) -> str:
    lines = []
    for view in VIEWS:
        ours = results.found[view, OURS]
        areas = [kind["frame"]["auc"] for kind in ours["types"].values()]
        new = [ours["kinds"][kind] for kind in unseen(ours)]
        cells = [shown(area) for area in areas]
        lines.append([view, *cells, f"{np.mean(new):.1f} (least {min(new):.1f})" if new else ""])
    return table(["", *type_names(ours["types"]), "kinds never seen"], lines)


def alarm_table(results: Results) -> str:
    """Return what the alarms of ours do, by run and by frame."""
    lines = []
    for view, rules in results.data["thresholds"].items():
        for words, alarms in (("by run", rules[BY_RUN]), ("by frame", list(rules.values())[-1])):
            false, elsewhere = np.mean(alarms["false alarms"]), alarms["false alarms elsewhere"]
            lines.append(
                [
                    f"{view}, {words}",
                    f"{false:.1f} % (a run: up to {max(alarms['false alarms']):.0f} %)",
                    f"{elsewhere:.1f} %",
                    f"{alarms['frames found']:.0f} %",
                    on_before_text(alarms),
                    *map(delay_text, alarms["types"].values()),
                ]
            )
    heads = ["false alarms, normal runs", "normal frames of other runs", "anomalous frames found"]
    return table(["", *heads, "on before", *type_names(alarms["types"])], lines)


def gain_table(results: Results) -> str:
    """Return differences between systems, ours first."""
    families = [f"ours: {name} alone" for name in ("gaussian", "knn", "pooled")]
    best = results.best("camera", families)
    pairs = [
        (f"camera: fusion v its best family ({best})", "camera", OURS, best),
        (
            "nearest patches: with progress v without",
            "camera",
            families[1],
            families[1] + ", without progress",
        ),
        ("pooled features: recipe v sum rule", "camera", "pooled, recipe", "pooled, sum rule"),
        (
            "pooled features: 16 labelled runs v none",
            "camera",
            "pooled, recipe with labels",
            "pooled, recipe",
        ),
        ("joints: at their progress v as they are", "joints", OURS, "joints, recipe"),
        ("local fusion of the paper v its sum rule, RPAU", "camera", "Pure2 RPAU", "Sum rule RPAU"),
    ]
    lines = []
    for words, view, one, other in pairs:
        a, b = results.mean(view, one), results.mean(view, other)
        difference = "" if a is None or b is None else f"{a - b:+.1f}"
        lines.append([words, shown(a), shown(b), difference])
    return table(["", "first", "second", "difference"], lines)


def unseen(ours: Figures) -> list[str]:
    return [kind for kinds in UNSEEN.values() for kind in kinds if kind in ours["kinds"]]


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def table(header: list[str], lines: list[list[str]]) -> str:
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines]
    )

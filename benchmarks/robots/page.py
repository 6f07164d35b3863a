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

This page shows how well ocfuse finds faults in recordings of a [simulated robot cell](robots.md),
compared with the methods of the paper (arXiv 2411.06406) and with a neural network. All figures
are from {normal} normal and {strange} anomalous runs, which were not used to learn or to choose
anything. The tables have the form of the paper's table of LiRAnomaly, a data set that is not
public.

`make bench-robots` simulates the cell if it does not exist (`OCFUSE_CELL` names the folder of an
existing one) and writes the tables to `benchmarks/results/robots`. From these,
`python -m benchmarks.robots page` writes this page: do not edit it.

Mean AUC-ROC over four types of anomalies, in %. *Frames* are scored one by one; a *run* has the
score of its lowest frame:

{means}

"Ours" is

- with the camera: `PictureDetector` with the progress of the task as context;
- with the joints: `StreamDetector` with a `Course`, which measures joints from what is usual at
  their progress;
- with both: `join_lowest` of the two scores, the lower one.

AUC-ROC of frames in %, ours, by type. Kinds never seen are {unseen}: nothing was chosen with them,
and they are compared with normal runs alone:

{types}

The next table shows the alarms of ours at a nominal false-alarm rate of 1 %. With *by run*, the
rule of the library, held-out runs of training and validation runs set the threshold. They are too
few to promise 1 %, so the threshold is the lowest score of all. With *by frame* it is the score
below which 1 % of the frames of the validation runs are. *On before* counts anomalies that began
during an alarm; these do not count as found. The last columns show, for the other anomalies, how
many raised an alarm, and the median time to it:

{alarms}

What helps, and what does not, in points of the mean AUC-ROC of frames:

{gains}

- What matters is the place in the picture and the progress of the task: grasp failures look like
  any grasp, only at the wrong moment.
- On pooled features (one vector for a whole picture) `FusedDetector()` was expected to be 8 points
  better than the sum rule, because it was so on an older cell with weaker members. Here the members
  are nearly alike, so that a fusion can gain little.
- Joints do not show an occlusion of the camera, and show an obstacle only when the robot touches
  it.

Do not compare figures by run with figures by frame, as the paper does: with camera and joints the
motion U-Net has {motion_run} by run and {motion_frame} by frame ([the compared method](robots.md)).
The tables in the results have AUC-PR with its prevalence, the share of anomalies, which by run is
{prevalence} %.

The results are of one simulated robot, one camera and one task: see
[what the cell is not](robots.md).

The recordings of the Toyota HSR are measured in the same way if they are present (`OCFUSE_TOYOTA`
names their folder); they were not present here.
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
        (f"camera: fusion v its best family of members ({best})", "camera", OURS, best),
        (
            "nearest patches: with progress v without",
            "camera",
            families[1],
            families[1] + ", without progress",
        ),
        (
            "pooled features: `FusedDetector()` v sum rule",
            "camera",
            "pooled, recipe",
            "pooled, sum rule",
        ),
        (
            "pooled features: 16 labelled runs v none",
            "camera",
            "pooled, recipe with labels",
            "pooled, recipe",
        ),
        ("joints: measured from what is usual v as they are", "joints", OURS, "joints, recipe"),
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

"""What a part of the benchmark found, written as Markdown and as JSON."""

import json
import math
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import ocfuse
from ocfuse.lab.paper.runner import facts as library_facts

Data = dict[str, Any]

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "ocfuse",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "pyarrow",
    "dask",
    "distributed",
    "fastapi",
    "uvicorn",
    "av",
    "onnxruntime",
    "pybullet",
    "pyod",
    "suod",
    "xgboost-cpu",
    "cvxpy",
    "clarabel",
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class Target:
    """Something promised, and what was measured."""

    promise: str
    measured: str
    met: bool


@dataclass
class Table:
    """Rows of words and numbers under a heading."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""

    def markdown(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"## {self.title}\n\n" + (f"{self.note}\n\n" if self.note else "") + body


@dataclass
class Report:
    """One part: how it was measured, what came out, the raw numbers, and SVG by file name."""

    title: str
    method: str
    targets: list[Target]
    tables: list[Table]
    data: Data = field(default_factory=dict)
    pictures: dict[str, str] = field(default_factory=dict)

    def markdown(self, facts: dict[str, str]) -> str:
        promises = Table(
            "Targets",
            ["target", "measured", "met"],
            [[t.promise, t.measured, "yes" if t.met else "**no**"] for t in self.targets],
        )
        about = Table("Where and how", ["", ""], [[name, value] for name, value in facts.items()])
        tables = [promises, *self.tables, about] if self.targets else [*self.tables, about]
        shown = [f"![{Path(name).stem}]({name})" for name in self.pictures]
        parts = [f"# {self.title}", self.method, *shown, *(t.markdown() for t in tables)]
        return "\n\n".join(parts) + "\n"


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits and no exponent where it can be read."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Write the median of some figures, and the least and the most of them."""
    middle, low, high = (f"{v:.{digits}f}" for v in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def facts(command: str, seconds: float) -> dict[str, str]:
    """Return what a reader needs to know to repeat a run."""
    return library_facts(command, PACKAGES) | {
        "took": f"{seconds:.0f} s",
        "commit": _commit(),
        "load average at the end": f"{os.getloadavg()[0]:.1f}",
        "threads": ", ".join(f"{name}={os.environ.get(name)}" for name in THREAD_VARIABLES),
    }


def write(folder: Path, suite: str, part: str, report: Report, about: dict[str, str]) -> None:
    """Write one part, and renew the index."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "part": part,
        "title": report.title,
        "facts": about,
        "targets": [vars(target) for target in report.targets],
        "data": report.data,
    }
    (folder / f"{part}.json").write_text(json.dumps(content, indent=1) + "\n")
    (folder / f"{part}.md").write_text(report.markdown(about))
    for name, picture in report.pictures.items():
        (folder / name).write_text(picture)
    (folder / "README.md").write_text(_index(folder, suite))


def _index(folder: Path, suite: str) -> str:
    rows = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        part, targets = content["part"], content["targets"]
        met = sum(target["met"] for target in targets)
        rows.append([f"[{part}]({part}.md)", f"{met} of {len(targets)}", content["facts"]["date"]])
        rows += [
            ["", f"**missed**: {t['promise']}", t["measured"]] for t in targets if not t["met"]
        ]
    table = Table("Parts", ["part", "targets met", "measured"], rows)
    return (
        f"# Benchmark: {suite}\n\nMade by `python -m benchmarks.{suite}`; do not edit. Each part "
        f"has its tables in Markdown and its raw numbers in JSON.\n\n{table.markdown()}\n"
    )


def _commit() -> str:
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changed = " and local changes" if _git("status", "--porcelain", "src") else ""
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    is_this = Path(ocfuse.__file__).is_relative_to(ROOT)
    return head + changed + ("" if is_this else "; ocfuse was installed from a copy")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()

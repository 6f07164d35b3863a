"""Part "plan": what a fit was planned to take, and what it took."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.report import Report, Table, Target, number
from benchmarks.scale.child import CACHE, FOLDER, learning_sources, run_child
from benchmarks.scale.probe import FAMILIES, search
from ocfuse.ensemble.plan import Job, Plan, job_of, make_plan
from ocfuse.lab.paper.runner import code_digest, definition_key
from ocfuse.system.files import write_atomically

#: Planned memory may be so many times what was needed, seconds so many times off.
MEMORY, SECONDS = 2.0, 3.0
#: Peaks below this are mostly what the interpreter does with its memory.
SMALL = 30e6


@dataclass(frozen=True)
class Size:
    """A pool and a shape; `data` as in `task.Task`, so many groups, and norms tried."""

    pool: str
    n: int
    m: int
    data: str = "features"
    groups: int | None = None
    tried: int = 0

    @property
    def job(self) -> Job:
        return job_of((self.n, self.m), groups=self.groups, tune=search(self.tried))

    def __str__(self) -> str:
        others = [
            *([] if self.data == "features" else [self.data]),
            *([] if self.groups is None else [f"{self.groups} groups"]),
            *([f"{self.tried} settings"] if self.tried else []),
        ]
        return ", ".join([f"{self.pool}, {self.n:,} x {self.m}", *others])


#: Sizes that rates are fitted to.
LEARNED = (
    *(
        Size("default", n, m)
        for n, m in [
            *((100, 10), (300, 50), (1_000, 64), (500, 512), (2_000, 10), (2_000, 256)),
            *((2_100, 10), (3_000, 64), (3_000, 512), (10_000, 64), (20_000, 512)),
            *((600, 10), (1_000, 10), (50_000, 20), (110_000, 32), (300_000, 10), (2_500, 2_000)),
        ]
    ),
    *(Size("light", n, m) for n, m in [(1_000, 64), (5_000, 512), (100_000, 64)]),
    *(Size("wide", n, m) for n, m in [(1_000, 20), (2_000, 64), (3_000, 256)]),
    *(Size("paper-all", n, m) for n, m in [(500, 20), (2_000, 64), (4_000, 64)]),
    *(Size(name, n, m) for name in FAMILIES for n, m in [(2_000, 20), (20_000, 64), (5_000, 512)]),
    # kernel values of few columns need double precision
    *(Size(name, 20_000, 10) for name in ("kernel", "sphere", "process")),
    *(
        Size("default", n, m, groups=8)
        for n, m in [(300, 150), (1_000, 20), (2_500, 20), (5_000, 256), (10_000, 64)]
    ),
    Size("neighbours", 4_000, 50, groups=8),
    Size("light", 20_000, 128, groups=20),
    Size("default", 40_000, 200),
    Size("default", 140_000, 64, "planted"),
    Size("wide", 2_500, 30, groups=8),
    Size("light", 2_000, 20, tried=100),
    Size("light", 20_000, 256, tried=9),
    Size("few rows", 10_000, 100, tried=50),
    Size("default", 1_000, 64, tried=9),
)
#: Sizes that they are judged by.
JUDGED = (
    *(
        Size("default", n, m)
        for n, m in [(200, 20), (1_500, 30), (2_000, 128), (4_000, 100), (30_000, 128)]
    ),
    Size("default", 7_000, 64, "planted"),
    Size("default", 200_000, 64, "planted"),
    Size("light", 50_000, 128),
    Size("wide", 1_500, 30),
    Size("paper", 3_000, 100),
    Size("paper", 10_000, 30),
    Size("default", 1_500, 40, groups=10),
    Size("default", 10_000, 100, groups=10),
    Size("default", 4_000, 100, tried=20),
)
QUICK = (Size("default", 300, 50), Size("light", 1_000, 64, groups=5))


def run(quick: bool) -> Report:
    learned = {} if quick else {size: measured(size) for size in LEARNED}
    judged = {size: measured(size) for size in (QUICK if quick else JUDGED)}
    return Report(
        "Planned and needed",
        "What `FusedDetector.plan` says before a fit, from the shape alone, and what the fit then "
        "took: CPU seconds on one thread, the quickest of up to four fits, and the most memory "
        "beyond what the process had, each in a process of its own. The model is its pickle. "
        f"Rates were fitted to {len(LEARNED)} other sizes and pools.",
        targets(judged),
        [
            table("Sizes that rates were not fitted to", judged),
            table("Sizes that they were fitted to", learned),
        ],
        {
            "judged": [{**asdict(size), **found} for size, found in judged.items()],
            "learned": [{**asdict(size), **found} for size, found in learned.items()],
        },
    )


def measured(size: Size) -> dict[str, Any]:
    path = CACHE / f"plan-{definition_key(json.dumps(asdict(size)), _code())}.json"
    if not path.exists():
        found = run_child("benchmarks.scale.probe", [json.dumps(asdict(size))])
        if "failure" in found:
            raise SystemExit(f"{size}: {found['failure']}")
        print(f"{size}: {found['fit']:.2f} s, {found['peak'] / 1e6:,.0f} MB", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found).encode())
    stored: dict[str, Any] = json.loads(path.read_text())
    return stored


def _code() -> str:
    scale = FOLDER / "scale"
    own = [scale / name for name in ("probe.py", "data.py", "task.py")]
    return code_digest([*own, *learning_sources()])


def plan_of(size: Size) -> Plan:
    return make_plan(FAMILIES.get(size.pool, size.pool), size.job)


def ratios(
    found: dict[Size, dict[str, Any]], planned: Callable[[Plan], float], name: str
) -> list[float]:
    return [planned(plan_of(size)) / one[name] for size, one in found.items()]


def targets(judged: dict[Size, dict[str, Any]]) -> list[Target]:
    large = {size: one for size, one in judged.items() if one["peak"] > SMALL}
    enough = ratios(judged, lambda plan: plan.fit_bytes, "peak")
    tight = ratios(large, lambda plan: plan.fit_bytes, "peak")
    fit = ratios(judged, lambda plan: plan.fit_seconds, "fit")
    score = ratios(judged, lambda plan: plan.score_seconds / 1000, "score")
    return [
        Target("planned memory is enough", f"{min(enough):.2f} times at least", min(enough) >= 1),
        Target(
            f"and at most {MEMORY:g} times what is needed above {SMALL / 1e6:.0f} MB",
            f"{max(tight, default=0):.2f} times at most",
            max(tight, default=0) <= MEMORY,
        ),
        *(
            Target(
                f"planned seconds of `{what}` within a factor {SECONDS:g}",
                f"{min(found):.2f} to {max(found):.2f} times",
                min(found) >= 1 / SECONDS and max(found) <= SECONDS,
            )
            for what, found in (("fit", fit), ("score_samples", score))
        ),
    ]


def table(title: str, found: dict[Size, dict[str, Any]]) -> Table:
    rows = []
    for size, one in found.items():
        plan = plan_of(size)
        rows.append(
            [
                str(size),
                f"{plan.fit_bytes / 1e6:,.0f} / {one['peak'] / 1e6:,.0f}",
                f"{plan.model_bytes / 1e6:,.0f} / {one['model'] / 1e6:,.0f}",
                f"{number(plan.fit_seconds)} / {number(one['fit'])}",
                f"{number(plan.score_seconds)} / {number(1000 * one['score'])}",
            ]
        )
    header = ["pool, rows x columns", "MB of fit", "MB of model", "s of fit", "s of 1,000 rows"]
    return Table(title, header, rows, "Planned / measured.")

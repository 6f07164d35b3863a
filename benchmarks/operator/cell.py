"""Part "cell": camera and joints of the simulated robot, each alone and both together."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import ROOT
from benchmarks.operator.commands import events, ocfuse
from benchmarks.operator.outcome import HEADER, Outcome
from benchmarks.report import Report, Table, Target
from ocfuse.lab.robot_cell import CellPlan, simulate
from ocfuse.system.progress import show_progress
from ocfuse.vision.trials import TYPES, Trial

#: Of these seeds nothing was looked at before; 0 and 1 are those of other benchmarks.
KNOWN = CellPlan(train=39, validation=0, test=0, n_frames=60, seed=11)
FRESH = CellPlan(train=0, validation=0, test=40, anomalous=8, n_frames=60, seed=12)
QUICK_KNOWN = CellPlan(train=8, validation=0, test=0, n_frames=30, seed=11)
QUICK_FRESH = CellPlan(train=0, validation=0, test=3, anomalous=1, n_frames=30, seed=12)
#: Where the runs stay, as they take minutes.
CACHE = ROOT / "build" / "operator"
PICTURES, JOINTS, BOTH = "pictures alone", "joints alone", "both, `--and`"


def run(quick: bool) -> Report:
    known, fresh = (QUICK_KNOWN, QUICK_FRESH) if quick else (KNOWN, FRESH)
    learned_in, watched_in = (CACHE / f"cell-{p.seed}-{p.n_frames}" for p in (known, fresh))
    with show_progress():
        simulate(learned_in, known, 2)
        trials = simulate(watched_in, fresh, 2)
    camera, joints = learn(learned_in)
    found = {name: Outcome() for name in (PICTURES, JOINTS, BOTH)}
    kinds: dict[str, dict[str, list[float]]] = {}
    for trial in trials:
        for name, words in commands(camera, joints, watched_in / trial.name).items():
            judge(
                found[name], kinds.setdefault(name, {}), trial, ocfuse(*words, "--quiet", "--json")
            )
        print(trial.name, [outcome.false for outcome in found.values()], flush=True)
    n_normal = sum(trial.kind == 0 for trial in trials)
    return report(found, kinds, known, n_normal)


def learn(folder: Path) -> tuple[Path, Path]:
    """Learn the runs by their pictures and by their joints, as the how-to has it."""
    camera, joints = folder.with_suffix(".camera.ocf"), folder.with_suffix(".joints.ocf")
    ocfuse("fit", "--video", folder, "-o", camera, "--force", "--quiet")
    flags = ("--time", "time", "--context", "progress", "--windows", "none")
    ocfuse("fit", folder / "train", "--stream", *flags, "-o", joints, "--force", "--quiet")
    return camera, joints


def commands(camera: Path, joints: Path, trial: Path) -> dict[str, tuple[object, ...]]:
    """Return what is called to watch a run."""
    return {
        PICTURES: ("watch", camera, "--video", trial),
        JOINTS: ("watch", joints, trial / "states.parquet"),
        BOTH: ("watch", camera, "--video", trial, "--and", joints),
    }


def judge(
    outcome: Outcome, kinds: dict[str, list[float]], trial: Trial, records: list[dict[str, Any]]
) -> None:
    """Count the events of a run."""
    told = events(records)
    if trial.kind == 0:
        outcome.hours += float(trial.times[-1] - trial.times[0]) / 3600.0
        outcome.false += len(told)
        return
    rows = np.flatnonzero(trial.labels() < 0)
    outcome.add_events(told, trial.times, int(rows[0]), int(rows[-1]))
    kinds.setdefault(TYPES[trial.kind], []).append(outcome.delays[-1])


def report(
    found: dict[str, Outcome],
    kinds: dict[str, dict[str, list[float]]],
    known: CellPlan,
    n_normal: int,
) -> Report:
    both = found[BOTH]
    counts = {name: int(np.isfinite(each.delays).sum()) for name, each in found.items()}
    most = max(counts[PICTURES], counts[JOINTS])
    header = [*HEADER[:1], *HEADER[2:-1], "false events, normal and before faults"]
    rows = []
    for name, each in found.items():
        cells = each.row(name)
        rows.append([cells[0], *cells[2:-1], f"{each.false}"])
    return Report(
        "A robot cell: camera and joints",
        f"`ocfuse simulate`: {known.train} normal runs of nine seconds and {known.n_frames} "
        f"pictures learned (seed {known.seed}), once by their pictures (`fit --video`), once by "
        f"their joints (`fit --stream --context progress --windows none`); {n_normal} fresh normal "
        f"runs and {len(both.delays)} with an anomaly of four types (seed {FRESH.seed}) watched "
        f"with the defaults of `ocfuse watch`: pictures alone and joints alone at 5 % of frames, "
        f"and both together at 5 % (`--and`: half of it each). Nothing was chosen on these "
        f"seeds. The delay is from the first anomalous frame to the first event "
        f"raised from it on. Normal time is {60 * both.hours:.0f} minutes in all, with that before "
        f"the anomalies, so that one false event is {1 / both.hours:.0f} an hour.",
        [
            Target(
                "both find as many as the better of the two",
                f"{counts[BOTH]} of {len(both.delays)}, {most}",
                counts[BOTH] >= most,
            ),
            Target(
                "both raise no more false events than pictures alone",
                f"{both.false}, {found[PICTURES].false}",
                both.false <= found[PICTURES].false,
            ),
            Target(
                "at most 1.3 events per fault, both",
                f"{both.events_per_fault:.2f}",
                both.events_per_fault <= 1.3,
            ),
        ],
        [
            Table("What was told", header, rows),
            Table(
                "Found, and median delay, by type",
                ["anomaly", *found],
                [
                    [kind, *(found_in(kinds[name].get(kind, [])) for name in found)]
                    for kind in TYPES.values()
                ],
            ),
        ],
        {name: each.data() for name, each in found.items()},
    )


def found_in(delays: list[float]) -> str:
    known = [delay for delay in delays if np.isfinite(delay)]
    middle = f", {np.median(known):.1f} s" if known else ""
    return f"{len(known)} of {len(delays)}{middle}"

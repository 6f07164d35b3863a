"""Part "belt": videos of a simulated conveyor belt, learned and watched by the command line."""

import tempfile
import time as clock
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.operator.commands import Told, events, ocfuse
from benchmarks.operator.outcome import HEADER, Outcome
from benchmarks.report import Report, Table, Target
from ocfuse.lab.belt import FAULTS, RATE, BeltPlan, Place, simulate

#: Seed 0 was looked at while the belt was written; these were not.
SEEDS = (1, 2)
PLAN = BeltPlan(train=24, normal=3, faulty=3)
QUICK = BeltPlan(train=6, normal=1, faulty=1, n_frames=60, long=100)
#: What may be wrong with the camera or the belt rather than with a part: told as such.
SOURCES = ("picture frozen",)
#: Share of the picture by which the place may lie beside what is wrong: half a position.
BESIDE = 1 / 32
SYSTEM = "default, 5 % of frames"


def run(quick: bool) -> Report:
    outcome, by_kind, costs = Outcome(), {}, []
    for seed in SEEDS[:1] if quick else SEEDS:
        plan = BeltPlan(**(vars(QUICK if quick else PLAN) | {"seed": seed}))
        with tempfile.TemporaryDirectory() as name:
            costs.append([f"{seed}", *one_belt(Path(name), plan, outcome, by_kind)])
        print(seed, costs[-1], flush=True)
    return report(outcome, by_kind, costs)


def one_belt(
    folder: Path, plan: BeltPlan, outcome: Outcome, by_kind: dict[str, list[dict[str, Any]]]
) -> list[str]:
    """Learn and watch the runs of a belt; return what that cost."""
    truth = simulate(folder, plan)
    model = folder / "belt.ocf"
    begin = clock.process_time()
    [known] = ocfuse("fit", "--video", folder / "train", "-o", model, "--quiet", "--json")
    fitted = clock.process_time() - begin
    outcome.stated.append(known["events"] / (known["frames"] / RATE / 3600.0))
    begin, n_watched = clock.process_time(), 0
    for video in sorted((folder / "normal").glob("*.mp4")):
        found = watched(model, video)
        outcome.hours += plan.long / RATE / 3600.0
        outcome.false += len(found)
        n_watched += plan.long
    for row in truth:
        judge(outcome, by_kind, row, watched(model, folder / row["file"]), plan.n_frames)
        n_watched += plan.n_frames
    each = (clock.process_time() - begin) / n_watched
    return [f"{known['frames']:,}", f"{fitted:.0f} s", f"{1000 * each:.0f} ms"]


def watched(model: Path, video: Path) -> list[Told]:
    return events(ocfuse("watch", model, "--video", video, "--quiet", "--json"))


def judge(
    outcome: Outcome,
    by_kind: dict[str, list[dict[str, Any]]],
    row: dict[str, str],
    found: list[Told],
    n_frames: int,
) -> None:
    """Count a run with a fault, and whether the place is right where it has one."""
    first, last = int(row["first"]), int(row["last"])
    time = np.arange(n_frames) / RATE
    # what has just left the picture is still the same fault
    event = outcome.add_events(found, time, first, min(last + RATE, n_frames - 1))
    is_right = None
    if event is not None and FAULTS[row["kind"]]:
        is_right = event.place is not None and is_within(row, event)
        outcome.named.append(is_right)
    by_kind.setdefault(row["kind"], []).append(
        {
            "delay": outcome.delays[-1],
            "told": None if event is None else event.kind,
            "place": is_right,
        }
    )


def is_within(row: dict[str, str], event: Told) -> bool:
    """Return whether the most unusual place of the worst frame lies where something is wrong."""
    assert event.place is not None
    place = Place(*(float(row[name]) for name in Place.__annotations__))
    y, x = event.place
    moved = place.speed * (event.worst - int(row["first"]))
    across = place.left + moved - BESIDE <= x <= place.right + moved + BESIDE
    return across and place.top - BESIDE <= y <= place.bottom + BESIDE


def report(
    outcome: Outcome, by_kind: dict[str, list[dict[str, Any]]], costs: list[list[str]]
) -> Report:
    frozen = [each["told"] for kind in SOURCES for each in by_kind[kind]]
    n_found = int(np.isfinite(outcome.delays).sum())
    right = sum(outcome.named)
    header = [*HEADER[:1], "expected an hour", *HEADER[2:-1], "place right"]
    return Report(
        "A conveyor belt under a camera",
        f"`ocfuse simulate --belt`: caps on a belt, five pictures a second, {PLAN.train} normal "
        f"runs of {PLAN.n_frames} pictures learned (`ocfuse fit --video`), {PLAN.normal} fresh "
        f"ones of {PLAN.long:,} and {PLAN.faulty} runs of each of {len(FAULTS)} kinds of faults "
        f"watched (`ocfuse watch --video`), all with the defaults of the commands; seeds "
        f"{', '.join(map(str, SEEDS))}, on which nothing was chosen. An event is one that `watch` "
        f"tells, be it of pictures or of a camera that repeats its picture. The delay is from the "
        f"first picture in which a part of what is wrong is seen to the first event; events up to "
        f"a second after it has left the picture are events of the fault. *Expected*: events that "
        f"the runs for training raise, each scored by a model that has not seen it; these are "
        f"{PLAN.train * PLAN.n_frames / RATE / 60:.0f} minutes, so that one event is "
        f"{3600 * RATE / PLAN.train / PLAN.n_frames:.1f} an hour. *Place right*: the most unusual "
        f"place of the worst frame of the event lies on what is wrong, to half a position "
        f"({BESIDE:.0%} of the picture), of faults that have a place.",
        [
            Target(
                "found",
                f"{n_found} of {len(outcome.delays)}",
                n_found == len(outcome.delays),
            ),
            Target(
                "at most 1.3 events per fault",
                f"{outcome.events_per_fault:.2f}",
                outcome.events_per_fault <= 1.3,
            ),
            Target(
                "at most one false event an hour",
                f"{outcome.rate:.2f}",
                outcome.rate <= 1.0,
            ),
            Target(
                "place right in 9 of 10",
                f"{right} of {len(outcome.named)}",
                right >= 0.9 * len(outcome.named),
            ),
            Target(
                "a frozen picture is told as a failure of the camera",
                f"{sum(told == 'repeat' for told in frozen)} of {len(frozen)}",
                all(told == "repeat" for told in frozen),
            ),
        ],
        [
            Table("What was told", header, [outcome.row(SYSTEM)]),
            Table(
                "By fault",
                ["fault", "delays, s", "told as", "place right"],
                [[kind, *cells(each)] for kind, each in by_kind.items()],
            ),
            Table("CPU time", ["seed", "frames learned", "fit", "watch, a frame"], costs),
        ],
        outcome.data() | {"by fault": by_kind},
    )


def cells(each: list[dict[str, Any]]) -> list[str]:
    delays = ["never" if np.isnan(one["delay"]) else f"{one['delay']:.1f}" for one in each]
    told = [one["told"] for one in each if one["told"] is not None]
    places = [one["place"] for one in each if one["place"] is not None]
    return [
        ", ".join(delays),
        ", ".join(sorted(set(told))),
        f"{sum(places)} of {len(places)}" if places else "",
    ]

"""Part "motor": a simulated motor with six sensors, learned from 24 normal runs."""

import time as clock
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.operator.outcome import HEADER, Outcome, Settings, within_twice
from benchmarks.report import Report, Table, Target
from ocfuse import FusedDetector
from ocfuse.lab.motor import CHANNELS, FAULTS, MotorRun, motor_run
from ocfuse.streaming import AlarmRate, StreamDetector
from ocfuse.streaming.events import EventRule

FloatArray = NDArray[np.float64]

#: Seeds 101 and 102 were looked at while grids and defaults were chosen; these were not.
SEEDS = (1, 2)
TRAIN, NORMAL, FAULTY = 24, 45, 2
RATES = (1.0, 0.5, 0.25)
BEFORE, DEFAULT = "as before: 800 rows, 3 in a row, no hold", "default, no rate asked for"
ROWS = (800, 2000, 4000)


def run(quick: bool) -> Report:
    found: dict[str, Outcome] = {}
    kinds: dict[str, dict[str, list[float]]] = {}
    costs: list[list[str]] = []
    for seed in SEEDS[:1] if quick else SEEDS:
        train, normal, faulty = runs_of(seed, 4 if quick else NORMAL, 1 if quick else FAULTY)
        for rows in (ROWS[0], ROWS[-1]) if quick else ROWS:
            begin = clock.process_time()
            stream = learned(train, rows)
            seconds = clock.process_time() - begin
            scores = [
                [stream.score_run(r.values, r.time) for r in some] for some in (normal, faulty)
            ]
            for name, settings in systems(stream, rows).items():
                outcome = found.setdefault(name, Outcome())
                if settings.stated is not None:
                    outcome.stated.append(settings.stated)
                for one, s in zip(normal, scores[0], strict=True):
                    outcome.add_normal(settings, s, one.time)
                for one, s in zip(faulty, scores[1], strict=True):
                    judge(outcome, stream, settings, one, s)
                    kinds.setdefault(str(one.fault), {}).setdefault(name, []).append(
                        outcome.delays[-1]
                    )
            costs.append([f"{seed}", f"{rows:,}", f"{seconds:.0f} s"])
            print(seed, rows, f"{seconds:.0f} s", flush=True)
    return report(found, kinds, costs)


def runs_of(seed: int, n_normal: int, n_faulty: int) -> tuple[list[MotorRun], ...]:
    """Return runs to learn from, fresh ones, and those with faults."""
    first = 10_000 * seed
    kinds = [kind for kind in FAULTS for _ in range(n_faulty)]
    return (
        [motor_run(first + i) for i in range(TRAIN)],
        [motor_run(first + 1000 + i) for i in range(n_normal)],
        [motor_run(first + 5000 + i, kind) for i, kind in enumerate(kinds)],
    )


def learned(train: list[MotorRun], rows: int) -> StreamDetector:
    """Learn the runs, each held out once."""
    X, time = np.vstack([r.values for r in train]), np.concatenate([r.time for r in train])
    run = np.repeat(np.arange(len(train)), [len(r.time) for r in train])
    detector = FusedDetector(random_state=0)
    with warnings.catch_warnings(action="ignore"):
        stream = StreamDetector(detector, max_rows=rows, alarm_rate=AlarmRate())
        return stream.fit(X, runs=run, time=time)


def systems(stream: StreamDetector, rows: int) -> dict[str, Settings]:
    """Return the settings that are compared, by name."""
    if rows == ROWS[0]:
        return {BEFORE: Settings.of(stream, EventRule(3, 0))}
    if rows != StreamDetector().max_rows:
        stream.set_alarm_rate(0.5)
        return {f"0.5 an hour, {rows:,} rows": Settings.of(stream, stated=0.5)}
    found = {DEFAULT: Settings.of(stream)}
    for rate in RATES:
        stream.set_alarm_rate(rate)
        found[name_of(rate)] = Settings.of(stream, stated=rate)
    return found


def name_of(rate: float) -> str:
    return f"{rate:g} an hour"


def judge(
    outcome: Outcome, stream: StreamDetector, settings: Settings, run: MotorRun, scores: FloatArray
) -> None:
    """Count a fault, and whether its channel is named first where its event is raised."""
    assert run.onset is not None
    raised = outcome.add_fault(settings, scores, run.time, run.onset, len(scores) - 1)
    if raised is not None:
        channel = CHANNELS[FAULTS[str(run.fault)].channel]
        outcome.named.append(first_channel(stream, run, raised) == channel)


def first_channel(stream: StreamDetector, run: MotorRun, row: int) -> str:
    """Return the channel whose windows cost the score of a row most."""
    begin = max(0, row - 200)
    part = run.values[begin : row + 1], [row - begin]
    why = stream.explain(*part, time=run.time[begin : row + 1])
    cost = why.attributions[0].reshape(-1, len(stream.watched_)).sum(axis=0)
    names: list[Any] = list(CHANNELS)
    return str(names[int(cost.argmax())])


def report(
    found: dict[str, Outcome],
    kinds: dict[str, dict[str, list[float]]],
    costs: list[list[str]],
) -> Report:
    stated = [name_of(rate) for rate in RATES]
    before = found[BEFORE]
    shown = [BEFORE, DEFAULT, *stated]
    by_kind = [
        [kind, *(", ".join("never" if d != d else f"{d:.0f}" for d in each[s]) for s in shown)]
        for kind, each in kinds.items()
    ]
    return Report(
        "A motor",
        f"`ocfuse.lab.motor`: six channels about once a second, {TRAIN} normal runs of 12 to 31 "
        "minutes learned with their times, default pool and windows. Fresh normal runs and, "
        f"{FAULTY} of each of {len(FAULTS)} kinds, runs in which a fault begins about half-way; "
        f"seeds {', '.join(map(str, SEEDS))}. A false event is one that is raised while all is "
        f"well; "
        "the delay is from the onset to the first event raised after it, a fault without one "
        "counts "
        "as never found. "
        "*As before*: the threshold of 5 % of rows, 800 rows, 3 rows in a row, no hold. *An hour*: "
        "`set_alarm_rate`, by runs that were held out. *Channel named*: that of the fault costs "
        "the "
        "score most (`explain`) in the row in which the first event is raised; the first cause of "
        "slip may as well be seen in power. **Chosen on seeds 101 and 102**, not on those below: "
        "the least durations and hold times that are tried, the made-up falls, the default "
        "rule and the number of rows. The motor itself was not changed for any of them.",
        [
            *(
                Target(
                    f"{name}: stated and measured within a factor of 2",
                    f"{found[name].rate:.2f}",
                    within_twice(found[name]),
                )
                for name in stated
            ),
            *(
                Target(
                    f"{name}: at most 1.3 events per fault",
                    f"{found[name].events_per_fault:.2f}",
                    found[name].events_per_fault <= 1.3,
                )
                for name in (DEFAULT, *stated)
            ),
            *(
                Target(
                    f"{name}: median delay not above that of before, {before.delay:.0f} s",
                    f"{found[name].delay:.0f} s",
                    found[name].delay <= before.delay,
                )
                for name in (DEFAULT, *stated)
            ),
        ],
        [
            Table("Systems", HEADER, [each.row(name) for name, each in found.items()]),
            Table("Delay by fault, s", ["fault", *shown], by_kind),
            Table("CPU time of a fit, held-out fits included", ["seed", "rows", "CPU"], costs),
        ],
        {name: each.data() for name, each in found.items()},
    )

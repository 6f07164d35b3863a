"""A simulated motor with six sensors: normal runs, and runs in which a fault begins.

A run is a table of samples about once a second: loads that come and go, temperatures that follow
slowly, noise, jitter of the clock, lost rows and gaps. `simulate` writes runs as CSV files, and
what goes wrong in them as `truth.csv`. The simulation must not know detectors or scores.
"""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.files import write_atomically

CHANNELS = ("speed_rpm", "current_A", "power_kW", "vibration_mm_s", "winding_C", "bearing_C")
SPEED, CURRENT, POWER, VIBRATION, WINDING, BEARING = range(len(CHANNELS))
#: Time constants of load, winding and bearing in seconds.
LOAD_LAG, WINDING_LAG, BEARING_LAG = 2.0, 400.0, 700.0
#: Standard deviations of the noise of the sensors.
NOISE = np.array([0.9, 0.12, 0.06, 0.06, 0.12, 0.08])
START = np.datetime64("2026-01-05T06:00:00.000")


@dataclass(frozen=True)
class MotorRun:
    """Samples of one run.

    Parameters
    ----------
    time : ndarray of shape (n,)
        Seconds since the run began.
    values : ndarray of shape (n, 6)
        Readings of the channels, NaN in gaps.
    fault : str or None
        What goes wrong, a key of `FAULTS`.
    onset : int or None
        The first sample with the fault, counted from 0.
    """

    time: FloatArray
    values: FloatArray
    fault: str | None = None
    onset: int | None = None


class Motor:
    """What happens inside; faults change its attributes from their onset on, by the second."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.ambient = random.uniform(17.0, 27.0)
        self.slip = 50.0  # rpm at full load
        self.current_gain = 1.0
        self.cooling = 1.0
        self.wear = 0.0  # mm/s
        self.roughness = random.normal(1.0, 0.03)
        self.load = 0.3
        self.winding = self.ambient + random.uniform(0.0, 25.0)
        self.bearing = self.ambient + 0.4 * (self.winding - self.ambient) + random.uniform(2, 7)
        self.shake = 0.0

    def step(self, wanted: float) -> FloatArray:
        """Go on for a second under a load; return the state of the channels."""
        self.load += (wanted - self.load) / LOAD_LAG
        warm = 1.0 + 0.0008 * (self.winding - 50.0)
        speed = 1500.0 - self.slip * self.load * warm
        current = self.current_gain * np.hypot(6.0, 14.0 * self.load)
        power = 0.6 + 7.5 * self.load * speed / 1450.0 + 0.004 * current**2
        losses = 0.15 * current**2 / self.cooling
        self.winding += (self.ambient + losses - self.winding) / WINDING_LAG
        friction = 6.0 * speed / 1450.0 + 9.0 * self.wear
        warmth = self.ambient + 0.35 * (self.winding - self.ambient) + friction
        self.bearing += (warmth - self.bearing) / BEARING_LAG
        self.shake = 0.9 * self.shake + self.random.normal(0.0, 0.03)
        vibration = self.roughness * (1.5 + 0.5 * self.load) + self.shake + self.wear
        return np.array([speed, current, power, vibration, self.winding, self.bearing])


def _slip(motor: Motor, seconds: float) -> None:
    motor.slip = 66.0


def _more_current(motor: Motor, seconds: float) -> None:
    motor.current_gain = 1.12


def _wear(motor: Motor, seconds: float) -> None:
    motor.wear = 0.002 * seconds


def _no_cooling(motor: Motor, seconds: float) -> None:
    motor.cooling = 0.35


@dataclass(frozen=True)
class Fault:
    """What goes wrong: in the motor by the second, or in what a sensor reads from the onset on."""

    channel: int
    inside: Callable[[Motor, float], None] | None = None
    #: "zero", "gone" or "frozen".
    reads: str | None = None


FAULTS: dict[str, Fault] = {
    "vibration reads 0": Fault(VIBRATION, reads="zero"),
    "vibration gone": Fault(VIBRATION, reads="gone"),
    "current frozen": Fault(CURRENT, reads="frozen"),
    "winding frozen": Fault(WINDING, reads="frozen"),
    "bearing wear": Fault(VIBRATION, inside=_wear),
    "current +12 %": Fault(CURRENT, inside=_more_current),
    "slip": Fault(SPEED, inside=_slip),
    "cooling fails": Fault(WINDING, inside=_no_cooling),
}


def motor_run(seed: int, fault: str | None = None, step: float = 1.0) -> MotorRun:
    """Simulate one run.

    Parameters
    ----------
    seed : int
        The same seed gives the same run, to the bit; with a fault or another step, the same
        machine on the same day.
    fault : str, default=None
        What goes wrong from somewhere between the middle and two thirds of the run on.
    step : float, default=1.0
        Seconds between two samples.

    Returns
    -------
    MotorRun
        700 to 1,900 samples.

    Examples
    --------
    >>> from ocfuse.lab.motor import motor_run
    >>> run = motor_run(0, "slip")
    >>> run.values.shape[1], 700 <= len(run.time) <= 1900, run.onset < len(run.time)
    (6, True, True)
    """
    if fault is not None and fault not in FAULTS:
        raise InvalidInputError(f"fault must be one of {', '.join(FAULTS)}. Got {fault!r}.")
    if not 1.0 <= step <= 3600.0:
        raise InvalidInputError(f"step must be from 1 to 3600 seconds. Got {step!r}.")
    day, noise, clock = (np.random.default_rng([seed, i]) for i in range(3))
    n = int(day.integers(730, 1890))
    onset = int(day.uniform(0.45, 0.65) * n)
    every = max(1, round(step))
    values = _states(day, n * every, None if fault is None else FAULTS[fault], onset * every)
    values = values[::every] + noise.normal(size=(n, len(CHANNELS))) * NOISE
    _make_gaps(values, noise)
    if fault is not None:
        _spoil(values, FAULTS[fault], onset)
    time = step * np.arange(n) + clock.uniform(-0.08, 0.08, size=n)
    kept = np.flatnonzero(clock.random(n) > 0.006)
    first = None if fault is None else int(np.searchsorted(kept, onset))
    return MotorRun(time[kept], values[kept], fault, first)


def _states(day: np.random.Generator, seconds: int, fault: Fault | None, onset: int) -> FloatArray:
    """Return the channels by the second, without what sensors add."""
    motor = Motor(day)
    loads = _loads(np.random.default_rng(day.integers(2**32)), seconds)
    states = np.empty((seconds, len(CHANNELS)))
    for second, load in enumerate(loads.tolist()):
        if fault is not None and fault.inside is not None and second >= onset:
            fault.inside(motor, float(second - onset))
        states[second] = motor.step(load)
    return states


def _loads(random: np.random.Generator, seconds: int) -> FloatArray:
    """Return the load that is asked for: idle and work in turn, a little other every time."""
    work = random.uniform(0.72, 0.95)
    loads: list[FloatArray] = []
    n = 0
    while n < seconds:
        idle, busy = random.integers(15, 40), random.integers(40, 110)
        loads += [
            np.full(idle, random.normal(0.25, 0.02)),
            np.full(busy, random.normal(work, 0.03)),
        ]
        n += int(idle + busy)
    return np.concatenate(loads)[:seconds]


def _make_gaps(values: FloatArray, random: np.random.Generator) -> None:
    """Leave single readings out, and some in a row."""
    values[random.random(values.shape) < 0.002] = np.nan
    for start in np.flatnonzero(random.random(len(values)) < 0.001):
        values[start : start + random.integers(2, 9), random.integers(len(CHANNELS))] = np.nan


def _spoil(values: FloatArray, fault: Fault, onset: int) -> None:
    """Let a sensor fail from the onset on."""
    readings = values[:, fault.channel]
    if fault.reads == "zero":
        readings[onset:] = 0.0
    elif fault.reads == "gone":
        readings[onset:] = np.nan
    elif fault.reads == "frozen":
        before = readings[:onset]
        readings[onset:] = before[~np.isnan(before)][-1]


@dataclass(frozen=True)
class MotorPlan:
    """How many runs `simulate` writes.

    Parameters
    ----------
    train, normal : int
        Normal runs to learn from, and fresh ones.
    faulty : int
        Runs of each fault.
    slow : int
        Normal runs of a logger that samples every 4 seconds.
    seed : int
        Of all of them.
    """

    train: int = 24
    normal: int = 18
    faulty: int = 2
    slow: int = 2
    seed: int = 0

    def runs(self) -> list[tuple[str, int, str | None, float]]:
        """Return folder, seed, fault and step of every run; no two have the same seed."""
        kinds: list[tuple[str, str | None, float]] = [("train", None, 1.0)] * self.train
        kinds += [("normal", None, 1.0)] * self.normal
        kinds += [("faults", fault, 1.0) for fault in FAULTS for _ in range(self.faulty)]
        kinds += [("slow", None, 4.0)] * self.slow
        first = 10_000 * self.seed
        return [(folder, first + i, *rest) for i, (folder, *rest) in enumerate(kinds)]  # type: ignore[misc]


def simulate(out: Path, plan: MotorPlan) -> list[dict[str, str]]:
    """Write the runs of a plan as CSV files, and the truth about those with a fault.

    Parameters
    ----------
    out : Path
        Folder for `train`, `normal`, `faults` and `slow`; files of an earlier call are replaced.
    plan : MotorPlan
        What to write.

    Returns
    -------
    list of dict
        A row of `truth.csv` for every run with a fault: file, kind, channel, row of the onset
        (counted from 0, as `ocfuse watch` does) and its time.
    """
    truth = []
    for number, (folder, seed, fault, step) in enumerate(plan.runs()):
        run = motor_run(seed, fault, step)
        name = f"{folder}/run_{number:03d}.csv"
        dates = START + np.timedelta64(number, "D") + (1000 * run.time).astype("timedelta64[ms]")
        rows = [
            [str(date), *("" if np.isnan(v) else f"{v:.3f}" for v in values.tolist())]
            for date, values in zip(dates, run.values, strict=True)
        ]
        _write(out / name, [["time", *CHANNELS], *rows])
        if fault is not None and run.onset is not None:
            channel = CHANNELS[FAULTS[fault].channel]
            known = [name, fault, channel, str(run.onset), str(dates[run.onset])]
            truth.append(dict(zip(("file", "kind", "channel", "row", "time"), known, strict=True)))
    if truth:
        _write(out / "truth.csv", [list(truth[0]), *(list(row.values()) for row in truth)])
    return truth


def _write(path: Path, rows: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_atomically(path, text.getvalue().encode())

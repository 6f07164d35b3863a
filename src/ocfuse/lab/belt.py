"""A simulated conveyor belt under a camera: normal runs, and runs in which a fault begins.

Round caps pass from left to right between two rails, five pictures a second. From run to run
light, camera, speed and belt differ a little; within a run distance, side and turn of the caps,
flicker and noise do. `simulate` writes runs as videos, and what goes wrong in them as `truth.csv`.
The simulation must not know detectors or scores.
"""

import csv
import functools
import io
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.files import write_atomically
from ocfuse.system.packages import needed

#: Height and width of the pictures, pictures per second, height of a rail.
SIZE, RATE, RAIL = 128, 5, 16
#: Radius of a cap and usual distance of two caps, in pixels.
RADIUS, PITCH = 15, 46.0
CAP, RIM, CORE, NOTCH = (172, 176, 182), (96, 100, 106), (206, 120, 52), (54, 56, 60)
BELT, STEEL = (66, 70, 68), (150, 152, 150)
#: Turns of a cap that are drawn.
TURNS = 24

#: What goes wrong, and whether it is at a place that moves with the belt.
FAULTS = {
    "wrong part": True,
    "missing part": True,
    "foreign object": True,
    "scratch": True,
    "light fails": False,
    "camera moved": False,
    "belt stuck": False,
    "picture frozen": False,
}


@dataclass(frozen=True)
class Place:
    """Where something is wrong, as shares of the picture, and how far it moves with the belt.

    Parameters
    ----------
    left, top, right, bottom : float
        Its edges in the first picture in which a part of it is seen; left may be negative.
    speed : float
        Way to the right between two pictures.
    """

    left: float
    top: float
    right: float
    bottom: float
    speed: float


@dataclass(frozen=True)
class BeltRun:
    """Pictures of one run.

    Parameters
    ----------
    frames : ndarray of shape (n, 128, 128, 3)
        The pictures, unsigned bytes.
    fault : str or None
        What goes wrong, a key of `FAULTS`.
    first, last : int or None
        First and last picture with the fault, counted from 0.
    place : Place or None
        Where; None if it is everywhere.
    """

    frames: Any
    fault: str | None = None
    first: int | None = None
    last: int | None = None
    place: Place | None = None


class Belt:
    """What is on the belt and before the camera of one run.

    Parameters
    ----------
    seed : int
        The same seed is the same belt, with a fault or without.
    n_frames : int
        Pictures.
    """

    def __init__(self, seed: int, n_frames: int) -> None:
        day, self.noise = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
        self.speed = day.uniform(4.0, 4.6)  # pixels per picture
        self.light, self.grain = day.normal(1.0, 0.03), day.uniform(2.0, 3.5)
        self.lean = day.normal(0.0, 0.02)  # of the light, from left to right
        self.camera = day.uniform(-1.5, 1.5, 2)
        n_parts = int((self.speed * n_frames + SIZE) / (PITCH - 4.0)) + 4
        # where the centres of the caps are before the first picture, the foremost first
        self.along = SIZE - np.cumsum(day.uniform(PITCH - 4.0, PITCH + 4.0, n_parts))
        self.across = SIZE / 2 + day.normal(0.0, 1.5, n_parts).clip(-4, 4)
        self.turn = day.integers(0, TURNS, n_parts)
        self.shade = day.normal(1.0, 0.03, n_parts)
        rubber = ndimage.gaussian_filter(day.normal(size=(SIZE, 4 * SIZE)), (0.8, 2.5), mode="wrap")
        self.rubber = np.asarray(BELT) + 26.0 * rubber[:, :, np.newaxis]
        self.fault = np.random.default_rng([seed, 2])

    def picture(self, moved: float, parts: "list[Part]", shift: FloatArray) -> FloatArray:
        """Draw what the camera would see without noise, with the belt moved by some pixels."""
        start = round(-moved) % self.rubber.shape[1]
        seen = np.take(self.rubber, np.arange(start, start + SIZE), axis=1, mode="wrap").copy()
        for part in parts:
            _put(seen, part, part.along + moved, part.across)
        _draw_rails(seen)
        lean = 1.0 + self.lean * np.linspace(-1.0, 1.0, SIZE)[np.newaxis, :, np.newaxis]
        offset = (*(self.camera + shift), 0.0)
        return np.asarray(ndimage.shift(seen * lean, offset, order=1, mode="nearest"))

    def exposed(self, seen: FloatArray) -> FloatArray:
        """Return a picture as the camera gives it, with light that flickers, and noise."""
        seen = self.light * self.noise.normal(1.0, 0.008) * seen
        return np.clip(np.rint(seen + self.noise.normal(0.0, self.grain, seen.shape)), 0, 255)

    def parts(self) -> "list[Part]":
        """Return the caps as they should be."""
        caps = _caps("cap")
        known = zip(self.along, self.across, self.turn, self.shade, strict=True)
        return [Part(x, y, caps[turn], shade) for x, y, turn, shade in known]


@dataclass(frozen=True)
class Part:
    """What lies on the belt: where its centre is, its picture with opacity, how bright it is."""

    along: float
    across: float
    sprite: FloatArray
    shade: float = 1.0

    @property
    def half(self) -> tuple[float, float]:
        """Half of its height and width."""
        height, width = self.sprite.shape[:2]
        return height / 2, width / 2


@functools.cache
def _caps(kind: str) -> list[FloatArray]:
    """Return pictures of a part at every turn, the last channel is its opacity."""
    big, size = 4, 2 * RADIUS + 3  # drawn larger, so that edges are smooth
    y, x = np.mgrid[: size * big, : size * big] / big - RADIUS - 1.4
    from_centre = np.hypot(x, y)
    from_edge = from_centre
    if kind == "wrong part":
        from_edge = 1.15 * np.maximum(np.abs(x), np.abs(y))
    notch = (np.abs(y) < 0.14 * RADIUS) & (x > 0.5 * RADIUS)
    line = (np.abs(x + 0.3 * y - 0.1 * RADIUS) < 0.9) & (np.abs(y) < 0.75 * RADIUS)
    colour = np.where(from_centre[..., np.newaxis] < 0.38 * RADIUS, CORE, CAP)
    colour = np.where(from_edge[..., np.newaxis] > 0.82 * RADIUS, RIM, colour)
    colour = np.where(notch[..., np.newaxis], NOTCH, colour)
    if kind == "scratch":
        colour = np.where(line[..., np.newaxis], (245, 245, 245), colour)
    drawn = np.dstack([colour, from_edge < RADIUS]).astype(np.float64)
    angles = 360.0 / TURNS * np.arange(TURNS)
    turned = [ndimage.rotate(drawn, angle, reshape=False, order=1) for angle in angles]
    return [each.reshape(size, big, size, big, 4).mean(axis=(1, 3)) for each in turned]


def _put(seen: FloatArray, part: Part, x: float, y: float) -> None:
    """Draw a part over a picture, where it is within it."""
    sprite = part.sprite
    h, w = sprite.shape[:2]
    top, left = round(y - (h - 1) / 2), round(x - (w - 1) / 2)
    rows = slice(max(top, 0), min(top + h, SIZE))
    columns = slice(max(left, 0), min(left + w, SIZE))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return
    inside = sprite[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
    opacity = inside[..., 3:]
    seen[rows, columns] = (1 - opacity) * seen[rows, columns] + part.shade * (
        opacity * inside[..., :3]
    )


def _draw_rails(seen: FloatArray) -> None:
    """Draw the rails above and below, with bolts."""
    for top in (0, SIZE - RAIL):
        seen[top : top + RAIL] = STEEL
        seen[RAIL - 2 if top == 0 else top] = NOTCH
        for x in range(14, SIZE, 33):
            seen[top + 5 : top + 10, x : x + 5] = RIM


def belt_run(seed: int, fault: str | None = None, n_frames: int = 100) -> BeltRun:
    """Simulate one run.

    Parameters
    ----------
    seed : int
        The same seed gives the same run, to the bit; with a fault, the same belt on the same day.
    fault : str, default=None
        What goes wrong from somewhere between a third and a half of the run on: until the
        place has left the picture, or to the end.
    n_frames : int, default=100
        Pictures, five a second; at least 60.

    Returns
    -------
    BeltRun
        The pictures, and the truth.

    Examples
    --------
    >>> from ocfuse.lab.belt import belt_run
    >>> run = belt_run(0, "scratch")
    >>> run.frames.shape, 30 < run.first < run.last < 100
    ((100, 128, 128, 3), True)
    """
    if fault is not None and fault not in FAULTS:
        raise InvalidInputError(f"fault must be one of {', '.join(FAULTS)}. Got {fault!r}.")
    if n_frames < 60:
        raise InvalidInputError(f"n_frames must be at least 60. Got {n_frames}.")
    belt = Belt(seed, n_frames)
    parts, first = belt.parts(), int(belt.fault.uniform(0.33, 0.5) * n_frames)
    last, place = n_frames - 1, None
    if fault is not None and FAULTS[fault]:
        parts, strange = _spoil(belt, parts, fault, first)
        first, last, place = _seen(belt, strange, last)
    frames = np.empty((n_frames, SIZE, SIZE, 3), dtype=np.uint8)
    shift = belt.fault.uniform(3.0, 6.0, 2) * belt.fault.choice([-1.0, 1.0], 2)
    for i in range(n_frames):
        since = -1 if fault is None else i - first  # pictures
        moved = belt.speed * (min(i, first) if fault == "belt stuck" else i)
        is_shifted = fault == "camera moved" and since >= 0
        seen = belt.picture(moved, parts, shift if is_shifted else np.zeros(2))
        if fault == "light fails" and since >= 0:  # one of two lamps, over a second
            seen *= 1.0 - 0.45 * min((since + 1) / RATE, 1.0) * np.linspace(0, 1, SIZE)[:, None]
        frames[i] = belt.exposed(seen)
        if fault == "picture frozen" and since >= 0:
            frames[i] = frames[first]
    return BeltRun(frames) if fault is None else BeltRun(frames, fault, first, last, place)


def _seen(belt: Belt, strange: Part, end: int) -> tuple[int, int, Place]:
    """Return in which pictures something is seen, and where."""
    height, width = strange.half
    first = math.ceil((-width - strange.along) / belt.speed)
    last = math.floor((SIZE + width - strange.along) / belt.speed)
    x, y = strange.along + belt.speed * first, strange.across
    edges = (x - width, y - height, x + width, y + height, belt.speed)
    return first, min(last, end), Place(*(float(edge) / SIZE for edge in edges))


def _spoil(belt: Belt, parts: list[Part], fault: str, first: int) -> tuple[list[Part], Part]:
    """Return what is on the belt with something wrong that comes about then, and what it is."""
    due = np.array([-part.along / belt.speed for part in parts])
    chosen = int(np.argmin(np.abs(due - first)))
    part = parts[chosen]
    if fault == "missing part":
        return parts[:chosen] + parts[chosen + 1 :], part
    if fault == "foreign object":
        across = part.across + belt.fault.choice([-1.0, 1.0]) * belt.fault.uniform(4.0, 24.0)
        rod = np.zeros((7, 15, 4))
        rod[1:-1, 1:-1] = (*belt.fault.uniform(20, 200, 3), 1.0)
        rod[1:-1, 1:4, :3] = STEEL
        strange = Part(part.along + PITCH / 2, across, rod)
        return [*parts, strange], strange
    strange = Part(part.along, part.across, _caps(fault)[belt.turn[chosen]], part.shade)
    return [*parts[:chosen], strange, *parts[chosen + 1 :]], strange


@dataclass(frozen=True)
class BeltPlan:
    """How many runs `simulate` writes.

    Parameters
    ----------
    train, normal : int
        Normal runs to learn from, and fresh ones.
    faulty : int
        Runs of each fault.
    n_frames, long : int
        Pictures of a run, and of a fresh normal one.
    seed : int
        Of all of them.
    """

    train: int = 24
    normal: int = 6
    faulty: int = 2
    n_frames: int = 100
    long: int = 1500
    seed: int = 0

    def runs(self) -> list[tuple[str, int, str | None, int]]:
        """Return folder, seed, fault and pictures of every run; no two have the same seed."""
        kinds: list[tuple[str, str | None, int]] = [("train", None, self.n_frames)] * self.train
        kinds += [("normal", None, self.long)] * self.normal
        kinds += [("faults", fault, self.n_frames) for fault in FAULTS for _ in range(self.faulty)]
        first = 10_000 * self.seed
        return [(folder, first + i, *rest) for i, (folder, *rest) in enumerate(kinds)]  # type: ignore[misc]


def simulate(out: Path, plan: BeltPlan) -> list[dict[str, str]]:
    """Write the runs of a plan as videos, and the truth about those with a fault.

    Parameters
    ----------
    out : Path
        Folder for `train`, `normal` and `faults`; files of an earlier call are replaced.
    plan : BeltPlan
        What to write.

    Returns
    -------
    list of dict
        A row of `truth.csv` for every run with a fault: file, kind, its first and last picture
        (counted from 0, as `ocfuse watch` does), and its `Place`, empty if it is everywhere.
    """
    truth = []
    for number, (folder, seed, fault, n_frames) in enumerate(plan.runs()):
        run = belt_run(seed, fault, n_frames)
        name = f"{folder}/run_{number:03d}.mp4"
        write_video(out / name, run.frames)
        if fault is not None:
            edges = {} if run.place is None else asdict(run.place)
            row = {"file": name, "kind": fault, "first": run.first, "last": run.last}
            row |= {edge.name: f"{edges[edge.name]:.4f}" if edges else "" for edge in fields(Place)}
            truth.append({key: str(value) for key, value in row.items()})
    if truth:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(truth[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(truth)
        write_atomically(out / "truth.csv", text.getvalue().encode())
    return truth


def write_video(path: Path, frames: Any) -> None:
    """Write pictures as a video, five of them a second."""
    av = needed("av", "to write videos", "video")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.bit_rate = 1_500_000
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())

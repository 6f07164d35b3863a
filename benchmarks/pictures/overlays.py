"""Part "overlays": whether marks of unusual places are as large as what is there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.pictures.tileset import FREE, load_tiles
from benchmarks.report import Report, Table, Target
from ocfuse.vision import PictureDetector
from ocfuse.vision.explanation import PictureExplanation

#: Diameters of the discs, in hundredths of the picture; a position of the maps has 6.
DIAMETERS = (8, 12, 16, 24, 32)
#: Grey levels between a disc and what is around it.
STRENGTHS = (60, 200)
LEARNED, DISCS = 150, 30
#: The marks were chosen on split 0.
SPLIT = 7
#: From a diameter of two positions on, marks must be at most so many times too large or small.
WORST = 2.0
#: Until now red grew up to 8 standard deviations; from half of it on a place looked marked.
FORMER = 4.0

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Disc:
    """A picture with a disc, and where it is."""

    picture: Pixels
    mask: Mask
    diameter: int
    strength: int


def run(quick: bool) -> Report:
    rows, targets, data = [], [], {}
    for name, normal in {"magnetic tiles": tiles, "brushed metal, made up": metal}.items():
        learned, groups, fresh = normal()
        detector = PictureDetector(random_state=0).fit(learned, groups=groups)
        discs = list(with_discs(fresh, 4 if quick else DISCS))
        found = detector.explain([disc.picture for disc in discs])
        by_kind = measured(discs, found)
        data[name] = {f"{d} {s}": values for (d, s), values in by_kind.items()}
        rows += [[name, f"{d} %", str(s), *cells(values)] for (d, s), values in by_kind.items()]
        ratios = [v["after"] for (d, s), v in by_kind.items() if d >= 12]
        worst = max(max(ratio, 1 / max(ratio, 1e-9)) for ratio in ratios)
        inside = float(np.mean([values["inside"] for values in by_kind.values()]))
        targets.append(Target(f"{name}: factor <= {WORST:g}", f"{worst:.2f}", worst <= WORST))
        targets.append(Target(f"{name}: peak in disc >= 95 %", f"{inside:.0%}", inside >= 0.95))
    header = ["pictures", "diameter", "strength", "before", "after", "overlap", "peak inside"]
    return Report(
        "Marks of unusual places",
        f"Discs of one grey level are put into normal pictures that the detector has not seen "
        f"({DISCS} of each kind, at places left to chance; strength is the step to the mean of "
        "what was there). Area of the marks over that of the disc, the median; before: where the "
        "former overlay had half of its red; overlap: intersection over union, the median; peak "
        "inside: discs in which the most unusual position lies, to half a position. All marks of "
        "a picture count, also those elsewhere. Tiles are split by tile. The rule (half of the "
        f"excess over `place_limit_`) was chosen among nine on tiles of split 0; these are of "
        f"split {SPLIT}. A disc of 8 % is hardly larger than a position (6 %), and smaller than "
        "a patch of stride 16 (12 %): it is marked too large.",
        targets,
        [Table("Area of the marks over that of the disc", header, rows)],
        data,
    )


def measured(
    discs: list[Disc], found: PictureExplanation
) -> dict[tuple[int, int], dict[str, float]]:
    """Return medians by diameter and strength."""
    values: dict[tuple[int, int], list[tuple[float, ...]]] = {}
    for i, disc in enumerate(discs):
        h, w = disc.mask.shape
        marked = on_pixels(found.marks(i), h, w)
        zoom = h / found.maps.shape[1]
        heat = ndimage.zoom(found.maps[i], zoom, order=1, mode="nearest", grid_mode=True)
        both, either = (marked & disc.mask).sum(), (marked | disc.mask).sum()
        y, x = found.place(i)
        near = ndimage.binary_dilation(disc.mask, iterations=round(h / 32))
        outcome = (
            (heat >= FORMER).sum() / disc.mask.sum(),
            marked.sum() / disc.mask.sum(),
            both / max(either, 1),
            float(near[int(y * h), int(x * w)]),
        )
        values.setdefault((disc.diameter, disc.strength), []).append(outcome)
    result = {}
    for kind, each in values.items():
        before, after, overlap, _ = np.median(each, axis=0).tolist()
        inside = float(np.mean([outcome[3] for outcome in each]))
        result[kind] = {"before": before, "after": after, "overlap": overlap, "inside": inside}
    return result


def on_pixels(marked: Mask, h: int, w: int) -> Mask:
    """Return marks on the pixels of a picture."""
    down, across = np.arange(h) * len(marked) // h, np.arange(w) * marked.shape[1] // w
    chosen: Mask = marked[down][:, across]
    return chosen


def cells(values: dict[str, float]) -> list[str]:
    return [
        *(f"{values[name]:.1f}" for name in ("before", "after")),
        f"{values['overlap']:.2f}",
        f"{values['inside']:.0%}",
    ]


def with_discs(fresh: NDArray[np.uint8], n: int) -> list[Disc]:
    """Return fresh pictures with discs, darker where it is bright, brighter where it is dark."""
    rng, found = np.random.default_rng(1), []
    size = fresh.shape[1]
    y, x = np.mgrid[:size, :size] + 0.5
    for diameter in DIAMETERS:
        for strength in STRENGTHS:
            for _ in range(n):
                radius = diameter * size / 200
                picture = fresh[len(found) % len(fresh)].copy()
                centre = rng.uniform(radius + size / 24, size - radius - size / 24, 2)
                mask = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 <= radius**2
                usual = picture[mask].mean()
                level = usual + strength if usual < 128 else usual - strength
                picture[mask] = np.clip(level, 0, 255)
                found.append(Disc(picture, mask, diameter, strength))
    return found


def tiles() -> tuple[Pixels, NDArray[np.intp], Pixels]:
    """Return tiles to learn from, which belong together, and others."""
    everything = load_tiles()
    learned, rest = everything.split(SPLIT)
    chosen = learned[:LEARNED]
    fresh = rest[everything.kind[rest] == FREE]
    return everything.pictures[chosen], everything.tile[chosen], everything.pictures[fresh]


def metal() -> tuple[Pixels, None, Pixels]:
    """Return pictures of a brushed plate in light that changes."""
    rng, size = np.random.default_rng(0), 160
    made = []
    for _ in range(2 * LEARNED):
        grain = ndimage.gaussian_filter(rng.normal(size=(size, size)), (0.6, 12))
        shade = np.linspace(-15, 15, size)[:, np.newaxis] * rng.normal(1, 0.2)
        plate = 120 + 10 * rng.normal() + shade + 120 * grain + 3 * rng.normal(size=(size, size))
        made.append(np.clip(plate, 0, 255).astype(np.uint8))
    return np.stack(made[:LEARNED]), None, np.stack(made[LEARNED:])

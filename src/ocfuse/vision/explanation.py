"""Why a picture has its score: which members, and where in the picture."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ocfuse.arrays import FloatArray, SingleArray
from ocfuse.vision.frames import Picture

#: From how many standard deviations on a place is marked, where a model does not know better.
USUAL_LIMIT = 4.0


class Spot(NamedTuple):
    """The most unusual place of a picture, in its pixels from the top left.

    `box` holds left, top, width and height of what is marked around (x, y), None if nothing is.
    """

    x: int
    y: int
    box: tuple[int, int, int, int] | None

    def as_dict(self) -> dict[str, Any]:
        """Return the place as plain data."""
        return {"x": self.x, "y": self.y, "box": None if self.box is None else list(self.box)}


@dataclass(frozen=True)
class PictureExplanation:
    """What lies behind the scores of q pictures, from d families of members.

    Parameters
    ----------
    score : ndarray of shape (q,)
        Fused score, higher = more normal.
    offset : float
        Threshold: a lower score raises an alarm.
    p_value : ndarray of shape (q,)
        How rarely a normal picture scores this low.
    member_names : list of str
        Names of the families.
    member_scores, normalised_scores : ndarray of shape (q, d)
        What each said, in its own units and on one scale.
    weights : ndarray of shape (d,)
        How far each is trusted.
    contributions : ndarray of shape (q, d)
        Part of each in the score: ``contributions.sum(1) == score``.
    maps : ndarray of shape (q, h, w)
        How unusual every place is, in standard deviations of what is usual
        there; empty (q, 0, 0) if no member looks at places.
    place_limit : float, default=4.0
        How unusual a place must be to be marked.
    """

    #: Positions around a place that see it, too: networks look beyond their patches, and means
    #: over 3 x 3 patches of twice the size reach 3 positions to each side.
    reach: ClassVar[int] = 7
    #: Cells of the marks per position, odd: one stands in the middle.
    cells: ClassVar[int] = 9

    score: FloatArray
    offset: float
    p_value: FloatArray
    member_names: list[str]
    member_scores: FloatArray
    normalised_scores: FloatArray
    weights: FloatArray
    contributions: FloatArray
    maps: SingleArray
    place_limit: float = USUAL_LIMIT

    @property
    def is_anomaly(self) -> NDArray[np.bool_]:
        """Which pictures raise an alarm."""
        return self.score < self.offset

    def __len__(self) -> int:
        return len(self.score)

    def place(self, row: int = 0) -> tuple[float, float]:
        """Return the most unusual place, from (0, 0) top left to (1, 1) bottom right."""
        h, w = self.maps.shape[1:]
        y, x = divmod(int(self.maps[row].argmax()), w)
        return (y + 0.5) / h, (x + 0.5) / w

    def marks(self, row: int = 0) -> NDArray[np.bool_]:
        """Return which parts of a picture are unusual, as a grid of cells over it.

        Next to a place that is very unusual others are unusual because they see it, too. So a
        cell is marked if it exceeds `place_limit` by half as much as the most unusual place
        around it does: the width at half height, which is about that of what is there.
        """
        unusual = self.maps[row]
        if not unusual.size:
            return np.zeros((0, 0), dtype=np.bool_)
        around = ndimage.maximum_filter(unusual, self.reach, mode="nearest")
        needed = (np.maximum(around, self.place_limit) + self.place_limit) / 2
        marked: NDArray[np.bool_] = self._finer(unusual) > self._finer(needed)
        return marked

    def _finer(self, values: SingleArray) -> SingleArray:
        """Return a map on the grid of cells, with straight lines between its positions."""
        finer: SingleArray = ndimage.zoom(
            values, self.cells, order=1, mode="nearest", grid_mode=True
        )
        return finer

    def spot(self, row: int, shape: tuple[int, ...]) -> Spot | None:
        """Return the most unusual place in a picture of this shape; None if there are no maps."""
        if not self.maps.size:
            return None
        height, width = shape[:2]
        y, x = self.place(row)
        marked = self.marks(row)
        parts, _ = ndimage.label(marked)
        own = parts[int(y * len(marked)), int(x * marked.shape[1])]
        box = None
        if own:
            down, across = ndimage.find_objects(parts)[own - 1]
            rows, columns = marked.shape
            top, bottom = height * down.start // rows, -(-height * down.stop // rows)
            left, right = width * across.start // columns, -(-width * across.stop // columns)
            box = (left, top, right - left, bottom - top)
        return Spot(int(x * width), int(y * height), box)

    def overlay(self, row: int, picture: Picture) -> Picture:
        """Return a picture with its unusual places in red, and a line around them.

        Parameters
        ----------
        row : int
            Position among the explained pictures.
        picture : ndarray of shape (h, w, 3)
            The picture.

        Returns
        -------
        ndarray of shape (h, w, 3)
            The picture with `marks`; as it is, if there are none.
        """
        marked = self.marks(row)
        drawn = picture.copy()
        if not marked.any():
            return drawn
        h, w = picture.shape[:2]
        down, across = np.arange(h) * len(marked) // h, np.arange(w) * marked.shape[1] // w
        inside = marked[down][:, across]
        line = max(1, round(max(h, w) / 200))
        edge = inside & ~ndimage.binary_erosion(inside, iterations=line)
        drawn[inside] = np.rint(0.65 * drawn[inside] + np.array([0.35 * 255, 0, 0]))
        drawn[edge] = (255, 0, 0)
        return drawn

    def describe(self, row: int = 0) -> str:
        """Say in plain words what lies behind one picture."""
        state = "anomaly" if self.is_anomaly[row] else "normal"
        lines = [
            f"{state}: score {self.score[row]:.3f}, threshold {self.offset:.3f}, "
            f"p-value {self.p_value[row]:.3g}",
            f"{'member':<20}{'weight':>8}{'score':>10}{'share':>10}",
        ]
        for j in np.argsort(-self.weights, kind="stable"):
            lines.append(
                f"{self.member_names[j]:<20}{self.weights[j]:>8.3f}"
                f"{self.normalised_scores[row, j]:>10.3f}{self.contributions[row, j]:>10.3f}"
            )
        if self.maps.size:
            y, x = self.place(row)
            lines.append(f"most unusual place: {y:.0%} from the top, {x:.0%} from the left")
        return "\n".join(lines)

"""Why a picture has its score: which members, and where in the picture."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray, SingleArray
from ocfuse.vision.backbone import resized
from ocfuse.vision.frames import Picture


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
    """

    score: FloatArray
    offset: float
    p_value: FloatArray
    member_names: list[str]
    member_scores: FloatArray
    normalised_scores: FloatArray
    weights: FloatArray
    contributions: FloatArray
    maps: SingleArray

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

    def overlay(self, row: int, picture: Picture) -> Picture:
        """Return a picture with its unusual places in red, as a square.

        The red is full, and covers 60 %, from 8 standard deviations above the usual on.

        Parameters
        ----------
        row : int
            Position among the explained pictures.
        picture : ndarray of shape (h, w, 3)
            The picture.

        Returns
        -------
        ndarray of shape (size, size, 3)
            The picture, as wide as its longer side.
        """
        size = max(picture.shape[:2])
        heat = np.clip(self.maps[row] / 8.0, 0.0, 1.0)
        grey = np.repeat(np.rint(255 * heat).astype(np.uint8)[:, :, np.newaxis], 3, axis=2)
        share = 0.6 * resized(grey, size)[:, :, :1].astype(np.float32) / 255
        red = np.array([255, 0, 0], dtype=np.float32)
        mixed = (1 - share) * resized(picture, size) + share * red
        return np.rint(mixed).astype(np.uint8)

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

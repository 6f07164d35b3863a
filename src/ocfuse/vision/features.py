"""Features of pictures from a backbone: pooled features, and feature maps by stride."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError

#: Features have 32 bits, or 16 where many of them are held.
FeatureArray: TypeAlias = NDArray[np.floating[Any]]

#: Largest number that has 16 bits.
HIGHEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Features:
    """Features of n pictures from one backbone.

    Parameters
    ----------
    pooled : ndarray of shape (n, c)
        One vector per picture.
    maps : dict of int to ndarray of shape (n, h, w, c)
        Feature maps by stride, that is, by pixels of the network's input per position. May be
        empty.
    """

    pooled: FeatureArray
    maps: dict[int, FeatureArray]

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together."""
        counts = {len(self.pooled), *(len(values) for values in self.maps.values())}
        shapes = [values.shape for values in (self.pooled, *self.maps.values())]
        if len(counts) > 1 or [len(s) for s in shapes] != [2, *[4] * len(self.maps)]:
            raise InvalidInputError(
                "Features need pooled of shape (n, c) and maps of shape (n, h, w, c). "
                f"Got shapes {', '.join(map(str, shapes))}."
            )

    def __len__(self) -> int:
        return len(self.pooled)

    @property
    def n_bytes(self) -> int:
        """Memory of the features in bytes."""
        return self.pooled.nbytes + sum(values.nbytes for values in self.maps.values())

    def take(self, rows: Any) -> "Features":
        """Return the features of some pictures, by slice, numbers or mask."""
        return self._each(lambda values: values[rows])

    def halved(self) -> "Features":
        """Return the features in 16 bits: relative error up to 0.0005, huge values are clipped."""
        if self.pooled.dtype == np.float16:
            return self
        return self._each(lambda values: np.clip(values, -HIGHEST, HIGHEST).astype(np.float16))

    def _each(self, change: Callable[[FeatureArray], FeatureArray]) -> "Features":
        return Features(change(self.pooled), {s: change(values) for s, values in self.maps.items()})

    @staticmethod
    def joined(parts: Sequence["Features"]) -> "Features":
        """Return the features of several batches as one."""
        strides = parts[0].maps
        return Features(
            np.concatenate([part.pooled for part in parts]),
            {stride: np.concatenate([part.maps[stride] for part in parts]) for stride in strides},
        )

"""Runs as a network sees them: small grey pictures, their flow, and the joints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.rivals.motion.flow import FloatArray, optical_flow

IndexArray: TypeAlias = NDArray[np.intp]

#: Height and width of the pictures.
SIDE = 64
#: Pictures whose flow is found at once.
CHUNK = 64
#: Share of red, green and blue in grey.
LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32) / 255.0


@dataclass(frozen=True)
class Film:
    """One run, or several behind each other; `first` says where the run of a frame begins.

    Half precision: it is a thousandth of a grey value, and of a pixel, and ten thousand
    frames then need 250 MB. Without joints, `joints` has no columns.
    """

    grey: NDArray[np.float16]
    flow: NDArray[np.float16]
    joints: FloatArray
    first: IndexArray

    def __len__(self) -> int:
        return len(self.grey)

    def moved(self) -> IndexArray:
        """Return the frames that have one before them."""
        return np.flatnonzero(np.arange(len(self)) > self.first)

    def before(self, frames: IndexArray, history: int) -> FloatArray:
        """Return the pictures before each frame, and the flows that led to them.

        A run stands still before it begins. The shape is (b, 3 history - 2, side, side).
        """
        back = frames[:, np.newaxis] - np.arange(1, history + 1)
        seen = np.maximum(back, self.first[frames][:, np.newaxis])
        flows = self.flow[seen[:, :-1]].reshape(len(frames), -1, SIDE, SIDE)
        pictures = self.grey[seen].astype(np.float32) - np.float32(0.5)
        return np.concatenate([pictures, flows.astype(np.float32)], axis=1)

    def motion(self, frames: IndexArray) -> FloatArray:
        """Return the flows that led to the frames."""
        return self.flow[frames].astype(np.float32)

    def joints_before(self, frames: IndexArray) -> FloatArray:
        """Return the joints one frame before each frame."""
        return self.joints[np.maximum(frames - 1, self.first[frames])]

    def turns(self, frames: IndexArray) -> FloatArray:
        """Return how far the joints turned towards each frame."""
        return np.asarray(self.joints[frames] - self.joints_before(frames))


def film_of(frames: NDArray[np.uint8], joints: NDArray[np.float64]) -> Film:
    """Return one run made small and grey, with the flow from each picture to the next."""
    chunks = [frames[i : i + CHUNK] for i in range(0, len(frames), CHUNK)]
    grey = np.concatenate([shrunk(chunk) for chunk in chunks])
    flow = np.zeros((len(grey), 2, SIDE, SIDE), np.float16)
    for start in range(1, len(grey), CHUNK):
        stop = min(start + CHUNK, len(grey))
        flow[start:stop] = optical_flow(grey[start - 1 : stop - 1], grey[start:stop])
    first = np.zeros(len(grey), np.intp)
    return Film(grey.astype(np.float16), flow, joints.astype(np.float32), first)


def spliced(films: Sequence[Film]) -> Film:
    """Return one film of several."""
    starts = np.cumsum([0, *(len(film) for film in films[:-1])])
    return Film(
        np.concatenate([film.grey for film in films]),
        np.concatenate([film.flow for film in films]),
        np.concatenate([film.joints for film in films]),
        np.concatenate([film.first + start for film, start in zip(films, starts, strict=True)]),
    )


def shrunk(frames: NDArray[np.uint8]) -> FloatArray:
    """Return colour pictures as small grey ones in [0, 1]: each pixel the mean of its area."""
    grey = frames.astype(np.float32) @ LUMINANCE
    rows, columns = _areas(frames.shape[1]), _areas(frames.shape[2])
    return np.asarray(rows @ grey @ columns.T)


def _areas(n: int) -> FloatArray:
    """Return the share of each of n pixels in each of SIDE pixels of the same whole."""
    edges = np.arange(SIDE + 1) * (n / SIDE)
    pixel = np.arange(n)
    end = np.minimum(edges[1:, np.newaxis], pixel + 1)
    start = np.maximum(edges[:-1, np.newaxis], pixel)
    return np.asarray(np.maximum(end - start, 0.0) * (SIDE / n), np.float32)

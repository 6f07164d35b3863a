"""Dense optical flow between small grey pictures: Lucas and Kanade (1981), coarse to fine."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

FloatArray: TypeAlias = NDArray[np.float32]

#: Standard deviation, in pixels, of the neighbourhood whose brightness is taken off: lamps
#: that flicker, and exposure that changes, are no motion.
SHADE = 8.0
#: Times that the pictures are halved, and steps at each size.
HALVINGS, STEPS = 2, 3
#: Standard deviation of the window, in pixels, within which the motion is taken as one.
WINDOW = 2.0
#: Added to the squared gradients, of pictures in [0, 1]: where there is less structure than
#: camera noise has, the flow stays near zero.
DAMPING = 3e-4
#: Pixels that one step may add, at the size at hand.
LONGEST_STEP = 1.0


def optical_flow(before: FloatArray, after: FloatArray) -> FloatArray:
    """Return where the pixels of each picture went, in pixels.

    Each pair of pictures is looked at on its own. At each size, the flow v of a pixel
    minimises ``sum (after(x + v) - before(x))^2`` over a Gaussian window, by damped
    Gauss-Newton steps from the flow found at half the size.

    Parameters
    ----------
    before, after : ndarray of shape (n, h, w), float32 in [0, 1]
        Grey pictures; h and w can be halved twice.

    Returns
    -------
    ndarray of shape (n, 2, h, w), float32
        Motion to the right and motion down.
    """
    pyramid = [(_without_shade(before), _without_shade(after))]
    for _ in range(HALVINGS):
        pyramid.append((_halved(pyramid[-1][0]), _halved(pyramid[-1][1])))
    coarsest = pyramid[-1][0]
    flow = np.zeros((len(coarsest), 2, *coarsest.shape[1:]), np.float32)
    for first, second in reversed(pyramid):
        if first.shape[1] != flow.shape[2]:
            flow = 2.0 * flow.repeat(2, axis=2).repeat(2, axis=3)
        flow = _refined(first, second, flow)
    return flow


def _without_shade(pictures: FloatArray) -> FloatArray:
    shade = gaussian_filter(pictures, (0, SHADE, SHADE), mode="nearest", truncate=2.0)
    return np.asarray(pictures - shade)


def _halved(pictures: FloatArray) -> FloatArray:
    n, h, w = pictures.shape
    return np.asarray(pictures.reshape(n, h // 2, 2, w // 2, 2).mean(axis=(2, 4)))


def _smooth(maps: Any) -> FloatArray:
    return np.asarray(gaussian_filter(maps, (0, WINDOW, WINDOW), mode="nearest", truncate=2.0))


def _refined(before: FloatArray, after: FloatArray, flow: FloatArray) -> FloatArray:
    """Return a flow improved by some steps; gradients are those of the first picture."""
    dy, dx = np.gradient(before, axis=(1, 2))
    xx, xy, yy = _smooth(dx * dx) + DAMPING, _smooth(dx * dy), _smooth(dy * dy) + DAMPING
    determinant = xx * yy - xy * xy
    for _ in range(STEPS):
        missing = before - _warped(after, flow)
        x, y = _smooth(dx * missing), _smooth(dy * missing)
        step = np.stack([yy * x - xy * y, xx * y - xy * x], axis=1) / determinant[:, np.newaxis]
        flow = flow + step.clip(-LONGEST_STEP, LONGEST_STEP)
    return flow


def _warped(pictures: FloatArray, flow: FloatArray) -> FloatArray:
    """Return the pictures seen where the flow points, bilinear, the border held."""
    n, h, w = pictures.shape
    x = np.clip(np.arange(w, dtype=np.float32) + flow[:, 0], 0, w - 1)
    y = np.clip(np.arange(h, dtype=np.float32)[:, np.newaxis] + flow[:, 1], 0, h - 1)
    left, top = np.minimum(x.astype(np.intp), w - 2), np.minimum(y.astype(np.intp), h - 2)
    x, y = x - left.astype(np.float32), y - top.astype(np.float32)
    flat = pictures.ravel()
    corner = (np.arange(n)[:, np.newaxis, np.newaxis] * h + top) * w + left
    upper = flat[corner] * (1 - x) + flat[corner + 1] * x
    lower = flat[corner + w] * (1 - x) + flat[corner + w + 1] * x
    return np.asarray(upper * (1 - y) + lower * y)

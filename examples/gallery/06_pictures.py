"""
Pictures
========

A few lines of SciPy turn pictures into columns of numbers, which are scored like any table.
"""

# %%
# Generated pictures of plates with a fine texture; some have a scratch.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from ocfuse import FusedDetector
from ocfuse.metrics import auc

rng = np.random.default_rng(0)


def plate(is_scratched):
    picture = gaussian_filter(rng.normal(size=(64, 64)), 1.0)
    if is_scratched:
        row, column = rng.integers(10, 40, size=2)
        length = rng.integers(10, 20)
        picture[row : row + 2, column : column + length] += 1.5
    return picture


plates = np.array([plate(False) for _ in range(300)])
scratched = np.array([plate(True) for _ in range(60)])

# %%
# Differences of blurred pictures show structures of two sizes. The largest value of each in every
# square of a grid is a column.


def features(pictures):
    blurred = [gaussian_filter(pictures, (0, size, size)) for size in (0.7, 2, 5)]
    details = [abs(blurred[0] - blurred[1]), abs(blurred[1] - blurred[2])]
    squares = [detail.reshape(-1, 4, 16, 4, 16).max(axis=(2, 4)) for detail in details]
    return np.hstack([strongest.reshape(len(pictures), -1) for strongest in squares])


train, fresh = plates[:200], plates[200:]
detector = FusedDetector(random_state=0).fit(features(train))
scores = [detector.score_samples(features(some)) for some in (fresh, scratched)]
truth = np.repeat([1, -1], [len(fresh), len(scratched)])
print(f"AUC {auc(truth, np.concatenate(scores)):.3f}")

# %%
# These are the plates with the lowest scores.

lowest = np.argsort(np.concatenate(scores))[:4]
figure, axes = plt.subplots(1, 4, figsize=(8, 2.2), layout="constrained")
for ax, k in zip(axes, lowest, strict=True):
    ax.imshow(np.concatenate([fresh, scratched])[k], cmap="cividis")
    ax.set(title="scratched" if k >= len(fresh) else "as it should be", xticks=[], yticks=[])
plt.show()

# %%
# With a network ocfuse finds more, and shows where a picture is unusual: see `pictures of parts
# <../howto/pictures.html>`_, and for videos `watch a video <../howto/watch-video.html>`_.

"""Small pictures, features and networks that tests need."""

import numpy as np
import pytest

from ocfuse.vision import Backbone, Features, PatchGaussian, PatchKNN


class Blocks(Backbone):
    """A network without weights: means of blocks of 8 and 16 pixels, and of the whole."""

    centre, spread = 127.0, 128.0

    def __init__(self, size=64):
        self.size = size

    @property
    def digest(self):
        return f"blocks {self.size}"

    def _run(self, x):
        outputs = []
        for stride in (8, 16):
            h = self.size // stride
            cut = x.reshape(len(x), 3, h, stride, h, stride)
            outputs.append(np.concatenate([cut.mean((3, 5)), cut.std((3, 5))], axis=1))
        return [*outputs, np.concatenate([x.mean((2, 3)), x.std((2, 3))], axis=1)]


def scene(progress=0.0, light=0.0, size=64, seed=0):
    """Return a picture of a bright square that moves to the right as the task goes on."""
    rng = np.random.default_rng(seed)
    picture = np.full((size, size, 3), 90.0) + light
    picture[:, :, 1] += np.linspace(0, 40, size)
    left = int(4 + progress * (size - 24))
    picture[24:40, left : left + 16] = 200 + light
    return np.clip(picture + 3 * rng.normal(size=picture.shape), 0, 255).astype(np.uint8)


def runs(n_runs=8, n_frames=12, seed=0):
    """Return frames of several runs, the run and the progress of each."""
    rng = np.random.default_rng(seed)
    frames, run, progress = [], [], []
    for r in range(n_runs):
        light = 4 * rng.normal()
        for i in range(n_frames):
            progress.append(i / (n_frames - 1))
            frames.append(scene(progress[-1], light, seed=int(rng.integers(1 << 31))))
            run.append(r)
    return np.stack(frames), np.array(run), np.array(progress)


def features(n=60, seed=0):
    """Return normal features with maps of strides 8 and 16."""
    rng = np.random.default_rng(seed)
    maps = {8: rng.normal(size=(n, 4, 4, 3)), 16: rng.normal(size=(n, 2, 2, 5))}
    pooled = rng.normal(size=(n, 6))
    return Features(
        pooled.astype(np.float32), {s: values.astype(np.float32) for s, values in maps.items()}
    )


def lighten(patch, strides=(8, 16), n_defects=12):
    """Let detectors learn without what takes time: the fused detector, and many defects."""
    members = [("gaussian", PatchGaussian(strides)), ("knn", PatchKNN())]
    patch.setattr("ocfuse.vision.fit.default_members", lambda has_maps, seed: members)
    patch.setattr("ocfuse.vision.fit.DEFECTS_PER_KIND", n_defects)


def needs(*packages):
    """Skip a module without some packages, and say which."""
    for package in packages:
        pytest.importorskip(package, reason=f"{package} is not installed")

"""Recordings of a square that moves through a scene, and a model of its normal runs."""

from fractions import Fraction

import numpy as np

from ocfuse.scores import ConformalCalibrator
from ocfuse.system.packages import needed
from ocfuse.vision import Features, Frame
from tests.vision.cases import scene

N_RUNS, N_FRAMES = 6, 24
#: Frames of the strange run in which there is a stain.
STAIN = range(9, 18)


def run_frames(seed, stain=()):
    """Return the frames of a run."""
    rng = np.random.default_rng(seed)
    light, frames = 3 * rng.normal(), []
    for i in range(N_FRAMES):
        frames.append(scene(i / (N_FRAMES - 1), light, seed=int(rng.integers(1 << 31))))
        if i in stain:
            frames[-1][44:60, 4:20] = 20
    return frames


def write_video(path, frames):
    """Write frames as a video of 30 frames per second, nearly without loss."""
    av = needed("av", "to write videos", "video")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "8"}
        for i, frame in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            picture.pts, picture.time_base = i, Fraction(1, 30)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def count_frames(path):
    """Return the number of frames of a video that can be read to its end."""
    av = needed("av", "to read videos", "video")
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


class Scripted:
    """A detector that says of frame i what it was told to say."""

    context_range_ = None
    families_ = ()
    stillness_ = None

    def __init__(self, scores, offset=0.0):
        self.scores, self.offset_ = scores, offset
        self.normal_scores_ = np.array([offset + 1.0])
        self.conformal_ = ConformalCalibrator().fit(self.normal_scores_)
        self.backbones_ = {"none": self}
        self.fusion_ = self
        self.weights_ = np.empty(0)

    def extract(self, pictures):
        return Features(np.array([[pictures[0][0, 0, 0]]], dtype=np.float32), {})

    def transform_raw(self, features, context):
        return np.array([self.scores[int(features["none"].pooled[0, 0])]])

    def fuse(self, raw):
        return raw

    def normalised(self, raw):
        return np.empty((1, 0))


def numbered(n):
    """Return frames that carry their number."""
    return [Frame(i, i / 30, np.full((4, 4, 3), i, dtype=np.uint8)) for i in range(n)]

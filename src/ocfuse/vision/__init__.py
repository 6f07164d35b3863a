"""Anomaly detection in pictures and recordings: frames, features, scores and alarms.

A backbone turns frames into features, members score patches or whole pictures, and a
`PictureDetector` fuses their scores. This package must not know the commands and pages that show
its results.
"""

from ocfuse.vision.backbone import Backbone, Lite0, OnnxBackbone
from ocfuse.vision.detector import PictureDetector
from ocfuse.vision.extract import FeatureStore
from ocfuse.vision.features import Features
from ocfuse.vision.frames import Frame, FrameSource, FrameWarning
from ocfuse.vision.networks import TorchBackbone, make_backbone, paper_network
from ocfuse.vision.patches import PatchGaussian, PatchKNN
from ocfuse.vision.pooled import PooledMembers
from ocfuse.vision.sources import open_frames

__all__ = [
    "Backbone",
    "FeatureStore",
    "Features",
    "Frame",
    "FrameSource",
    "FrameWarning",
    "Lite0",
    "OnnxBackbone",
    "PatchGaussian",
    "PatchKNN",
    "PictureDetector",
    "PooledMembers",
    "TorchBackbone",
    "make_backbone",
    "open_frames",
    "paper_network",
]

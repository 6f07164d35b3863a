"""Pictures and recordings: frames in, features, scores and alarms out."""

from ocfuse.vision.backbone import Backbone, Lite0, OnnxBackbone, TorchBackbone, make_backbone
from ocfuse.vision.detector import PictureDetector
from ocfuse.vision.extract import FeatureStore
from ocfuse.vision.features import Features
from ocfuse.vision.frames import Frame, FrameSource, FrameWarning
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
]

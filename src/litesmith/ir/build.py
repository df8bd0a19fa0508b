"""Models in code: the builder that tests, examples and the catalogue use.

b = Builder()
x = b.input("image", (1, 8, 8, 3))
y = b.op("CONV_2D", x, filters, bias, stride_h=2, stride_w=2)
y = b.op("SOFTMAX", b.op("RESHAPE", y, [1, 64]))
model = b.model(y)
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from litesmith.errors import BadInput
from litesmith.ir.dtype import DTYPES, pack, pack_strings
from litesmith.ir.edit import regraph
from litesmith.ir.ops import OPS, Shapes, infer_shapes, output_dtypes
from litesmith.ir.types import Graph, Model, Op, Quant, Record, Signature, Tensor, Value

Argument = Tensor | ArrayLike | None


class Builder:
    """Collects inputs and ops of one graph; `model` or `graph` ends the work.

    >>> b = litesmith.Builder()
    >>> x = b.input("x", (1, 4))
    >>> model = b.model(b.op("FULLY_CONNECTED", x, np.eye(4, dtype=np.float32), None))
    >>> [op.kind for op in model.main.ops]
    ['FULLY_CONNECTED']
    """

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.inputs: list[Tensor] = []
        self.ops: list[Op] = []
        self._count = 0

    def input(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str = "float32",
        quant: Quant | None = None,
    ) -> Tensor:
        """A graph input; −1 marks a free dimension, built as 1."""
        fixed = tuple(1 if d == -1 else d for d in shape)
        dynamic = tuple(shape) if -1 in shape else None
        tensor = Tensor(name, fixed, dtype, quant=quant, dynamic=dynamic)
        self.inputs.append(tensor)
        return tensor

    def const(
        self,
        values: ArrayLike,
        name: str = "",
        dtype: str = "",
        quant: Quant | None = None,
    ) -> Tensor:
        """A constant. Python integers become int32 and floats float32, as the runtime expects."""
        array = np.asarray(values)
        if dtype == "string" or array.dtype.kind in "SU":
            texts = [
                t if isinstance(t, bytes) else str(t).encode() for t in array.reshape(-1).tolist()
            ]
            return Tensor(
                name or self.next_name("const"), array.shape, "string", pack_strings(texts)
            )
        dtype = dtype or _natural_dtype(values, array)
        if dtype not in DTYPES:
            raise BadInput(
                "no element type {dtype!r}; there are {dtypes}", dtype, ", ".join(DTYPES)
            )
        row = DTYPES[dtype]
        data = pack(array, dtype) if row.is_packed else np.array(array, row.storage, order="C")
        data.setflags(write=False)
        return Tensor(name or self.next_name("const"), array.shape, dtype, data, quant)

    def op(
        self,
        kind: str,
        *inputs: Argument,
        shape: Sequence[int] | Sequence[Sequence[int]] | None = None,
        dtype: str = "",
        name: str = "",
        quant: Quant | None = None,
        version: int = 1,
        **options: Value,
    ) -> Tensor:
        """Adds an op and returns its first output; arrays and numbers become constants.

        Shapes come from the op table; give `shape` where they cannot be known (a list of shapes for
        several outputs). All outputs are in `self.last.outputs`.
        """
        op = self._op(kind, inputs, version, options)
        shapes = _shapes(shape) or infer_shapes(kind, op.inputs, op.options)
        if shapes is None:
            sizes = " ".join(f"[{','.join(map(str, t.shape))}]" for t in op.inputs if t is not None)
            raise BadInput(
                "the shape of {kind} is not known from its inputs {sizes}; give one, or other "
                "inputs",
                kind,
                sizes or "[]",
            )
        dtypes = output_dtypes(kind, op.inputs, op.options, len(shapes))
        outputs = tuple(
            Tensor(name or self.next_name(kind.lower()), s, dtype or d, quant=quant)
            for s, d in zip(shapes, dtypes, strict=True)
        )
        self.ops.append(replace(op, outputs=outputs))
        return outputs[0]

    def add(self, kind: str, *inputs: Argument, version: int = 1, **options: Value) -> None:
        """Adds an op that has no output."""
        self.ops.append(self._op(kind, inputs, version, options))

    @property
    def last(self) -> Op:
        """The op added last."""
        return self.ops[-1]

    def graph(self, *outputs: Tensor) -> Graph:
        """The graph as it stands, for models with several."""
        empty = Graph(self.name, (), (), (), ())
        return regraph(empty, ops=self.ops, inputs=self.inputs, outputs=outputs)

    def model(self, *outputs: Tensor, signature: str = "", graphs: Sequence[Graph] = ()) -> Model:
        """A model whose main graph is this one; `signature` names an entry point for it."""
        graph = self.graph(*outputs)
        names = tuple((t.name, t) for t in graph.inputs), tuple((t.name, t) for t in graph.outputs)
        signatures = (Signature(signature, 0, *names),) if signature else ()
        return Model((graph, *graphs), signatures, description="made with litesmith")

    def _op(
        self, kind: str, inputs: Sequence[Argument], version: int, options: dict[str, Value]
    ) -> Op:
        """The op without its outputs."""
        if kind not in OPS:
            raise BadInput(
                "no operator {kind!r}; a custom one is CUSTOM with custom='its name'", kind
            )
        tensors = tuple(a if isinstance(a, Tensor) or a is None else self.const(a) for a in inputs)
        custom = str(options.pop("custom", ""))
        rest = {key: options.pop(key) for key in ("custom_options",) if key in options}
        record = _record(kind, options)
        return Op(kind, tensors, (), record, version, custom, rest=MappingProxyType(rest))

    def next_name(self, stem: str) -> str:
        """A name that no tensor of the builder has yet."""
        self._count += 1
        return f"{stem}_{self._count}"


def _natural_dtype(values: ArrayLike, array: np.ndarray) -> str:
    if isinstance(values, np.ndarray | np.generic):
        return str(array.dtype)
    return {"i": "int32", "f": "float32"}.get(array.dtype.kind, str(array.dtype))


def _record(kind: str, options: dict[str, Value]) -> Record | None:
    row = OPS[kind]
    if not row.options:
        if options:
            raise BadInput("{kind} has no options; got {options}", kind, ", ".join(options))
        return None
    try:
        return Record(row.options).set(**{**row.defaults, **options})
    except KeyError as error:
        raise BadInput("{kind}: {why}", kind, error.args[0]) from None


def _shapes(shape: Sequence[int] | Sequence[Sequence[int]] | None) -> Shapes | None:
    if shape is None:
        return None
    if len(shape) and isinstance(shape[0], Sequence):
        return tuple(tuple(s) for s in shape)  # type: ignore[arg-type]
    return (tuple(shape),)  # type: ignore[arg-type]

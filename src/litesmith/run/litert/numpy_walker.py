"""The target `numpy`: a walk through the graph over the reference kernels, with no native library.

Quantized ops are computed in real numbers between their scales, so a result may differ from an
integer kernel's by a step or two.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.errors import CannotRun
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import called_graphs
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Tensor
from litesmith.numeric import affine
from litesmith.numeric.kernels import evaluate
from litesmith.ops.call import Call
from litesmith.ops.registry import find_op
from litesmith.phrases import phrase
from litesmith.run.core.runner import Port
from litesmith.units import plain

# A loop that has not ended by then is taken for endless.
_MOST_ROUNDS = 100_000


class WalkerRunner:
    """A model computed op by op in numpy."""

    copies = True

    def __init__(
        self, model: Model, graph: Graph, *, names: tuple[Sequence[str], Sequence[str]]
    ) -> None:
        for tensor in (*graph.inputs, *graph.outputs):
            if DTYPES[tensor.dtype].storage != tensor.dtype:
                raise CannotRun(
                    "target numpy: {name!r} is of type {dtype}", tensor.name, tensor.dtype
                )
        self._model, self._graph = model, graph
        self.inputs, self.outputs = (
            tuple(Port(n, np.zeros(t.shape, t.dtype)) for n, t in zip(side, tensors, strict=True))
            for side, tensors in zip(names, (graph.inputs, graph.outputs), strict=True)
        )

    def run(self) -> None:
        results = walk(self._model, self._graph, [port.array for port in self.inputs])
        for place, (port, result) in enumerate(zip(self.outputs, results, strict=True)):
            if port.array.shape == result.shape:
                port.array[...] = result
            else:
                self.outputs = (
                    *self.outputs[:place],
                    Port(port.name, result),
                    *self.outputs[place + 1 :],
                )

    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        self.inputs = tuple(
            Port(port.name, np.zeros(shapes.get(place, port.array.shape), port.array.dtype))
            for place, port in enumerate(self.inputs)
        )

    def close(self) -> None:
        self.inputs = self.outputs = ()


def walk(model: Model, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a graph for these inputs, as stored numbers."""
    values: dict[Tensor, Array] = dict(zip(graph.inputs, inputs, strict=True))
    for op in graph.ops:
        arguments = [None if t is None else _value(t, values) for t in op.inputs]
        results = _results(model, op, arguments)
        if len(results) != len(op.outputs):
            raise CannotRun(
                "target numpy: {op_name} has {count} outputs, and {results} were computed",
                op_name(op),
                len(op.outputs),
                len(results),
            )
        values.update(zip(op.outputs, results, strict=True))
    return [_value(tensor, values) for tensor in graph.outputs]


def _value(tensor: Tensor, values: dict[Tensor, Array]) -> Array:
    if tensor in values:
        return values[tensor]
    try:
        return tensor.values()
    except ValueError as error:
        raise CannotRun("target numpy: {error}", error) from None


def _results(model: Model, op: Op, arguments: Sequence[Array | None]) -> Sequence[Array]:
    if op.kind in _CONTROL:
        return _CONTROL[op.kind](model, op, [a for a in arguments if a is not None])
    operator = find_op(op.custom) if op.is_custom else None
    if operator is not None:
        computed = [t is not None and not t.is_const for t in op.inputs]
        given = [a for a, moves in zip(arguments, computed, strict=True) if moves and a is not None]
        return Call(operator, op).results(given)
    try:
        if any(_is_scaled(t) for t in (*op.inputs, *op.outputs)):
            return _in_real_numbers(op, arguments)
        return evaluate(_as_called(op, arguments), arguments)
    except ValueError as error:
        raise CannotRun(
            "target numpy cannot compute {op_name}: {error}", op_name(op), error
        ) from None


def _as_called(op: Op, arguments: Sequence[Array | None]) -> Op:
    """The op with its inputs in the shapes they really have, after a resize."""
    inputs = tuple(
        None
        if t is None or a is None
        else replace(t, shape=a.shape, data=None if t.data is None else a)
        for t, a in zip(op.inputs, arguments, strict=True)
    )
    return replace(op, inputs=inputs)


def _is_scaled(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.quant is not None


def _in_real_numbers(op: Op, arguments: Sequence[Array | None]) -> list[Array]:
    """Dequantize, compute, quantize."""
    reals = [
        dequantize(a, t.quant) if a is not None and t is not None and t.quant is not None else a
        for a, t in zip(arguments, op.inputs, strict=True)
    ]
    plain = replace(
        op,
        inputs=tuple(None if t is None else _plain(t) for t in op.inputs),
        outputs=tuple(_plain(t) for t in op.outputs),
    )
    results = (reals[0],) if OPS[op.kind].rescales else evaluate(plain, reals)
    return [
        quantize(result, t.quant, t.dtype) if t.quant is not None else result
        for result, t in zip(results, op.outputs, strict=True)
        if result is not None
    ]


def _plain(tensor: Tensor) -> Tensor:
    """The tensor of real numbers that a scaled one stands for."""
    return (
        tensor if tensor.quant is None else replace(tensor, dtype="float32", quant=None, data=None)
    )


def dequantize(stored: Array, quant: Quant) -> Array:
    """Real numbers of stored integers, as float32."""
    if quant.block is not None:
        raise ValueError(phrase("blockwise scales are not computed here"))
    return affine.dequantize(stored, quant.scale, quant.zero_point, quant.axis)


def quantize(real: Array, quant: Quant, dtype: str) -> Array:
    """Stored integers of real numbers: rounded to nearest, kept inside the type."""
    return affine.quantize(real, dtype, quant.scale, quant.zero_point, quant.axis)


def _called(model: Model, op: Op, number: int, takes: int, gives: int) -> Graph:
    """A graph that an op runs, with as many inputs and outputs as the op has for it."""
    graph = model.graphs[number]
    if (len(graph.inputs), len(graph.outputs)) != (takes, gives):
        raise CannotRun(
            "target numpy: {op_name} has {takes} inputs and {gives} outputs for the graph "
            "{name!r}, which has {inputs} and {outputs}",
            op_name(op),
            takes,
            gives,
            plain(graph.name),
            len(graph.inputs),
            len(graph.outputs),
        )
    return graph


def _if(model: Model, op: Op, arguments: Sequence[Array]) -> list[Array]:
    condition, *rest = arguments
    then, other = (
        _called(model, op, number, len(rest), len(op.outputs)) for number in called_graphs(op)
    )
    return walk(model, then if condition.any() else other, rest)


def _while(model: Model, op: Op, arguments: Sequence[Array]) -> list[Array]:
    tests, does = called_graphs(op)
    values = list(arguments)
    condition = _called(model, op, tests, len(values), 1)
    body = _called(model, op, does, len(values), len(values))
    for _ in range(_MOST_ROUNDS):
        if not walk(model, condition, values)[0].any():
            return values
        values = walk(model, body, values)
    raise CannotRun(
        "target numpy: {op_name} did not end in {most_rounds} rounds", op_name(op), _MOST_ROUNDS
    )


_CONTROL = {"IF": _if, "WHILE": _while}

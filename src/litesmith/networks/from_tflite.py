"""Weights of a .tflite, in order of execution; what is quantized is made real."""

from pathlib import Path

import numpy as np

from litesmith.errors import BadInput, BadModel
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Op, Tensor, constant_numbers
from litesmith.ir.window import pads, slides
from litesmith.networks.loose_weights import Loose, act_of, stride_of
from litesmith.networks.network_table import Row
from litesmith.numeric.affine import dequantize
from litesmith.tflite.file import load
from litesmith.units import plain


def read(path: Path, row: Row) -> tuple[list[Loose], str]:
    """The layers of the main graph, and the style in which it pads; "" where that is the same."""
    del row
    graph = load(path).main
    stored = {op.outputs[0]: op.inputs[0] for op in graph.ops if op.kind == "DEQUANTIZE"}
    found: list[Loose] = []
    for op in graph.ops:
        if OPS[op.kind].is_layer:
            weight, bias = (None if t is None else stored.get(t, t) for t in _parts(op))
            real_bias = None if bias is None else _real(bias, path)
            act = act_of(op).removeprefix("NONE")
            name = op.outputs[0].name
            found.append(Loose(name, _real(weight, path), real_bias, act, stride_of(op)))
    try:
        return found, _style(graph)
    except ValueError as error:  # a stride of 0, a window larger than what it slides over
        raise BadModel(f"{path}: {error}") from None


def _parts(op: Op) -> tuple[Tensor | None, Tensor | None]:
    return op.inputs[1], op.inputs[2] if len(op.inputs) > 2 else None


def _real(tensor: Tensor | None, path: Path) -> Array:
    """The numbers that a constant stands for."""
    numbers = constant_numbers(tensor)
    if tensor is None or numbers is None or (tensor.quant and tensor.quant.block):
        name = tensor.name if tensor else ""
        raise BadInput(
            "{path}: the weight {name!r} is computed, sparse or in blocks; give the file "
            "before that",
            path,
            plain(name),
        )
    if tensor.quant is None:
        return numbers.astype(np.float32)
    quant = tensor.quant
    return dequantize(numbers, quant.scale, quant.zero_point, quant.axis)


def _style(graph: Graph) -> str:
    """torch where windows are padded alike on both sides although SAME would not; "" unknown."""
    made = {op.outputs[0]: op for op in graph.ops if op.kind == "PAD"}
    for op in graph.ops:
        row = OPS[op.kind]
        if not (row.is_layer and row.has_window):
            continue
        data, weight = op.inputs[:2]
        if data is None or weight is None or len(data.shape) != 4 or len(weight.shape) != 4:
            continue
        if op.option("padding") == "SAME" and _is_lopsided(op, data, weight):
            return "tf"
        paddings = constant_numbers(made[data].inputs[1]) if data in made else None
        if paddings is not None and paddings.shape == (4, 2) and max(weight.shape[1:3]) > 1:
            return "torch" if paddings[1, 0] == paddings[1, 1] else "tf"
    return ""


def _is_lopsided(op: Op, data: Tensor, weight: Tensor) -> bool:
    assert op.options is not None
    ways = slides(op.options, weight.shape[1:3])
    both = [pads("SAME", size, way) for size, way in zip(data.shape[1:3], ways, strict=True)]
    return any(before != after for before, after in both)

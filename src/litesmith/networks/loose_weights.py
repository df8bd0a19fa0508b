"""Layers of a weight file, and the layers of a network that they are for."""

from typing import NamedTuple, TypeGuard

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Op, Tensor
from litesmith.phrases import phrase
from litesmith.units import plain

# From torch's axes (out, in, height, width) to those of the runtime.
_AXES, _DEPTHWISE_AXES = (0, 2, 3, 1), (1, 2, 3, 0)


class Loose(NamedTuple):
    """A layer of a file; activation "" and stride None are what the file does not tell."""

    name: str
    weight: Array
    bias: Array | None
    act: str = ""
    stride: tuple[int, int] | None = None
    is_torch: bool = False

    @property
    def label(self) -> str:
        """By the first of the names that a converter has joined."""
        return phrase("layer {split!r}", plain(self.name.split(";")[0]))

    @property
    def outputs(self) -> int:
        """Output channels, of all but a depthwise layer."""
        return self.weight.shape[0] if self.weight.ndim else 0

    def arranged(self, kind: str) -> Array:
        """The weight with the axes that the kind of op has."""
        if self.is_torch and self.weight.ndim == 4:
            return np.transpose(self.weight, _DEPTHWISE_AXES if OPS[kind].is_depthwise else _AXES)
        return self.weight


class Target(NamedTuple):
    """A layer of a network."""

    name: str
    kind: str
    weight: Tensor
    bias: Tensor
    act: str
    stride: tuple[int, int]


def targets_of(graph: Graph) -> list[Target]:
    """The layers in order of execution."""
    found: list[Target] = []
    for op in graph.ops:
        if OPS[op.kind].is_layer:
            weight, bias = (*op.inputs[1:3], None)[:2]
            if not (_is_float(weight) and _is_float(bias)):
                raise BadInput(
                    "the layer {name!r} has no float weights and bias; take the model "
                    "before it was quantized",
                    plain(op.outputs[0].name),
                )
            name = weight.name.removesuffix("/weight")
            found.append(Target(name, op.kind, weight, bias, act_of(op), stride_of(op)))
    return found


def _is_float(tensor: Tensor | None) -> TypeGuard[Tensor]:
    return tensor is not None and tensor.dtype == "float32" and tensor.is_const


def act_of(op: Op) -> str:
    return str(op.option("fused_activation_function"))


def stride_of(op: Op) -> tuple[int, int]:
    """Down and across; of a fully connected layer that of a window of 1."""
    if op.options is None or "stride_h" not in op.options:
        return 1, 1
    return op.options.integer("stride_h"), op.options.integer("stride_w")

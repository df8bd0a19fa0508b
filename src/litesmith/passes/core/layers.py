"""Layers: ops that multiply data with one constant weight and add a bias."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.dtype import DTYPES, pack
from litesmith.ir.ops import OPS
from litesmith.ir.types import (
    Array,
    Graph,
    Op,
    Quant,
    Tensor,
    constant_numbers,
    frozen,
)
from litesmith.numeric.affine import Ends, bias_codes, weight_codes
from litesmith.numeric.arrays import along
from litesmith.passes.core.schemes import roles


class Layer(NamedTuple):
    """The parts of such an op; each `…_at` is the place among its inputs.

    `unpack` is the op that makes a stored weight float before the layer reads it, if there is one.
    """

    op: Op
    data_at: int
    weight_at: int
    bias_at: int
    axis: int
    unpack: Op | None = None

    @property
    def data(self) -> Tensor:
        tensor = self.op.inputs[self.data_at]
        assert tensor is not None
        return tensor

    @property
    def weight(self) -> Tensor:
        """The constant, as it is stored."""
        tensor = self.unpack.inputs[0] if self.unpack else self.op.inputs[self.weight_at]
        assert tensor is not None
        return tensor

    @property
    def bias(self) -> Tensor | None:
        return self.op.inputs[self.bias_at] if self.bias_at < len(self.op.inputs) else None

    @property
    def channels(self) -> int:
        return self.weight.shape[self.axis]

    @property
    def in_groups(self) -> bool:
        """True for a convolution each of whose filters reads only some of the channels."""
        whole = self.data.shape[-1] == self.weight.shape[-1]
        return OPS[self.op.kind].is_convolution and not whole

    def with_parts(self, weight: Tensor, bias: Tensor | None) -> Op:
        """The op with another weight and bias; an optional bias that was absent is put in place."""
        inputs = list(self.op.inputs)
        if self.unpack is None:
            inputs[self.weight_at] = weight
        if self.bias_at < len(inputs):
            inputs[self.bias_at] = bias
        elif bias is not None:
            inputs.append(bias)
        return replace(self.op, inputs=tuple(inputs))


# The least step of products of int16 data and weights, in steps of the output: kernels take a
# finer one for nothing.
LEAST_RATIO = 2.0**-30

# The range of scales in float16, in which weights with a scale per block store their scales.
_HALF_SCALES = (2.0**-24, float(np.finfo(np.float16).max))

# The largest step of products of int8 data and weights, in steps of the output: with 256 XNNPACK
# does not open the model.
MOST_RATIO = 255


def keep_ratio(steps: Array, data: str, scale: float, output: float) -> Array:
    """The scales of a weight, no smaller and no larger than a kernel of such data takes with the
    scales of its data and of its output."""
    if data == "int16":
        return np.maximum(steps, LEAST_RATIO * output / scale)
    return np.minimum(steps, MOST_RATIO * output / scale)


def most_bias(weights: str) -> int:
    """The largest code of a bias: XNNPACK's int4 kernels multiply it by 16 as they work."""
    return 2**30 if weights == "int8" else 2**26


def layer_of(op: Op, unpacked: Mapping[Tensor, Op] | None = None) -> Layer | None:
    """The op as a layer; None where it is none, or where its weight or bias is computed.

    `unpacked` holds the ops that convert constants to float: their outputs count as constants.
    """
    row, words = OPS[op.kind], roles(op)
    if row.axis is None or words.count("w") != 1 or words.count("x") != 1 or row.bias is None:
        return None
    weight_at = words.index("w")
    read = op.inputs[weight_at]
    unpack = unpacked.get(read) if unpacked and read is not None else None
    layer = Layer(op, words.index("x"), weight_at, row.bias, row.axis, unpack)
    if read is None or op.inputs[layer.data_at] is None or constant_numbers(layer.weight) is None:
        return None
    if layer.bias is not None and constant_numbers(layer.bias) is None:
        return None
    if len(layer.weight.shape) <= row.axis or not layer.weight.elements:
        return None
    return layer


def unpacked_constants(graph: Graph) -> dict[Tensor, Op]:
    """The outputs of DEQUANTIZE on constants, each with its op."""
    return {
        op.outputs[0]: op
        for op in graph.ops
        if op.kind == "DEQUANTIZE" and op.inputs[0] is not None and op.inputs[0].is_const
    }


def layers_of(graph: Graph) -> dict[Op, Layer]:
    """Every layer of a graph, in order of execution."""
    unpacked = unpacked_constants(graph)
    found = ((op, layer_of(op, unpacked)) for op in graph.ops)
    return {op: layer for op, layer in found if layer is not None}


def real_values(tensor: Tensor) -> Array:
    """The numbers that a constant stands for, as float64."""
    values = tensor.values()
    if tensor.quant is None:
        return values.astype(np.float64)
    quant = tensor.quant
    if quant.block is not None:
        width = values.shape[-1]
        zero = _of_blocks(quant.block.zero_points, width)
        return (values - zero) * _of_blocks(quant.block.scales, width)
    scale = along(quant.scale.astype(np.float64), values.ndim, quant.axis)
    return (values - along(quant.zero_point, values.ndim, quant.axis)) * scale


def _of_blocks(held: Tensor | None, width: int) -> Array:
    """Spreads a number per block over the weights of each block."""
    if held is None:
        return np.zeros(1)
    return np.repeat(held.values().astype(np.float64), width // held.shape[-1], axis=-1)


def scale_rows(layer: Layer) -> Array:
    """The scales of each channel of a weight: -> (channels, groups of its inputs), float64."""
    quant = layer.weight.quant
    assert quant is not None
    if quant.block is not None:
        held = quant.block.scales
        return held.values().astype(np.float64).reshape(-1, held.shape[-1])
    return np.broadcast_to(quant.scale.astype(np.float64)[:, None], (layer.channels, 1))


def half_scales(scales: Array) -> NDArray[np.float16]:
    """The nearest scales that blocks of weights can have."""
    return np.clip(scales, *_HALF_SCALES).astype(np.float16)


def with_scale_rows(quant: Quant, scales: Array) -> Quant:
    """The quantization with other scales (channels, groups); a scale for the whole tensor stays."""
    if quant.block is not None:
        held = quant.block.scales
        stored = half_scales(scales).reshape(held.shape)
        return replace(quant, block=replace(quant.block, scales=replace(held, data=frozen(stored))))
    return Quant.of(scales[:, 0].astype(np.float32), 0, quant.axis) if quant.per_channel else quant


def real_bias(layer: Layer) -> Array:
    return np.zeros(layer.channels) if layer.bias is None else real_values(layer.bias)


def stored_weight(tensor: Tensor, numbers: Array, dtype: str, quant: Quant) -> Tensor:
    """A constant of codes in place of another; int4 is packed."""
    data = pack(numbers, dtype) if DTYPES[dtype].is_packed else numbers.astype(dtype)
    return replace(tensor, dtype=dtype, data=frozen(data), quant=quant)


def coded_weight(
    tensor: Tensor, dtype: str, scales: Array, axis: int, ends: Ends | None = None
) -> Tensor:
    """A float weight as codes to the nearest of these scales: one, or one a channel."""
    stored = scales.astype(np.float32)
    numbers = weight_codes(tensor.values(), stored, axis, DTYPES[dtype].bits, ends)
    return stored_weight(tensor, numbers, dtype, Quant.of(stored, 0, axis))


def coded_bias(layer: Layer, bias: Array, input_scale: float, quant: Quant, dtype: str) -> Tensor:
    """A bias at the scale of the layer's products, at which an integer kernel adds it."""
    scales = np.float32(input_scale) * quant.scale
    kept = layer.bias or Tensor(f"{layer.weight.name}/bias", (layer.channels,))
    return stored_weight(
        kept, bias_codes(bias, scales.astype(np.float64), dtype), dtype, Quant.of(scales)
    )


def rebuilt(layer: Layer, weight: Tensor, bias: Array | None) -> dict[Op, Op]:
    """The layer's ops with another weight and bias, each stored as its kernel takes it.

    A bias in real numbers; None leaves a layer without one.
    """
    quant, data = weight.quant, layer.data.quant
    stored: Tensor | None = None
    if bias is not None and (data is None or quant is None):
        kept = layer.bias or Tensor(f"{layer.weight.name}/bias", (layer.channels,))
        stored = replace(kept, dtype="float32", data=bias.astype(np.float32), quant=None)
    elif bias is not None and data is not None and quant is not None:
        wide = "int64" if layer.data.dtype == "int16" else "int32"
        dtype = layer.bias.dtype if layer.bias else wide
        stored = coded_bias(layer, bias, float(data.scale[0]), quant, dtype)
    changed = {layer.op: layer.with_parts(weight, stored)}
    if layer.unpack is not None:
        changed[layer.unpack] = replace(layer.unpack, inputs=(weight,))
    return changed


def shared_by(layers: Sequence[Layer]) -> dict[Tensor, list[Layer]]:
    """The layers that use each weight."""
    users: dict[Tensor, list[Layer]] = {}
    for layer in layers:
        users.setdefault(layer.weight, []).append(layer)
    return users

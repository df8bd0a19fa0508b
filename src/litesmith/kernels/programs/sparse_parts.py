"""Layers that could be computed without their zeros: what they are made of, what is expected."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Array, Op, constant_numbers
from litesmith.kernels.programs.break_even import FEW, break_even, dense_us, gain
from litesmith.kernels.programs.sparse_codes import SPANS, codes_of
from litesmith.native.cpu import is_x86
from litesmith.run.litert.own_kernels import SparseLayer

SPARSE = ("CONV_2D", "FULLY_CONNECTED")
BLOCK = 4  # inputs whose weights are zero together


class Kind(NamedTuple):
    """What a layer of some data must have.

    bias         its type
    least_many   inputs and channels, at the least, where there are many rows
    least_few    the same for a few
    """

    bias: str
    least_many: tuple[int, int]
    least_few: tuple[int, int]


KINDS = {
    "float32": Kind("float32", (16, 16), (BLOCK, 1)),
    "int8": Kind("int32", (64, 16), (128, 16)),
}


def may_be_sparse(op: Op) -> bool:
    """True for a kind of layer that has sparse kernels, whatever its shape and weights."""
    return op.kind in SPARSE and op.inputs[0] is not None and op.inputs[0].dtype in KINDS


def sparse_facts(op: Op) -> SparseLayer:
    """What is expected of a layer without its zeros; raises where it has no kernel here."""
    data, output = op.inputs[0], op.outputs[0]
    if data is None or not may_be_sparse(op):
        raise CannotApply("{name!r} is not a float32 or int8 layer", output.name)
    weights, bias = sparse_parts(op)
    channels, inputs = weights.shape
    rows, kind = data.elements // inputs, KINDS[data.dtype]
    least = kind.least_few if rows < FEW else kind.least_many
    if inputs % BLOCK or inputs < least[0] or channels < least[1]:
        raise CannotApply(
            "{name!r}: {inputs} inputs and {channels} channels are too few",
            output.name,
            inputs,
            channels,
        )
    if data.dtype == "int8":
        _refuse_other_bits(op, weights, bias)
    zeros = 1 - float(np.any(weights.reshape(-1, BLOCK), axis=1).mean())
    shape = rows, inputs, channels
    return SparseLayer(
        *shape,
        data.dtype,
        zeros,
        break_even(*shape, data.dtype),
        gain(*shape, zeros, data.dtype),
        dense_us(*shape, data.dtype),
    )


def _refuse_other_bits(op: Op, weights: Array, bias: Array) -> None:
    """Raises where XNNPACK would not compute a layer, or not in this way."""
    if not is_x86():
        raise CannotApply("sparse int8 layers have the runtime's bits on x86 alone")
    codes_of(op, weights, bias)


def sparse_parts(op: Op) -> tuple[Array, Array]:
    """Weights as (channels, inputs), and a bias."""
    data, output = op.inputs[0], op.outputs[0]
    assert data is not None
    weights = constant_numbers(op.inputs[1])
    if weights is None or weights.dtype != data.dtype:
        raise CannotApply("{name!r} has no constant {dtype} weights", output.name, data.dtype)
    options = options_or_defaults(op.kind, op.options)
    if op.kind == "FULLY_CONNECTED" and options.word("weights_format") != "DEFAULT":
        raise CannotApply("{name!r} has shuffled weights", output.name)
    if op.kind == "CONV_2D":
        strides = options.integer("stride_h"), options.integer("stride_w")
        if (*weights.shape[1:3], *strides) != (1, 1, 1, 1):
            raise CannotApply("{name!r} is no convolution of 1×1 with stride 1", output.name)
        if data.shape[3] != weights.shape[3]:
            raise CannotApply("{name!r}: convolutions in groups have no kernel here", output.name)
    flat = weights.reshape(weights.shape[0], -1)
    given, kind = op.inputs[2] if len(op.inputs) > 2 else None, KINDS[data.dtype]
    bias = np.zeros(len(flat), kind.bias) if given is None else constant_numbers(given)
    if bias is None or bias.dtype != kind.bias:
        raise CannotApply("{name!r} has no constant {bias} bias", output.name, kind.bias)
    if options.word("fused_activation_function") not in SPANS:
        raise CannotApply("{name!r} has an activation without a kernel here", output.name)
    return flat, bias

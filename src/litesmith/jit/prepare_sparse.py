"""Float32 layers with weights that are mostly zero, prepared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Op, constant_numbers
from litesmith.jit import layout as at
from litesmith.jit.break_even import FEW, break_even, gain
from litesmith.jit.program import Kernel, address, aligned

Floats = NDArray[np.float32]

DENSE = "too few blocks of four of its weights are zero: XNNPACK is as fast"

SPARSE = ("CONV_2D", "FULLY_CONNECTED")
_BLOCK = 4
_GROUP = 8  # blocks that a round of `tiles.sparse_row` takes
_UNIT = 50_000  # products of a unit
_SPANS = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


def places_of(rows: int, inputs: int) -> int:
    """Rows of a unit: what is turned should stay in the nearest cache. 0: rows as they lie."""
    if rows < FEW:
        return 0
    return 64 if rows >= 64 and inputs <= 128 else 32 if rows >= 32 else 16


class Sparse(NamedTuple):
    """A layer that could be sparse.

    zeros  the share of blocks of four inputs that are zero
    even   the share from which it is faster than dense; None where it never is
    gain   how many times faster it should be as it is
    """

    rows: int
    inputs: int
    channels: int
    zeros: float
    even: float | None
    gain: float

    @property
    def products(self) -> int:
        """Of the dense layer."""
        return self.rows * self.inputs * self.channels


def sparse_facts(op: Op) -> Sparse:
    """What is expected of a layer without its zeros; raises where it has no kernel here."""
    data, output = op.inputs[0], op.outputs[0]
    if op.kind not in SPARSE or data is None or data.dtype != "float32":
        raise CannotApply(f"{output.name!r} is not a float32 layer")
    weights, _ = _weights(op)
    channels, inputs = weights.shape
    rows = data.elements // inputs
    if inputs % _BLOCK or (rows >= FEW and min(inputs, channels) < 16):
        raise CannotApply(f"{output.name!r}: {inputs} inputs and {channels} channels are too few")
    zeros = 1 - float(np.any(weights.reshape(-1, _BLOCK), axis=1).mean())
    shape = rows, inputs, channels
    return Sparse(*shape, zeros, break_even(*shape), gain(*shape, zeros))


def worthwhile_layer(op: Op) -> Kernel:
    """The kernel of a float32 layer; raises where its dense one is as fast."""
    if sparse_facts(op).gain <= 1:
        raise CannotApply(DENSE)
    return sparse_layer(op)


def sparse_layer(op: Op) -> Kernel:
    """A convolution of 1×1 or a fully connected layer; zero blocks of four inputs cost nothing."""
    rows, inputs, channels, *_ = sparse_facts(op)
    data, output = op.inputs[0], op.outputs[0]
    assert data is not None
    weights, bias = _weights(op)
    places = places_of(rows, inputs)
    options = options_or_defaults(op.kind, op.options)
    limits = np.array(_SPANS[options.word("fused_activation_function")], np.float32)
    packed = packed_blocks(weights, 4 * max(places, 1), 1 if places else _GROUP)
    kept = tuple(aligned(array) for array in (*packed, bias, limits))
    names = at.NUMBERS, at.WEIGHTS, at.BEGINS, at.BIAS, at.LIMITS
    words = dict(zip(names, map(address, kept), strict=True))
    words |= {at.INPUTS: inputs, at.CHANNELS: channels}
    if not places:
        block = max(-(-_UNIT * channels // (packed[1].size * rows)), 1)
        words |= {at.ROWS: channels, at.BLOCK_ROWS: block, at.BLOCKS: rows}
        return Kernel("sparse_row", (data,), (output,), -(-channels // block), words, kept)
    words |= {at.ROWS: rows, at.BLOCK_ROWS: places}
    scratch = 4 * places * (16 + inputs) + 64
    return Kernel("sparse", (data,), (output,), -(-rows // places), words, kept, scratch)


def _weights(op: Op) -> tuple[Floats, Floats]:
    """Weights as (channels, inputs), and a bias."""
    weights = constant_numbers(op.inputs[1])
    if weights is None or weights.dtype != np.float32:
        raise CannotApply(f"{op.outputs[0].name!r} has no constant float32 weights")
    options = options_or_defaults(op.kind, op.options)
    if op.kind == "FULLY_CONNECTED" and options.word("weights_format") != "DEFAULT":
        raise CannotApply(f"{op.outputs[0].name!r} has shuffled weights")
    if op.kind == "CONV_2D":
        strides = options.integer("stride_h"), options.integer("stride_w")
        if (*weights.shape[1:3], *strides) != (1, 1, 1, 1):
            raise CannotApply(f"{op.outputs[0].name!r} is no convolution of 1×1 with stride 1")
    data = op.inputs[0]
    if op.kind == "CONV_2D" and data is not None and data.shape[3] != weights.shape[3]:
        raise CannotApply(f"{op.outputs[0].name!r}: convolutions in groups have no kernel here")
    flat = weights.reshape(weights.shape[0], -1)
    given = op.inputs[2] if len(op.inputs) > 2 else None
    bias = np.zeros(len(flat), np.float32) if given is None else constant_numbers(given)
    if bias is None or bias.dtype != np.float32:
        raise CannotApply(f"{op.outputs[0].name!r} has no constant float32 bias")
    if options.word("fused_activation_function") not in _SPANS:
        raise CannotApply(f"{op.outputs[0].name!r} has an activation without a kernel here")
    return flat, bias


def packed_blocks(
    weights: Floats, input_bytes: int, group: int
) -> tuple[NDArray[np.uint32], Floats, NDArray[np.int64]]:
    """Byte offsets of blocks that are not zero, their weights, and where each channel begins.

    A channel has a multiple of `group` of them, and at least one: blocks of zeros fill up.
    """
    blocks = weights.reshape(len(weights), -1, _BLOCK)
    found = [np.flatnonzero(row) for row in np.any(blocks, axis=2)]
    counts = [max(-(-len(places) // group), 1) * group for places in found]
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    offsets = np.zeros(begins[-1], np.uint32)
    packed = np.zeros((begins[-1], _BLOCK), np.float32)
    for channel, places in enumerate(found):
        span = slice(begins[channel], begins[channel] + len(places))
        offsets[span] = places * (_BLOCK * input_bytes)
        packed[span] = blocks[channel, places]
    return offsets, packed, begins

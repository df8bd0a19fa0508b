"""Layers with weights that are mostly zero, prepared."""

from __future__ import annotations

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Array, Op
from litesmith.kernels.programs import record_layout as at
from litesmith.kernels.programs.pack_weights import (
    LANES,
    MOST_VECTORS,
    pack_blocks,
    pack_rounds,
)
from litesmith.kernels.programs.program import Kernel, align
from litesmith.kernels.programs.sparse_parts import (
    BLOCK,
    FEW,
    SPANS,
    codes_of,
    sparse_facts,
    sparse_parts,
)
from litesmith.phrases import phrase

DENSE = phrase("too few blocks of four of its weights are zero: XNNPACK is as fast")

_GROUP = 8  # blocks that a round of `tiles_sparse.sparse_row` takes
_UNIT = 50_000  # products of a unit

# Of int8: vectors of 16 rows of a unit, and bytes of turned inputs that stay in the nearest cache;
# units at the least, so that there is work for some threads; rounds of a unit of a few rows.
_VECTORS, _NEAR = 4, 32_768
_UNITS = 4
_ROUNDS = 1_000


def worthwhile_layer(op: Op) -> Kernel:
    """The kernel of a layer; raises where its dense one is as fast."""
    if sparse_facts(op).gain <= 1:
        raise CannotApply(DENSE)
    return sparse_layer(op)


def sparse_layer(op: Op) -> Kernel:
    """A convolution of 1×1 or a fully connected layer; zero blocks of four inputs cost nothing."""
    facts = sparse_facts(op)
    weights, bias = sparse_parts(op)
    is_float, is_few = facts.dtype == "float32", facts.rows < FEW
    if is_float:
        return (_float_row if is_few else _float)(op, weights, bias, facts.rows)
    return (_int8_row if is_few else _int8)(op, weights, bias, facts.rows)


def _float(op: Op, weights: Array, bias: Array, rows: int) -> Kernel:
    channels, inputs = weights.shape
    places = places_of(rows, inputs)
    packed = pack_blocks(weights, 4 * places)
    names = at.NUMBERS, at.WEIGHTS, at.BEGINS, at.BIAS, at.LIMITS
    constants = dict(zip(names, (*packed, bias, _limits(op)), strict=True))
    words = {at.INPUTS: inputs, at.CHANNELS: channels, at.ROWS: rows, at.BLOCK_ROWS: places}
    scratch = 4 * places * (16 + inputs) + 64
    return _kernel("sparse", op, -(-rows // places), words, constants, scratch)


def places_of(rows: int, inputs: int) -> int:
    """The number of rows in a unit: its transposed inputs should stay in the nearest cache."""
    return 64 if rows >= 64 and inputs <= 128 else 32 if rows >= 32 else 16


def _float_row(op: Op, weights: Array, bias: Array, rows: int) -> Kernel:
    channels, inputs = weights.shape
    packed = pack_blocks(weights, 4, _GROUP)
    names = at.NUMBERS, at.WEIGHTS, at.BEGINS, at.BIAS, at.LIMITS
    constants = dict(zip(names, (*packed, bias, _limits(op)), strict=True))
    block = max(-(-_UNIT * channels // (packed.weights.size * rows)), 1)
    words = {at.INPUTS: inputs, at.CHANNELS: channels}
    words |= {at.ROWS: channels, at.BLOCK_ROWS: block, at.BLOCKS: rows}
    return _kernel("sparse_row", op, -(-channels // block), words, constants)


def _limits(op: Op) -> Array:
    options = options_or_defaults(op.kind, op.options)
    return np.array(SPANS[options.word("fused_activation_function")], np.float32)


def _int8(op: Op, weights: Array, bias: Array, rows: int) -> Kernel:
    channels, inputs = weights.shape
    vectors, whole = vectors_of(rows, inputs), -(-rows // LANES)
    packed, codes = pack_blocks(weights, LANES * vectors), codes_of(op, weights, bias)
    names = at.NUMBERS, at.WEIGHTS, at.BEGINS, at.BIAS, at.SCALES, at.LIMITS
    constants = dict(zip(names, (*packed, *codes), strict=True))
    words = {at.INPUTS: inputs, at.CHANNELS: channels}
    spans = -(-whole // vectors)
    parts = min(-(-_UNITS // spans), -(-channels // LANES))
    words |= {at.ROWS: whole, at.BLOCK_ROWS: vectors, at.BLOCKS: rows, at.PARTS: parts}
    scratch = 4 * LANES * vectors * (LANES + inputs // BLOCK) + 64
    return _kernel("sparse_int8", op, spans * parts, words, constants, scratch)


def vectors_of(rows: int, inputs: int) -> int:
    """Vectors of 16 rows that a unit has: much at once, as even as can be."""
    whole = -(-rows // LANES)
    most = min(max(_NEAR // (LANES * inputs), _VECTORS), MOST_VECTORS)
    return -(-whole // -(-whole // most))


def _int8_row(op: Op, weights: Array, bias: Array, rows: int) -> Kernel:
    channels, inputs = weights.shape
    packed, codes = pack_rounds(weights), codes_of(op, weights, bias)
    names = at.NUMBERS, at.PLACES, at.WEIGHTS, at.BEGINS, at.BIAS, at.SCALES, at.LIMITS
    constants = dict(zip(names, (*packed, *codes), strict=True))
    groups = len(packed.begins) - 1
    block = max(-(-_ROUNDS * groups // (len(packed.offsets) * rows)), 1)
    words = {at.INPUTS: inputs, at.CHANNELS: channels}
    words |= {at.ROWS: groups, at.BLOCK_ROWS: block, at.BLOCKS: rows}
    return _kernel("sparse_int8_row", op, -(-groups // block), words, constants)


def _kernel(
    kind: str,
    op: Op,
    units: int,
    words: dict[int, int],
    constants: dict[int, Array],
    scratch: int = 0,
) -> Kernel:
    data = op.inputs[0]
    assert data is not None
    aligned = {place: align(array) for place, array in constants.items()}
    return Kernel(kind, (data,), op.outputs, units, words, aligned, scratch)

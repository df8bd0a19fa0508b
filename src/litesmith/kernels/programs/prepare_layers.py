"""Layers of int16 data and int8 weights, prepared: packed weights, tables, records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Array, Op, Quant, Record, Tensor, constant_numbers
from litesmith.ir.window import pads, slid_size, slides
from litesmith.kernels.programs import record_layout as at
from litesmith.kernels.programs.pack_weights import (
    DEPTHWISE_ORDER,
    Packed,
    depthwise_starts,
    pack_dense,
    pack_depthwise,
)
from litesmith.kernels.programs.program import Kernel, align
from litesmith.kernels.programs.rescale import (
    DOUBLE,
    FIXED,
    double_table,
    fixed_table,
    laid_out,
    limits,
)
from litesmith.native.compile import machine

# The least number of products in a unit of work: about 10 µs, some hundred times the cost of
# fetching it.
_UNIT = 1_000_000
# Bytes of gathered rows that stay in the nearest cache while panels pass by.
_GATHERED = 48_000


def scale_of(tensor: Tensor) -> float:
    """The single scale of int16 data, whose zero point is always zero."""
    quant = plain_quant(tensor)
    if tensor.dtype != "int16" or quant.scale.size != 1 or quant.zero_point.any():
        raise CannotApply("{name!r} is not int16 data with one scale around zero", tensor.name)
    return float(quant.scale[0])


def plain_quant(tensor: Tensor) -> Quant:
    if tensor.quant is None or tensor.quant.block is not None or not tensor.quant.scale.size:
        raise CannotApply("{name!r} has no scale", tensor.name)
    return tensor.quant


def parts(op: Op) -> tuple[Tensor, Tensor, NDArray[np.int8], NDArray[np.int64]]:
    """Data, output, weights and bias of a layer."""
    data, weight, *rest = op.inputs
    if data is None or weight is None:
        raise CannotApply("{kind} without data or weights", op.kind)
    values = constant_numbers(weight)
    if values is None or weight.dtype != "int8" or plain_quant(weight).zero_point.any():
        raise CannotApply("{name!r} is not a constant of int8 around zero", weight.name)
    bias = rest[0] if rest else None
    if bias is None:
        return data, op.outputs[0], values, np.zeros(0, np.int64)
    numbers = constant_numbers(bias)
    if numbers is None or bias.dtype != "int64":
        raise CannotApply("{name!r} is not a constant of int64", bias.name)
    return data, op.outputs[0], values, numbers


def channel_scales(op: Op, channels: int) -> list[float]:
    """From steps of products to steps of the output, a channel each, as the runtime computes it."""
    data, weight = op.inputs[0], op.inputs[1]
    assert data is not None and weight is not None
    step, out = scale_of(data), scale_of(op.outputs[0])
    scales = plain_quant(weight).scale
    if scales.size not in (1, channels):
        raise CannotApply(
            "{name!r} has {size} scales for {channels} channels", weight.name, scales.size, channels
        )
    return [step * float(s) / out for s in np.broadcast_to(scales, (channels,))]


def full_bias(bias: NDArray[np.int64], channels: int) -> NDArray[np.int64]:
    return bias if bias.size else np.zeros(channels, np.int64)


def window_words(options: Record, data: Tensor, window: Sequence[int]) -> dict[int, int]:
    """The words of a window that slides over an image."""
    _, height, width, depth = data.shape
    y, x = slides(options, window)
    padding = options.word("padding")
    sizes = [slid_size(padding, size, slide) for size, slide in ((height, y), (width, x))]
    before = [pads(padding, size, slide)[0] for size, slide in ((height, y), (width, x))]
    words = (height, width, depth, *window, y.stride, x.stride, y.dilation, x.dilation)
    return dict(zip(range(at.HEIGHT, at.OUT_W + 1), (*words, *before, *sizes), strict=True))


def conv_2d(op: Op) -> list[Kernel]:
    data, output, weights, bias = parts(op)
    channels, inputs, window = weights.shape[0], weights.shape[3], list(weights.shape[1:3])
    if inputs != data.shape[3]:
        raise CannotApply("{name!r}: convolutions in groups have no kernel here", output.name)
    options = options_or_defaults(op.kind, op.options)
    words = window_words(options, data, window)
    rows = data.shape[0] * words[at.OUT_H] * words[at.OUT_W]
    is_plain = window == [1, 1] and words[at.STRIDE_H] == words[at.STRIDE_W] == 1
    table = fixed_table(channel_scales(op, channels), full_bias(bias, channels))
    words |= _limit_words(options, output) | {at.FINISH: FIXED}
    flat = weights.reshape(channels, -1)
    return [_product(op, flat, table, words, rows=rows, in_place=is_plain)]


def fully_connected(op: Op) -> list[Kernel]:
    data, output, weights, bias = parts(op)
    channels, inputs = weights.shape
    options = options_or_defaults(op.kind, op.options)
    if options.word("weights_format") != "DEFAULT":
        raise CannotApply("{name!r}: shuffled weights have no kernel here", output.name)
    rows = data.elements // inputs
    one = (1, 1, inputs, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1)
    words: dict[int, int] = dict(zip(range(at.HEIGHT, at.OUT_W + 1), one, strict=True))
    words |= _limit_words(options, output) | {at.FINISH: DOUBLE}
    table = double_table(channel_scales(op, channels), full_bias(bias, channels))
    return [_product(op, weights, table, words, rows=rows, in_place=True)]


def _limit_words(options: Record, output: Tensor) -> dict[int, int]:
    low, high = limits(options.word("fused_activation_function"), scale_of(output))
    return {at.LOW: low, at.HIGH: high}


def _product(
    op: Op,
    weights: NDArray[np.int8],
    table: Array,
    words: dict[int, int],
    *,
    rows: int,
    in_place: bool,
) -> Kernel:
    """Rows of data times weights. An odd number of inputs has its rows gathered, to pad them."""
    cpu = machine()
    channels, inputs = weights.shape
    in_place = in_place and inputs % 2 == 0
    tile = cpu.rows if rows >= cpu.rows else 1
    pack = _packed(op, weights, narrow=tile == 1)
    row_bytes = 4 * -(-inputs // 2)
    products = inputs * (cpu.vectors * 16 if in_place else channels)
    most = rows if in_place else _GATHERED // row_bytes
    block = min(_tiles(rows, tile, products, most) * tile, rows)
    blocks = -(-rows // block)
    constants = {at.WEIGHTS: pack.weights, at.TABLE: align(laid_out(table)), at.CUTS: pack.cuts}
    own = {
        at.CUT_WORDS: pack.cuts.shape[1],
        at.PANELS: pack.panels,
        at.PANEL_BYTES: pack.panel_bytes,
        at.ROWS: rows,
        at.BLOCKS: blocks,
        at.BLOCK_ROWS: block,
        at.INPUTS: inputs,
        at.CHANNELS: channels,
        at.IN_PLACE: int(in_place),
    }
    units = blocks * pack.panels if in_place else blocks
    scratch = 0 if in_place else block * row_bytes + 64
    calls = {at.ROWS_CALL: "one_row" if tile == 1 else "many_rows"}
    return Kernel(
        "product", _data(op), op.outputs, units, words | own, constants, scratch, calls, pack
    )


# Steps of a recurrence share a weight, and thus one copy of it in the order of the tiles: a copy
# that fits the last cache is read from memory once instead of once per step.
_shared: WeakValueDictionary[tuple[Tensor, bool], Packed] = WeakValueDictionary()


def _packed(op: Op, weights: NDArray[np.int8], *, narrow: bool) -> Packed:
    assert op.inputs[1] is not None
    key = op.inputs[1], narrow
    found = _shared.get(key)
    if found is None:
        pack = pack_dense(weights, machine().vectors, narrow=narrow)
        found = replace(pack, weights=align(pack.weights), cuts=align(pack.cuts))
        _shared[key] = found
    return found


def _data(op: Op) -> tuple[Tensor, ...]:
    assert op.inputs[0] is not None
    return (op.inputs[0],)


def _tiles(rows: int, tile: int, products_of_row: int, most: int) -> int:
    """Tiles of a unit: enough work to be worth taking, and few that are computed twice."""
    all_tiles = -(-rows // tile)
    wanted = -(-_UNIT // (products_of_row * tile))
    counts = range(max(wanted // 2, 1), min(2 * wanted, max(most // tile, 1)) + 1)
    return min(
        counts or [max(most // tile, 1)], key=lambda count: (-(-all_tiles // count) * count, -count)
    )


def depthwise_conv_2d(op: Op) -> list[Kernel]:
    data, output, weights, bias = parts(op)
    _, *window, channels = weights.shape
    options = options_or_defaults(op.kind, op.options)
    words = window_words(options, data, window) | _limit_words(options, output)
    words[at.DEPTH] = channels
    taps = weights.reshape(-1, channels)
    if taps.shape[0] > 512:
        raise CannotApply(
            "{name!r}: a window of {shape} places is too large", output.name, taps.shape[0]
        )
    table = fixed_table(channel_scales(op, channels), full_bias(bias, channels))
    before = _repeated(data, channels)
    source = before[-1].outputs if before else (data,)
    return [*before, _depthwise(source, op.outputs, taps, table, words)]


def _depthwise(
    source: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    taps: NDArray[np.int8],
    table: Array,
    words: dict[int, int],
) -> Kernel:
    channels = taps.shape[1]
    starts = depthwise_starts(channels) or [0]
    beside = 32 // channels if channels < 32 else 1
    if 32 % channels or words[at.STRIDE_W] > 1:
        beside = 1
    wide = np.zeros((taps.shape[0], max(channels, 32)), np.int8)
    wide[:, : channels * beside] = np.tile(taps, beside)
    rows = np.zeros((3, wide.shape[1]), np.int64)
    rows[:, : channels * beside] = np.tile(table, beside)
    blocks = [pack_depthwise(wide[:, s : s + 32]) for s in starts]
    tables = [laid_out(rows[:, s : s + 32], DEPTHWISE_ORDER) for s in starts]
    arrays = np.stack(blocks), np.stack(tables), np.array(starts), np.zeros(channels + 32, np.int16)
    names = at.WEIGHTS, at.TABLE, at.STARTS, at.ZEROS
    constants = dict(zip(names, map(align, arrays), strict=True))
    lines = outputs[0].shape[0] * words[at.OUT_H]
    per_line = words[at.OUT_W] * channels * taps.shape[0]
    block = min(max(_UNIT // 4 // per_line, 1), lines)
    pairs = -(-taps.shape[0] // 2)
    words = words | {at.STARTS_COUNT: len(starts), at.PAIRS: pairs, at.BESIDE: beside}
    words |= {at.ROWS: lines, at.BLOCK_ROWS: block}
    scratch = 64 * (2 * pairs + 4)
    return Kernel("depthwise", source, outputs, -(-lines // block), words, constants, scratch)


def _repeated(data: Tensor, channels: int) -> list[Kernel]:
    """Each channel as often as it has outputs, where that is more than once."""
    depth = data.shape[3]
    if channels == depth:
        return []
    wide = Tensor(f"{data.name}_repeated", (*data.shape[:3], channels), "int16", quant=data.quant)
    block = 1 << 14
    words = {at.ROWS: data.elements, at.BLOCK_ROWS: block, at.INNER: channels // depth}
    return [Kernel("repeat", (data,), (wide,), -(-data.elements // block), words)]

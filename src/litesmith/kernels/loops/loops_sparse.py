"""Sparse layers: rows times weights that are zero in most blocks of four inputs.

A unit is a few vectors of places. Its inputs are transposed, so that a vector is one input at 16
places, which one weight multiplies. int8 layers end as XNNPACK's do on x86: data is multiplied as
unsigned bytes, its zero point moved by 128, and the sums begin with the correction for that.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# llvmlite and numba leave parts of their types open.

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir  # pyright: ignore[reportMissingImports]
from numba import types  # pyright: ignore[reportMissingImports]

from litesmith.kernels.loops.loops_values import buffer, span_of
from litesmith.kernels.programs import record_layout as at
from litesmith.kernels.programs.pack_weights import MOST_VECTORS
from litesmith.native import emit_llvm as emit
from litesmith.native.emit_llvm import F32, I8, I32, I64, LANES, Value, load, store, vec
from litesmith.native.tiles import CPU, Loop, compiled, int64_at, native, word


def sparse_tile(vectors: int) -> Callable[..., int]:
    """One output channel of 16 × `vectors` places: the sum of its blocks of four inputs.

    Each of the four has sums of its own, so that none waits for another.
    (x as inputs × places, input bytes, byte offsets of blocks, weights, blocks, bias address, out)
    """

    def emitted(given: Sequence[Value]) -> None:
        x, x_row, offsets, weights, count, bias, out = given
        zero = emit.constant(x.b, vec(F32), [0.0] * LANES)
        start = load(bias, F32).splat()
        loop = Loop(count, [start] * vectors + [zero] * (3 * vectors))
        row = x + load(offsets + loop.round * 4, I32).convert("zext", I64)
        sums: list[Value] = []
        for place in range(4):
            weight = load(weights + loop.round * 16, F32, 4 * place).splat()
            for vector in range(vectors):
                values = load(row, vec(F32), 64 * vector, align=64)
                sums.append(_fused(values, weight, loop.values[len(sums)]))
            row = row + x_row
        loop.end(sums)
        for vector in range(vectors):
            a, b, c, d = sums[vector::vectors]
            store((a + b) + (c + d), out, 64 * vector)

    return native(7, types.void, emitted)


_GROUP = 8  # blocks of four inputs that a round of `sparse_row` takes


def _emit_sparse_row(given: Sequence[Value]) -> None:
    """One output of one row: the sum of its blocks of four inputs, eight a round, limited.

    (x, byte offsets of blocks, weights, rounds, bias address, address of the limits, out)
    """
    x, offsets, weights, rounds, bias, limits, out = given
    zero = emit.constant(x.b, vec(F32), [0.0] * LANES)
    loop = Loop(rounds, [zero, zero])
    sums: list[Value] = []
    for half in range(2):
        parts: list[Value] = []
        for place in range(4 * half, 4 * half + 4):
            offset = load(offsets + loop.round * (4 * _GROUP), I32, 4 * place)
            parts.append(load(x + offset.convert("zext", I64), vec(F32, 4)))
        pairs = [a.picked(range(8), c) for a, c in (parts[:2], parts[2:])]
        values = pairs[0].picked(range(16), pairs[1])
        weight = load(weights + loop.round * (16 * _GROUP), vec(F32), 64 * half)
        sums.append(_fused(values, weight, loop.values[half]))
    loop.end(sums)
    total = sums[0] + sums[1]
    while total.type.count > 1:
        middle = total.type.count // 2
        total = total.picked(range(middle)) + total.picked(range(middle, 2 * middle))
    number = Value(x.b, x.b.extract_element(total.value, ir.Constant(I32, 0)))
    low, high = (load(limits, F32, 4 * side) for side in (0, 1))
    store((number + load(bias, F32)).clamped(low, high), out)


def _fused(a: Value, c: Value, total: Value) -> Value:
    return emit.call(f"llvm.fma.v{a.type.count}f32", a.type, a, c, total)


def _turner(element: ir.Type, finish: Callable[[Value], Value]) -> Callable[..., int]:
    """(x, row bytes, out, row bytes): 16 × 16 numbers, rows become columns, which are finished."""

    def emitted(given: Sequence[Value]) -> None:
        x, x_row, out, out_row = given
        rows = [load(x + x_row * row, vec(element)) for row in range(LANES)]
        for distance in (1, 2, 4, 8):
            rows = _mix(rows, distance)
        for row, value in enumerate(rows):
            store(finish(value), out + out_row * row)

    return native(4, types.void, emitted)


def _mix(rows: list[Value], distance: int) -> list[Value]:
    """Swaps the squares of that size which lie off the diagonal."""
    turned = list(rows)
    low = [p if not p & distance else p - distance + LANES for p in range(LANES)]
    high = [p + distance if not p & distance else p + LANES for p in range(LANES)]
    for row in range(len(rows)):
        if not row & distance:
            a, c = rows[row], rows[row + distance]
            turned[row], turned[row + distance] = a.picked(low, c), a.picked(high, c)
    return turned


def _emit_clamp(given: Sequence[Value]) -> None:
    """(address, vectors, address of the limits): float32 kept between two numbers, in place."""
    at, count, limits = given
    loop = Loop(count, [])
    where = at + loop.round * 64
    low, high = (load(limits, F32, 4 * side).splat() for side in (0, 1))
    store(load(where, vec(F32)).clamped(low, high), where)
    loop.end([])


sparse_row = native(7, types.void, _emit_sparse_row)
turn_tile = _turner(F32, lambda value: value)
clamp_floats = native(3, types.void, _emit_clamp)  # (address, vectors, address of the limits)

_FOUR, _TWO, _ONE = sparse_tile(4), sparse_tile(2), sparse_tile(1)


def sparse_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Some places, all channels, 16 at a time; the last of each overlap the ones before."""
    places, rows = word(op, at.BLOCK_ROWS), word(op, at.ROWS)
    inputs, channels = word(op, at.INPUTS), word(op, at.CHANNELS)
    first = min(unit * places, rows - places)
    x = buffer(op, at.IN, buffers) + 4 * first * inputs
    out = buffer(op, at.OUT, buffers) + 4 * first * channels
    sums, turned = scratch + at.TILE_SCRATCH, scratch + at.TILE_SCRATCH + 64 * places
    for begin in range(0, inputs, 16):
        column = min(begin, inputs - 16)
        for place in range(0, places, 16):
            source, to = x + 4 * (place * inputs + column), turned + 4 * (column * places + place)
            turn_tile(source, 4 * inputs, to, 4 * places)
    for begin in range(0, channels, 16):
        channel = min(begin, channels - 16)
        for number in range(16):
            sum_channel(op, channel + number, turned, sums + 4 * places * number)
        clamp_floats(sums, places, word(op, at.LIMITS))
        for place in range(0, places, 16):
            to = out + 4 * (place * channels + channel)
            turn_tile(sums + 4 * place, 4 * places, to, 4 * channels)


@compiled
def sum_channel(op: int, channel: int, x: int, out: int) -> None:
    begins = word(op, at.BEGINS) + 8 * channel
    begin, places = int64_at(begins), word(op, at.BLOCK_ROWS)
    count = int64_at(begins + 8) - begin
    offsets, weights = word(op, at.NUMBERS) + 4 * begin, word(op, at.WEIGHTS) + 16 * begin
    bias = word(op, at.BIAS) + 4 * channel
    if places == 64:
        _FOUR(x, 256, offsets, weights, count, bias, out)
    elif places == 32:
        _TWO(x, 128, offsets, weights, count, bias, out)
    else:
        _ONE(x, 64, offsets, weights, count, bias, out)


def sparse_row_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Some channels of a few rows, read in place."""
    first, last = span_of(op, unit)
    x, out = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers)
    begins, limits = word(op, at.BEGINS), word(op, at.LIMITS)
    x_row, out_row = 4 * word(op, at.INPUTS), 4 * word(op, at.CHANNELS)
    for channel in range(first, last):
        begin = int64_at(begins + 8 * channel)
        rounds = (int64_at(begins + 8 * channel + 8) - begin) // 8
        offsets, weights = word(op, at.NUMBERS) + 4 * begin, word(op, at.WEIGHTS) + 16 * begin
        bias = word(op, at.BIAS) + 4 * channel
        for row in range(word(op, at.BLOCKS)):
            to = out + row * out_row + 4 * channel
            sparse_row(x + row * x_row, offsets, weights, rounds, bias, limits, to)


_ENOUGH = 4  # so many sums can be added to at once; with fewer, one waits for another

# Added to a small number, it leaves the nearest integer in the low bits, halves to the even one.
_ROUNDING = float(3 << 22)
_FROM_ZERO = -0x7F7F7F80  # int8 codes in a word of four, as bytes from 0: their highest bits turned


def _emit_channel(given: Sequence[Value]) -> None:
    """One output channel of 16 × `vectors` places: its blocks of four inputs, rescaled.

    (x as words × places, byte offsets of blocks, weights, blocks, address of the first sum, of the
    scale, of the limits, out, vectors)
    """
    *shared, count = given
    for vectors in range(1, MOST_VECTORS + 1):
        equal = count.b.icmp_signed("==", count.value, count.of(vectors))
        with count.b.if_then(equal):
            _channel(shared, vectors)


def _channel(given: Sequence[Value], vectors: int) -> None:
    x, offsets, weights, count, start, scale, limits, out = given
    sums = _block_sums((x, offsets, weights, count, start), vectors, 1 if vectors >= _ENOUGH else 2)
    factor = load(scale, F32).splat()
    for vector, total in enumerate(sums):
        store(_rescaled(total, factor, limits), out, 64 * vector)


def _block_sums(given: Sequence[Value], vectors: int, sets: int) -> list[Value]:
    """The sums of all blocks; with two sets of sums, those of every other block."""
    x, offsets, weights, count, start = given
    zero = emit.constant(x.b, I32, 0)
    starts = [load(start, I32).splat(), zero.splat()][:sets]
    rounds = (count + (sets - 1)) >> (sets - 1)
    loop = Loop(rounds, [first for first in starts for _ in range(vectors)])
    sums: list[Value] = []
    for own in range(sets):
        number = loop.round * sets + own
        row = x + load(offsets + number * 4, I32).convert("zext", I64)
        weight = load(weights + number * 4, I32)
        weight = (number < count).where(weight, zero) if own else weight
        for vector in range(vectors):
            values = load(row, vec(I32), 64 * vector, align=64)
            sums.append(emit.dot_fours(CPU, loop.values[len(sums)], values, weight.splat()))
    loop.end(sums)
    return sums if sets == 1 else [a + b for a, b in zip(sums, sums[vectors:], strict=False)]


def _rescaled(total: Value, factor: Value, limits: Value) -> Value:
    """Codes in the low bytes of 16 words. The limits lie there as they are without zero point."""
    low, high = (load(limits, F32, 4 * side).splat() for side in (0, 1))
    small = (total.convert("sitofp", F32) * factor).clamped(low, high)
    return (small + _ROUNDING).bits(vec(I32)) + load(limits, I32, 8).splat()


def _emit_bytes(given: Sequence[Value]) -> None:
    """(words, bytes from channel to channel, out, row bytes): the low bytes of 16 channels at 16
    places, as 16 rows of 16 bytes."""
    words, step, out, out_row = given
    rows = [_packed(words + step * (4 * number), step) for number in range(4)]
    for distance in (1, 2):
        rows = _mix(rows, distance)
    for place in range(LANES):
        four = range(place // 4 * 4, place // 4 * 4 + 4)
        store(rows[place % 4].picked(four), out + out_row * place)


def _packed(words: Value, step: Value) -> Value:
    """The low bytes of four vectors, side by side."""
    a, b, c, d = (load(words + step * number, vec(I32)) for number in range(4))
    return ((a & 0xFF) | ((b & 0xFF) << 8)) | (((c & 0xFF) << 16) | (d << 24))


def _from_zero(codes: Value) -> Value:
    return Value(codes.b, codes.b.xor(codes.value, codes.of(_FROM_ZERO)))


def _emit_group(given: Sequence[Value]) -> None:
    """16 output channels of one row: in each round each has a block among 32 that lie together.

    (x, byte offsets of these, 16 places in each, weights, rounds, first sums, scales, limits, out)
    """
    x, offsets, places, weights, rounds, starts, scales, limits, out = given
    loop = Loop(rounds, [load(starts, vec(I32))])
    row = x + load(offsets + loop.round * 4, I32).convert("zext", I64)
    place = load(places + loop.round * 16, vec(I8)).convert("zext", I32)
    values = _from_zero(emit.pick_words(CPU, row, place))
    weight = load(weights + loop.round * 64, vec(I32))
    sums = [emit.dot_fours(CPU, loop.values[0], values, weight)]
    loop.end(sums)
    codes = _rescaled(sums[0], load(scales, vec(F32)), limits)
    store(codes.convert("trunc", I8), out)


sparse_channel = native(9, types.void, _emit_channel)
put_bytes = native(4, types.void, _emit_bytes)
turn_codes = _turner(I32, _from_zero)
sparse_group = native(9, types.void, _emit_group)


def sparse_int8_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Some vectors of 16 places, some channels, 16 at a time; the last overlap the ones before.

    Words of four inputs are turned, so that a vector is one word at 16 places.
    """
    inputs, channels, rows = word(op, at.INPUTS), word(op, at.CHANNELS), word(op, at.BLOCKS)
    parts, groups = word(op, at.PARTS), (channels + 15) // 16
    first, last = span_of(op, unit // parts)
    part, wide = unit % parts, 64 * word(op, at.BLOCK_ROWS)
    x, out = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers)
    codes, turned = scratch + at.TILE_SCRATCH, scratch + at.TILE_SCRATCH + 16 * wide
    for vector in range(first, last):
        source = x + min(16 * vector, rows - 16) * inputs
        for begin in range(0, inputs, 64):
            column = min(begin, inputs - 64)
            to = turned + 64 * (vector - first) + column // 4 * wide
            turn_codes(source + column, inputs, to, wide)
    for group in range(groups * part // parts, groups * (part + 1) // parts):
        channel = min(16 * group, channels - 16)
        for number in range(16):
            sum_channel_int8(op, channel + number, turned, codes + wide * number, last - first)
        for vector in range(first, last):
            to = out + min(16 * vector, rows - 16) * channels + channel
            put_bytes(codes + 64 * (vector - first), wide, to, channels)


@compiled
def sum_channel_int8(op: int, channel: int, x: int, out: int, vectors: int) -> None:
    begins = word(op, at.BEGINS) + 8 * channel
    begin = int64_at(begins)
    count = int64_at(begins + 8) - begin
    offsets, weights = word(op, at.NUMBERS) + 4 * begin, word(op, at.WEIGHTS) + 4 * begin
    start, scale = word(op, at.BIAS) + 4 * channel, word(op, at.SCALES) + 4 * channel
    sparse_channel(x, offsets, weights, count, start, scale, word(op, at.LIMITS), out, vectors)


def sparse_int8_row_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Some groups of 16 channels of a few rows, read in place; the last group overlaps."""
    inputs, channels = word(op, at.INPUTS), word(op, at.CHANNELS)
    first, last = span_of(op, unit)
    x, out = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers)
    begins, limits, blocks = word(op, at.BEGINS), word(op, at.LIMITS), word(op, at.BLOCKS)
    for group in range(first, last):
        begin = int64_at(begins + 8 * group)
        rounds = int64_at(begins + 8 * group + 8) - begin
        offsets, weights = word(op, at.NUMBERS) + 4 * begin, word(op, at.WEIGHTS) + 64 * begin
        places, channel = word(op, at.PLACES) + 16 * begin, min(16 * group, channels - 16)
        start, scale = word(op, at.BIAS) + 4 * channel, word(op, at.SCALES) + 4 * channel
        for row in range(blocks):
            source, to = x + row * inputs, out + row * channels + channel
            sparse_group(source, offsets, places, weights, rounds, start, scale, limits, to)

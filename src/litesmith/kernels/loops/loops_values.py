"""Ops without weights: loops over rows, and their tiles of 16 elements."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# llvmlite and numba leave parts of their types open.

from __future__ import annotations

from collections.abc import Sequence

from numba import types  # pyright: ignore[reportMissingImports]

from litesmith.kernels.programs import record_layout as at
from litesmith.native import emit_llvm as emit
from litesmith.native.emit_llvm import F32, F64, I16, I32, I64, LANES, Value, load, store, vec
from litesmith.native.tiles import (
    compiled,
    copy_bytes,
    int16_at,
    int32_at,
    int64_at,
    native,
    put_int16,
    put_int32,
    word,
    zero_bytes,
)


def _shorts(address: Value) -> Value:
    return load(address, vec(I16)).convert("sext", I32)


def _emit_add(given: Sequence[Value]) -> None:
    """(a, b, out, table): 16 sums of two int16 at scales of their own; see `rescale.sum_words`."""
    a, c, out, table = given
    words = [load(table, I64, 8 * place) for place in range(14)]
    terms = [
        _scaled_by(_shorts(side), words[4 * place : 4 * place + 4])
        for place, side in enumerate((a, c))
    ]
    signed = terms[1] * emit.splat32(words[13])
    result = _scaled_by(terms[0] + signed, words[8:12])
    store(_limited(result, words[12]), out)


def _emit_multiply(given: Sequence[Value]) -> None:
    """(a, b, out, table): 16 products of two int16; see `rescale.product_words`."""
    a, c, out, table = given
    words = [load(table, I64, 8 * place) for place in range(5)]
    result = _scaled_by(_shorts(a) * _shorts(c), words[:4])
    store(_limited(result, words[4]), out)


def _scaled_by(value: Value, words: Sequence[Value]) -> Value:
    multiplier, left, down, right = words
    moved = (value << emit.splat32(left)) >> emit.splat32(down)
    return emit.scaled(moved, multiplier.splat(8), emit.splat32(right))


def _limited(value: Value, limits: Value) -> Value:
    """Kept between two int32 that lie in one int64, the lowest in the low half."""
    low, high = emit.splat32(limits), emit.splat32(limits >> 32)
    return value.clamped(low, high).convert("trunc", I16)


def _emit_quantize(given: Sequence[Value]) -> None:
    """(x, out, address of the scale): 16 float32 as int16, divided in double precision."""
    x, out, table = given
    scale = load(table, F64).splat(8)
    parts = [
        emit.rounded(load(x, vec(F32, 8), 32 * half).convert("fpext", F64) / scale)
        for half in range(2)
    ]
    whole = parts[0].picked(range(16), parts[1])
    low, high = (emit.constant(x.b, vec(I32), [limit] * LANES) for limit in (-32768, 32767))
    store(whole.clamped(low, high).convert("trunc", I16), out)


def _emit_multiply_by(given: Sequence[Value]) -> None:
    """(x, out, address of the scale): 16 float32 times 1 / scale as int16, halves to even."""
    x, out, table = given
    product = load(x, vec(F32)) * load(table, F32, 8).splat()
    near = emit.call("llvm.roundeven.v16f32", product.type, product)
    whole = emit.to_int32(near)
    low, high = (emit.constant(x.b, vec(I32), [limit] * LANES) for limit in (-32768, 32767))
    store(whole.clamped(low, high).convert("trunc", I16), out)


def _emit_dequantize(given: Sequence[Value]) -> None:
    """(x, out, address of the scale): 16 int16 as float32."""
    x, out, table = given
    store(_shorts(x).convert("sitofp", F32) * load(table, F32, 8).splat(), out)


add_tile = native(4, types.void, _emit_add)
multiply_tile = native(4, types.void, _emit_multiply)
quantize_tile = native(3, types.void, _emit_quantize)
multiply_by_tile = native(3, types.void, _emit_multiply_by)
dequantize_tile = native(3, types.void, _emit_dequantize)


@compiled
def buffer(op: int, place: int, buffers: int) -> int:
    """The address of the buffer that a word names."""
    return int64_at(buffers + 8 * int64_at(op + 8 * place))


@compiled
def span_of(op: int, unit: int) -> tuple[int, int]:
    """The rows of a unit: its share of all."""
    first = unit * word(op, at.BLOCK_ROWS)
    return first, min(first + word(op, at.BLOCK_ROWS), word(op, at.ROWS))


def two_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Rows of sums or products; rows are found by counting through the outer sizes.

    A flat op is one long row, of which a unit is a piece.
    """
    first, last = span_of(op, unit)
    skipped = 2 * word(op, at.OFFSET)
    a, b = buffer(op, at.IN, buffers) + skipped, buffer(op, at.IN_2, buffers) + skipped
    out = buffer(op, at.OUT, buffers) + skipped
    if word(op, at.IS_FLAT):
        two_row(op, a + 2 * first, b + 2 * first, out + 2 * first, last - first, scratch)
        return
    count = word(op, at.COUNT)
    for row in range(first, last):
        left, place_a, place_b = row, 0, 0
        for outer in range(at.OUTER - 1, -1, -1):
            size = word(op, at.SIZES + outer)
            index = left % size
            left //= size
            place_a += index * word(op, at.STEPS_1 + outer)
            place_b += index * word(op, at.STEPS_2 + outer)
        two_row(op, a + 2 * place_a, b + 2 * place_b, out + 2 * row * count, count, scratch)


@compiled
def two_row(op: int, a: int, b: int, out: int, count: int, scratch: int) -> None:
    step_a, step_b = word(op, at.STEP_1), word(op, at.STEP_2)
    table, is_product = word(op, at.TABLE), word(op, at.IS_PRODUCT)
    if step_a == 0 or count < 16:
        a = spread(a, step_a, count, scratch)
    if step_b == 0 or count < 16:
        b = spread(b, step_b, count, scratch + 64)
    target = scratch + 128 if count < 16 else out
    for begin in range(0, count, 16):
        place = max(min(begin, count - 16), 0)
        from_a, from_b, to = a + 2 * place * step_a, b + 2 * place * step_b, target + 2 * place
        if is_product:
            multiply_tile(from_a, from_b, to, table)
        else:
            add_tile(from_a, from_b, to, table)
    if count < 16:
        copy_bytes(out, target, 2 * count)


@compiled
def spread(source: int, step: int, count: int, to: int) -> int:
    """16 elements in scratch: the one there is, or the few there are."""
    for place in range(16):
        put_int16(to + 2 * place, int16_at(source + 2 * step * min(place, count - 1)))
    return to


def table_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Every int16 replaced by its entry in a table of 65,536."""
    first, last = span_of(op, unit)
    x, out, table = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers), word(op, at.TABLE)
    for place in range(first, last):
        put_int16(out + 2 * place, int16_at(table + 2 * (int16_at(x + 2 * place) + 32768)))


def quantize_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    first, last = span_of(op, unit)
    first, last = first + word(op, at.OFFSET), last + word(op, at.OFFSET)
    x, out, table = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers), word(op, at.TABLE)
    count, is_exact = last - first, word(op, at.IS_EXACT)
    x, out = x + 4 * first, out + 2 * first
    source, target = x, out
    if count < 16:
        copy_bytes(scratch, x, 4 * count)
        source, target = scratch, scratch + 64
    for begin in range(0, count, 16):
        place = max(min(begin, count - 16), 0)
        if is_exact:
            quantize_tile(source + 4 * place, target + 2 * place, table)
        else:
            multiply_by_tile(source + 4 * place, target + 2 * place, table)
    if count < 16:
        copy_bytes(out, target, 2 * count)


def dequantize_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    first, last = span_of(op, unit)
    x, out, table = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers), word(op, at.TABLE)
    count = last - first
    x, out = x + 2 * first, out + 4 * first
    if count < 16:
        copy_bytes(scratch, x, 2 * count)
        dequantize_tile(scratch, scratch + 64, table)
        copy_bytes(out, scratch + 64, 4 * count)
    else:
        for begin in range(0, count, 16):
            place = min(begin, count - 16)
            dequantize_tile(x + 2 * place, out + 4 * place, table)


@compiled
def window(origin: int, dilation: int, taps: int, size: int) -> tuple[int, int]:
    """The first tap inside and the first one behind, of a window that may stick out."""
    first = 0 if origin >= 0 else (-origin + dilation - 1) // dilation
    behind = (
        taps
        if origin + (taps - 1) * dilation < size
        else (size - origin + dilation - 1) // dilation
    )
    return first, max(behind, first)


def average_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """One row of averages: sums in scratch, divided with halves away from zero."""
    sums = scratch + at.TILE_SCRATCH
    depth, width = word(op, at.DEPTH), word(op, at.OUT_W)
    low, high = word(op, at.LOW), word(op, at.HIGH)
    out = buffer(op, at.OUT, buffers) + 2 * unit * width * depth
    for x in range(width):
        zero_bytes(sums, 4 * depth)
        count = add_window(op, buffers, unit, x, sums)
        half = count // 2
        for channel in range(depth):
            total = int32_at(sums + 4 * channel)
            mean = (total + half) // count if total > 0 else -((half - total) // count)
            put_int16(out + 2 * channel, min(max(mean, low), high))
        out += 2 * depth


@compiled
def add_window(op: int, buffers: int, row: int, x: int, sums: int) -> int:
    """Adds every place of a window to the sums of its channels; how many places there were."""
    depth, width = word(op, at.DEPTH), word(op, at.WIDTH)
    image, y = row // word(op, at.OUT_H), row % word(op, at.OUT_H)
    in_y = y * word(op, at.STRIDE_H) - word(op, at.PAD_H)
    in_x = x * word(op, at.STRIDE_W) - word(op, at.PAD_W)
    y0, y1 = window(in_y, 1, word(op, at.WINDOW_H), word(op, at.HEIGHT))
    x0, x1 = window(in_x, 1, word(op, at.WINDOW_W), width)
    source = buffer(op, at.IN, buffers)
    for tap_y in range(y0, y1):
        line = (image * word(op, at.HEIGHT) + in_y + tap_y) * width + in_x
        for tap_x in range(x0, x1):
            place = source + 2 * (line + tap_x) * depth
            for channel in range(depth):
                where = sums + 4 * channel
                put_int32(where, int32_at(where) + int16_at(place + 2 * channel))
    return (y1 - y0) * (x1 - x0)


def largest_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """One row of largest values of windows."""
    depth, width, in_width = word(op, at.DEPTH), word(op, at.OUT_W), word(op, at.WIDTH)
    low, high = word(op, at.LOW), word(op, at.HIGH)
    image, y = unit // word(op, at.OUT_H), unit % word(op, at.OUT_H)
    out = buffer(op, at.OUT, buffers) + 2 * unit * width * depth
    in_y = y * word(op, at.STRIDE_H) - word(op, at.PAD_H)
    y0, y1 = window(in_y, 1, word(op, at.WINDOW_H), word(op, at.HEIGHT))
    source = buffer(op, at.IN, buffers)
    for x in range(width):
        in_x = x * word(op, at.STRIDE_W) - word(op, at.PAD_W)
        x0, x1 = window(in_x, 1, word(op, at.WINDOW_W), in_width)
        for channel in range(depth):
            put_int16(out + 2 * channel, low)
        for tap_y in range(y0, y1):
            line = (image * word(op, at.HEIGHT) + in_y + tap_y) * in_width + in_x
            for tap_x in range(x0, x1):
                place = source + 2 * (line + tap_x) * depth
                for channel in range(depth):
                    where = out + 2 * channel
                    value = min(int16_at(place + 2 * channel), high)
                    put_int16(where, max(int16_at(where), value))
        out += 2 * depth


@compiled
def wrapped32(value: int) -> int:
    """The low 32 bits, as a number with a sign."""
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


@compiled
def wrapped16(value: int) -> int:
    return ((value + (1 << 15)) & 0xFFFF) - (1 << 15)


@compiled
def scaled_one(value: int, multiplier: int, left: int, right: int) -> int:
    """One int32 times a fraction, rounded twice; see `emit.scaled`."""
    high = (wrapped32(value << left) * multiplier + (1 << 30)) >> 31
    mask = (1 << right) - 1
    threshold = (mask >> 1) + (1 if high < 0 else 0)
    return (high >> right) + (1 if (high & mask) > threshold else 0)


def mean_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """One outer place: sums over the reduced axes, rescaled."""
    sums = scratch + at.TILE_SCRATCH
    inner, reduced = word(op, at.INNER), word(op, at.REDUCED)
    multiplier, left, right = word(op, at.MULTIPLIER), word(op, at.LEFT), word(op, at.RIGHT)
    source = buffer(op, at.IN, buffers) + 2 * unit * reduced * inner
    out = buffer(op, at.OUT, buffers) + 2 * unit * inner
    zero_bytes(sums, 4 * inner)
    for line in range(reduced):
        place = source + 2 * line * inner
        for channel in range(inner):
            where = sums + 4 * channel
            put_int32(where, int32_at(where) + int16_at(place + 2 * channel))
    for channel in range(inner):
        value = scaled_one(int32_at(sums + 4 * channel), multiplier, left, right)
        put_int16(out + 2 * channel, min(max(value, -32768), 32767))


@compiled
def looked_up(value: int, table: int) -> int:
    """An entry of a table of 513, interpolated to its neighbour by the low 7 bits."""
    place = table + 2 * (256 + (value >> 7))
    base = int16_at(place)
    slope = wrapped16(int16_at(place + 2) - base)
    return wrapped16(base + ((slope * (value & 0x7F) + 64) >> 7))


def softmax_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """One row: exponentials by a table, their sum's reciprocal by another."""
    depth, exponentials = word(op, at.INNER), word(op, at.TABLE)
    multiplier, left, right = word(op, at.MULTIPLIER), word(op, at.LEFT), word(op, at.RIGHT)
    x = buffer(op, at.IN, buffers) + 2 * unit * depth
    out = buffer(op, at.OUT, buffers) + 2 * unit * depth
    largest = -32768
    for place in range(depth):
        largest = max(largest, int16_at(x + 2 * place))
    total = 0
    for place in range(depth):
        apart = scaled_one(int16_at(x + 2 * place) - largest, multiplier, left, right)
        value = looked_up(min(max(apart + 32767, -32768), 32767), exponentials)
        put_int16(out + 2 * place, value)
        total += value
    zeros = 0  # leading ones of the 32-bit sum
    while zeros < 32 and not (total >> (31 - zeros)) & 1:
        zeros += 1
    moved = ((total << (zeros - 1)) + (1 << 13)) >> 14
    centred = min(max(moved - ((1 << 15) + (1 << 16)), -32768), 32767)
    reciprocal = looked_up(centred, exponentials + 2 * 513)
    shift = 31 - zeros
    for place in range(depth):
        value = (int16_at(out + 2 * place) * reciprocal + (1 << (shift - 1))) >> shift
        put_int16(out + 2 * place, min(max(value, 0), 32767))


def copy_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Parts of rows of bytes from one buffer into parts of another's rows."""
    first, last = span_of(op, unit)
    size, out_stride = word(op, at.ROW_BYTES), word(op, at.OUT_STRIDE)
    source = buffer(op, at.IN, buffers) + word(op, at.IN_OFFSET)
    out = buffer(op, at.OUT, buffers) + word(op, at.OUT_OFFSET)
    for row in range(first, last):
        copy_bytes(out + row * out_stride, source + row * word(op, at.IN_STRIDE), size)


def pad_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Zeros around an array of four dimensions."""
    source, out = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers)
    line = 2 * word(op, at.IN_SIZES + 3)
    everything = 2
    for axis in range(4):
        everything *= word(op, at.OUT_SIZES + axis)
    zero_bytes(out, everything)
    for a in range(word(op, at.IN_SIZES)):
        for b in range(word(op, at.IN_SIZES + 1)):
            for c in range(word(op, at.IN_SIZES + 2)):
                place = a + word(op, at.BEFORE)
                place = place * word(op, at.OUT_SIZES + 1) + b + word(op, at.BEFORE + 1)
                place = place * word(op, at.OUT_SIZES + 2) + c + word(op, at.BEFORE + 2)
                place = place * word(op, at.OUT_SIZES + 3) + word(op, at.BEFORE + 3)
                copy_bytes(out + 2 * place, source, line)
                source += line


def repeat_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Repeats every int16 a number of times."""
    first, last = span_of(op, unit)
    source, out, times = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers), word(op, at.INNER)
    for place in range(first, last):
        value = int16_at(source + 2 * place)
        for copy in range(times):
            put_int16(out + 2 * (place * times + copy), value)

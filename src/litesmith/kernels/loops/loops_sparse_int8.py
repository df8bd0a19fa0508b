"""Sparse int8 layers; see `loops` and `loops_sparse`."""

from litesmith.kernels.loops.loops_values import buffer, span_of
from litesmith.kernels.loops.tiles_sparse_int8 import (
    peak_fours,
    put_bytes,
    sparse_channel,
    sparse_group,
    turn_codes,
)
from litesmith.kernels.programs import record_layout as at
from litesmith.native.tiles import compiled, int64_at, word


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
            sum_channel(op, channel + number, turned, codes + wide * number, last - first)
        for vector in range(first, last):
            to = out + min(16 * vector, rows - 16) * channels + channel
            put_bytes(codes + 64 * (vector - first), wide, to, channels)


@compiled
def sum_channel(op: int, channel: int, x: int, out: int, vectors: int) -> None:
    begins = word(op, at.BEGINS) + 8 * channel
    begin = int64_at(begins)
    count = int64_at(begins + 8) - begin
    offsets, weights = word(op, at.NUMBERS) + 4 * begin, word(op, at.WEIGHTS) + 4 * begin
    start, scale = word(op, at.BIAS) + 4 * channel, word(op, at.SCALES) + 4 * channel
    sparse_channel(x, offsets, weights, count, start, scale, word(op, at.LIMITS), out, vectors)


def sparse_int8_row_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Some groups of 16 channels of a few rows, read as they lie; the last overlaps."""
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


def peak_int8(rounds: int, out: int) -> None:
    """As many products as the machine can: see `tiles_product`."""
    peak_fours(rounds, out)

"""Sparse float32 layers; see `loops`.

Rows times weights that are zero in most blocks of four inputs. A unit is a few vectors of places.
Its inputs are turned, so that a vector is one input at 16 places, which one weight multiplies.
"""

from litesmith.kernels.loops.loops_values import buffer, span_of
from litesmith.kernels.loops.tiles_sparse import clamp_floats, sparse_row, sparse_tile, turn_tile
from litesmith.kernels.programs import record_layout as at
from litesmith.native.tiles import compiled, int64_at, word

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
    """Some channels of a few rows, read as they lie."""
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

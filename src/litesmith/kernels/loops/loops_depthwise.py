"""Depthwise convolutions; see `loops`."""

from litesmith.kernels.loops.loops_values import buffer, span_of
from litesmith.kernels.loops.tiles_product import depthwise_tile
from litesmith.kernels.programs import record_layout as at
from litesmith.kernels.programs.rescale import VECTOR_BYTES
from litesmith.native.tiles import compiled, copy_bytes, int64_at, put_int64, word, zero_bytes

# By blocks of 32 channels and places side by side.
_TILE_1_1, _TILE_1_2 = depthwise_tile(1, 1), depthwise_tile(1, 2)
_TILE_2_1, _TILE_2_2 = depthwise_tile(2, 1), depthwise_tile(2, 2)


def depthwise_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Some rows of the output, two places at a time where both lie inside; of few channels, as
    many as fill a vector."""
    first, last = span_of(op, unit)
    depth, taps = word(op, at.DEPTH), 2 * word(op, at.PAIRS)
    x, out = buffer(op, at.IN, buffers), buffer(op, at.OUT, buffers)
    out += 2 * first * word(op, at.OUT_W) * depth
    steps = scratch + at.TILE_SCRATCH // 2
    zero_bytes(steps, 8 * taps)
    put_int64(scratch + 8 * taps - 8, word(op, at.ZEROS))  # pairs with an odd tap
    for row in range(first, last):
        column = moved = 0
        while column < word(op, at.OUT_W):
            if moved and is_inside(op, column):
                for tap in range(taps):
                    here = scratch + 8 * tap
                    put_int64(here, int64_at(here) + moved * int64_at(steps + 8 * tap))
            else:
                find_taps(op, x, row, column, scratch, steps)
            inside, beside = is_inside(op, column), word(op, at.BESIDE)
            if beside > 1 and inside and is_inside(op, column + beside - 1):
                moved = places = beside
                places_beside(op, out, scratch, steps)
            else:
                can_move = depth >= 32 and inside
                places = 2 if can_move and is_inside(op, column + 1) else 1
                depthwise_places(op, out, places, scratch, steps)
                moved = places if can_move else 0
            column += places
            out += 2 * depth * places


@compiled
def is_inside(op: int, column: int) -> bool:
    """Whether a column of the output exists, and its window sticks out on no side."""
    in_x = column * word(op, at.STRIDE_W) - word(op, at.PAD_W)
    reach = (word(op, at.WINDOW_W) - 1) * word(op, at.DILATION_W)
    return column < word(op, at.OUT_W) and in_x >= 0 and in_x + reach < word(op, at.WIDTH)


@compiled
def find_taps(op: int, x: int, row: int, column: int, taps: int, steps: int) -> None:
    """The addresses that a window covers, and how far each moves from place to place.

    Outside is a line of zeros, which does not move.
    """
    depth, width, height = 2 * word(op, at.DEPTH), word(op, at.WIDTH), word(op, at.HEIGHT)
    image, y = row // word(op, at.OUT_H), row % word(op, at.OUT_H)
    in_y = y * word(op, at.STRIDE_H) - word(op, at.PAD_H)
    in_x = column * word(op, at.STRIDE_W) - word(op, at.PAD_W)
    step_y, step_x = word(op, at.DILATION_H), word(op, at.DILATION_W)
    count_x, zeros, move = word(op, at.WINDOW_W), word(op, at.ZEROS), word(op, at.STRIDE_W) * depth
    for tap_y in range(word(op, at.WINDOW_H)):
        at_y = in_y + tap_y * step_y
        line = x + ((image * height + at_y) * width + in_x) * depth
        outside = at_y < 0 or at_y >= height
        for tap_x in range(count_x):
            at_x = in_x + tap_x * step_x
            inside = not outside and 0 <= at_x < width
            put_int64(taps, line + tap_x * step_x * depth if inside else zeros)
            put_int64(steps, move if inside else 0)
            taps, steps = taps + 8, steps + 8


@compiled
def places_beside(op: int, out: int, taps: int, steps: int) -> None:
    """Places that lie side by side in the input too: their channels are one vector."""
    pairs, weights, table = word(op, at.PAIRS), word(op, at.WEIGHTS), word(op, at.TABLE)
    low, high = word(op, at.LOW), word(op, at.HIGH)
    _TILE_1_1(taps, steps, pairs, 0, weights, table, out, 0, low, high)


@compiled
def depthwise_places(op: int, out: int, places: int, taps: int, steps: int) -> None:
    """All channels of one place or two, 64 or 32 at a time."""
    pairs, count, starts = word(op, at.PAIRS), word(op, at.STARTS_COUNT), word(op, at.STARTS)
    weights, table = word(op, at.WEIGHTS), word(op, at.TABLE)
    low, high, next_out = word(op, at.LOW), word(op, at.HIGH), 2 * word(op, at.DEPTH)
    if word(op, at.DEPTH) < 32:
        lines = taps + at.TILE_SCRATCH
        widen(op, taps, lines + 64)
        _TILE_1_1(taps, steps, pairs, 0, weights, table, lines, 0, low, high)
        copy_bytes(out, lines, next_out)
        return
    block = 0
    while block < count:
        start = 2 * int64_at(starts + 8 * block)
        own, rows, to = weights + block * pairs * 128, table + block * 2 * VECTOR_BYTES, out + start
        two = block + 1 < count and 2 * int64_at(starts + 8 * block + 8) == start + 64
        if two and places == 2:
            _TILE_2_2(taps, steps, pairs, start, own, rows, to, next_out, low, high)
        elif two:
            _TILE_2_1(taps, steps, pairs, start, own, rows, to, 0, low, high)
        elif places == 2:
            _TILE_1_2(taps, steps, pairs, start, own, rows, to, next_out, low, high)
        else:
            _TILE_1_1(taps, steps, pairs, start, own, rows, to, 0, low, high)
        block += 2 if two else 1


@compiled
def widen(op: int, taps: int, lines: int) -> None:
    """Copies taps of few channels to lines that can be read 32 channels at a time."""
    size = 2 * word(op, at.DEPTH)
    for tap in range(2 * word(op, at.PAIRS)):
        copy_bytes(lines + 64 * tap, int64_at(taps + 8 * tap), size)
        put_int64(taps + 8 * tap, lines + 64 * tap)

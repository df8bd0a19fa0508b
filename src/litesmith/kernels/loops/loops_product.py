"""Rows times weights; see `loops`."""

from litesmith.kernels.loops.loops_values import buffer, window
from litesmith.kernels.loops.tiles_product import peak_tile, product_tile
from litesmith.kernels.programs import record_layout as at
from litesmith.kernels.programs.rescale import PARTIAL, VECTOR_BYTES
from litesmith.native.tiles import (
    CPU,
    call_rows,
    compiled,
    copy_bytes,
    int64_at,
    put_int16,
    put_int64,
    word,
    zero_bytes,
)

_ROWS, _VECTORS = CPU.rows, CPU.vectors
_MANY, _ONE = product_tile(CPU.rows, narrow=False), product_tile(1, narrow=True)


def many_rows(op: int, panel: int, x: int, x_row: int, rows: int, out: int, scratch: int) -> None:
    """All rows of a block times a panel of weights, in chunks whose sums cannot overflow.

    The last tile overlaps the one before if it must.
    """
    vectors, last = panel_width(op, panel)
    table, weights, cuts = panel_places(op, panel)
    low, high, out_row = word(op, at.LOW), word(op, at.HIGH), 2 * word(op, at.CHANNELS)
    chunks, tile, end = int64_at(cuts), _ROWS, word(op, at.FINISH)
    for begin in range(0, rows, tile):
        row = min(begin, rows - tile)
        source, own, target = x + row * x_row, weights, out + row * out_row
        base, base_row, base_vector = table + 128, 0, VECTOR_BYTES
        for chunk in range(chunks):
            pairs = int64_at(cuts + 8 + 8 * chunk)
            finish, to, to_row = end, target, out_row
            if chunk < chunks - 1:
                finish, to, to_row = PARTIAL, scratch, 128 * vectors
            _MANY(
                source, x_row, own, pairs, table, base, base_row, base_vector,
                to, to_row, last, low, high, finish, vectors,
            )  # fmt: skip
            base, base_row, base_vector = scratch, 128 * vectors, 128
            source, own = source + 4 * pairs, own + 64 * vectors * pairs


def one_row(op: int, panel: int, x: int, x_row: int, rows: int, out: int, scratch: int) -> None:
    """The same row by row, for the few there are, with weights of 8 bits."""
    vectors, last = panel_width(op, panel)
    table, weights, cuts = panel_places(op, panel)
    low, high, out_row = word(op, at.LOW), word(op, at.HIGH), 2 * word(op, at.CHANNELS)
    chunks, end = int64_at(cuts), word(op, at.FINISH)
    for row in range(rows):
        source, own, target = x + row * x_row, weights, out + row * out_row
        base, base_vector = table + 128, VECTOR_BYTES
        for chunk in range(chunks):
            pairs = int64_at(cuts + 8 + 8 * chunk)
            finish, to = end, target
            if chunk < chunks - 1:
                finish, to = PARTIAL, scratch
            _ONE(
                source, x_row, own, pairs, table, base, 0, base_vector,
                to, out_row, last, low, high, finish, vectors,
            )  # fmt: skip
            base, base_vector = scratch, 128
            source, own = source + 4 * pairs, own + 32 * vectors * pairs


@compiled
def panel_width(op: int, panel: int) -> tuple[int, int]:
    """Vectors of a panel, and channels of its last one."""
    vectors = min(_VECTORS, (word(op, at.CHANNELS) + 15) // 16 - panel * _VECTORS)
    return vectors, min(16, word(op, at.CHANNELS) - 16 * (panel * _VECTORS + vectors - 1))


@compiled
def panel_places(op: int, panel: int) -> tuple[int, int, int]:
    """Where a panel's table, weights and cuts begin."""
    table = word(op, at.TABLE) + panel * _VECTORS * VECTOR_BYTES
    weights = word(op, at.WEIGHTS) + panel * word(op, at.PANEL_BYTES)
    return table, weights, word(op, at.CUTS) + panel * word(op, at.CUT_WORDS) * 8


def product_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """A block of rows times one panel (rows in place) or times all of them (rows gathered)."""
    rows, blocks = word(op, at.ROWS), word(op, at.BLOCKS)
    count = min(word(op, at.BLOCK_ROWS), rows)
    first = min((unit % blocks) * count, rows - count)
    run_rows = word(op, at.ROWS_CALL)
    x = buffer(op, at.IN, buffers)
    out = buffer(op, at.OUT, buffers) + 2 * first * word(op, at.CHANNELS)
    if word(op, at.IN_PLACE):
        x_row, panel = 2 * word(op, at.INPUTS), unit // blocks
        target = out + 2 * 16 * _VECTORS * panel
        call_rows(run_rows, op, panel, x + first * x_row, x_row, count, target, scratch)
    else:
        lines, x_row = scratch + at.TILE_SCRATCH, 4 * ((word(op, at.INPUTS) + 1) // 2)
        gather(op, x, first, count, lines)
        for panel in range(word(op, at.PANELS)):
            target = out + 2 * 16 * _VECTORS * panel
            call_rows(run_rows, op, panel, lines, x_row, count, target, scratch)


@compiled
def gather(op: int, x: int, first: int, count: int, to: int) -> None:
    """What the windows of some output places cover, in the order of the weights; zeros outside."""
    # Words are read once: for all that is known here, what is written could change them.
    image_of = word(op, at.HEIGHT), word(op, at.WIDTH), 2 * word(op, at.DEPTH)
    window_of = word(op, at.WINDOW_H), word(op, at.WINDOW_W)
    dilations = word(op, at.DILATION_H), word(op, at.DILATION_W)
    stride_h, stride_w = word(op, at.STRIDE_H), word(op, at.STRIDE_W)
    pad_h, pad_w = word(op, at.PAD_H), word(op, at.PAD_W)
    out_h, out_w, inputs = word(op, at.OUT_H), word(op, at.OUT_W), word(op, at.INPUTS)
    image, place = first // (out_h * out_w), first % (out_h * out_w)
    out_y, out_x = place // out_w, place % out_w
    x += image * image_of[0] * image_of[1] * image_of[2]
    for _ in range(count):
        corner = out_y * stride_h - pad_h, out_x * stride_w - pad_w
        gather_window(x, corner, image_of, window_of, dilations, to)
        to += 2 * inputs
        if inputs % 2:
            put_int16(to, 0)
            to += 2
        out_x += 1
        if out_x == out_w:
            out_x, out_y = 0, out_y + 1
        if out_y == out_h:
            out_y = 0
            x += image_of[0] * image_of[1] * image_of[2]


@compiled
def gather_window(
    x: int,
    corner: tuple[int, int],
    image_of: tuple[int, int, int],
    window_of: tuple[int, int],
    dilations: tuple[int, int],
    to: int,
) -> None:
    in_y, in_x = corner
    height, width, depth = image_of
    rows, taps = window_of
    x0, x1 = 0, taps
    if in_x < 0 or in_x + (taps - 1) * dilations[1] >= width:
        x0, x1 = window(in_x, dilations[1], taps, width)
    for row in range(rows):
        y = in_y + row * dilations[0]
        if y < 0 or y >= height:
            zero_bytes(to, taps * depth)
        else:
            line = x + (y * width + in_x) * depth
            gather_line(line, to, depth, (taps, dilations[1]), (x0, x1))
        to += taps * depth


@compiled
def gather_line(
    line: int, to: int, depth: int, steps: tuple[int, int], inside: tuple[int, int]
) -> None:
    taps, dilation = steps
    x0, x1 = inside
    if x0 > 0 or x1 < taps:
        zero_bytes(to, taps * depth)
    if dilation == 1:
        copy_few(to + x0 * depth, line + x0 * depth, (x1 - x0) * depth)
    else:
        for tap in range(x0, x1):
            copy_few(to + tap * depth, line + tap * dilation * depth, depth)


@compiled
def copy_few(to: int, source: int, count: int) -> None:
    """Bytes, mostly few: a call would take longer than the copy."""
    if count < 8 or count > 128:
        copy_bytes(to, source, count)
    else:
        for place in range(0, count - 8, 8):
            put_int64(to + place, int64_at(source + place))
        put_int64(to + count - 8, int64_at(source + count - 8))


def peak(rounds: int, out: int) -> None:
    """As many products as the machine can: see `tiles`."""
    peak_tile(rounds, out)

"""Layers of int16 data and int8 weights: rows times weights, and depthwise convolutions.

Weights are packed by `pack_weights` and rescaled by `rescale`.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# llvmlite and numba leave parts of their types open.

from __future__ import annotations

from collections.abc import Callable, Sequence

from numba import types  # pyright: ignore[reportMissingImports]

from litesmith.kernels.loops.loops_values import buffer, span_of, window
from litesmith.kernels.programs import record_layout as at
from litesmith.kernels.programs.rescale import DOUBLE, FIXED, PARTIAL, VECTOR_BYTES
from litesmith.native import emit_llvm as emit
from litesmith.native.emit_llvm import F64, I8, I16, I32, I64, LANES, Value, load, store, vec
from litesmith.native.tiles import (
    CPU,
    Loop,
    call_rows,
    compiled,
    copy_bytes,
    int64_at,
    native,
    put_int16,
    put_int64,
    word,
    zero_bytes,
)


def product_tile(rows: int, *, narrow: bool) -> Callable[..., int]:
    """Sums of products of `rows` rows with 16 × vectors channels, rescaled and stored.

    (x, row bytes, weights, pairs, table, sums before, their row bytes, their vector bytes,
    out, row bytes, channels of the last vector, lowest, highest, finish, vectors)
    """

    def emitted(given: Sequence[Value]) -> None:
        *shared, count = given
        for vectors in range(1, CPU.vectors + 1):
            equal = count.b.icmp_signed("==", count.value, count.of(vectors))
            with count.b.if_then(equal):
                _product(shared, rows, vectors, 32 if narrow else 64)

    return native(15, types.void, emitted)


def _product(given: Sequence[Value], rows: int, vectors: int, vector_bytes: int) -> None:
    x, x_row, weights, pairs, table, base, base_row, base_vector, *rest = given
    out, out_row, last, low, high, finish = rest
    b = x.b
    places = [(row, vector) for row in range(rows) for vector in range(vectors)]
    sums = _products((x, x_row), weights, pairs, (rows, vectors, vector_bytes))

    def grown(place: int) -> list[Value]:
        row, vector = places[place]
        start = base + base_row * row + base_vector * vector
        return _grown(sums[place], table + vector * VECTOR_BYTES, start)

    def finish_all(rescaled: Callable[[Sequence[Value], Value], Value]) -> None:
        limits = emit.splat32(low), emit.splat32(high)
        for place, (row, vector) in enumerate(places):
            result = rescaled(grown(place), table + vector * VECTOR_BYTES).clamped(*limits)
            short, target = result.convert("trunc", I16), out + out_row * row + vector * 32
            if vector == vectors - 1:
                _store_last(short, target, last)
            else:
                store(short, target)

    with b.if_else((finish < FIXED).value) as (partial, final):
        with partial:
            for place, (row, vector) in enumerate(places):
                for side, part in enumerate(grown(place)):
                    store(part, out + out_row * row, vector * 128 + side * 64)
        with final, b.if_else((finish < DOUBLE).value) as (fixed, double):
            with fixed:
                finish_all(_shifted)
            with double:
                finish_all(_multiplied)


def _products(
    x: tuple[Value, Value], weights: Value, pairs: Value, shape: tuple[int, int, int]
) -> list[Value]:
    """The loop over pairs of inputs: rows × vectors sums of 16 × int32, row by row."""
    rows, vectors, vector_bytes = shape
    zero = emit.constant(weights.b, vec(I32), [0] * LANES)
    starts = [x[0] + x[1] * row for row in range(rows)]
    loop = Loop(pairs, [zero] * (rows * vectors))
    at = weights + loop.round * (vector_bytes * vectors)
    columns = [_weights(at, vector * vector_bytes, vector_bytes) for vector in range(vectors)]
    sums: list[Value] = []
    for row in range(rows):
        pair = load(starts[row] + loop.round * 4, I32).splat()
        for column in columns:
            sums.append(emit.dot_pairs(CPU, loop.values[len(sums)], pair, column))
    loop.end(sums)
    return sums


def _weights(at: Value, offset: int, vector_bytes: int) -> Value:
    """16 pairs of weights: stored as int16, or as int8."""
    if vector_bytes == 64:
        return load(at, vec(I32), offset, align=64)
    stored = load(at, vec(I8, 2 * LANES), offset, align=32)
    return stored.convert("sext", I16).bits(vec(I32))


def _grown(total: Value, table: Value, before: Value) -> list[Value]:
    """The previous total plus the sums times their multipliers: even and odd lanes as int64."""
    return [
        half * emit.exact(load(table, vec(I64, 8), 64 * place, align=64))
        + load(before, vec(I64, 8), 64 * place, align=64)
        for place, half in enumerate(emit.halves(total))
    ]


def _shifted(parts: Sequence[Value], table: Value) -> Value:
    """Even and odd lanes shifted right, each by its own count: 16 × int32."""
    return emit.joined(
        *(
            part >> load(table, vec(I64, 8), 256 + 64 * side, align=64)
            for side, part in enumerate(parts)
        )
    )


def _multiplied(parts: Sequence[Value], table: Value) -> Value:
    """Even and odd lanes times a fraction in double precision, rounded: 16 × int32."""
    even, odd = (
        emit.rounded(
            part.convert("sitofp", F64) * load(table, vec(F64, 8), 256 + 64 * side, align=64)
        )
        for side, part in enumerate(parts)
    )
    mixed = [lane // 2 + 8 * (lane % 2) for lane in range(LANES)]
    return even.picked(mixed, odd)


def _store_last(value: Value, target: Value, count: Value) -> None:
    with value.b.if_else((count < LANES).value) as (some, whole):
        with some:
            emit.store_some(value, target, count)
        with whole:
            store(value, target)


_ROWS, _VECTORS = CPU.rows, CPU.vectors
_MANY, _ONE = product_tile(CPU.rows, narrow=False), product_tile(1, narrow=True)


def many_rows(op: int, panel: int, x: int, x_row: int, rows: int, out: int, scratch: int) -> None:
    """All rows of a block times a panel of weights, in chunks whose sums cannot overflow.

    The last tile may overlap the one before.
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
    """The same row by row, where there are few rows, with weights of 8 bits."""
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
    """The beginnings of a panel's table, weights and cuts."""
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
    """Copies the windows of some output places, in the order of the weights; zeros outside."""
    # Words are read once: as far as the compiler knows, a store could change them.
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


# Interleaving two vectors of 32 in parts of 4, as the unpack instructions do, and back.
_LOW = [place + side for q in range(0, 32, 8) for place in range(q, q + 4) for side in (0, 32)]
_HIGH = [place + 4 for place in _LOW]
_BACK = [q // 2 + place + side for q in range(0, 32, 8) for side in (0, 16) for place in range(4)]


def depthwise_tile(blocks: int, places: int) -> Callable[..., int]:
    """Sums over taps of 32 × `blocks` channels, at one place or at two neighbours.

    (addresses of the taps, how far each moves to the next place, pairs of taps, byte offset,
    weights, table, out, bytes to the next place's, lowest, highest)
    """

    def emitted(given: Sequence[Value]) -> None:
        taps, steps, pairs, offset, weights, table, out, out_step, low, high = given
        sums = _depthwise((taps, steps), (pairs, offset), weights, (blocks, places))
        limits = emit.splat32(low), emit.splat32(high)
        for block in range(blocks):
            shorts = [
                _rescaled_shorts(sums[2 * block + side], here, limits)
                for side, here in enumerate(_vectors(table, block))
            ]
            for place, (first, second) in enumerate(zip(*shorts, strict=True)):
                store(first.picked(_BACK, second), out + out_step * place, block * 64)

    return native(10, types.void, emitted)


def _vectors(table: Value, block: int) -> list[Value]:
    return [table + (2 * block + side) * VECTOR_BYTES for side in range(2)]


def _rescaled_shorts(
    totals: Sequence[Value], table: Value, limits: tuple[Value, Value]
) -> list[Value]:
    """The sums of one vector of channels at each place, as 16 × int16."""
    multipliers, begins, shifts = (
        [load(table, vec(I64, 8), 128 * row + 64 * half, align=64) for half in range(2)]
        for row in range(3)
    )
    shorts: list[Value] = []
    for total in totals:
        grown = [
            part * emit.exact(multiplier) + begin
            for part, multiplier, begin in zip(emit.halves(total), multipliers, begins, strict=True)
        ]
        moved = [part >> shift for part, shift in zip(grown, shifts, strict=True)]
        shorts.append(emit.joined(*moved).clamped(*limits).convert("trunc", I16))
    return shorts


def _depthwise(
    taps: tuple[Value, Value],
    span: tuple[Value, Value],
    weights: Value,
    shape: tuple[int, int],
) -> list[list[Value]]:
    """The loop over pairs of taps: for each half of each block, the sums at each place."""
    pairs, offset = span
    blocks, places = shape
    zero = emit.constant(weights.b, vec(I32), [0] * LANES)
    loop = Loop(pairs, [zero] * (2 * blocks * places))
    at = [
        [load(taps[0] + loop.round * 16, I64, side) + offset for side in (0, 8)],
    ]
    if places > 1:
        moves = [load(taps[1] + loop.round * 16, I64, side) for side in (0, 8)]
        at.append([tap + move for tap, move in zip(at[0], moves, strict=True)])
    own = weights + loop.round * 128
    sums: list[Value] = []
    for block in range(blocks):
        values = [[load(tap, vec(I16, 32), block * 64) for tap in here] for here in at]
        for side, order in enumerate((_LOW, _HIGH)):
            # A block's weights are those of all its pairs, before those of the next block.
            weight = load(own + pairs * (block * 128), vec(I32), side * 64, align=64)
            for first, second in values:
                mixed = first.picked(order, second).bits(vec(I32))
                sums.append(emit.dot_pairs(CPU, loop.values[len(sums)], mixed, weight))
    loop.end(sums)
    return [sums[first : first + places] for first in range(0, len(sums), places)]


# By blocks of 32 channels and places side by side.
_TILE_1_1, _TILE_1_2 = depthwise_tile(1, 1), depthwise_tile(1, 2)
_TILE_2_1, _TILE_2_2 = depthwise_tile(2, 1), depthwise_tile(2, 2)


def depthwise_unit(op: int, buffers: int, scratch: int, unit: int) -> None:
    """Some rows of the output, two places at a time where both lie inside; with few channels, as
    many places as fill a vector."""
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
    """Whether a column of the output exists, and its window lies within the input."""
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

"""The innermost loops of layers with weights, packed by `pack` and rescaled by `rescale`."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# llvmlite and numba leave parts of their types open.

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir  # pyright: ignore[reportMissingImports]
from numba import types  # pyright: ignore[reportMissingImports]

from litesmith.kernels.programs.rescale import DOUBLE, FIXED, VECTOR_BYTES
from litesmith.native import emit_llvm as emit
from litesmith.native.cpu import Cpu
from litesmith.native.emit_llvm import F64, I8, I16, I32, I64, LANES, Value, load, store, vec
from litesmith.native.tiles import CPU, Loop, native


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
    """What came before plus the sums times their multipliers: even and odd lanes as int64."""
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


# Interleaving two vectors of 32 in parts of 4, as the unpack instructions do, and back.
_LOW = [place + side for q in range(0, 32, 8) for place in range(q, q + 4) for side in (0, 32)]
_HIGH = [place + 4 for place in _LOW]
_BACK = [q // 2 + place + side for q in range(0, 32, 8) for side in (0, 16) for place in range(4)]


def peak_of(dot: Callable[[Cpu, Value, Value, Value], Value]) -> Callable[..., int]:
    """(rounds, out): a tile of sums to which products are added by `dot`, nothing loaded.

    Empty assembly hides from LLVM that all products are the same.
    """

    def emitted(given: Sequence[Value]) -> None:
        rounds, out = given
        b, lanes = rounds.b, vec(I32)
        factors = rounds.convert("trunc", I32).splat()
        kind = ir.FunctionType(lanes, [lanes])
        loop = Loop(rounds, [factors] * (CPU.rows * CPU.vectors))
        sums: list[Value] = []
        for total in loop.values:
            hidden = Value(b, b.asm(kind, "", "=v,0", [factors.value], side_effect=True))
            sums.append(dot(CPU, total, hidden, factors))
        loop.end(sums)
        everything = sums[0]
        for total in sums[1:]:
            everything = everything + total
        store(everything, out)

    return native(2, types.void, emitted)


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


peak_tile = peak_of(emit.dot_pairs)

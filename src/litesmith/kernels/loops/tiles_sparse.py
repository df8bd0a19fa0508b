"""The innermost loops of sparse float32 layers."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# llvmlite and numba leave parts of their types open.

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir  # pyright: ignore[reportMissingImports]
from numba import types  # pyright: ignore[reportMissingImports]

from litesmith.native import emit_llvm as emit
from litesmith.native.emit_llvm import F32, I32, I64, LANES, Value, load, store, vec
from litesmith.native.tiles import Loop, native


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


def _emit_turn(given: Sequence[Value]) -> None:
    """(x, row bytes, out, row bytes): 16 × 16 float32, rows become columns."""
    x, x_row, out, out_row = given
    rows = [load(x + x_row * row, vec(F32)) for row in range(LANES)]
    for distance in (1, 2, 4, 8):
        rows = mixed(rows, distance)
    for row, value in enumerate(rows):
        store(value, out + out_row * row)


def mixed(rows: list[Value], distance: int) -> list[Value]:
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
turn_tile = native(4, types.void, _emit_turn)
clamp_floats = native(3, types.void, _emit_clamp)  # (address, vectors, address of the limits)

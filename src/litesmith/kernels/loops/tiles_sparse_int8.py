"""The innermost loops of sparse int8 layers, which end as XNNPACK's do on x86.

Data is multiplied as bytes from 0, its zero point moved by 128; the sums begin with what that adds.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportUnknownMemberType=false
# numba leaves parts of its types open.

from __future__ import annotations

from collections.abc import Sequence

from numba import types  # pyright: ignore[reportMissingImports]

from litesmith.kernels.loops.tiles_product import peak_of
from litesmith.kernels.loops.tiles_sparse import mixed
from litesmith.kernels.programs.pack_weights import MOST_VECTORS
from litesmith.native import emit_llvm as emit
from litesmith.native.emit_llvm import F32, I8, I32, I64, LANES, Value, load, store, vec
from litesmith.native.tiles import CPU, Loop, native

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
        rows = mixed(rows, distance)
    for place in range(LANES):
        four = range(place // 4 * 4, place // 4 * 4 + 4)
        store(rows[place % 4].picked(four), out + out_row * place)


def _packed(words: Value, step: Value) -> Value:
    """The low bytes of four vectors, side by side."""
    a, b, c, d = (load(words + step * number, vec(I32)) for number in range(4))
    return ((a & 0xFF) | ((b & 0xFF) << 8)) | (((c & 0xFF) << 16) | (d << 24))


def _emit_turn(given: Sequence[Value]) -> None:
    """(x, row bytes, out, row bytes): 16 × 16 words, rows become columns, codes bytes from 0."""
    x, x_row, out, out_row = given
    rows = [load(x + x_row * row, vec(I32)) for row in range(LANES)]
    for distance in (1, 2, 4, 8):
        rows = mixed(rows, distance)
    for row, value in enumerate(rows):
        store(_from_zero(value), out + out_row * row)


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
    values = _from_zero(emit.picked_words(CPU, row, place))
    weight = load(weights + loop.round * 64, vec(I32))
    sums = [emit.dot_fours(CPU, loop.values[0], values, weight)]
    loop.end(sums)
    codes = _rescaled(sums[0], load(scales, vec(F32)), limits)
    store(codes.convert("trunc", I8), out)


sparse_channel = native(9, types.void, _emit_channel)
put_bytes = native(4, types.void, _emit_bytes)
turn_codes = native(4, types.void, _emit_turn)
sparse_group = native(9, types.void, _emit_group)
peak_fours = peak_of(emit.dot_fours)

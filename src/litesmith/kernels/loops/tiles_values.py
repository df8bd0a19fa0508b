"""The innermost loops of ops without weights, 16 elements at a time."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# llvmlite has no types of its own.

from __future__ import annotations

from collections.abc import Sequence

from numba import types  # pyright: ignore[reportMissingImports]

from litesmith.native import emit_llvm as emit
from litesmith.native.emit_llvm import F32, F64, I16, I32, I64, LANES, Value, load, store, vec
from litesmith.native.tiles import native


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

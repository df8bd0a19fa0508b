"""Rules for the bits of integers, and for bits read as another type."""

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.values import element_type
from litesmith.ir.types import Tensor, constant_numbers

_WIDE = ("int64", "uint64", "uint32")


def shift(lower: Lowering, node: Node) -> Tensor:
    x, count = (lower.need(t) for t in lower.inputs(node, 2))
    bits = np.iinfo(x.dtype).bits
    if node.word("direction") == "RIGHT":
        _refuse_wide(x)
        last = np.array(31, np.int32)
        return lower.cast(
            lower.op("RIGHT_SHIFT", lower.cast(x, "int32"), _within(lower, count, last)), x.dtype
        )
    table = [(1 << i) - (1 << 64 if i == 63 else 0) for i in range(bits)]
    factors = np.array([*table, 0], np.int64).astype("int64" if bits == 64 else "int32")
    places = _within(lower, count, np.array(bits, np.int32))
    factor = lower.op("GATHER", factors, places, axis=0)
    return lower.cast(lower.op("MUL", lower.cast(x, str(factors.dtype)), factor), x.dtype)


def _within(lower: Lowering, count: Tensor, most: np.ndarray) -> Tensor:
    """A number of bits; the most where it is larger, or below zero."""
    count = lower.cast(count, "int32")
    less = lower.op("MINIMUM", count, most)
    below = lower.op("LESS", count, np.array(0, np.int32))
    return lower.op("SELECT_V2", below, most, less)


def _refuse_wide(x: Tensor) -> None:
    if x.dtype in _WIDE:
        raise Unsupported(
            "LiteRT's kernels for bits take at most 32 of them, not {dtype}; cast to int32 before",
            x.dtype,
        )


def both(lower: Lowering, node: Node) -> Tensor:
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    return lower.cast(_both(lower, a, b), a.dtype)


def either(lower: Lowering, node: Node) -> Tensor:
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    total = lower.op("ADD", _both(lower, a, b), _differing(lower, a, b))
    return lower.cast(total, a.dtype)


def exactly_one(lower: Lowering, node: Node) -> Tensor:
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    return lower.cast(_differing(lower, a, b), a.dtype)


def _differing(lower: Lowering, a: Tensor, b: Tensor) -> Tensor:
    _refuse_wide(a)
    return lower.op("BITWISE_XOR", lower.cast(a, "int32"), lower.cast(b, "int32"))


def _both(lower: Lowering, a: Tensor, b: Tensor) -> Tensor:
    """The common bits of two integers: half of the excess of their sum over their differing bits.

    The upper and the lower halves are computed separately, so that no sum is too large.
    """
    _refuse_wide(a)
    halves = [_halves(lower, lower.cast(t, "int32")) for t in (a, b)]
    upper, lower_half = (_shared(lower, x, y) for x, y in zip(*halves, strict=True))
    return lower.op("ADD", lower.op("MUL", upper, np.array(1 << 16, np.int32)), lower_half)


def _halves(lower: Lowering, x: Tensor) -> tuple[Tensor, Tensor]:
    upper = lower.op("RIGHT_SHIFT", x, np.array(16, np.int32))
    return upper, lower.op("SUB", x, lower.op("MUL", upper, np.array(1 << 16, np.int32)))


def _shared(lower: Lowering, a: Tensor, b: Tensor) -> Tensor:
    twice = lower.op("SUB", lower.op("ADD", a, b), lower.op("BITWISE_XOR", a, b))
    return lower.op("RIGHT_SHIFT", twice, np.array(1, np.int32))


def neither(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    top = np.iinfo(x.dtype).max if x.dtype.startswith("u") else -1
    return lower.op("SUB", lower.const(np.array(top, x.dtype)), x)


def bit_cast(lower: Lowering, node: Node) -> Tensor:
    x, dtype = lower.first(node), element_type(node, "to")
    if "float16" in (dtype, x.dtype) or dtype in ("bfloat16", "float64"):
        raise Unsupported(
            "{dtype} is computed as float32, whose bits are others; cast its values instead", dtype
        )
    known = constant_numbers(x)
    if known is not None:
        return lower.const(known.reshape(-1).view(dtype).reshape(x.shape))
    return lower.builder.op("BITCAST", x, shape=x.shape, dtype=dtype)


RULES: dict[str, Rule] = {
    "BitCast": bit_cast,
    "BitShift": shift,
    "BitwiseAnd": both,
    "BitwiseNot": neither,
    "BitwiseOr": either,
    "BitwiseXor": exactly_one,
}

"""Ops without weights on int16 data, prepared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Array, Op, Tensor, constant_numbers
from litesmith.ir.window import strided_picks
from litesmith.kernels.programs import record_layout as at
from litesmith.kernels.programs.prepare_layers import scale_of, window_words
from litesmith.kernels.programs.program import Alias, Kernel, align
from litesmith.kernels.programs.rescale import (
    exponential_tables,
    factor,
    limits,
    logistic_table,
    product_words,
    shifts,
    sum_words,
    tanh_table,
)

_UNIT = 1 << 15  # elements of a unit of cheap work


def _one(op: Op) -> Tensor:
    tensor = op.inputs[0]
    if tensor is None:
        raise CannotApply("{kind} without input", op.kind)
    return tensor


def _units(count: int, block: int = _UNIT) -> tuple[int, dict[int, int]]:
    """The number of units into which elements are cut, and the words that say so."""
    return -(-count // block), {at.ROWS: count, at.BLOCK_ROWS: block}


def two(op: Op) -> list[Kernel]:
    """ADD, SUB and MUL, with shapes that are stretched to each other."""
    a, b = op.inputs[0], op.inputs[1]
    if a is None or b is None or (op.option("pot_scale_int16") is True and _powers(op)):
        raise CannotApply("{kind} at scales that are powers of two has no kernel here", op.kind)
    output = op.outputs[0]
    options = options_or_defaults(op.kind, op.options)
    span = limits(options.word("fused_activation_function"), scale_of(output))
    scales = scale_of(a), scale_of(b), scale_of(output)
    if op.kind == "MUL":
        late = early = product_words(scales, span)
    else:
        late = sum_words(scales, span, minus=op.kind == "SUB", early=False)
        early = sum_words(scales, span, minus=False, early=True) if op.kind == "ADD" else late
    tensors = a, b, output
    is_product = {at.IS_PRODUCT: int(op.kind == "MUL")}
    if prod(a.shape) == prod(b.shape) == output.elements:
        whole = output.elements // 16 * 16
        pieces = (early, 0, whole), (late, whole, output.elements - whole)
        return [_flat(tensors, is_product, *piece) for piece in pieces if piece[2]]
    return [_stretched(tensors, is_product, late)]


Three = tuple[Tensor, Tensor, Tensor]


def _flat(tensors: Three, words: dict[int, int], table: Array, offset: int, count: int) -> Kernel:
    """Elements side by side, from one of them on."""
    units, cut = _units(count)
    cut |= {at.IS_FLAT: 1, at.OFFSET: offset, at.STEP_1: 1, at.STEP_2: 1}
    constants = {at.TABLE: align(table)}
    return Kernel("two", tensors[:2], tensors[2:], units, words | cut, constants)


def _stretched(tensors: Three, words: dict[int, int], table: Array) -> Kernel:
    sizes, steps_a, steps_b = _common_steps(*(tensor.shape for tensor in tensors))
    units, cut = _units(prod(sizes[:-1]), max(_UNIT // sizes[-1], 1))
    cut |= {at.COUNT: sizes[-1], at.STEP_1: steps_a[-1], at.STEP_2: steps_b[-1]}
    for place, numbers in ((at.SIZES, sizes), (at.STEPS_1, steps_a), (at.STEPS_2, steps_b)):
        outer = numbers[:-1]
        filler = [1 if place == at.SIZES else 0] * (at.OUTER - len(outer))
        cut |= dict(enumerate([*filler, *outer], place))
    constants = {at.TABLE: align(table)}
    return Kernel("two", tensors[:2], tensors[2:], units, words | cut, constants)


def _powers(op: Op) -> bool:
    tensors = (*op.inputs, *op.outputs)
    logs = [math.log2(scale_of(t)) for t in tensors if t is not None]
    return all(abs(log - round(log)) < 1e-3 for log in logs)


Steps = tuple[list[int], list[int], list[int]]


def _common_steps(a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...]) -> Steps:
    """Sizes, and steps of both inputs along them; neighbours that step alike are one size."""
    rank = len(out)
    shapes = [(1,) * (rank - len(shape)) + tuple(shape) for shape in (a, b)]
    steps = [
        [prod(shape[axis + 1 :]) if shape[axis] > 1 else 0 for axis in range(rank)]
        for shape in shapes
    ]
    sizes, step_a, step_b = [1], [0], [0]
    for axis in range(rank):
        size, first, second = out[axis], steps[0][axis], steps[1][axis]
        if size == 1:
            continue
        if sizes[-1] == 1:
            sizes[-1], step_a[-1], step_b[-1] = size, first, second
        elif step_a[-1] == first * size and step_b[-1] == second * size:
            sizes[-1], step_a[-1], step_b[-1] = sizes[-1] * size, first, second
        else:
            sizes, step_a, step_b = [*sizes, size], [*step_a, first], [*step_b, second]
    if len(sizes) > at.OUTER + 1:
        raise CannotApply("shapes {a} and {b} are stretched in too many dimensions", a, b)
    return sizes, step_a, step_b


def _pool(kind: str) -> Callable[[Op], list[Kernel]]:
    def prepare(op: Op) -> list[Kernel]:
        data, output = _one(op), op.outputs[0]
        scale_of(data)
        options = options_or_defaults(op.kind, op.options)
        window = options.integer("filter_height"), options.integer("filter_width")
        words = window_words(options, data, window)
        low, high = limits(options.word("fused_activation_function"), scale_of(output))
        words |= {at.LOW: low, at.HIGH: high}
        lines = output.shape[0] * output.shape[1]
        scratch = 4 * data.shape[3] + 64
        return [Kernel(kind, (data,), (output,), lines, words, scratch=scratch)]

    return prepare


average_pool, max_pool = _pool("average"), _pool("largest")


def mean(op: Op) -> list[Kernel]:
    """Over neighbouring dimensions."""
    data, output = _one(op), op.outputs[0]
    given = constant_numbers(op.inputs[1])
    if given is None:
        raise CannotApply("{name!r}: the dimensions of its mean are computed", output.name)
    axes = sorted({int(axis) % len(data.shape) for axis in given.reshape(-1)})
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        raise CannotApply(
            "{name!r}: a mean over dimensions {axes}, which are no neighbours", output.name, axes
        )
    outer, reduced = prod(data.shape[: axes[0]]), prod(data.shape[axes[0] : axes[-1] + 1])
    inner = prod(data.shape[axes[-1] + 1 :])
    multiplier, shift = factor(scale_of(data) / scale_of(output))
    # 1 / count goes into the multiplier, with as many more bits as it takes.
    more = min(reduced.bit_length() - 1, 32, 31 + shift)
    words = {at.REDUCED: reduced, at.INNER: inner}
    words[at.MULTIPLIER] = (multiplier << more) // reduced
    words[at.LEFT], words[at.RIGHT] = shifts(shift - more)
    return [Kernel("mean", (data,), (output,), outer, words, scratch=4 * inner + 64)]


def softmax(op: Op) -> list[Kernel]:
    data, output = _one(op), op.outputs[0]
    beta = np.float32(options_or_defaults(op.kind, op.options).number("beta"))
    scale_of(output)
    multiplier, shift = factor(float(np.float32(scale_of(data)) * beta) / (10.0 / 65535.0))
    constants = {at.TABLE: align(exponential_tables())}
    depth = data.shape[-1]
    words = {at.INNER: depth, at.MULTIPLIER: multiplier}
    words[at.LEFT], words[at.RIGHT] = shifts(shift)
    rows = data.elements // depth
    return [Kernel("softmax", (data,), (output,), rows, words, constants)]


def by_table(op: Op, values: Array) -> list[Kernel]:
    """An op that replaces every int16 by its entry in a table."""
    data = _one(op)
    constants = {at.TABLE: align(values.astype(np.int16))}
    return [Kernel("table", (data,), op.outputs, *_units(data.elements), constants)]


def logistic(op: Op) -> list[Kernel]:
    return by_table(op, logistic_table(scale_of(_one(op)), scale_of(op.outputs[0])))


def tanh(op: Op) -> list[Kernel]:
    return by_table(op, tanh_table(scale_of(_one(op)), scale_of(op.outputs[0])))


def relu(op: Op) -> list[Kernel]:
    """RELU and its kin as ops of their own: rescaled, then limited."""
    multiplier, shift = factor(scale_of(_one(op)) / scale_of(op.outputs[0]))
    span = limits(op.kind, scale_of(op.outputs[0]))
    return by_table(op, np.clip(_rescaled_table(multiplier, shift), *span))


def concatenation(op: Op) -> list[Kernel]:
    """Rows of each input beside those of the others; the scales are all one."""
    output = op.outputs[0]
    options = options_or_defaults(op.kind, op.options)
    if options.word("fused_activation_function") != "NONE":
        raise CannotApply("{name!r}: a concatenation with an activation has no kernel", output.name)
    axis = options.integer("axis") % len(output.shape)
    rows, stride = prod(output.shape[:axis]), 2 * prod(output.shape[axis:])
    kernels: list[Kernel] = []
    offset = 0
    for tensor in op.inputs:
        if tensor is None:
            raise CannotApply("{name!r}: an input is missing", output.name)
        scale_of(tensor)
        size = 2 * prod(tensor.shape[axis:])
        kernels.append(_copy(tensor, output, (rows, size), to=(stride, offset)))
        offset += size
    return kernels


def _copy(
    tensor: Tensor,
    output: Tensor,
    shape: tuple[int, int],
    *,
    to: tuple[int, int] | None = None,
    out_of: tuple[int, int] | None = None,
) -> Kernel:
    """Copies rows of bytes; on either side, the distance from row to row, and the beginning of the
    first."""
    rows, size = shape
    (from_stride, from_offset), (to_stride, to_offset) = out_of or (size, 0), to or (size, 0)
    units, words = _units(rows, max(_UNIT // max(size, 1), 1))
    words |= {at.ROW_BYTES: size, at.IN_STRIDE: from_stride, at.IN_OFFSET: from_offset}
    words |= {at.OUT_STRIDE: to_stride, at.OUT_OFFSET: to_offset}
    return Kernel("copy", (tensor,), (output,), units, words)


def copied(tensor: Tensor, output: Tensor) -> Kernel:
    """Copies the bytes to another place."""
    return _copy(tensor, output, (1, tensor.nbytes))


def _cut(
    data: Tensor, axis: int, places: Sequence[range], outputs: Sequence[Tensor]
) -> list[Kernel]:
    """Places along one dimension, an output for each stretch of them."""
    scale_of(data)
    rows, inner = prod(data.shape[:axis]), 2 * prod(data.shape[axis + 1 :])
    stride = inner * data.shape[axis]
    return [
        _copy(data, output, (rows, inner * len(one)), out_of=(stride, inner * one.start))
        for one, output in zip(places, outputs, strict=True)
    ]


def split(op: Op) -> list[Kernel]:
    """SPLIT and SPLIT_V: an axis, given as a constant, cut into one part after the other."""
    data, axis = op.inputs[::-1] if op.kind == "SPLIT" else (op.inputs[0], op.inputs[2])
    numbers = constant_numbers(axis)
    if data is None or numbers is None:
        raise CannotApply("{kind}: its axis is computed", op.kind)
    place = int(numbers.reshape(-1)[0]) % len(data.shape)
    ends = list(accumulate((output.shape[place] for output in op.outputs), initial=0))
    return _cut(data, place, [range(*pair) for pair in pairwise(ends)], op.outputs)


def unpack(op: Op) -> list[Kernel]:
    data = _one(op)
    axis = options_or_defaults(op.kind, op.options).integer("axis") % len(data.shape)
    places = [range(place, place + 1) for place in range(data.shape[axis])]
    return _cut(data, axis, places, op.outputs)


def slices(op: Op) -> list[Kernel]:
    """SLICE and STRIDED_SLICE that cut along one dimension at most, without leaving places out."""
    data, *given = (constant_numbers(one) if n else one for n, one in enumerate(op.inputs))
    if not isinstance(data, Tensor) or any(one is None for one in given):
        raise CannotApply("{kind}: its bounds are computed", op.kind)
    bounds = [[int(number) for number in np.asarray(one).reshape(-1)] for one in given]
    kept = _kept(op, data.shape, bounds)
    cut = [n for n, (one, size) in enumerate(zip(kept, data.shape, strict=True)) if len(one) < size]
    if len(cut) > 1 or any(one.step != 1 for one in kept):
        raise CannotApply("{kind} of more than one dimension has no kernel here", op.kind)
    axis = cut[0] if cut else 0
    return _cut(data, axis, [kept[axis]], op.outputs)


def _kept(op: Op, shape: Sequence[int], bounds: Sequence[Sequence[int]]) -> list[range]:
    """The places that a slice keeps, dimension by dimension."""
    if op.kind == "SLICE":
        begins, sizes = bounds
        ends = (b + s if s >= 0 else n for b, s, n in zip(begins, sizes, shape, strict=True))
        return [range(*pair) for pair in zip(begins, ends, strict=True)]
    begins, ends, strides = bounds
    options = options_or_defaults(op.kind, op.options)
    picks = strided_picks(shape, begins, ends, strides, options)
    return [
        range(one, one + 1) if isinstance(one, int) else one for one in picks if one is not None
    ]


def pad(op: Op) -> list[Kernel]:
    data, output = _one(op), op.outputs[0]
    widths = constant_numbers(op.inputs[1])
    if widths is None or len(data.shape) > 4:
        raise CannotApply("{name!r}: only constant padding of up to 4 dimensions", output.name)
    scale_of(data)
    missing = 4 - len(data.shape)
    sizes = [1] * missing + list(data.shape), [1] * missing + list(output.shape)
    before = [0] * missing + [int(width) for width in widths[:, 0]]
    words = dict(enumerate([*sizes[0], *sizes[1], *before], at.IN_SIZES))
    return [Kernel("pad", (data,), (output,), 1, words)]


def same(op: Op) -> list[Alias]:
    """Ops that give other names to the same numbers."""
    data = _one(op)
    if data.is_const or (data.dtype, data.elements) != (
        op.outputs[0].dtype,
        op.outputs[0].elements,
    ):
        raise CannotApply("{kind} of {name!r} has no kernel here", op.kind, data.name)
    return [Alias((data,), op.outputs)]


def quantize(op: Op) -> list[Kernel]:
    """float32 to int16, or from one int16 scale to another."""
    data, output = _one(op), op.outputs[0]
    step = scale_of(output)
    if data.dtype == "int16":
        multiplier, shift = factor(scale_of(data) / step)
        return by_table(op, _rescaled_table(multiplier, shift))
    if data.dtype != "float32":
        raise CannotApply("QUANTIZE from {dtype} has no kernel here", data.dtype)
    # The runtime uses division only for the remainder after groups of eight.
    whole = data.elements // 8 * 8
    pieces = (0, 0, whole), (1, whole, data.elements - whole)
    return [_quantized(data, output, *piece) for piece in pieces if piece[2]]


def _quantized(data: Tensor, output: Tensor, exact: int, offset: int, count: int) -> Kernel:
    step = scale_of(output)
    reciprocal = np.array([1 / step, 0], np.float32).view(np.float64)
    constants = {at.TABLE: align(np.array([step, reciprocal[0]]))}
    units, words = _units(count)
    words |= {at.IS_EXACT: exact, at.OFFSET: offset}
    return Kernel("quantize", (data,), (output,), units, words, constants)


def _rescaled_table(multiplier: int, shift: int) -> Array:
    left, right = shifts(shift)
    wrapped = (np.arange(-32768, 32768) << left).astype(np.int32).astype(np.int64)
    high = (wrapped * multiplier + (1 << 30)) >> 31
    mask = (1 << right) - 1
    more = (high & mask) > (mask >> 1) + (high < 0)
    return np.clip((high >> right) + more, -32768, 32767)


def dequantize(op: Op) -> list[Kernel]:
    """int16 to float32."""
    data, output = _one(op), op.outputs[0]
    step = scale_of(data)
    if output.dtype != "float32":
        raise CannotApply("DEQUANTIZE to {dtype} has no kernel here", output.dtype)
    constants = {at.TABLE: align(np.array([0, 0, step, 0], np.float32))}
    return [Kernel("dequantize", (data,), (output,), *_units(data.elements), constants)]

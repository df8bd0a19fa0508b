"""Rules for integers that stand for real numbers, as QDQ and QOperator models have them.

Every such operator becomes DEQUANTIZE, the float operator, QUANTIZE; `integer_islands` then finds
the ops that LiteRT has on integers and computes them there. A constant that was stored in integers
becomes float and keeps its scales in `quant`, which say the integers again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from litesmith.conversion.core.element_types import dtype_name
from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node, Setting
from litesmith.conversion.rules.shapes import positive
from litesmith.conversion.rules.values import clamp, like
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Quant, Tensor, constant_numbers
from litesmith.phrases import phrase

# The codes of each type; small ones are kept one a byte.
_CODES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int2": (-2, 1),
    "uint2": (0, 3),
}
_KEPT_IN = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}


def same_quant(a: Quant | None, b: Quant | None) -> bool:
    """True where two tensors' codes stand for the same numbers."""
    if a is None or b is None:
        return a is b
    return (
        np.array_equal(a.scale, b.scale)
        and np.array_equal(a.zero_point, b.zero_point)
        and (a.axis == b.axis or not a.per_channel)
    )


def _spread(values: Array, shape: Sequence[int], axis: int, block: int) -> Array:
    """Scales or zero points as something that broadcasts over a tensor."""
    if values.size == 1:
        return values.reshape(())
    axis = positive(axis, len(shape))
    if values.ndim == 1:
        return values.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    times = block or -(-shape[axis] // values.shape[axis])
    whole = np.repeat(values, times, axis)
    return whole.take(np.arange(shape[axis]), axis)


# Codes


def quantize_linear(lower: Lowering, node: Node) -> Tensor:
    x, scale, zero = lower.inputs(node, 3)[:3]
    told = node.integer("output_dtype")
    dtype = zero.dtype if zero is not None else dtype_name(told) if told else "uint8"
    axis, block = node.integer("axis", 1), node.integer("block_size")
    return to_codes(lower, lower.need(x), lower.need(scale), zero, dtype, axis, block)


def to_codes(
    lower: Lowering,
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None,
    dtype: str,
    axis: int = 1,
    block: int = 0,
) -> Tensor:
    """Real numbers as codes: round(x / scale) + zero point, within the type."""
    if dtype not in _CODES:
        raise Unsupported("it makes {dtype}, which LiteRT has no kernels for", dtype)
    if dtype in _KEPT_IN and not x.is_const:
        raise Unsupported("it makes {dtype} as it runs, which LiteRT has no kernels for", dtype)
    scales, zeros = constant_numbers(scale), _zeros(zero)
    if scales is None or zeros is None:
        steps, points = (_along(lower, t, x, axis) for t in (scale, zero))
        return _computed_codes(lower, x, lower.need(steps), points, dtype)
    quant = _quant(scales, zeros, axis, len(x.shape))
    steps = _spread(scales.astype(np.float32), x.shape, axis, block)
    points = _spread(zeros, x.shape, axis, block)
    values = constant_numbers(x)
    if values is not None:
        codes = np.rint(values.astype(np.float32) / steps) + points
        kept = np.clip(codes, *_CODES[dtype]).astype(_KEPT_IN.get(dtype, dtype))
        return replace(lower.const(kept), quant=quant)
    if quant is not None and not quant.per_channel and _has_kernel(dtype, zeros):
        x = lower.cast(x, "float32")
        return lower.builder.op("QUANTIZE", x, dtype=dtype, quant=quant, version=_version(dtype))
    shift = lower.const(points.astype(np.float32))
    return _computed_codes(lower, x, lower.const(steps), shift, dtype)


def _along(lower: Lowering, values: Tensor | None, x: Tensor, axis: int) -> Tensor | None:
    """Computed scales or zero points as something that broadcasts over a tensor."""
    if values is None or values.elements == 1:
        return values and lower.reshape(values, ())
    if len(values.shape) > 1:
        raise Unsupported("the scales of its blocks are computed while it runs; make them constant")
    axis = positive(axis, len(x.shape))
    return lower.reshape(values, [d if i == axis else 1 for i, d in enumerate(x.shape)])


def _version(dtype: str) -> int:
    return 2 if dtype == "int16" else 1


def _has_kernel(dtype: str, zeros: Array) -> bool:
    """True where QUANTIZE and DEQUANTIZE take the type; 16-bit types have no zero point."""
    return dtype in ("int8", "uint8") or (dtype == "int16" and not zeros.any())


def _zeros(zero: Tensor | None) -> Array | None:
    """Zero points; 0 where they are omitted, None where only a run can tell."""
    if zero is None:
        return np.zeros((), np.int64)
    values = constant_numbers(zero)
    return None if values is None else values.astype(np.int64)


def _quant(scales: Array, zeros: Array, axis: int, rank: int) -> Quant | None:
    """Scales as a tensor has them; None for those of blocks."""
    bad = scales[~(np.isfinite(scales) & (scales > 0))]
    if bad.size:
        raise Unsupported(
            "its scale is {scale}, which stands for no numbers; quantize the model again, with "
            "finite masks",
            float(bad.reshape(-1)[0]),
        )
    if scales.size == 1:
        return Quant.of(scales.reshape(1), zeros.reshape(-1)[:1])
    if scales.ndim > 1:
        return None
    return Quant.of(scales, zeros, positive(axis, rank))


def _computed_codes(
    lower: Lowering, x: Tensor, scale: Tensor, zero: Tensor | None, dtype: str
) -> Tensor:
    """Codes by arithmetic, where there is no kernel for them."""
    x, scale = lower.cast(x, "float32"), lower.cast(scale, "float32")
    codes = lower.op("ROUND", lower.op("DIV", x, scale))
    if zero is not None:
        codes = lower.op("ADD", codes, lower.cast(zero, "float32"))
    low, high = (lower.const(like(codes, v)) for v in _CODES[dtype])
    return lower.as_integers(clamp(lower, codes, low, high), _KEPT_IN.get(dtype, dtype))


def dequantize_linear(lower: Lowering, node: Node) -> Tensor:
    codes, scale, zero = lower.inputs(node, 3)[:3]
    axis, block = node.integer("axis", 1), node.integer("block_size")
    return to_numbers(lower, lower.need(codes), lower.need(scale), zero, axis, block)


def to_numbers(
    lower: Lowering,
    codes: Tensor,
    scale: Tensor,
    zero: Tensor | None,
    axis: int = 1,
    block: int = 0,
) -> Tensor:
    """Codes as real numbers: (code − zero point) · scale."""
    if codes.dtype not in (*_CODES, "int32"):
        raise Unsupported("it reads {dtype}, which LiteRT has no kernels for", codes.dtype)
    if codes.dtype in _KEPT_IN and not codes.is_const:
        raise Unsupported("it reads {dtype} that is computed as it runs", codes.dtype)
    scales, zeros = constant_numbers(scale), _zeros(zero)
    if scales is None or zeros is None:
        steps, points = (_along(lower, t, codes, axis) for t in (scale, zero))
        return _computed_numbers(lower, codes, lower.need(steps), points)
    quant = _quant(scales, zeros, axis, len(codes.shape))
    steps = _spread(scales.astype(np.float32), codes.shape, axis, block)
    points = _spread(zeros, codes.shape, axis, block)
    values = constant_numbers(codes)
    if values is not None:
        numbers = ((values.astype(np.int64) - points) * steps.astype(np.float32)).astype(np.float32)
        kept = quant if values.dtype.itemsize == 1 else None
        return replace(lower.const(numbers), quant=kept)
    has_kernel = quant and not quant.per_channel and _has_kernel(codes.dtype, zeros)
    if quant and has_kernel and _give_scale(lower, codes, quant):
        version = {"int8": 2, "int16": 3}.get(codes.dtype, 1)
        return lower.builder.op("DEQUANTIZE", codes, version=version)
    shift = lower.const(points.astype(np.float32))
    return _computed_numbers(lower, codes, lower.const(steps), shift)


def _meaning(lower: Lowering, codes: Tensor) -> Quant | None:
    return codes.quant or lower.quants.get(codes)


def _known_scales(lower: Lowering, codes: Tensor) -> list[Quant]:
    """The scale of these codes or, where none is known, of the codes that they were moved from."""
    quant = _meaning(lower, codes)
    sources = () if quant else _moved_from(lower, codes)
    return (
        [quant]
        if quant
        else [found for source in sources for found in _known_scales(lower, source)]
    )


def _give_scale(lower: Lowering, codes: Tensor, quant: Quant) -> bool:
    """Gives codes a scale, and with them the codes that they were moved from, since an op that
    moves codes has one scale. False where some of them have another scale already."""
    if not all(same_quant(known, quant) for known in _known_scales(lower, codes)):
        return False
    sources = () if _meaning(lower, codes) else _moved_from(lower, codes)
    for source in sources:
        _give_scale(lower, source, quant)
    if codes.quant is None:
        lower.quants[codes] = quant
    return True


def _moved_from(lower: Lowering, codes: Tensor) -> list[Tensor]:
    """The codes that an op moved to make these; empty where no op did."""
    ops = reversed(lower.builder.ops)
    writer = next((op for op in ops if codes in op.outputs), None)
    if writer is None or OPS[writer.kind].scale != "same":
        return []
    return [t for t in writer.inputs if t and t.dtype == codes.dtype and not t.is_const]


def _computed_numbers(lower: Lowering, codes: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    numbers = lower.cast(codes, "float32")
    if zero is not None:
        numbers = lower.op("SUB", numbers, lower.cast(zero, "float32"))
    steps = constant_numbers(scale)
    if steps is not None and np.all(steps == 1):
        return numbers
    return lower.op("MUL", numbers, lower.cast(scale, "float32"))


# Operators of codes


def float_form(
    lower: Lowering, node: Node, kind: str, tensors: Sequence[Tensor | None], **settings: Setting
) -> Tensor:
    """The result of the float operator, with the node's own settings."""
    names = [f"{node.place}/{kind}/{i}" if t is not None else "" for i, t in enumerate(tensors)]
    lower.values |= {n: t for n, t in zip(names, tensors, strict=True) if t is not None}
    call = replace(
        node, kind=kind, domain="", inputs=tuple(names), settings={**node.settings, **settings}
    )
    made = lower.rules[kind](lower, call)
    return made if isinstance(made, Tensor) else made[0]


class Operands:
    """The inputs of an operator of codes, one after the other."""

    def __init__(self, lower: Lowering, node: Node) -> None:
        self._lower, self._left = lower, lower.inputs(node)

    def next(self) -> Tensor | None:
        return self._left.pop(0) if self._left else None

    def numbers(self, axis: int = 0) -> Tensor:
        """Codes, their scale and zero point, as real numbers."""
        codes, scale, zero = (self.next() for _ in range(3))
        need = self._lower.need
        return to_numbers(self._lower, need(codes), need(scale), zero, axis)

    def codes(self, x: Tensor, dtype: str) -> Tensor:
        """Real numbers as codes of the scale and zero point that come next."""
        scale, zero = self.next(), self.next()
        told = dtype if zero is None else zero.dtype
        return to_codes(self._lower, x, self._lower.need(scale), zero, told)

    @property
    def more(self) -> bool:
        return bool(self._left)


def qlinear_conv(lower: Lowering, node: Node) -> Tensor:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = lower.inputs(node, 9)[:9]
    x, x_scale, w_scale = lower.need(x), lower.need(x_scale), lower.need(w_scale)
    data = to_numbers(lower, x, x_scale, x_zero)
    weight = to_numbers(lower, lower.need(w), w_scale, w_zero, 0)
    if bias is not None:
        step = lower.op("MUL", lower.cast(x_scale, "float32"), lower.cast(w_scale, "float32"))
        bias = to_numbers(lower, bias, step, None, 0)
    made = float_form(lower, node, "Conv", [data, weight, bias])
    return to_codes(lower, made, lower.need(y_scale), y_zero, y_zero.dtype if y_zero else x.dtype)


def qlinear_matmul(lower: Lowering, node: Node) -> Tensor:
    operands = Operands(lower, node)
    dtype = lower.first(node).dtype
    # A scale for each row or column lies along the last axis but one, or the last.
    a, b = operands.numbers(-2), operands.numbers(-1)
    return operands.codes(float_form(lower, node, "MatMul", [a, b]), dtype)


def qgemm(lower: Lowering, node: Node) -> Tensor:
    a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero = lower.inputs(node, 9)[:9]
    a, a_scale, b_scale = lower.need(a), lower.need(a_scale), lower.need(b_scale)
    axis = 0 if node.integer("transB") else 1
    first = to_numbers(lower, a, a_scale, a_zero)
    second = to_numbers(lower, lower.need(b), b_scale, b_zero, axis)
    if bias is not None:
        step = lower.op("MUL", lower.cast(a_scale, "float32"), lower.cast(b_scale, "float32"))
        bias = to_numbers(lower, bias, step, None, -1)
    made = float_form(lower, node, "Gemm", [first, second, bias])
    if y_scale is None:
        return made
    return to_codes(lower, made, y_scale, y_zero, y_zero.dtype if y_zero else a.dtype)


def of_codes(kind: str, count: int) -> Rule:
    """A float operator of one or two inputs, on codes."""

    def rule(lower: Lowering, node: Node) -> Tensor:
        operands, dtype = Operands(lower, node), lower.first(node).dtype
        tensors = [operands.numbers() for _ in range(count)]
        if node.integer("channels_last"):
            tensors = [lower.channels_first(t) for t in tensors]
        made = float_form(lower, node, kind, tensors)
        made = lower.channels_last(made) if node.integer("channels_last") else made
        return operands.codes(made, dtype)

    return rule


def qlinear_concat(lower: Lowering, node: Node) -> Tensor:
    y_scale, y_zero, *rest = lower.inputs(node)
    parts = [
        to_numbers(lower, lower.need(rest[i]), lower.need(rest[i + 1]), rest[i + 2])
        for i in range(0, len(rest), 3)
    ]
    made = float_form(lower, node, "Concat", parts)
    return to_codes(lower, made, lower.need(y_scale), y_zero, y_zero.dtype if y_zero else "uint8")


def qlinear_where(lower: Lowering, node: Node) -> Tensor:
    operands = Operands(lower, node)
    condition = operands.next()
    a, b = operands.numbers(), operands.numbers()
    return operands.codes(float_form(lower, node, "Where", [condition, a, b]), "uint8")


def qlinear_softmax(lower: Lowering, node: Node) -> Tensor:
    operands, dtype = Operands(lower, node), lower.first(node).dtype
    if node.integer("opset", 13) < 13:
        raise Unsupported("a softmax of an opset before 13; export with opset 13 or newer")
    made = float_form(lower, node, "Softmax", [operands.numbers()])
    return operands.codes(made, dtype)


# Integers that are products of integers


def _less_zero(lower: Lowering, codes: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """Codes without their zero point, as float numbers."""
    one = lower.const(np.ones((), np.float32))
    if zero is None or zero.elements == 1:
        return to_numbers(lower, codes, one, zero and lower.reshape(zero, ()))
    ones = lower.const(np.ones(zero.shape, np.float32))
    return to_numbers(lower, codes, ones, zero, axis)


def integer_product(kind: str, axis: int) -> Rule:
    """A product whose sums are returned as int32; no kernel of LiteRT returns these, so it is in
    float."""

    def rule(lower: Lowering, node: Node) -> Tensor:
        a, b, a_zero, b_zero = lower.inputs(node, 4)[:4]
        first = _less_zero(lower, lower.need(a), a_zero, -2)
        second = _less_zero(lower, lower.need(b), b_zero, axis)
        made = float_form(lower, node, kind, [first, second])
        lower.notes[
            phrase(
                "{kind}: its sums are computed in float; LiteRT's integer kernels do not tell them",
                node.kind,
            )
        ] = None
        return lower.as_integers(lower.op("ROUND", made), "int32")

    return rule


def dynamic_quantize(lower: Lowering, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    """Codes, scale and zero point by the range that the values have."""
    x = lower.first(node)
    axes, nothing = np.arange(len(x.shape), dtype=np.int32), like(x, 0)
    high = lower.op("MAXIMUM", lower.op("REDUCE_MAX", x, axes), nothing)
    low = lower.op("MINIMUM", lower.op("REDUCE_MIN", x, axes), nothing)
    span = lower.op("SUB", high, low)
    step = lower.op("MUL", span, like(x, 1 / 255))
    step = lower.op("SELECT_V2", lower.op("GREATER", span, nothing), step, like(x, 1))
    bounds = [lower.const(like(x, v)) for v in (0, 255)]
    zero = clamp(lower, lower.op("ROUND", lower.op("DIV", lower.op("NEG", low), step)), *bounds)
    return _computed_codes(lower, x, step, zero, "uint8"), step, lower.as_integers(zero, "uint8")


def dynamic_lstm(lower: Lowering, node: Node) -> Sequence[Tensor]:
    """An LSTM with stored weights, (directions, inputs, gates); its data is not rounded here."""
    x, w, r, *others = lower.inputs(node, 12)
    *others, w_scale, w_zero, r_scale, r_zero = others[:9]

    def weight(codes: Tensor | None, scale: Tensor | None, zero: Tensor | None) -> Tensor:
        values, steps, points = (lower.known(t, "weights") for t in (codes, scale, zero))
        steps, points = (a.reshape(len(values), 1, -1) for a in (steps, points.astype(np.int64)))
        numbers = ((values - points) * steps).astype(np.float32)
        return lower.const(numbers.transpose(0, 2, 1))

    tensors = [x, weight(w, w_scale, w_zero), weight(r, r_scale, r_zero), *others]
    names = [f"{node.place}/{i}" if t is not None else "" for i, t in enumerate(tensors)]
    lower.values |= {n: t for n, t in zip(names, tensors, strict=True) if t is not None}
    lower.notes[
        phrase("{kind}: it computes in float, without rounding its data as it runs", node.kind)
    ] = None
    made = lower.rules["LSTM"](lower, replace(node, kind="LSTM", domain="", inputs=tuple(names)))
    return [made] if isinstance(made, Tensor) else made


# Operators of values, used on codes


def _on_codes(rule: Rule) -> Rule:
    """An operator that picks among values, on codes: the same on the numbers that they mean."""

    def inner(lower: Lowering, node: Node) -> Tensor | Sequence[Tensor]:
        codes = lower.first(node)
        if codes.dtype not in ("int8", "uint8") or codes.is_const:
            return rule(lower, node)
        quant = next(iter(_known_scales(lower, codes)), Quant.of(1.0, 0))
        scale, zero = lower.const(quant.scale), lower.const(quant.zero_point.astype(codes.dtype))
        numbers = to_numbers(lower, codes, scale, zero)
        name = f"{node.place}/numbers"
        lower.values[name] = numbers
        made = rule(lower, replace(node, inputs=(name, *node.inputs[1:])))
        first, *rest = (made,) if isinstance(made, Tensor) else made
        return [to_codes(lower, first, scale, zero, codes.dtype), *rest]

    return inner


def with_codes(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """All rules; those of operators that pick among values also take codes."""
    return {k: _on_codes(r) if k in ("MaxPool", "GlobalMaxPool") else r for k, r in rules.items()}


_MICROSOFT: dict[str, Rule] = {
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLSTM": dynamic_lstm,
    "QGemm": qgemm,
    "QLinearAdd": of_codes("Add", 2),
    "QLinearAveragePool": of_codes("AveragePool", 1),
    "QLinearConcat": qlinear_concat,
    "QLinearGlobalAveragePool": of_codes("GlobalAveragePool", 1),
    "QLinearLeakyRelu": of_codes("LeakyRelu", 1),
    "QLinearMul": of_codes("Mul", 2),
    "QLinearReduceMean": of_codes("ReduceMean", 1),
    "QLinearSigmoid": of_codes("Sigmoid", 1),
    "QLinearSoftmax": qlinear_softmax,
    "QLinearWhere": qlinear_where,
    "QuantizeLinear": quantize_linear,
}

RULES: dict[str, Rule] = {
    "ConvInteger": integer_product("Conv", 0),
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": integer_product("MatMul", -1),
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize_linear,
    **{f"com.microsoft.{kind}": rule for kind, rule in _MICROSOFT.items()},
}

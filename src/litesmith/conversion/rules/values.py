"""Rules for ops that work on each element by itself."""

from collections.abc import Callable
from functools import reduce
from math import inf

import numpy as np

from litesmith.conversion.core.element_types import dtype_name
from litesmith.conversion.core.lowering import COMPUTED_AS, Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Tensor, constant_numbers

# Abramowitz and Stegun 7.1.26: the error function within 1.5e-7.
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_P = 0.3275911


def plain(kind: str) -> Rule:
    """An op that LiteRT has as it is."""
    return lambda lower, node: lower.op(kind, *lower.inputs(node))


def made(compute: Callable[[Lowering, Tensor], Tensor]) -> Rule:
    """A function of one tensor, made of several ops."""
    return lambda lower, node: compute(lower, lower.first(node))


def folded(kind: str) -> Rule:
    """An op of two inputs, used on any number of them one after another."""

    def rule(lower: Lowering, node: Node) -> Tensor:
        tensors = [lower.need(t) for t in lower.inputs(node, 1)]
        return reduce(lambda a, b: lower.op(kind, a, b), tensors)

    return rule


def like(x: Tensor, value: float) -> np.ndarray:
    """A number of the tensor's type."""
    return np.array(value, x.dtype)


def mean(lower: Lowering, node: Node) -> Tensor:
    tensors = [lower.need(t) for t in lower.inputs(node, 1)]
    total = reduce(lambda a, b: lower.op("ADD", a, b), tensors)
    return lower.op("MUL", total, like(total, 1 / len(tensors)))


def divide(lower: Lowering, node: Node) -> Tensor:
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    divisor = constant_numbers(b)
    if divisor is not None and a.dtype == "float32" and not a.is_const and np.all(divisor != 0):
        inverse = 1 / divisor.astype(np.float64)
        if np.array_equal(inverse.astype(np.float32) * divisor, np.ones_like(divisor)):
            return lower.op("MUL", a, inverse.astype(np.float32))
    radicand = _positive_radicand(lower, b) if b.elements < a.elements else None
    if radicand is not None:  # as normalizations have it: a few roots, and a product for each value
        return lower.op("MUL", a, lower.op("RSQRT", radicand))
    if a.dtype == "int64":  # the kernel takes int32
        return lower.cast(lower.op("DIV", lower.cast(a, "int32"), lower.cast(b, "int32")), "int64")
    return lower.op("DIV", a, b)


def _positive_radicand(lower: Lowering, root: Tensor) -> Tensor | None:
    """What the tensor is the root of, where a positive number was added to it: XNNPACK's RSQRT
    gives no infinity for 0."""
    makers = {t: op for op in lower.builder.ops for t in op.outputs}
    sqrt = makers.get(root)
    inner = sqrt.inputs[0] if sqrt is not None and sqrt.kind == "SQRT" else None
    add = makers.get(inner) if inner is not None else None
    if add is None or add.kind != "ADD":
        return None
    numbers = [constant_numbers(t) for t in add.inputs]
    return inner if any(n is not None and np.all(n > 0) for n in numbers) else None


def power(lower: Lowering, node: Node) -> Tensor:
    base, exponent = (lower.need(t) for t in lower.inputs(node, 2))
    known = constant_numbers(exponent)
    if known is not None and known.size == 1 and base.dtype == "float32" and not base.is_const:
        to = float(known.reshape(-1)[0])
        short = {
            1.0: lambda: base,
            2.0: lambda: lower.op("MUL", base, base),
            0.5: lambda: lower.op("SQRT", base),
        }
        short[3.0] = lambda: lower.op("MUL", lower.op("MUL", base, base), base)
        if to in short and known.ndim <= len(base.shape):
            return short[to]()
    if base.dtype == exponent.dtype == "int64":
        return lower.cast(
            lower.op("POW", lower.cast(base, "int32"), lower.cast(exponent, "int32")), "int64"
        )
    if base.dtype != "float32" and exponent.dtype == "float32":
        return lower.cast(lower.op("POW", lower.cast(base, "float32"), exponent), base.dtype)
    return lower.op("POW", base, lower.cast(exponent, base.dtype))


def modulo(lower: Lowering, node: Node) -> Tensor:
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    if not node.integer("fmod"):
        return lower.op("FLOOR_MOD", a, b)
    size = lower.op("FLOOR_MOD", lower.op("ABS", a), lower.op("ABS", b))  # the sign is the first's
    return lower.op("MUL", size, lower.op("SIGN", a))


def element_type(node: Node, name: str, default: int = 0) -> str:
    """The element type that an attribute names."""
    dtype = dtype_name(node.integer(name, default))
    if dtype not in (*DTYPES, *COMPUTED_AS):
        raise Unsupported("LiteRT does not compute with {dtype}; export without it", dtype)
    return dtype


def cast(lower: Lowering, node: Node) -> Tensor:
    return cast_to(lower, lower.first(node), element_type(node, "to"))


def cast_like(lower: Lowering, node: Node) -> Tensor:
    x, other = (lower.need(t) for t in lower.inputs(node, 2))
    return cast_to(lower, x, other.dtype)


def cast_to(lower: Lowering, x: Tensor, dtype: str) -> Tensor:
    if x.dtype == "string" or dtype == "string":
        raise Unsupported(
            "LiteRT has no conversion between texts and numbers; do it before the model"
        )
    if dtype in ("float16", "bfloat16") and x.dtype == "float32":
        return x  # computed with more digits
    return lower.cast(x, COMPUTED_AS.get(dtype, dtype))


def clip(lower: Lowering, node: Node) -> Tensor:
    x, low, high = lower.inputs(node, 3)[:3]
    x = lower.need(x)
    if lower.opset < 11 or node.settings.keys() & {"min", "max"}:
        low = lower.const(like(x, node.number("min", -inf)))
        high = lower.const(like(x, node.number("max", inf)))
    return clamp(lower, x, low, high)


def clamp(lower: Lowering, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """The tensor between two numbers, which may be left out."""
    bounds = _scalar(low, -inf), _scalar(high, inf)
    short: dict[tuple[float | None, float | None], str] = {
        (0.0, inf): "RELU",
        (0.0, 6.0): "RELU6",
        (0.0, 1.0): "RELU_0_TO_1",
        (-1.0, 1.0): "RELU_N1_TO_1",
    }
    if x.dtype == "float32" and bounds in short:
        return lower.op(short[bounds], x)
    lowest, highest = (np.finfo if x.dtype == "float32" else np.iinfo)(x.dtype).min, inf
    if low is not None and (bounds[0] is None or bounds[0] > lowest):
        x = lower.op("MAXIMUM", x, lower.cast(low, x.dtype))
    if high is not None and (bounds[1] is None or bounds[1] < highest):
        x = lower.op("MINIMUM", x, lower.cast(high, x.dtype))
    return x


def _scalar(tensor: Tensor | None, default: float) -> float | None:
    if tensor is None:
        return default
    values = constant_numbers(tensor)
    return float(values.reshape(-1)[0]) if values is not None and values.size == 1 else None


def elu(lower: Lowering, x: Tensor, alpha: float) -> Tensor:
    if alpha == 1:
        return lower.op("ELU", x)
    below = lower.op("MUL", lower.op("ELU", lower.op("MINIMUM", x, like(x, 0))), like(x, alpha))
    return lower.op("ADD", lower.op("RELU", x), below)


def selu(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    alpha, gamma = node.number("alpha", 1.67326319), node.number("gamma", 1.05070102)
    return lower.op("MUL", elu(lower, x, alpha), like(x, gamma))


def celu(lower: Lowering, node: Node) -> Tensor:
    x, alpha = lower.first(node), node.number("alpha", 1)
    scaled = lower.op("MUL", x, like(x, 1 / alpha))
    return lower.op("MUL", lower.op("ELU", scaled), like(x, alpha))


def hard_sigmoid(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)
    line = lower.op("ADD", lower.op("MUL", x, like(x, alpha)), like(x, beta))
    return lower.op("RELU_0_TO_1", line)


def gelu(lower: Lowering, node: Node) -> Tensor:
    return lower.op(
        "GELU", lower.first(node), approximate=node.word("approximate", "none") == "tanh"
    )


def thresholded_relu(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    above = lower.op("GREATER", x, like(x, node.number("alpha", 1)))
    return lower.op("SELECT_V2", above, x, like(x, 0))


def shrink(lower: Lowering, node: Node) -> Tensor:
    x, bias, edge = lower.first(node), node.number("bias"), node.number("lambd", 0.5)
    up = lower.op(
        "SELECT_V2",
        lower.op("GREATER", x, like(x, edge)),
        lower.op("SUB", x, like(x, bias)),
        like(x, 0),
    )
    below = lower.op("LESS", x, like(x, -edge))
    return lower.op("SELECT_V2", below, lower.op("ADD", x, like(x, bias)), up)


def prelu(lower: Lowering, node: Node) -> Tensor:
    x, slope = (lower.need(t) for t in lower.inputs(node, 2))
    # LiteRT's op wants one slope a channel, last; an order that `relayout` finds.
    values = constant_numbers(slope)
    if values is not None and values.size == 1 and x.dtype == "float32":
        return lower.op("LEAKY_RELU", x, alpha=float(values.reshape(-1)[0]))
    rank = len(x.shape)
    if (
        values is not None
        and rank == 4
        and slope.shape == (x.shape[1], 1, 1)
        and x.dtype == "float32"
    ):
        last = lower.op("PRELU", lower.channels_last(x), values.reshape(1, 1, -1))
        return lower.channels_first(last)
    below = lower.op("MUL", lower.op("MINIMUM", x, like(x, 0)), slope)
    return lower.op("ADD", lower.op("MAXIMUM", x, like(x, 0)), below)


def softplus(lower: Lowering, x: Tensor) -> Tensor:
    """log(1 + exp(x)), without a number that is too large."""
    tail = lower.op("EXP", lower.op("NEG", lower.op("ABS", x)))
    return lower.op("ADD", lower.op("RELU", x), lower.op("LOG", lower.op("ADD", tail, like(x, 1))))


def erf(lower: Lowering, x: Tensor) -> Tensor:
    size = lower.op("ABS", x)
    t = lower.op(
        "DIV", like(x, 1), lower.op("ADD", lower.op("MUL", size, like(x, _ERF_P)), like(x, 1))
    )
    total = lower.op("MUL", t, like(x, _ERF[-1]))
    for factor in _ERF[-2::-1]:
        total = lower.op("MUL", lower.op("ADD", total, like(x, factor)), t)
    tail = lower.op("MUL", total, lower.op("EXP", lower.op("NEG", lower.op("MUL", x, x))))
    return lower.op("MUL", lower.op("SIGN", x), lower.op("SUB", like(x, 1), tail))


def arc_tangent(lower: Lowering, x: Tensor) -> Tensor:
    ones = lower.op(
        "ADD", lower.op("MUL", x, like(x, 0)), like(x, 1)
    )  # its kernel does not broadcast
    return lower.op("ATAN2", x, ones)


def _rest_of_circle(lower: Lowering, x: Tensor) -> Tensor:
    return lower.op(
        "SQRT", lower.op("MUL", lower.op("SUB", like(x, 1), x), lower.op("ADD", x, like(x, 1)))
    )


def _half(lower: Lowering, kind: str, a: Tensor, b: Tensor) -> Tensor:
    return lower.op("MUL", lower.op(kind, a, b), like(a, 0.5))


def hyperbolic(kind: str) -> Rule:
    def compute(lower: Lowering, x: Tensor) -> Tensor:
        return _half(lower, kind, lower.op("EXP", x), lower.op("EXP", lower.op("NEG", x)))

    return made(compute)


def arc_sinh(lower: Lowering, x: Tensor) -> Tensor:
    size = lower.op("ABS", x)
    root = lower.op("SQRT", lower.op("ADD", lower.op("MUL", x, x), like(x, 1)))
    return lower.op("MUL", lower.op("SIGN", x), lower.op("LOG", lower.op("ADD", size, root)))


def arc_cosh(lower: Lowering, x: Tensor) -> Tensor:
    root = lower.op("SQRT", lower.op("SUB", lower.op("MUL", x, x), like(x, 1)))
    return lower.op("LOG", lower.op("ADD", x, root))


def arc_tanh(lower: Lowering, x: Tensor) -> Tensor:
    ratio = lower.op("DIV", lower.op("ADD", x, like(x, 1)), lower.op("SUB", like(x, 1), x))
    return lower.op("MUL", lower.op("LOG", ratio), like(x, 0.5))


def mish(lower: Lowering, x: Tensor) -> Tensor:
    return lower.op("MUL", x, lower.op("TANH", softplus(lower, x)))


def swish(lower: Lowering, node: Node) -> Tensor:
    x, alpha = lower.first(node), node.number("alpha", 1)
    inner = x if alpha == 1 else lower.op("MUL", x, like(x, alpha))
    return lower.op("MUL", x, lower.op("LOGISTIC", inner))


def swish_gate(lower: Lowering, node: Node) -> Tensor:
    return lower.op("MUL", swish(lower, node), lower.inputs(node, 2)[1])


def is_infinite(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    up, down = node.integer("detect_positive", 1), node.integer("detect_negative", 1)
    if up and down:
        return lower.op("EQUAL", lower.op("ABS", x), like(x, inf))
    if not up and not down:
        return lower.op("NOT_EQUAL", x, x)
    return lower.op("EQUAL", x, like(x, inf if up else -inf))


def is_nan(lower: Lowering, x: Tensor) -> Tensor:
    return lower.op("NOT_EQUAL", x, x)


def where(lower: Lowering, node: Node) -> Tensor:
    condition, a, b = (lower.need(t) for t in lower.inputs(node, 3))
    return lower.op("SELECT_V2", condition, a, b)


def exclusive_or(lower: Lowering, node: Node) -> Tensor:
    return lower.op("NOT_EQUAL", *lower.inputs(node, 2))


def identity(lower: Lowering, node: Node) -> Tensor:
    return lower.first(node)


def dropout(lower: Lowering, node: Node) -> tuple[Tensor, ...]:
    x = lower.first(node)
    _, ratio, training = lower.inputs(node, 3)[:3]
    trains = training is not None and lower.known(training, "modes").any()
    if trains and (ratio is None or lower.known(ratio, "ratios").any()):
        raise Unsupported("it is in training mode; export the model for inference")
    ones = lower.const(np.ones(x.shape, bool)) if len(node.outputs) > 1 and node.outputs[1] else x
    return x, ones


RULES: dict[str, Rule] = {
    "Abs": plain("ABS"),
    "Acos": made(lambda l, x: l.op("ATAN2", _rest_of_circle(l, x), x)),  # noqa: E741
    "Acosh": made(arc_cosh),
    "Add": plain("ADD"),
    "And": plain("LOGICAL_AND"),
    "Asin": made(lambda l, x: l.op("ATAN2", x, _rest_of_circle(l, x))),  # noqa: E741
    "Asinh": made(arc_sinh),
    "Atan": made(arc_tangent),
    "Atanh": made(arc_tanh),
    "Cast": cast,
    "CastLike": cast_like,
    "Ceil": plain("CEIL"),
    "Celu": celu,
    "Clip": clip,
    "Cos": plain("COS"),
    "Cosh": hyperbolic("ADD"),
    "Div": divide,
    "Dropout": dropout,
    "Elu": lambda lower, node: elu(lower, lower.first(node), node.number("alpha", 1)),
    "Equal": plain("EQUAL"),
    "Erf": made(erf),
    "Exp": plain("EXP"),
    "Floor": plain("FLOOR"),
    "Gelu": gelu,
    "Greater": plain("GREATER"),
    "GreaterOrEqual": plain("GREATER_EQUAL"),
    "HardSigmoid": hard_sigmoid,
    "HardSwish": plain("HARD_SWISH"),
    "Identity": identity,
    "IsInf": is_infinite,
    "IsNaN": made(is_nan),
    "LeakyRelu": lambda lower, node: lower.op(
        "LEAKY_RELU", lower.first(node), alpha=node.number("alpha", 0.01)
    ),
    "Less": plain("LESS"),
    "LessOrEqual": plain("LESS_EQUAL"),
    "Log": plain("LOG"),
    "Max": folded("MAXIMUM"),
    "Mean": mean,
    "Min": folded("MINIMUM"),
    "Mish": made(mish),
    "Mod": modulo,
    "Mul": plain("MUL"),
    "Neg": plain("NEG"),
    "Not": plain("LOGICAL_NOT"),
    "Or": plain("LOGICAL_OR"),
    "PRelu": prelu,
    "Pow": power,
    "Reciprocal": made(lambda l, x: l.op("DIV", like(x, 1), x)),  # noqa: E741
    "Relu": plain("RELU"),
    "Round": plain("ROUND"),
    "Selu": selu,
    "Shrink": shrink,
    "Sigmoid": plain("LOGISTIC"),
    "Sign": plain("SIGN"),
    "Sin": plain("SIN"),
    "Sinh": hyperbolic("SUB"),
    "Softplus": made(softplus),
    "Softsign": made(lambda l, x: l.op("DIV", x, l.op("ADD", l.op("ABS", x), like(x, 1)))),  # noqa: E741
    "Sqrt": plain("SQRT"),
    "Sub": plain("SUB"),
    "Sum": folded("ADD"),
    "SwiGLU": swish_gate,
    "Swish": swish,
    "Tan": made(lambda l, x: l.op("DIV", l.op("SIN", x), l.op("COS", x))),  # noqa: E741
    "Tanh": plain("TANH"),
    "ThresholdedRelu": thresholded_relu,
    "Where": where,
    "Xor": exclusive_or,
}

"""Rewrites of ops that compute values one by one: activations and arithmetic."""

from dataclasses import replace
from math import pi, sqrt

import numpy as np

from litesmith.ir.types import Array, Op, Tensor
from litesmith.passes.rewriting.rewrite_parts import (
    Around,
    Parts,
    Unfit,
    Way,
    floats,
    given,
    int32,
    refuse_free,
    settings,
)
from litesmith.phrases import phrase

# How far a factor may be from 1/6 and still stand for it.
_ROUNDING = 1e-5


def _hard_swish(parts: Parts, op: Op) -> None:
    """The gate is brought to 0 … 1 first, so that an integer model keeps its steps."""
    x = given(op, 0)
    gate = parts.add("ADD", x, 3.0, fused_activation_function="RELU6")
    parts.end("MUL", x, parts.add("MUL", gate, 1 / 6))


def _to_hard_swish(parts: Parts, op: Op) -> None:
    """x · relu6(x + 3) / 6, in whatever order it is multiplied."""
    if settings(op).fields.get("fused_activation_function", "NONE") != "NONE":
        return
    factors, scale = _factors(op, parts.near)
    if len(factors) != 2 or abs(scale * 6 - 1) > _ROUNDING:
        return
    for gate, x in (factors, factors[::-1]):
        if _gated(gate, parts.near) is x:
            parts.end("HARD_SWISH", x)
            return


def _rsqrt(parts: Parts, op: Op) -> None:
    parts.end("DIV", 1.0, parts.add("SQRT", given(op, 0)))


def _factors(op: Op, near: Around) -> tuple[list[Tensor], float]:
    """The factors of a tree of products, and the product of its single constants."""
    found: list[Tensor] = []
    scale = 1.0
    for place, tensor in enumerate(op.inputs):
        held = floats(tensor)
        inner = near.maker(tensor, "MUL", "DIV")
        is_plain = inner is not None and inner.option("fused_activation_function") == "NONE"
        if tensor is None or (op.kind == "DIV" and place == 1 and (held is None or not held.all())):
            return [], 0.0
        if held is not None and held.size == 1:
            value = float(held.ravel()[0])
            scale *= 1 / value if op.kind == "DIV" and place == 1 else value
        elif inner is not None and is_plain:
            more, factor = _factors(inner, near)
            found, scale = found + more, scale * factor
        else:
            found.append(tensor)
    return found, scale


def _gated(tensor: Tensor, near: Around) -> Tensor | None:
    """The x of relu6(x + 3)."""
    clipped = near.maker(tensor, "RELU6")
    added = near.maker(clipped.inputs[0] if clipped else tensor, "ADD")
    if added is None:
        return None
    if added.option("fused_activation_function") != ("NONE" if clipped else "RELU6"):
        return None
    for x, three in (added.inputs, added.inputs[::-1]):
        held = floats(three)
        if held is not None and held.size == 1 and float(held.ravel()[0]) == 3.0:
            return x
    return None


def _leaky_relu(parts: Parts, op: Op) -> None:
    x, slope = given(op, 0), settings(op).number("alpha")
    if not 0 <= slope <= 1:
        raise Unfit(
            phrase("its slope is {slope:g}; the larger of x and slope · x needs 0 to 1", slope)
        )
    parts.end("MAXIMUM", x, parts.add("MUL", x, float(slope)))


def _leaky_relu_as_prelu(parts: Parts, op: Op) -> None:
    x, slope = given(op, 0), settings(op).number("alpha")
    if not x.shape:
        raise Unfit(phrase("it works on a single value"))
    slopes = np.full((1,) * (len(x.shape) - 2) + x.shape[-1:], slope, np.float32)
    parts.end("PRELU", x, slopes)


def _slopes(op: Op) -> Array:
    held = floats(given(op, 1))
    if held is None or not held.size:
        raise Unfit(phrase("its slopes are computed"))
    return held


def _prelu(parts: Parts, op: Op) -> None:
    x, slopes = given(op, 0), _slopes(op)
    below = parts.add("MUL", x, -1.0, fused_activation_function="RELU")
    parts.end("ADD", parts.add("RELU", x), parts.add("MUL", below, -slopes))


def _prelu_as_maximum(parts: Parts, op: Op) -> None:
    x, slopes = given(op, 0), _slopes(op)
    if slopes.min() < 0 or slopes.max() > 1:
        raise Unfit(phrase("its slopes are not all from 0 to 1"))
    parts.end("MAXIMUM", x, parts.add("MUL", x, slopes))


def _prelu_as_leaky_relu(parts: Parts, op: Op) -> None:
    slopes = _slopes(op)
    if (slopes != slopes.flat[0]).any():
        raise Unfit(phrase("its slopes differ"))
    parts.end("LEAKY_RELU", given(op, 0), alpha=float(slopes.flat[0]))


def _gelu(parts: Parts, op: Op) -> None:
    """x · sigmoid(2u), which is x · (1 + tanh(u)) / 2, with u = √(2/π) · (x + 0.044715 x³)."""
    x, factor = given(op, 0), 2 * sqrt(2 / pi)
    cube = parts.add("MUL", parts.add("MUL", x, x), 0.044715 * factor)
    bent = parts.add("MUL", parts.add("ADD", cube, factor), x)
    parts.end("MUL", x, parts.add("LOGISTIC", bent))


def _gelu_as_logistic(parts: Parts, op: Op) -> None:
    x = given(op, 0)
    parts.end("MUL", x, parts.add("LOGISTIC", parts.add("MUL", x, 1.702)))


def _neg(parts: Parts, op: Op) -> None:
    parts.end("MUL", given(op, 0), -1.0)


def _square(parts: Parts, op: Op) -> None:
    x = given(op, 0)
    parts.end("MUL", x, x)


def _abs(parts: Parts, op: Op) -> None:
    x = given(op, 0)
    below = parts.add("MUL", x, -1.0, fused_activation_function="RELU")
    parts.end("ADD", parts.add("RELU", x), below)


def _abs_as_maximum(parts: Parts, op: Op) -> None:
    x = given(op, 0)
    parts.end("MAXIMUM", x, parts.add("MUL", x, -1.0))


def _clamped_by_pool(parts: Parts, op: Op) -> None:
    """A pool over a window of one place applies only its fused activation, which XNNPACK runs as a
    clamp, in integers too."""
    x = given(op, 0)
    image = x if len(x.shape) == 4 else _as_image(parts, x)
    put = parts.end if image is x else parts.add
    made = put(
        "MAX_POOL_2D",
        image,
        padding="VALID",
        filter_height=1,
        filter_width=1,
        stride_h=1,
        stride_w=1,
        fused_activation_function=op.kind,
    )
    if made is not None:
        parts.end("RESHAPE", made, int32(op.outputs[0].shape))


def _as_image(parts: Parts, x: Tensor) -> Tensor:
    """Lays out rows of channels as an image that is one place high."""
    refuse_free(x)
    channels = x.shape[-1] if x.shape else 1
    return parts.add("RESHAPE", x, int32((1, 1, x.elements // max(channels, 1), channels)))


def _softmax_of_two(parts: Parts, op: Op) -> None:
    """The softmax of two scores is the LOGISTIC of their difference, in both directions."""
    x = given(op, 0)
    if x.shape[-1:] != (2,):
        raise Unfit(phrase("it is not over two scores"))
    beta = settings(op).number("beta")
    apart = np.array([[beta, -beta], [-beta, beta]], np.float32)
    made = parts.add(
        "FULLY_CONNECTED", x, apart, np.zeros(2, np.float32), keep_num_dims=True, version=5
    )
    parts.end("LOGISTIC", made)


def _squared_difference(parts: Parts, op: Op) -> None:
    apart = parts.add("SUB", given(op, 0), given(op, 1))
    parts.end("MUL", apart, apart)


def _l2_normalization(parts: Parts, op: Op) -> None:
    """The kernel divides by 1e-6 where a length is smaller."""
    x = given(op, 0)
    squares = parts.add("SUM", parts.add("MUL", x, x), int32([len(x.shape) - 1]), keep_dims=True)
    parts.end("MUL", x, parts.add("RSQRT", parts.add("MAXIMUM", squares, 1e-12)))


def _relu_0_to_1(parts: Parts, op: Op) -> None:
    parts.end("RELU_N1_TO_1", parts.add("RELU", given(op, 0)))


def _div(parts: Parts, op: Op) -> None:
    held = floats(given(op, 1))
    if held is None or not held.all():
        raise Unfit(phrase("it divides by what is computed, or by zero"))
    with np.errstate(over="ignore"):
        inverse = np.asarray(1 / held.astype(np.float64), np.float32)
    if not np.isfinite(inverse).all():
        raise Unfit(phrase("what it divides by is too small to multiply by its inverse"))
    fused = settings(op).word("fused_activation_function")
    parts.end("MUL", given(op, 0), inverse, fused_activation_function=fused)


def _sub(parts: Parts, op: Op) -> None:
    other = given(op, 1)
    held = floats(other)
    negative = parts.add("MUL", other, -1.0) if held is None else -held
    fused = settings(op).word("fused_activation_function")
    parts.end("ADD", given(op, 0), negative, fused_activation_function=fused)


def _full_rank(parts: Parts, op: Op) -> None:
    """Adds dimensions of 1 in front of a constant, as broadcasting would."""
    rank = len(op.outputs[0].shape)
    short = [place for place in (0, 1) if len(given(op, place).shape) < rank]
    if len(short) != 1 or given(op, 1 - short[0]).is_const:
        return
    held = floats(given(op, short[0]))
    if held is None or held.ndim < 2:  # a row or a single value is taken everywhere
        return
    inputs: list[Tensor | Array] = [given(op, 0), given(op, 1)]
    inputs[short[0]] = held.reshape((1,) * (rank - held.ndim) + held.shape)
    parts.again(*inputs)


def _set_apart(parts: Parts, op: Op) -> None:
    """Turns the fused activation into an op of its own."""
    fused = settings(op).word("fused_activation_function")
    if fused == "NONE":
        return
    if fused not in ("RELU", "RELU6", "RELU_N1_TO_1", "TANH"):
        raise Unfit(phrase("there is no op for its fused {fused}", fused))
    made = replace(op.outputs[0], name=f"{op.outputs[0].name}/plain")
    options = settings(op).set(fused_activation_function="NONE")
    parts.put(replace(op, outputs=(made,), options=options))
    parts.end(fused, made)


VALUES: dict[str, Way] = {
    "ABS": Way(_abs, "RELU(x) + RELU(-x), exactly"),
    "ABS:MAXIMUM": Way(_abs_as_maximum, "MAXIMUM(x, -x), exactly"),
    "DIV": Way(_div, phrase("MUL by the inverse, to the last bit of float32")),
    "GELU": Way(
        _gelu,
        phrase("x · LOGISTIC(1.596 x + 0.0714 x³), its tanh form: within 0.00048 of the exact one"),
    ),
    "GELU:LOGISTIC": Way(_gelu_as_logistic, "x · LOGISTIC(1.702 x), within 0.0207"),
    "HARD_SWISH": Way(_hard_swish, phrase("x · RELU6(x + 3) / 6, to the rounding of float32")),
    "L2_NORMALIZATION": Way(
        _l2_normalization, phrase("x · RSQRT of the sum of squares, to the rounding of float32")
    ),
    "LEAKY_RELU": Way(_leaky_relu, "MAXIMUM(x, slope · x), exactly"),
    "LEAKY_RELU:PRELU": Way(_leaky_relu_as_prelu, phrase("PRELU of one slope, exactly")),
    "MUL:HARD_SWISH": Way(_to_hard_swish, phrase("HARD_SWISH, to the rounding of float32")),
    "NEG": Way(_neg, phrase("MUL by -1, exactly")),
    "PRELU": Way(_prelu, "RELU(x) - slopes · RELU(-x), exactly"),
    "PRELU:LEAKY_RELU": Way(_prelu_as_leaky_relu, "LEAKY_RELU, exactly"),
    "PRELU:MAXIMUM": Way(_prelu_as_maximum, "MAXIMUM(x, slopes · x), exactly"),
    "RELU_0_TO_1": Way(_relu_0_to_1, phrase("RELU and RELU_N1_TO_1, exactly")),
    "SOFTMAX:LOGISTIC": Way(
        _softmax_of_two,
        phrase("LOGISTIC of the difference of two scores, to the rounding of float32"),
    ),
    "SQUARE": Way(_square, phrase("MUL by itself, exactly")),
    "RSQRT": Way(_rsqrt, phrase("1 / SQRT, which has a kernel for int16")),
    "SQUARED_DIFFERENCE": Way(_squared_difference, phrase("SUB and MUL by itself, exactly")),
    "SUB": Way(_sub, phrase("ADD of the negative, exactly")),
    **{
        f"{kind}:RANK": Way(_full_rank, phrase("the same with a constant of full rank, exactly"))
        for kind in ("ADD", "DIV", "MUL", "SUB")
    },
    **{
        f"{kind}:MAX_POOL_2D": Way(
            _clamped_by_pool, phrase("MAX_POOL_2D of one place, with it fused, exactly")
        )
        for kind in ("RELU", "RELU6", "RELU_N1_TO_1")
    },
    **{
        f"{kind}:ACTIVATION": Way(_set_apart, phrase("the op and its activation after it, exactly"))
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D")
    },
}
VALUES["DIV:HARD_SWISH"] = VALUES["MUL:HARD_SWISH"]

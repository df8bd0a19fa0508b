"""Rules for ops that bring many values to one: sums, norms, normalizations, softmax."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.pools import Pool, pool
from litesmith.conversion.rules.shapes import positive
from litesmith.conversion.rules.values import like
from litesmith.conversion.rules.windows import Window
from litesmith.ir.types import Tensor, constant_numbers

_Post = Callable[[Lowering, Tensor], Tensor]


def reducer(kind: str, before: str = "", after: str = "") -> Rule:
    """A reduction along axes, of each value's square or exponential or of the value itself."""

    def rule(lower: Lowering, node: Node) -> Tensor:
        x = lower.first(node)
        axes = _axes(lower, node, x)
        if axes is None:
            return x if not before else _after(lower, _before(lower, x, before), after)
        keep = bool(node.integer("keepdims", 1))
        if before == "EXP":
            return _log_sum_exp(lower, x, axes, keep)
        x = _before(lower, x, before)
        kinds = {"REDUCE_MAX": "REDUCE_ANY", "REDUCE_MIN": "REDUCE_ALL"}
        own = kinds[kind] if x.dtype == "bool" else kind
        shape = None if axes.is_const else lower.told(node)
        return _after(lower, lower.op(own, x, axes, keep_dims=keep, shape=shape), after)

    return rule


def _axes(lower: Lowering, node: Node, x: Tensor) -> Tensor | None:
    """The axes to reduce; None where the node says that none are."""
    told, keep = lower.told(node), bool(node.integer("keepdims", 1))
    if told is not None and "axes" not in node.settings and lower.is_computed(node, 1):
        if not keep:
            return lower.cast(lower.need(lower.inputs(node, 2)[1]), "int32")
        axes = [i for i, (a, b) in enumerate(zip(x.shape, told, strict=True)) if a != b]
        return lower.const(np.array(axes, np.int32)) if axes else None
    axes = lower.setting(node, "axes", 1)
    if not axes:
        axes = range(len(x.shape))
        if node.integer("noop_with_empty_axes"):
            return None
    places = sorted({positive(a, len(x.shape)) for a in axes})
    return lower.const(np.array(places, np.int32))


def _before(lower: Lowering, x: Tensor, before: str) -> Tensor:
    if before == "SQUARE":
        return lower.op("MUL", x, x)
    return lower.op(before, x) if before else x


def _after(lower: Lowering, x: Tensor, after: str) -> Tensor:
    if not after:
        return x
    dtype = x.dtype
    return lower.cast(lower.op(after, lower.cast(x, "float32")), dtype)


def _log_sum_exp(lower: Lowering, x: Tensor, axes: Tensor, keep: bool) -> Tensor:
    places = lower.integers(axes, "axes")
    most = lower.op("REDUCE_MAX", x, axes, keep_dims=True)
    total = lower.op("SUM", lower.op("EXP", lower.op("SUB", x, most)), axes, keep_dims=True)
    result = lower.op("ADD", lower.op("LOG", total), most)
    rest = [d for i, d in enumerate(x.shape) if i not in places]
    return result if keep else lower.reshape(result, rest)


def softmax(kind: str) -> Rule:
    def rule(lower: Lowering, node: Node) -> Tensor:
        x = lower.first(node)
        rank = len(x.shape)
        if lower.opset < 13:  # all from the axis on is one dimension
            axis = positive(node.integer("axis", 1), rank)
            flat = lower.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
            if prod(x.shape[axis:]) == x.shape[-1] and axis == rank - 1:
                flat = x
            return lower.reshape(_softmax(lower, kind, flat), x.shape)
        return softmax_along(lower, kind, x, node.integer("axis", -1))

    return rule


def softmax_along(lower: Lowering, kind: str, x: Tensor, axis: int) -> Tensor:
    rank = len(x.shape)
    axis = positive(axis, rank)
    order = [i for i in range(rank) if i != axis] + [axis]
    made = _softmax(lower, kind, lower.transpose(x, order))
    return lower.transpose(made, [order.index(i) for i in range(rank)])


def _softmax(lower: Lowering, kind: str, x: Tensor) -> Tensor:
    return lower.op("SOFTMAX", x, beta=1.0) if kind == "SOFTMAX" else lower.op(kind, x)


def hardmax(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    axis = positive(node.integer("axis", 1 if lower.opset < 13 else -1), len(x.shape))
    found = lower.op("ARG_MAX", x, np.array(axis, np.int32), output_type="INT32")
    on, off = like(x, 1), like(x, 0)
    count = np.array(x.shape[axis], np.int32)
    return lower.op("ONE_HOT", found, count, on, off, axis=-1 if axis == len(x.shape) - 1 else axis)


def normalized(
    lower: Lowering, x: Tensor, axes: list[int], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The tensor less its mean, over its deviation along axes; the mean; one over the deviation."""
    places = np.array(axes, np.int32)
    middle = lower.op("MEAN", x, places, keep_dims=True)
    centred = lower.op("SUB", x, middle)
    spread = lower.op("MEAN", lower.op("MUL", centred, centred), places, keep_dims=True)
    inverse = lower.op("RSQRT", lower.op("ADD", spread, like(x, epsilon)))
    return lower.op("MUL", centred, inverse), middle, inverse


def scaled(lower: Lowering, x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
    if scale is not None:
        x = lower.op("MUL", x, scale)
    return x if bias is None else lower.op("ADD", x, bias)


def _channels(lower: Lowering, values: Tensor | None, rank: int) -> Tensor | None:
    """One value a channel, in a shape that meets N, C, spatial …"""
    return None if values is None else lower.reshape(values, (values.elements, *[1] * (rank - 2)))


def batch_norm(lower: Lowering, node: Node) -> Tensor | tuple[Tensor, ...]:
    x, scale, bias, middle, variance = (lower.need(t) for t in lower.inputs(node, 5)[:5])
    epsilon = node.number("epsilon", 1e-5)
    if node.integer("training_mode"):
        return _trained_norm(lower, node, x, scale, bias, (middle, variance))
    known = [constant_numbers(t) for t in (scale, bias, middle, variance)]
    rank = max(len(x.shape), 2)
    if all(k is not None for k in known):
        s, b, m, v = (np.asarray(k, np.float64) for k in known)
        factor = s / np.sqrt(v + epsilon)
        shape = (-1, *[1] * (rank - 2))
        product = lower.op("MUL", x, factor.reshape(shape).astype(np.float32))
        return lower.op("ADD", product, (b - m * factor).reshape(shape).astype(np.float32))
    inverse = lower.op("RSQRT", lower.op("ADD", variance, like(x, epsilon)))
    factor_ = lower.op("MUL", scale, inverse)
    offset = lower.op("SUB", bias, lower.op("MUL", middle, factor_))
    return scaled(lower, x, _channels(lower, factor_, rank), _channels(lower, offset, rank))


def _trained_norm(
    lower: Lowering,
    node: Node,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    running: tuple[Tensor, Tensor],
) -> tuple[Tensor, ...]:
    """By the batch's own mean and variance; the running statistics are updated by their
    momentum."""
    axes = np.array([i for i in range(len(x.shape)) if i != 1], np.int32)
    middle = lower.op("MEAN", x, axes, keep_dims=True)
    centred = lower.op("SUB", x, middle)
    variance = lower.op("MEAN", lower.op("MUL", centred, centred), axes, keep_dims=True)
    shift = like(x, node.number("epsilon", 1e-5))
    fresh = lower.op("MUL", centred, lower.op("RSQRT", lower.op("ADD", variance, shift)))
    per_channel = (_channels(lower, t, len(x.shape)) for t in (scale, bias))
    momentum = node.number("momentum", 0.9)
    moved = [
        lower.op(
            "ADD",
            lower.op("MUL", old, like(old, momentum)),
            lower.op("MUL", lower.reshape(new, old.shape), like(old, 1 - momentum)),
        )
        for old, new in zip(running, (middle, variance), strict=True)
    ]
    return scaled(lower, fresh, *per_channel), *moved


def instance_norm(lower: Lowering, node: Node) -> Tensor:
    x, scale, bias = (lower.need(t) for t in lower.inputs(node, 3))
    rank = len(x.shape)
    fresh = normalized(lower, x, list(range(2, rank)), node.number("epsilon", 1e-5))[0]
    return scaled(lower, fresh, _channels(lower, scale, rank), _channels(lower, bias, rank))


def group_norm(lower: Lowering, node: Node) -> Tensor:
    x, scale, bias = (lower.need(t) for t in lower.inputs(node, 3))
    rank, groups = len(x.shape), node.integer("num_groups")
    parted = lower.reshape(x, (x.shape[0], groups, prod(x.shape[1:]) // groups))
    fresh = lower.reshape(normalized(lower, parted, [2], node.number("epsilon", 1e-5))[0], x.shape)
    if scale.elements == groups != x.shape[1]:  # opset 18: one number a group
        each = np.repeat(np.arange(groups, dtype=np.int32), x.shape[1] // groups)
        scale, bias = (lower.op("GATHER", t, each, axis=0) for t in (scale, bias))
    return scaled(lower, fresh, _channels(lower, scale, rank), _channels(lower, bias, rank))


def layer_norm(lower: Lowering, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    x, scale, bias = lower.inputs(node, 3)[:3]
    x = lower.need(x)
    axes = list(range(positive(node.integer("axis", -1), len(x.shape)), len(x.shape)))
    fresh, middle, inverse = normalized(lower, x, axes, node.number("epsilon", 1e-5))
    return scaled(lower, fresh, scale, bias), middle, inverse


def rms_norm(lower: Lowering, node: Node) -> Tensor:
    x, scale = lower.inputs(node, 2)[:2]
    x = lower.need(x)
    axes = list(range(positive(node.integer("axis", -1), len(x.shape)), len(x.shape)))
    inverse = root_mean_square(lower, x, axes, node.number("epsilon", 1e-5))
    return scaled(lower, lower.op("MUL", x, inverse), scale, None)


def root_mean_square(lower: Lowering, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """One over the root of the mean square."""
    places = np.array(axes, np.int32)
    power = lower.op("MEAN", lower.op("MUL", x, x), places, keep_dims=True)
    return lower.op("RSQRT", lower.op("ADD", power, like(x, epsilon)))


def mean_variance_norm(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    axes = [positive(a, len(x.shape)) for a in node.integers("axes", (0, 2, 3))]
    places = np.array(axes, np.int32)
    centred = lower.op("SUB", x, lower.op("MEAN", x, places, keep_dims=True))
    spread = lower.op("MEAN", lower.op("MUL", centred, centred), places, keep_dims=True)
    return lower.op("DIV", centred, lower.op("ADD", lower.op("SQRT", spread), like(x, 1e-9)))


def lp_norm(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    axis = np.array([positive(node.integer("axis", -1), len(x.shape))], np.int32)
    if node.integer("p", 2) == 1:
        size = lower.op("SUM", lower.op("ABS", x), axis, keep_dims=True)
    else:
        size = lower.op("SQRT", lower.op("SUM", lower.op("MUL", x, x), axis, keep_dims=True))
    least = like(x, float(np.finfo(np.float32).tiny))  # nothing over nothing is nothing
    return lower.op("DIV", x, lower.op("MAXIMUM", size, least))


def local_response(lower: Lowering, node: Node) -> Tensor:
    x, size = lower.first(node), node.integer("size")
    alpha, beta, bias = (
        node.number("alpha", 1e-4),
        node.number("beta", 0.75),
        node.number("bias", 1),
    )
    if size % 2 == 0:  # LiteRT's op has a middle
        return _even_response(lower, x, size, alpha, beta, bias)
    last = lower.channels_last(x)
    made = lower.op(
        "LOCAL_RESPONSE_NORMALIZATION",
        last,
        radius=size // 2,
        bias=bias,
        alpha=alpha / size,
        beta=beta,
    )
    return lower.channels_first(made)


def _even_response(
    lower: Lowering, x: Tensor, size: int, alpha: float, beta: float, bias: float
) -> Tensor:
    """Over an even number of channels: by the mean of the squares in a window of channels."""
    squares = lower.reshape(lower.op("MUL", x, x), (x.shape[0], 1, x.shape[1], prod(x.shape[2:])))
    frame = [((size - 1) // 2, size // 2), (0, 0)]
    window = Window((size, 1), (1, 1), (1, 1), frame)
    mean = pool(lower, squares, Pool("AVERAGE_POOL_2D", window, counts_frame=True))
    mean = lower.reshape(mean, x.shape)
    base = lower.op("ADD", lower.op("MUL", mean, like(x, alpha)), like(x, bias))
    return lower.op("MUL", x, lower.op("POW", base, like(x, -beta)))


RULES: dict[str, Rule] = {
    "BatchNormalization": batch_norm,
    "GroupNormalization": group_norm,
    "Hardmax": hardmax,
    "InstanceNormalization": instance_norm,
    "LRN": local_response,
    "LayerNormalization": layer_norm,
    "LogSoftmax": softmax("LOG_SOFTMAX"),
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance_norm,
    "RMSNormalization": rms_norm,
    "ReduceL1": reducer("SUM", "ABS"),
    "ReduceL2": reducer("SUM", "SQUARE", "SQRT"),
    "ReduceLogSum": reducer("SUM", "", "LOG"),
    "ReduceLogSumExp": reducer("SUM", "EXP", "LOG"),
    "ReduceMax": reducer("REDUCE_MAX"),
    "ReduceMean": reducer("MEAN"),
    "ReduceMin": reducer("REDUCE_MIN"),
    "ReduceProd": reducer("REDUCE_PROD"),
    "ReduceSum": reducer("SUM"),
    "ReduceSumSquare": reducer("SUM", "SQUARE"),
    "SimplifiedLayerNormalization": rms_norm,  # as onnxruntime calls it
    "Softmax": softmax("SOFTMAX"),
}

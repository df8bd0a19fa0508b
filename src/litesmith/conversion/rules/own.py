"""Rules for operators of our own, domain "litesmith": ops of LiteRT that ONNX lacks."""

from math import prod

from litesmith.conversion.core.lowering import Lowering, Rule
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import interleaved
from litesmith.conversion.rules.values import plain
from litesmith.ir.types import Tensor


def linear(lower: Lowering, node: Node) -> Tensor:
    """x × weightᵀ + bias; the weights lie as LiteRT wants them."""
    x, weight, bias = lower.inputs(node, 3)[:3]
    x, weight = lower.need(x), lower.need(weight)
    flat = x if len(x.shape) > 1 else lower.reshape(x, (1, *x.shape))
    if bias is not None and not bias.is_const:
        made = lower.op("FULLY_CONNECTED", flat, weight, None, keep_num_dims=len(flat.shape) > 2)
        made = lower.op("ADD", made, bias)
    else:
        made = lower.op("FULLY_CONNECTED", flat, weight, bias, keep_num_dims=len(flat.shape) > 2)
    return lower.reshape(made, (*x.shape[:-1], prod(weight.shape[:-1])))


def matmul(lower: Lowering, node: Node) -> Tensor:
    """A product whose second factor is transposed by the kernel."""
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    return lower.op("BATCH_MATMUL", a, b, adj_y=bool(node.integer("transB")))


def embedding(lower: Lowering, node: Node) -> Tensor:
    """Rows of a table; their numbers are never negative."""
    table, places = (lower.need(t) for t in lower.inputs(node, 2))
    return lower.op("GATHER", table, places, axis=0)


def channel_shuffle(lower: Lowering, node: Node) -> Tensor:
    """Channels in groups, one from each in turn."""
    return interleaved(lower, lower.first(node), node.integer("groups"))


RULES: dict[str, Rule] = {
    "litesmith.ATAN2": plain("ATAN2"),
    "litesmith.ChannelShuffle": channel_shuffle,
    "litesmith.Embedding": embedding,
    "litesmith.Linear": linear,
    "litesmith.MatMul": matmul,
    "litesmith.RSQRT": plain("RSQRT"),
}

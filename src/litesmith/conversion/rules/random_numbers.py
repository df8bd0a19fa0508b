"""Rules for numbers drawn at random: other numbers than the source's, of the same distribution."""

from collections.abc import Callable

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.values import cast_to, element_type, like
from litesmith.ir.types import Tensor

_Draw = Callable[[Lowering, Node, tuple[int, ...]], Tensor]


def _drawn(lower: Lowering, kind: str, node: Node, shape: tuple[int, ...]) -> Tensor:
    seed = int(node.number("seed")) or 1
    return lower.op(kind, np.array(shape, np.int32), seed=seed, seed2=seed, shape=shape)


def _normal(lower: Lowering, node: Node, shape: tuple[int, ...]) -> Tensor:
    x = _drawn(lower, "RANDOM_STANDARD_NORMAL", node, shape)
    wide = lower.op("MUL", x, like(x, node.number("scale", 1)))
    return lower.op("ADD", wide, like(x, node.number("mean")))


def _uniform(lower: Lowering, node: Node, shape: tuple[int, ...]) -> Tensor:
    x = _drawn(lower, "RANDOM_UNIFORM", node, shape)
    low, high = node.number("low"), node.number("high", 1)
    return lower.op("ADD", lower.op("MUL", x, like(x, high - low)), like(x, low))


def shaped(draw: _Draw) -> Rule:
    """Random numbers in a shape that the node gives."""
    return lambda lower, node: draw(lower, node, node.integers("shape"))


def alike(draw: _Draw) -> Rule:
    """Numbers in the shape of the input."""
    return lambda lower, node: draw(lower, node, lower.first(node).shape)


def bernoulli(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    drawn = _drawn(lower, "RANDOM_UNIFORM", node, x.shape)
    hit = lower.op("LESS", drawn, x)
    dtype = element_type(node, "dtype") if "dtype" in node.settings else x.dtype
    return cast_to(lower, hit, dtype)


def multinomial(lower: Lowering, node: Node) -> Tensor:
    x, count = lower.first(node), node.integer("sample_size", 1)
    seed = int(node.number("seed")) or 1
    shape = (x.shape[0], count)
    drawn = lower.op(
        "MULTINOMIAL", x, np.array(count, np.int32), seed=seed, seed2=seed, shape=shape
    )
    return lower.cast(drawn, element_type(node, "dtype", 6))


RULES: dict[str, Rule] = {
    "Bernoulli": bernoulli,
    "Multinomial": multinomial,
    "RandomNormal": shaped(_normal),
    "RandomNormalLike": alike(_normal),
    "RandomUniform": shaped(_uniform),
    "RandomUniformLike": alike(_uniform),
}

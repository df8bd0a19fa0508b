"""Rules for operators that onnxruntime's optimizer makes of several, domain "com.microsoft"."""

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.layers import conv
from litesmith.conversion.rules.products import gemm, product
from litesmith.conversion.rules.reductions import normalized, root_mean_square, scaled
from litesmith.conversion.rules.values import like
from litesmith.ir.types import Tensor

_ACTIVATIONS = {"Relu": "RELU", "Sigmoid": "LOGISTIC", "Tanh": "TANH"}


def activated(rule: Rule) -> Rule:
    """A layer with the activation that follows it."""

    def fused(lower: Lowering, node: Node) -> Tensor:
        made, kind = rule(lower, node), node.word("activation")
        assert isinstance(made, Tensor)
        if kind in _ACTIVATIONS:
            return lower.op(_ACTIVATIONS[kind], made)
        numbers = node.numbers("activation_params")
        if kind == "LeakyRelu":
            return lower.op("LEAKY_RELU", made, alpha=(*numbers, 0.01)[0])
        if kind == "Clip" and len(numbers) == 2:
            return lower.op(
                "MINIMUM", lower.op("MAXIMUM", made, like(made, numbers[0])), like(made, numbers[1])
            )
        if kind:
            raise Unsupported(
                "its activation {kind} is not known; convert the file from before onnxruntime's "
                "optimizer",
                kind,
            )
        return made

    return fused


def fused_conv(lower: Lowering, node: Node) -> Tensor:
    """A convolution; the fourth input is added to it."""
    more = lower.inputs(node, 4)[3]
    made = conv(lower, node)
    return made if more is None else lower.op("ADD", made, more)


def fused_product(lower: Lowering, node: Node) -> Tensor:
    """A product of matrices that are turned over first, times a number."""
    if node.integer("transBatchA") or node.integer("transBatchB"):
        raise Unsupported(
            "it turns batches over too; convert the file from before onnxruntime's optimizer"
        )
    tensors = [lower.need(t) for t in lower.inputs(node, 2)[:2]]
    for place, name in enumerate(("transA", "transB")):
        rank = len(tensors[place].shape)
        if node.integer(name) and rank > 1:
            order = (*range(rank - 2), rank - 1, rank - 2)
            tensors[place] = lower.transpose(tensors[place], order)
    made, alpha = product(lower, *tensors), node.number("alpha", 1)
    return made if alpha == 1 else lower.op("MUL", made, like(made, alpha))


def gelu(approximate: bool) -> Rule:
    """GELU of the sum of a tensor and a bias."""

    def rule(lower: Lowering, node: Node) -> Tensor:
        x, bias = lower.inputs(node, 2)[:2]
        x = lower.need(x)
        x = x if bias is None else lower.op("ADD", x, bias)
        return lower.op("GELU", x, approximate=approximate)

    return rule


def quick_gelu(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    gate = lower.op("LOGISTIC", lower.op("MUL", x, like(x, node.number("alpha", 1.702))))
    return lower.op("MUL", x, gate)


def skip_norm(lower: Lowering, node: Node) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The norm of a sum of two tensors and a bias; the sum is the last output."""
    x, skip, scale, shift, bias = lower.inputs(node, 5)[:5]
    total = _sum(lower, x, skip, bias)
    axes = [len(total.shape) - 1]
    fresh, middle, inverse = normalized(lower, total, axes, node.number("epsilon", 1e-12))
    return scaled(lower, fresh, scale, shift), middle, inverse, total


def skip_root_norm(lower: Lowering, node: Node) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same normalization without a mean."""
    x, skip, scale, bias = lower.inputs(node, 4)[:4]
    total = _sum(lower, x, skip, bias)
    inverse = root_mean_square(lower, total, [len(total.shape) - 1], node.number("epsilon", 1e-12))
    return scaled(lower, lower.op("MUL", total, inverse), scale, None), inverse, inverse, total


def _sum(lower: Lowering, *tensors: Tensor | None) -> Tensor:
    total, *rest = (t for t in tensors if t is not None)
    for one in rest:
        total = lower.op("ADD", total, one)
    return total


_MICROSOFT: dict[str, Rule] = {
    "BiasGelu": gelu(False),
    "FastGelu": gelu(True),
    "FusedConv": activated(fused_conv),
    "FusedGemm": activated(gemm),
    "FusedMatMul": fused_product,
    "Gelu": gelu(False),
    "QuickGelu": quick_gelu,
    "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_root_norm,
}

RULES: dict[str, Rule] = {f"com.microsoft.{kind}": rule for kind, rule in _MICROSOFT.items()}

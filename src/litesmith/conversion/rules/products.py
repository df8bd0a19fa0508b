"""Rules for products of matrices."""

from collections.abc import Sequence
from math import prod

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import cut_out
from litesmith.conversion.rules.values import like
from litesmith.ir.types import Tensor


def gemm(lower: Lowering, node: Node) -> Tensor:
    a, b, c = lower.inputs(node, 3)[:3]
    a, b = lower.need(a), lower.need(b)
    if a.dtype != "float32":
        raise Unsupported(
            "a product of {dtype}; LiteRT's is of float32: cast its inputs before it", a.dtype
        )
    if node.integer("transA"):
        a = lower.transpose(a, (1, 0))
    weight = b if node.integer("transB") else lower.transpose(b, (1, 0))
    alpha, beta = node.number("alpha", 1), node.number("beta", 1)
    if alpha != 1:
        weight = lower.op("MUL", weight, like(weight, alpha))
    if c is not None and beta != 1:
        c = lower.op("MUL", c, like(c, beta))
    if c is not None and (
        not c.is_const or c.elements != weight.shape[0] or prod(c.shape[:-1]) != 1
    ):
        return lower.op("ADD", lower.op("FULLY_CONNECTED", a, weight, None), c)
    bias = None if c is None else lower.reshape(c, (c.elements,))
    return lower.op("FULLY_CONNECTED", a, weight, bias)


def matmul(lower: Lowering, node: Node) -> Tensor:
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    return product(lower, a, b)


def product(lower: Lowering, a: Tensor, b: Tensor) -> Tensor:
    """A product of matrices, as numpy's."""
    dtype = a.dtype
    if dtype != "float32":
        return lower.cast(product(lower, lower.cast(a, "float32"), lower.cast(b, "float32")), dtype)
    front, back = len(a.shape) == 1, len(b.shape) == 1
    a = lower.reshape(a, (1, *a.shape)) if front else a
    b = lower.reshape(b, (*b.shape, 1)) if back else b
    if b.is_const and (
        len(b.shape) == 2 or (prod(b.shape[:-2]) == 1 and len(b.shape) <= len(a.shape))
    ):
        weight = lower.transpose(lower.reshape(b, b.shape[-2:]), (1, 0))
        made = lower.op("FULLY_CONNECTED", a, weight, None, keep_num_dims=len(a.shape) > 2)
    else:
        made = lower.op("BATCH_MATMUL", a, b)
    shape = list(made.shape)
    if back:
        shape = shape[:-1]
    if front:
        del shape[-1 if back else -2]
    return lower.reshape(made, shape)


def einsum(lower: Lowering, node: Node) -> Tensor:
    tensors = [lower.need(t) for t in lower.inputs(node, 1)]
    terms, result = _equation(node.word("equation"), [len(t.shape) for t in tensors])
    made, labels = tensors[0], terms[0]
    if len(tensors) == 1:
        made, labels = _summed(lower, made, labels, result)
    for i in range(1, len(tensors)):
        later = "".join(terms[i + 1 :]) + result
        made, labels = _contracted(lower, (made, labels), (tensors[i], terms[i]), later)
    return lower.transpose(made, [labels.index(label) for label in result])


def _equation(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of each input and of the output, a letter for each dimension."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    free = [chr(c) for c in range(0x3B1, 0x3C9)]  # stand for what dots leave out
    dots = [rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks, strict=True)]
    widest = max((d for d, t in zip(dots, terms, strict=True) if "..." in t), default=0)
    spread = [
        t.replace("...", "".join(free[widest - d : widest]))
        for d, t in zip(dots, terms, strict=True)
    ]
    if not arrow:
        every = "".join(spread)
        right = "".join(sorted(c for c in set(every) if every.count(c) == 1 and c.isascii()))
        right = "".join(free[:widest]) + right
    if any(len(set(t)) != len(t) or len(t) != r for t, r in zip(spread, ranks, strict=True)):
        raise Unsupported("{equation} takes a diagonal; write it with Mul and ReduceSum", text)
    return spread, right.replace("...", "".join(free[:widest]))


def _summed(lower: Lowering, x: Tensor, labels: str, kept: str) -> tuple[Tensor, str]:
    """A tensor without the dimensions that nothing needs any more."""
    gone = [i for i, label in enumerate(labels) if label not in kept]
    if gone:
        x = lower.op("SUM", x, np.array(gone, np.int32), keep_dims=False)
    return x, "".join(label for label in labels if label in kept)


def _contracted(
    lower: Lowering, first: tuple[Tensor, str], second: tuple[Tensor, str], later: str
) -> tuple[Tensor, str]:
    """Two tensors as one: dimensions that both have stay where they are needed, else are summed."""
    a, la = _summed(lower, *first, second[1] + later)
    b, lb = _summed(lower, *second, first[1] + later)
    both = [c for c in la if c in lb]
    batch = "".join(c for c in both if c in later)
    inner = "".join(c for c in both if c not in later)
    own_a, own_b = ("".join(c for c in own if c not in both) for own in (la, lb))
    size = dict(zip(la + lb, a.shape + b.shape, strict=True))
    for label, count in zip(la, a.shape, strict=True):
        size[label] = max(size[label], count)
    rows, columns = prod(size[c] for c in own_a), prod(size[c] for c in own_b)
    depth = prod(size[c] for c in inner)
    left = lower.transpose(a, [la.index(c) for c in batch + own_a + inner])
    right = lower.transpose(b, [lb.index(c) for c in batch + inner + own_b])
    fronts = left.shape[: len(batch)], right.shape[: len(batch)]
    if fronts[0] == fronts[1] and len(batch) > 1:
        fronts = (prod(fronts[0]),), (prod(fronts[1]),)
    left = lower.reshape(left, (*fronts[0], rows, depth))
    right = lower.reshape(right, (*fronts[1], depth, columns))
    made = product(lower, left, right)
    labels = batch + own_a + own_b
    return lower.reshape(made, [size[c] for c in labels]), labels


def determinant(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    size = x.shape[-1]
    if size > 4:
        raise Unsupported(
            "the determinant of {size} by {size} values, and up to 4 by 4 is written out; "
            "compute it behind the model",
            size,
        )
    return lower.reshape(_determinant(lower, x, list(range(size)), 0), x.shape[:-2])


def _determinant(lower: Lowering, x: Tensor, columns: Sequence[int], row: int) -> Tensor:
    """By the first row: each value times the determinant of what is neither below nor beside."""
    total: Tensor | None = None
    for i, column in enumerate(columns):
        cut = [*((0, d, 1) for d in x.shape[:-2]), (row, row + 1, 1), (column, column + 1, 1)]
        part = cut_out(lower, x, cut)
        rest = [c for c in columns if c != column]
        if rest:
            part = lower.op("MUL", part, _determinant(lower, x, rest, row + 1))
        total = part if total is None else lower.op("SUB" if i % 2 else "ADD", total, part)
    assert total is not None
    return total


RULES: dict[str, Rule] = {
    "Det": determinant,
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": matmul,
}

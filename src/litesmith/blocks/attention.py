"""Attention: products of queries and keys, a softmax over them, products with values."""

from collections.abc import Iterator
from typing import NamedTuple

from litesmith.blocks.wiring import Wiring, data_of, is_product, is_weighted
from litesmith.ir.ops import OPS
from litesmith.ir.types import Op, Tensor

# Ops that may lie between the products and the softmax: a factor, a mask, a cap.
_SCALING = frozenset({"ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SUB"})
_MASKING = frozenset({"ADD", "MINIMUM", "SELECT", "SELECT_V2", "SUB"})


class Attention(NamedTuple):
    """One attention.

    scores      the product of queries and keys
    softmax     the softmax of the scores
    context     the product of the softmax's output and the values
    query, key, value, out   the layers before and after; None where it has none of its own
    masks       the ops that mask positions, from the scores to the softmax
    scaling     the ops that multiply scores, queries or keys by a factor
    """

    scores: Op
    softmax: Op
    context: Op
    query: Op | None
    key: Op | None
    value: Op | None
    out: Op | None
    masks: tuple[Op, ...] = ()
    scaling: tuple[Op, ...] = ()

    @property
    def heads(self) -> int:
        """The number of heads."""
        shape = self.softmax.outputs[0].shape
        return shape[-3] if len(shape) > 2 else 1


def attentions(wiring: Wiring) -> Iterator[Attention]:
    """Finds every attention by its softmax between two products."""
    for op in wiring.graph.ops:
        if OPS[op.kind].is_softmax:
            context = next(filter(is_product, wiring.users(op.outputs[0], ("MUL",))), None)
            scores, between = _scores(wiring, op)
            if context is not None and scores is not None:
                yield _attention(wiring, scores, op, context, between)


def _scores(wiring: Wiring, softmax: Op) -> tuple[Op | None, list[Op]]:
    """The product behind a softmax's input, and the ops between the two."""
    tensor, between = softmax.inputs[0], list[Op]()
    while tensor is not None:
        op = wiring.maker(tensor)
        if op is None or is_product(op):
            return op, between
        if op.kind not in _SCALING | _MASKING:
            return None, between
        between.append(op)
        tensor = _main_input(wiring, op)
    return None, between


def _main_input(wiring: Wiring, op: Op) -> Tensor | None:
    """The input of a mask or a factor that holds the scores, which is the one computed from a
    product.
    """
    given = data_of(op)
    for tensor in given:
        if _leads_to_product(wiring, tensor):
            return tensor
    return None


def _leads_to_product(wiring: Wiring, tensor: Tensor, depth: int = 6) -> bool:
    op = wiring.maker(tensor)
    if op is None or is_product(op):
        return op is not None
    if depth == 0 or op.kind not in _SCALING | _MASKING:
        return False
    return any(_leads_to_product(wiring, one, depth - 1) for one in data_of(op))


def _attention(
    wiring: Wiring, scores: Op, softmax: Op, context: Op, between: list[Op]
) -> Attention:
    masks = [op for op in between if op.kind in _MASKING and not _is_factor(op)]
    scaling = [op for op in between if op not in masks]
    factors = ("ADD", "DIV", "MUL")
    query, key = (wiring.maker(t, factors) for t in scores.inputs[:2])
    value = wiring.maker(_value_of(wiring, context, softmax), factors)
    out = next(filter(is_weighted, wiring.users(context.outputs[0], factors)), None)
    query, key, value = (op if is_weighted(op) else None for op in (query, key, value))
    return Attention(scores, softmax, context, query, key, value, out, tuple(masks), tuple(scaling))


def _is_factor(op: Op) -> bool:
    return op.kind in ("MUL", "DIV")


def _value_of(wiring: Wiring, context: Op, softmax: Op) -> Tensor | None:
    """The input of the second product that does not come from the softmax."""
    for tensor in context.inputs[:2]:
        if wiring.maker(tensor, ("MUL",)) is not softmax:
            return tensor
    return None

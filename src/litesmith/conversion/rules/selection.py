"""Rules that choose among values: by a condition, by their size, by their overlap."""

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import cut_out, positive, wrapped
from litesmith.ir.types import Tensor, constant_numbers


def one_hot(lower: Lowering, node: Node) -> Tensor:
    indices, depth, values = (lower.need(t) for t in lower.inputs(node, 3))
    axis, told = positive(node.integer("axis", -1), len(indices.shape) + 1), lower.told(node)
    if told is not None and lower.is_computed(node, 1):
        count = told[axis]
    else:
        count = lower.integers(depth, "depth")[0]
    off, on = (lower.reshape(cut_out(lower, values, [(i, i + 1, 1)]), ()) for i in (0, 1))
    places = wrapped(lower, lower.cast(indices, "int32"), count)
    last = axis == len(indices.shape)
    return lower.op(
        "ONE_HOT", places, np.array(count, np.int32), on, off, axis=-1 if last else axis
    )


def top_k(lower: Lowering, node: Node) -> tuple[Tensor, Tensor]:
    x = lower.first(node)
    rank, told = len(x.shape), lower.told(node)
    axis = positive(node.integer("axis", -1), rank)
    if told is not None and lower.is_computed(node, 1):
        count = told[axis : axis + 1]
    else:
        count = lower.setting(node, "k", 1, (1,))
    assert count is not None
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(rank)]
    turned = lower.transpose(x, order)
    smallest = not node.integer("largest", 1)
    if smallest:
        turned = lower.op("NEG", turned)
    values, places = lower.ops("TOPK_V2", turned, np.array(count[0], np.int32))
    if smallest:
        values = lower.op("NEG", values)
    return lower.transpose(values, back), lower.cast(lower.transpose(places, back), "int64")


def non_zero(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    rank, told = len(x.shape), lower.told(node)
    count = told[1] if told else None
    found = _places(lower, lower.op("NOT_EQUAL", x, np.zeros((), x.dtype)), count)
    return lower.transpose(found, (1, 0)) if rank else found


def _places(lower: Lowering, condition: Tensor, count: int | None) -> Tensor:
    """The places where a condition holds, one per row; the source must state their number."""
    if constant_numbers(condition) is None and count is None:
        raise Unsupported(
            "how much it finds is known only while it runs, and what follows needs fixed sizes; "
            "replace it by a mask (Where) before the export"
        )
    shape = None if count is None else (count, len(condition.shape))
    return lower.op("WHERE", condition, shape=shape)


def compress(lower: Lowering, node: Node) -> Tensor:
    x, condition = lower.inputs(node, 2)[:2]
    x, condition = lower.need(x), lower.need(condition)
    told = lower.told(node)
    if "axis" not in node.settings:
        x = lower.reshape(x, (x.elements,))
    axis = positive(node.integer("axis"), len(x.shape))
    known = constant_numbers(condition)
    if known is not None:
        return lower.op("GATHER", x, np.flatnonzero(known).astype(np.int32), axis=axis)
    found = _places(lower, condition, told[axis] if told else None)
    found = lower.reshape(found, (found.shape[0],))
    return lower.op("GATHER", x, lower.cast(found, "int32"), axis=axis)


def non_max_suppression(lower: Lowering, node: Node) -> Tensor:
    boxes, scores, most, overlap, least = lower.inputs(node, 5)[:5]
    boxes, scores, told = lower.need(boxes), lower.need(scores), lower.told(node)
    if told is None:
        raise Unsupported(
            "how many boxes it keeps is known only while it runs, and what follows needs fixed "
            "sizes; export the model without it and suppress boxes behind the model"
        )
    if most is None or not told[0]:
        return lower.const(np.zeros((0, 3), np.int64))
    limits = (
        lower.reshape(lower.cast(most, "int32"), ()),
        _beyond(lower, _number(lower, overlap, 0.0)),
        _number(lower, least, -np.inf),
    )
    if node.integer("center_point_box"):
        boxes = _corners(lower, boxes)
    kept: list[Tensor] = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            kept.append(_kept(lower, boxes, scores, (batch, kind), limits, told[0]))
    made = kept[0] if len(kept) == 1 else lower.op("CONCATENATION", *kept, axis=0, shape=told)
    return lower.cast(made, "int64")


def _number(lower: Lowering, tensor: Tensor | None, default: float) -> Tensor:
    if tensor is None:
        return lower.const(np.array(default, np.float32))
    return lower.reshape(tensor, ())


def _beyond(lower: Lowering, overlap: Tensor) -> Tensor:
    """The next number: ONNX keeps a box that overlaps just as much as this, LiteRT does not."""
    next_ = lower.op("MUL", overlap, np.nextafter(np.float32(1), np.float32(2)))
    return lower.op("MAXIMUM", next_, np.float32(1e-37))


def _corners(lower: Lowering, boxes: Tensor) -> Tensor:
    """Boxes by two corners, instead of centre and size."""
    halves = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, -0.5, 0, 0.5], [-0.5, 0, 0.5, 0]])
    return lower.op("FULLY_CONNECTED", boxes, halves.T.astype(np.float32), None, keep_num_dims=True)


def _kept(
    lower: Lowering,
    boxes: Tensor,
    scores: Tensor,
    place: tuple[int, int],
    limits: tuple[Tensor, Tensor, Tensor],
    total: int,
) -> Tensor:
    """The boxes of one batch and class that stay: rows of batch, class, box."""
    batch, kind = place
    count = boxes.shape[1]
    own = lower.reshape(
        cut_out(lower, boxes, [(batch, batch + 1, 1), (0, count, 1), (0, 4, 1)]), (count, 4)
    )
    cut = [(batch, batch + 1, 1), (kind, kind + 1, 1), (0, count, 1)]
    own_scores = lower.reshape(cut_out(lower, scores, cut), (count,))
    room = np.array(min(total, count), np.int32)
    found, valid = lower.ops("NON_MAX_SUPPRESSION_V4", own, own_scores, room, *limits[1:])
    valid = lower.op("MINIMUM", valid, limits[0])
    rows = lower.op(
        "MUL", lower.reshape(found, (found.shape[0], 1)), np.array([[0, 0, 1]], np.int32)
    )
    rows = lower.op("ADD", rows, np.array([[batch, kind, 0]], np.int32))
    ends = lower.op("PACK", valid, np.array(3, np.int32), axis=0, values_count=2)
    begins, steps = np.zeros(2, np.int32), np.ones(2, np.int32)
    return lower.op("STRIDED_SLICE", rows, begins, ends, steps, shape=rows.shape)


RULES: dict[str, Rule] = {
    "Compress": compress,
    "NonMaxSuppression": non_max_suppression,
    "NonZero": non_zero,
    "OneHot": one_hot,
    "TopK": top_k,
}

"""ATen's operators that pick values by places or by size, and put them back."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np

from litesmith.conversion.aten.call import Call, NotWritten, Ref, Row, computed


def embedding(call: Call) -> None:
    call.end("litesmith.Embedding", call.name("weight"), call.name("indices"))


def index_select(call: Call) -> None:
    call.end("Gather", call.name("self"), call.name("index"), axis=call.axis())


def gather(call: Call) -> None:
    call.end("GatherElements", call.name("self"), call.name("index"), axis=call.axis())


def _indices(call: Call) -> list[Ref | None]:
    given = call.arguments.get("indices")
    if not isinstance(given, tuple):
        raise NotWritten("its argument {name!r} is no list of tensors", "indices")
    return [v if isinstance(v, Ref) else None for v in given]


def _is_mask(ref: Ref | None) -> bool:
    return ref is not None and ref.dtype in ("bool", "uint8")


def _refuse_masks(given: Sequence[Ref | None]) -> None:
    if any(_is_mask(r) for r in given):
        raise NotWritten(
            "a choice by a mask, whose size depends on the values; use torch.where, which keeps it"
        )


def index(call: Call) -> None:
    """x[…, i, …]: along one axis, or along several."""
    x, given = call.ref("self"), _indices(call)
    _refuse_masks(given)
    axes = [axis for axis, r in enumerate(given) if r is not None]
    if len(axes) == 1:
        call.end("Gather", x.name, _of(given[axes[0]]).name, axis=axes[0])
        return
    refs = [_of(given[a]) for a in axes]
    shape = np.broadcast_shapes(*(r.shape for r in refs))
    picked = "GatherND", _in_front(call, x, axes), _places(call, refs, shape)
    back = np.argsort(_picked_in_front(axes, len(shape), len(call.shape)))
    if back.tolist() == list(range(len(back))):
        call.end(*picked)
    else:
        call.end("Transpose", call.step(*picked), perm=tuple(back.tolist()))


def _of(ref: Ref | None) -> Ref:
    assert ref is not None
    return ref


def _in_front(call: Call, x: Ref, axes: Sequence[int]) -> str:
    """The tensor with some axes before all others."""
    order = [*axes, *(a for a in range(x.rank) if a not in axes)]
    if order == list(range(x.rank)):
        return x.name
    return call.step("Transpose", x.name, perm=tuple(order))


def _picked_in_front(axes: Sequence[int], count: int, rank: int) -> list[int]:
    """The order that brings the picked axes of `x[…]` to the front: they stand where the indices
    did, if those stood together, and in front otherwise."""
    inner = axes[0] if all(b == a + 1 for a, b in pairwise(axes)) else 0
    return [*range(inner, inner + count), *range(inner), *range(inner + count, rank)]


def _places(call: Call, refs: Sequence[Ref], shape: Sequence[int]) -> str:
    """Coordinates, one after another in the last axis."""
    parts: list[str] = []
    for ref in refs:
        whole = call.cast(ref, "int64")
        if ref.shape != tuple(shape):
            whole = call.step("Expand", whole, call.whole(shape))
        parts.append(call.step("Reshape", whole, call.whole((*shape, 1))))
    return call.step("Concat", *parts, axis=len(shape))


def index_put(call: Call) -> None:
    """x[…, i, …] = values, or += where values are added up."""
    x, given = call.ref("self"), _indices(call)
    if len(given) == 1 and _is_mask(given[0]):
        _put_by_mask(call, x, _of(given[0]))
        return
    _refuse_masks(given)
    axes = [axis for axis, r in enumerate(given) if r is not None]
    refs = [_of(given[a]) for a in axes]
    shape = np.broadcast_shapes(*(r.shape for r in refs))
    others = [d for a, d in enumerate(x.shape) if a not in axes]
    order = _picked_in_front(axes, len(shape), len(shape) + len(others))
    sizes = np.array([*shape, *others])[np.argsort(order)].tolist()
    values = call.step("Expand", call.operand("values", call.dtype), call.whole(sizes))
    if order != list(range(len(order))):
        values = call.step("Transpose", values, perm=tuple(order))
    parts = _in_front(call, x, axes), _places(call, refs, shape), values
    way = "add" if call.flag("accumulate") else "none"
    if axes == list(range(len(axes))):
        call.end("ScatterND", *parts, reduction=way)
        return
    front = [*axes, *(a for a in range(x.rank) if a not in axes)]
    back = tuple(front.index(a) for a in range(x.rank))
    call.end("Transpose", call.step("ScatterND", *parts, reduction=way), perm=back)


def _put_by_mask(call: Call, x: Ref, mask: Ref) -> None:
    """x[mask] = value: of one value, the sizes do not depend on the mask."""
    value = call.ref("values")
    if prod(value.shape[: max(value.rank - (x.rank - mask.rank), 0)]) != 1:
        raise NotWritten(
            "values put by a mask, whose count depends on the values; use torch.where, which "
            "keeps it"
        )
    seen = call.cast(mask, "bool")
    if mask.rank < x.rank:
        seen = call.step("Reshape", seen, call.whole((*mask.shape, *[1] * (x.rank - mask.rank))))
    put = call.cast(value, call.dtype)
    if call.flag("accumulate"):
        put = call.step("Add", x.name, put)
    call.end("Where", seen, put, x.name)


def scatter(way: str = "none") -> Row:
    def row(call: Call) -> None:
        index = call.ref("index")
        source = call.arguments.get("src")
        if isinstance(source, Ref):
            updates = source.name
            if source.shape != index.shape:
                parts = [[0] * index.rank, list(index.shape), list(range(index.rank))]
                updates = call.step("Slice", updates, *map(call.whole, parts))
        else:
            value = call.number("value")
            updates = call.constant(np.full(index.shape, value, computed(call.dtype)))
        inputs = call.name("self"), index.name, updates
        call.end("ScatterElements", *inputs, axis=call.axis(), reduction=way)

    return row


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def scatter_reduce(call: Call) -> None:
    way = _REDUCTIONS.get(call.word("reduce"))
    if way is None or not call.integer("include_self", 1):
        raise NotWritten(
            "values scattered to a mean, or without those that were there; sum, prod, amax and "
            "amin with include_self=True can be converted"
        )
    scatter(way)(call)


def top_k(call: Call) -> None:
    x, axis = call.ref("self"), call.axis(default=-1)
    count = call.whole([call.integer("k")])
    call.end("TopK", x.name, count, axis=axis, largest=call.integer("largest", 1))


def sort(call: Call) -> None:
    """All values sorted; for `argsort`, only their places."""
    x, axis = call.ref("self"), call.axis(default=-1)
    outputs = call.outputs if len(call.outputs) == 2 else ("", *call.outputs)
    count = call.whole([x.shape[axis] if x.rank else 1])
    own = replace(call, outputs=outputs)
    own.end("TopK", x.name, count, axis=axis, largest=call.integer("descending"))


def kth(call: Call) -> None:
    """The value of a rank along an axis, and its place."""
    _of_rank(call, call.ref("self"), call.axis(default=-1), call.integer("k"))


def median(call: Call) -> None:
    """The lower of the two middle values where there are two."""
    x = call.ref("self")
    if call.has("dim"):
        axis = call.axis(default=-1)
        _of_rank(call, x, axis, (x.shape[axis] + 1) // 2)
        return
    count = prod(x.shape)
    flat = call.step("Reshape", x.name, call.whole([count]))
    _of_rank(call, Ref(flat, (count,), x.dtype), 0, (count + 1) // 2)


def _of_rank(call: Call, x: Ref, axis: int, rank: int) -> None:
    """The value of this rank, counted from the smallest."""
    found = call.steps("TopK", 2, x.name, call.whole([rank]), axis=axis, largest=0)
    for place, output in enumerate(call.outputs):
        if output:
            own = call.output(place)
            ends = (own.whole([v]) for v in (rank - 1, rank, axis))
            own.end("Reshape", own.step("Slice", found[place], *ends), own.whole(own.shape))


def count_below(call: Call) -> None:
    """Between which of some sorted borders each value lies."""
    edges = call.ref("boundaries" if call.has("boundaries") else "sorted_sequence")
    given = "self" if "self" in call.arguments and call.has("self") else "input"
    dtype = "float32" if "float" in f"{edges.dtype} {call.ref(given).dtype}" else "int64"
    if edges.rank != 1:
        raise NotWritten("borders of their own for each row; call it row by row")
    x = call.ref(given)
    column = call.step("Reshape", call.cast(x, dtype), call.whole((*x.shape, 1)))
    right = call.flag("right") or call.word("side") == "right"
    above = call.step("GreaterOrEqual" if right else "Greater", column, call.cast(edges, dtype))
    ones = call.cast(Ref(above, (*x.shape, *edges.shape), "bool"), call.dtype)
    call.end("ReduceSum", ones, call.whole([x.rank]), keepdims=0)


ROWS: dict[str, Row] = {
    "argsort": sort,
    "bucketize.Tensor": count_below,
    "embedding": embedding,
    "gather": gather,
    "index": index,
    "index_put": index_put,
    "index_select": index_select,
    "kthvalue": kth,
    "median": median,
    "scatter": scatter(),
    "scatter_add": scatter("add"),
    "scatter_reduce": scatter_reduce,
    "searchsorted.Tensor": count_below,
    "sort": sort,
    "topk": top_k,
}

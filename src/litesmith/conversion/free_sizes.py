"""Sizes that stay free: lowering the same source at two sizes shows what depends on them.

Where the two models differ in nothing but one size of each RESHAPE, that size can be left to LiteRT
(−1), and the input's dimension can be marked as free. Any other difference is a number computed
from the size, and the size must stay fixed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litesmith.ir.edit import rewrite, with_main
from litesmith.ir.types import Array, Model, Op, Tensor, constant_numbers, frozen
from litesmith.phrases import Phrase, phrase


@dataclass(frozen=True)
class FreeSize:
    """A size that has a name: the places of each input that it stands at."""

    name: str
    places: Mapping[str, Sequence[int]]


def free(model: Model, other: Model | None, size: FreeSize) -> Model | Phrase:
    """The model with that size free; `other` is the same source at another one. A phrase says
    why it cannot be."""
    if other is None:
        return phrase("another one cannot be converted")
    ops, others = model.main.ops, other.main.ops
    if [op.kind for op in ops] != [op.kind for op in others] or len(model.graphs) > 1:
        return phrase("the ops depend on it")
    edited: dict[Op, Sequence[Op]] = {}
    for op, twin in zip(ops, others, strict=True):
        new = _freed(op, twin)
        if new is None:
            return phrase("{kind} {name} depends on it", op.kind, op.outputs[0].name)
        if new is not op:
            edited[op] = (new,)
    graph = rewrite(model.main, ops=edited)
    tensors = {t: _open(t, size.places.get(t.name, ())) for t in graph.inputs}
    tensors = {old: new for old, new in tensors.items() if new is not old}
    return with_main(model, rewrite(graph, tensors=tensors), tensors)


def _open(tensor: Tensor, places: Sequence[int]) -> Tensor:
    if not places:
        return tensor
    sizes = list(tensor.dynamic or tensor.shape)
    for place in places:
        sizes[place] = -1
    return replace(tensor, dynamic=tuple(sizes))


def _freed(op: Op, twin: Op) -> Op | None:
    """The op with −1 where it names the size; None where it depends on it otherwise."""
    if op.kind == "RESHAPE":
        return _freed_reshape(op, twin)
    for own, its in zip(op.inputs, twin.inputs, strict=True):
        if own is None and its is None:
            continue
        if own is None or its is None or own.is_const != its.is_const:
            return None
        a, b = constant_numbers(own), constant_numbers(its)
        if a is not None and b is not None and not _same(a, b):
            return _freed_slice(op, twin) if op.kind == "SLICE" else None
    same = op.options is None or twin.options is None or op.options == twin.options
    return op if same else None


def _same(a: Array, b: Array) -> bool:
    return a is b or (a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _setting(op: Op, place: int, values: Array) -> Op:
    old = op.inputs[place]
    assert old is not None
    new = replace(old, data=frozen(values.astype(np.int32)), dtype="int32")
    return replace(op, inputs=(*op.inputs[:place], new, *op.inputs[place + 1 :]))


def _freed_reshape(op: Op, twin: Op) -> Op | None:
    a, b = constant_numbers(op.inputs[1]), constant_numbers(twin.inputs[1])
    if a is None or b is None or a.shape != b.shape:
        return None
    differs = np.flatnonzero(a != b)
    if not len(differs):
        return op
    if len(differs) > 1 or ((a == -1).any() and a[differs[0]] != -1):
        return None
    sizes = a.copy()
    sizes[differs[0]] = -1
    new = _setting(op, 1, sizes)
    options = None if op.options is None else op.options.set(new_shape=tuple(sizes.tolist()))
    return replace(new, options=options)


def _freed_slice(op: Op, twin: Op) -> Op | None:
    """A part that reaches to the end does so at every size."""
    begins, its = constant_numbers(op.inputs[1]), constant_numbers(twin.inputs[1])
    sizes, others = constant_numbers(op.inputs[2]), constant_numbers(twin.inputs[2])
    source, twin_source = op.inputs[0], twin.inputs[0]
    if begins is None or its is None or sizes is None or others is None:
        return None
    if source is None or twin_source is None or not np.array_equal(begins, its):
        return None
    to_end = begins + sizes == np.array(source.shape)
    to_end &= its + others == np.array(twin_source.shape)
    differs = sizes != others
    return _setting(op, 2, np.where(differs, -1, sizes)) if (to_end | ~differs).all() else None

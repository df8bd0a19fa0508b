"""The embedding of a network, which is the vector before the layers that name classes: finding it,
and cutting the model there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.data.readers import batch_of
from litesmith.errors import BadInput
from litesmith.ir.edit import called_graphs, needed_ops, regraph, with_graphs
from litesmith.ir.ops import OPS, has_effect
from litesmith.ir.types import Array, Graph, Model, Op, Record, Tensor
from litesmith.phrases import phrase
from litesmith.tflite.read_metadata import metadata
from litesmith.type_guards import is_whole
from litesmith.units import plain

# An embedding has at least this many numbers; and the number of candidates in a message.
_FEWEST, _LISTED = 8, 6

# The length of a name in a list; the numbers beside it are exact.
_LONGEST = 40


class Embedding(NamedTuple):
    """The tensor that a new head reads, and how it was found, in words."""

    tensor: Tensor
    how: str


def embedding_of(model: Model, at: str = "") -> Embedding:
    """The vector before a model's head, or the tensor of this name or index; raises BadInput with
    the candidates where there is none."""
    if at:
        return Embedding(_find_named(model, at), phrase("as asked for with --at"))
    found = _find_embedding(model)
    if found is not None:
        return found
    listed = "; ".join(_text(model, t) for t in candidates(model)) or phrase("there is none")
    raise BadInput(
        "the model has no vector before a classifier that could be seen; name the tensor to "
        "learn from with --at: {listed}",
        listed,
    )


def candidates(model: Model) -> list[Tensor]:
    """The last tensors that a head could read: vectors, and maps that are averaged."""
    usable = [
        t for op in model.main.ops for t in op.outputs if not OPS[op.kind].reshapes and _usable(t)
    ]
    wide = [t for t in usable if t.shape[-1] >= _FEWEST]
    kept: dict[tuple[int, ...], Tensor] = {}
    for tensor in reversed(wide or usable):  # one of each shape: neighbours say much the same
        kept.setdefault(tensor.shape, tensor)
    return list(kept.values())[:_LISTED]


def cut_at(model: Model, tensor: Tensor) -> Model:
    """The model up to a tensor, with a vector for each item: later ops and the names of the classes
    are gone; the preparation of images stays."""
    graph = model.main
    unpacked, floats = _as_floats(tensor)
    ops, vector = _as_vector(graph, floats, batch_of(model) or 1)
    kept = needed_ops([*graph.ops, *unpacked, *ops], [vector], _changes)
    made = regraph(graph, ops=kept, outputs=[vector])
    signature = next((s for s in model.signatures if s.graph == 0), None)
    signatures = (
        () if signature is None else (replace(signature, outputs=(("embedding", vector),)),)
    )
    # Other graphs stay only where something may call them.
    others = model.graphs[1:] if any(called_graphs(op) for op in made.ops) else ()
    return replace(with_graphs(model, (made, *others)), signatures=signatures)


def add_head(model: Model, ops: Sequence[Op], output: Tensor) -> Model:
    """A cut model with further ops on its embedding, the last of which makes the output."""
    graph = regraph(model.main, ops=[*model.main.ops, *ops], outputs=[output])
    signatures = tuple(replace(s, outputs=((output.name, output),)) for s in model.signatures)
    return replace(with_graphs(model, (graph, *model.graphs[1:])), signatures=signatures)


def free_batch(graph: Graph, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The shape with its first dimension free where the first dimension of the input is; None where
    it is not.
    """
    marks = graph.inputs[0].dynamic
    return (-1, *shape[1:]) if marks and marks[0] == -1 else None


def constant(name: str, values: Array) -> Tensor:
    """A constant tensor of these numbers."""
    data = np.array(values, order="C")
    data.setflags(write=False)
    return Tensor(name, data.shape, str(data.dtype), data)


# Finding it.


def _find_embedding(model: Model) -> Embedding | None:
    graph = model.main
    makers = {made: op for op in graph.ops for made in op.outputs}
    for output in graph.outputs:
        found = _before_head(model, makers, output)
        if found is not None:
            return found
    pools = [op.outputs[0] for op in reversed(graph.ops) if _is_global_pool(op)]
    widest = max(filter(_usable, pools), key=lambda t: t.shape[-1], default=None)
    return (
        None if widest is None else Embedding(widest, phrase("the widest average over a whole map"))
    )


def _before_head(model: Model, makers: Mapping[Tensor, Op], output: Tensor) -> Embedding | None:
    """Goes back from an output past the layers that name classes; None where that leads to no
    vector."""
    items = batch_of(model) or 1
    tensor, op = _trace_to_source(makers, output)
    names_classes = op is not None and OPS[op.kind].makes_probabilities
    if op is not None and names_classes:
        assert op.inputs[0] is not None
        tensor, op = _trace_to_source(makers, op.inputs[0])
    if not _is_vector(tensor, items):
        return None
    if op is not None and _is_head(op) and (names_classes or _is_last(model, op)):
        before = op.inputs[0]
        assert before is not None
        return Embedding(before, phrase("the vector before the classifier"))
    if names_classes and op is not None and _is_global_pool(op):
        return _before_pool(makers, op)
    if names_classes or not _usable(tensor):
        return None
    return Embedding(tensor, phrase("the output: the model has no classifier"))


def _before_pool(makers: Mapping[Tensor, Op], pool: Op) -> Embedding | None:
    """Scores that are averages over a map come from a 1×1 convolution before the pool."""
    assert pool.inputs[0] is not None
    maker = makers.get(pool.inputs[0])
    while maker is not None and maker.kind == "RELU" and maker.inputs[0] is not None:
        maker = makers.get(maker.inputs[0])
    if maker is None or not OPS[maker.kind].is_convolution or maker.inputs[0] is None:
        return None
    return Embedding(maker.inputs[0], phrase("the average over the map before the classifier"))


def _trace_to_source(makers: Mapping[Tensor, Op], tensor: Tensor) -> tuple[Tensor, Op | None]:
    """The tensor where these numbers were first computed, and the op that computed them."""
    op = makers.get(tensor)
    while op is not None and _only_copies(op) and op.inputs[0] is not None:
        tensor = op.inputs[0]
        op = makers.get(tensor)
    return tensor, op


def _only_copies(op: Op) -> bool:
    """True where an op only stores the same numbers in another way."""
    return OPS[op.kind].reshapes or OPS[op.kind].rescales


def _is_head(op: Op) -> bool:
    """True for a layer from a vector to a vector."""
    data, row = op.inputs[0] if op.inputs else None, OPS[op.kind]
    if not (row.is_layer and row.mixes_channels) or data is None or not _usable(data):
        return False
    return row.is_dense or all(d == 1 for d in data.shape[1:3])


def _is_last(model: Model, op: Op) -> bool:
    """True where a layer without a softmax outputs scores: it has no activation, and its output has
    class names or is the only one."""
    plain_sum = op.option("fused_activation_function") in (None, "NONE")
    return plain_sum and (bool(metadata(model).labels) or len(model.main.outputs) == 1)


def _is_global_pool(op: Op) -> bool:
    """True where a map becomes one number per channel."""
    source = op.inputs[0] if op.inputs else None
    if not OPS[op.kind].averages or source is None or len(source.shape) not in (3, 4):
        return False
    target = op.outputs[0]
    channels = target.shape[-1:] == source.shape[-1:]
    return channels and target.elements == source.shape[0] * source.shape[-1] < source.elements


def _is_vector(tensor: Tensor, items: int) -> bool:
    return bool(tensor.shape) and tensor.elements == items * tensor.shape[-1]


def _usable(tensor: Tensor) -> bool:
    """True where a tensor holds several real numbers, as floats or as codes with one scale."""
    is_coded = tensor.quant is not None and tensor.quant.scale.size == 1
    is_real = tensor.dtype == "float32" or is_coded
    return is_real and bool(tensor.shape) and tensor.shape[-1] > 1


# A tensor of the user's.


def _find_named(model: Model, at: str) -> Tensor:
    graph = model.main
    made = [t for op in graph.ops for t in op.outputs]
    found = [t for t in made if at in (t.name, plain(t.name))]
    if not found and is_whole(at):
        found = [t for t in graph.tensors[int(at) : int(at) + 1] if t in made]
    if not found:
        listed = "; ".join(_text(model, t) for t in candidates(model))
        raise BadInput(
            "--at {at}: no op makes a tensor of this name or index; as in {listed}", at, listed
        )
    tensor = found[-1]
    if not _usable(tensor):
        raise BadInput(
            "--at {at}: has the shape {shape} of {dtype}; a vector or a map of several "
            "float numbers is needed",
            at,
            _shape(tensor),
            tensor.dtype,
        )
    return tensor


def _text(model: Model, tensor: Tensor) -> str:
    """A tensor in a list, as in `12 (conv/Relu) 1×7×7×128`, with the number that --at takes."""
    place = model.main.tensors.index(tensor)
    name = plain(tensor.name).partition(";")[0][:_LONGEST]
    return f"{place} ({name}) {_shape(tensor)}"


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or phrase("one number")


# Cutting.


def _as_floats(tensor: Tensor) -> tuple[list[Op], Tensor]:
    """The op that converts codes to floats, and its output; no op where the tensor is float
    already."""
    if tensor.dtype == "float32":
        return [], tensor
    floats = Tensor(f"{tensor.name}/floats", tensor.shape, dynamic=tensor.dynamic)
    return [Op("DEQUANTIZE", (tensor,), (floats,), Record(OPS["DEQUANTIZE"].options))], floats


def _as_vector(graph: Graph, tensor: Tensor, items: int) -> tuple[list[Op], Tensor]:
    """Ops that turn a tensor into a vector for each item, and that vector; no ops where it is one
    already."""
    shape = (items, tensor.shape[-1])
    if tensor.shape == shape:
        return [], tensor
    free = free_batch(graph, shape)
    vector = Tensor(f"{tensor.name}/vector", shape, dynamic=free)
    if _is_vector(tensor, items):
        sizes = (-1, shape[1]) if free else shape
        wanted = constant(f"{tensor.name}/shape", np.array(sizes, np.int32))
        options = Record("ReshapeOptions").set(new_shape=np.array(sizes, np.int32))
        return [Op("RESHAPE", (tensor, wanted), (vector,), options)], vector
    first = 1 if tensor.shape[0] == items and len(tensor.shape) > 2 else 0
    axes = np.arange(first, len(tensor.shape) - 1, dtype=np.int32)
    if not first and items > 1:
        raise BadInput(
            "tensor {name!r} of the shape {shape} holds no vector for each of the {items} "
            "items that the model takes; name another with --at",
            plain(tensor.name),
            _shape(tensor),
            items,
        )
    options = Record("ReducerOptions").set(keep_dims=not first)
    mean_shape = shape if first else (*(1 for _ in axes), shape[1])
    mean = vector if mean_shape == shape else Tensor(f"{tensor.name}/mean", mean_shape)
    op = Op("MEAN", (tensor, constant(f"{tensor.name}/axes", axes)), (mean,), options)
    if mean is vector:
        return [op], vector
    wanted = constant(f"{tensor.name}/shape", np.array(shape, np.int32))
    reshape = Record("ReshapeOptions").set(new_shape=np.array(shape, np.int32))
    return [op, Op("RESHAPE", (mean, wanted), (vector,), reshape)], vector


def _changes(op: Op) -> bool:
    """True for ops with side effects; custom ops are merely not known to have any."""
    return has_effect(op) and not op.is_custom

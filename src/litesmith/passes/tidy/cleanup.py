"""`cleanup`: everything that can go without changing a single output bit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b

import numpy as np

from litesmith.ir.edit import regraph, rewrite
from litesmith.ir.match import chains
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import (
    OPS,
    has_computed_settings,
    has_effect,
    is_repeatable,
    kinds_where,
    late_tensors,
)
from litesmith.ir.types import (
    Array,
    Graph,
    Model,
    Op,
    Tensor,
    constant_numbers,
    memory_place,
    quant_tensors,
)
from litesmith.passes.core.step import Change, Context, Skip, on_graphs, settle
from litesmith.passes.tidy.moves import (
    join_distant_transposes,
    join_slices,
    join_strided_slices,
    move_integers,
    order_of,
    ordered,
    reshape_ones,
    same_quant,
    slice_before_transposes,
)
from litesmith.phrases import phrase
from litesmith.units import plain


@dataclass(frozen=True)
class Cleanup:
    """Drop ops that do nothing or feed nothing, join repeated ones, store equal constants once."""

    def apply(self, model: Model, context: Context) -> Change:
        is_free = any(-1 in (t.dynamic or ()) for graph in model.graphs for t in graph.inputs)
        first = () if is_free else _SIZED  # sizes are written down there
        edits = [partial(on_graphs, edit=edit) for edit in (*first, *_EDITS)]
        return settle(model, (*edits, _drop_dead, _merge_constants))


# Ops that do nothing.


def _keeps_shape(_: Op) -> bool:
    """That the shapes agree, which is required of every op, is enough."""
    return True


def _identity_permutation(op: Op) -> bool:
    order = _constant(op, 1)
    return order is not None and order.tolist() == list(range(order.size))


def _forward_strides(op: Op) -> bool:
    strides = _constant(op, 3)
    return strides is not None and bool((strides > 0).all())


def _one_input(op: Op) -> bool:
    return len(op.inputs) == 1 and _no_activation(op)


def _one_output(op: Op) -> bool:
    return len(op.outputs) == 1


def _with(neutral: float) -> Callable[[Op], bool]:
    """The second input is the number that changes nothing, to the sign: x + 0 turns −0 into 0."""
    wanted = np.float32(neutral).tobytes()

    def second_is_neutral(op: Op) -> bool:
        other = _constant(op, 1)
        if other is None or other.dtype != np.float32 or not _no_activation(op):
            return False
        return other.tobytes() == wanted * other.size

    return second_is_neutral


def _same_scale(op: Op) -> bool:
    return op.outputs[0].quant is not None  # that the scales agree is asked of every op


# kind -> a test for doing nothing, given that input and output agree in shape, type and scale
_NO_OPS: dict[str, Callable[[Op], bool]] = {
    "ADD": _with(-0.0),
    "ADD_N": _one_input,
    "BROADCAST_TO": _keeps_shape,
    "CAST": _keeps_shape,
    "CONCATENATION": _one_input,
    "DIV": _with(1.0),
    "EXPAND_DIMS": _keeps_shape,
    "MIRROR_PAD": _keeps_shape,
    "MUL": _with(1.0),
    "PAD": _keeps_shape,
    "PADV2": _keeps_shape,
    "QUANTIZE": _same_scale,
    "RESHAPE": _keeps_shape,
    "SLICE": _keeps_shape,
    "SPLIT": _one_output,
    "SPLIT_V": _one_output,
    "SQUEEZE": _keeps_shape,
    "STRIDED_SLICE": _forward_strides,
    "SUB": _with(0.0),
    "TILE": _keeps_shape,
    "TRANSPOSE": _identity_permutation,
}


def _constant(op: Op, place: int) -> Array | None:
    return constant_numbers(op.inputs[place]) if place < len(op.inputs) else None


def _no_activation(op: Op) -> bool:
    return op.option("fused_activation_function") in (None, "NONE")


def _data_input(op: Op) -> Tensor | None:
    """The input that the op passes on."""
    place = OPS[op.kind].data
    return op.inputs[place] if place is not None and place < len(op.inputs) else None


def _does_nothing(op: Op) -> bool:
    source = _data_input(op)
    if op.kind not in _NO_OPS or source is None or has_effect(op):
        return False
    target = op.outputs[0]
    agree = source.shape == target.shape and source.dtype == target.dtype
    return agree and same_quant(source.quant, target.quant) and _NO_OPS[op.kind](op)


def _bypass(graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
    """Removes ops that do nothing; their readers read their inputs."""
    computed = {t for op in graph.ops for t in op.outputs}
    leaving = set(graph.outputs)
    late = late_tensors(graph)
    joined: dict[Tensor, Tensor] = {}
    dropped: dict[Op, tuple[Op, ...]] = {}
    skipped: list[Skip] = []
    for op in filter(_does_nothing, graph.ops):
        source, target = _data_input(op), op.outputs[0]
        assert source is not None
        source = _final(source, joined)
        why = _why_kept(op, source, computed, leaving)
        if has_computed_settings(op) or source in late:
            why = phrase("sizes depend on values, so it may do something in another run")
        if why:
            skipped.append(Skip(op_name(op), why))
            continue
        dropped[op] = ()
        old, new = (source, target) if target in leaving else (target, source)
        joined[old] = new
    final = {old: _final(old, joined) for old in joined}
    touched: list[str] = [
        phrase("dropped {op_name}, which does nothing", op_name(op)) for op in dropped
    ]
    return rewrite(graph, ops=dropped, tensors=final), touched, skipped


def _why_kept(op: Op, source: Tensor, computed: set[Tensor], leaving: set[Tensor]) -> str:
    target = op.outputs[0]
    if source.dynamic != target.dynamic and op.kind not in _TRANSPOSING:
        return phrase("a dimension is free, so it may do something at another size")
    if target in leaving and (source not in computed or source in leaving):
        return phrase(
            "it copies an input, a constant or another output to an output, which must stay"
        )
    return ""


def _final(tensor: Tensor, joined: dict[Tensor, Tensor]) -> Tensor:
    while tensor in joined:
        tensor = joined[tensor]
    return tensor


# Pairs of ops that one op can do.

_RESHAPING = kinds_where(lambda row: row.reshapes)
_TRANSPOSING = kinds_where(lambda row: row.transposes)


def _join_chains(graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
    """Two reshapes or two transposes in a row become one, which reads the input of the first."""
    replaced: dict[Op, tuple[Op, ...]] = {}
    skipped: list[Skip] = []
    touched: list[str] = []
    pairs = [
        *((chain, _joined_reshape) for chain in chains(graph, (_RESHAPING, _RESHAPING))),
        *((chain, _joined_transpose) for chain in chains(graph, (_TRANSPOSING, _TRANSPOSING))),
    ]
    for (first, second), join in pairs:
        if first in replaced or second in replaced:
            continue  # the next round sees what is left
        joined = join(first, second)
        if has_effect(first) or has_effect(second):
            joined = Skip(
                op_name(second), phrase("it works on a state, which may change in between")
            )
        if isinstance(joined, Skip):
            skipped.append(joined)
            continue
        replaced[first], replaced[second] = (), (joined,)
        touched.append(phrase("joined {op_name} and {op_name2}", op_name(first), op_name(second)))
    return rewrite(graph, ops=replaced), touched, skipped


def _joined_reshape(first: Op, second: Op) -> Op | Skip:
    """The second reshape alone: where it ends does not depend on where it comes from."""
    if not OPS[second.kind].takes_shape or has_computed_settings(second):
        return Skip(op_name(second), phrase("what it does depends on the shape it is given"))
    return replace(second, inputs=(first.inputs[0], *second.inputs[1:]))


def _joined_transpose(first: Op, second: Op) -> Op | Skip:
    rank = len(second.outputs[0].shape)
    one, two = (order_of(op, rank) for op in (first, second))
    if one is None or two is None:
        return Skip(
            op_name(second), phrase("its order of dimensions is computed, or no order at all")
        )
    assert first.inputs[0] is not None
    return ordered(first.inputs[0], [one[place] for place in two], second)


# Ops that repeat another, or whose results nobody reads.


def _join_repeats(graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
    """Removes ops that repeat an earlier one; their readers read the earlier result."""
    leaving = set(graph.outputs)
    joined: dict[Tensor, Tensor] = {}
    dropped: dict[Op, tuple[Op, ...]] = {}
    skipped: list[Skip] = []
    earlier: dict[tuple[object, ...], list[Op]] = {}
    for op in filter(is_repeatable, graph.ops):
        inputs = tuple(joined.get(t, t) if t is not None else None for t in op.inputs)
        alike = earlier.setdefault((op.kind, op.version, *inputs), [])
        twin = next((other for other in alike if _same_call(op, other)), None)
        if twin is None:
            alike.append(op)
        elif any(tensor in leaving for tensor in op.outputs):
            skipped.append(
                Skip(op_name(op), phrase("it repeats another op, but its result is an output"))
            )
        else:
            dropped[op] = ()
            joined.update(zip(op.outputs, twin.outputs, strict=True))
    touched: list[str] = [
        phrase("dropped {op_name}, which repeats another op", op_name(op)) for op in dropped
    ]
    return rewrite(graph, ops=dropped, tensors=joined), touched, skipped


def _same_call(a: Op, b: Op) -> bool:
    return (
        a.options == b.options
        and len(a.outputs) == len(b.outputs)
        and not (a.rest or b.rest or a.intermediates or b.intermediates)
        and all(
            x.shape == y.shape and x.dtype == y.dtype and same_quant(x.quant, y.quant)
            for x, y in zip(a.outputs, b.outputs, strict=True)
        )
    )


# Edits that write sizes into the graph.
_SIZED = reshape_ones, join_slices, join_strided_slices, slice_before_transposes
_EDITS = join_distant_transposes, move_integers, _bypass, _join_chains, _join_repeats


def _drop_dead(model: Model) -> Change:
    change = on_graphs(model, _drop_dead_in)
    spare = len(change.model.spare)
    if not spare:
        return change
    touched = (*change.touched, phrase("dropped {spare} buffers that nothing refers to", spare))
    return Change(replace(change.model, spare=()), touched, change.skipped)


def _drop_dead_in(graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
    """Removes ops whose results nobody reads, and tensors to which nothing refers."""
    wanted = set(graph.outputs)
    dropped: dict[Op, tuple[Op, ...]] = {}
    for op in reversed(graph.ops):
        if has_effect(op) or any(tensor in wanted for tensor in op.outputs):
            wanted.update(t for t in op.inputs if t is not None)
        else:
            dropped[op] = ()
    touched: list[str] = [
        phrase("dropped {op_name}, whose result nobody reads", op_name(op)) for op in dropped
    ]
    cleaned = rewrite(graph, ops=dropped)
    spare = len(graph.tensors) - len(regraph(graph).tensors)
    if spare:
        touched.append(phrase("dropped {spare} tensors that nothing refers to", spare))
    return cleaned, touched, []


# Constants.


Place = tuple[int, int]


def _merge_constants(model: Model) -> Change:
    """Equal constants of a graph become one tensor; equal bytes anywhere are stored once."""
    shared = _shared_content(model)
    return on_graphs(model, lambda graph: _merge_in(graph, shared))


def _merge_in(graph: Graph, shared: dict[Place, Array]) -> tuple[Graph, list[str], list[Skip]]:
    fixed = {*graph.inputs, *graph.outputs, *(s for t in graph.tensors for s in quant_tensors(t))}
    first: dict[tuple[object, ...], Tensor] = {}
    merged: dict[Tensor, Tensor] = {}
    touched: list[str] = []
    for tensor in graph.tensors:
        if tensor.data is None or tensor in fixed or memory_place(tensor.data) not in shared:
            continue
        data = shared[memory_place(tensor.data)]
        twin = first.setdefault(_identity(tensor, data), tensor)
        if twin is not tensor:
            merged[tensor] = merged.get(twin, twin)
            touched.append(
                phrase(
                    "merged constant {name!r} into {name2!r}", plain(tensor.name), plain(twin.name)
                )
            )
        elif memory_place(data) != memory_place(tensor.data):
            view = data.reshape(-1).view(tensor.data.dtype).reshape(tensor.data.shape)
            merged[tensor] = replace(tensor, data=view)
            touched.append(phrase("stored constant {name!r} with its equal", plain(tensor.name)))
    return rewrite(graph, tensors=merged), touched, []


def _identity(tensor: Tensor, data: Array) -> tuple[object, ...]:
    """What two constants must share to be one."""
    quant = tensor.quant
    scales = None
    if quant is not None:
        scales = (quant.scale.tobytes(), quant.zero_point.tobytes(), quant.axis, id(quant.block))
    simple = all(isinstance(value, bool | int | str) for value in tensor.rest.values())
    rest = frozenset(tensor.rest.items()) if simple else tensor
    odd = tensor if tensor.sparsity or tensor.variable else None
    place = memory_place(data)
    return tensor.dtype, tensor.shape, tensor.dynamic, place, scales, rest, odd


def _shared_content(model: Model) -> dict[Place, Array]:
    """For each place of a constant that has an equal: the first array with that content."""
    sizes: dict[int, dict[Place, Array]] = {}
    for tensor in (t for g in model.graphs for t in g.tensors):
        if tensor.data is not None and tensor.data.nbytes:
            sizes.setdefault(tensor.data.nbytes, {})[memory_place(tensor.data)] = tensor.data
    shared: dict[Place, Array] = {}
    for arrays in sizes.values():
        first: dict[bytes, Array] = {}
        for place, array in arrays.items():
            digest = blake2b(np.ascontiguousarray(array).data).digest() if len(arrays) > 1 else b""
            shared[place] = first.setdefault(digest, array)
    return shared

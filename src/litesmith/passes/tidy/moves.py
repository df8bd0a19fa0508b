"""Moves of values that `cleanup` does without: transposes that move nothing or undo each other,
slices of slices and of transposes, and conversions to float for the sake of a move."""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.ir import shapes
from litesmith.ir.edit import consumers, rewrite
from litesmith.ir.match import Reads, reads
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, has_computed_settings, has_effect, kinds_where, late_tensors
from litesmith.ir.types import (
    Array,
    Graph,
    Op,
    Quant,
    Record,
    Tensor,
    constant_numbers,
    frozen,
    op_tensors,
)
from litesmith.passes.core.step import Skip
from litesmith.phrases import phrase

Edited = tuple[Graph, list[str], list[Skip]]

# Each result comes of the values in the same place. XNNPACK wants slopes of PRELU along channels.
_BY_VALUE = (
    kinds_where(
        lambda row: (
            (row.inputs == "x x" and row.shape is shapes.broadcast)
            or (row.inputs == "x" and row.shape is shapes.same and row.scale in ("free", "fixed"))
        )
    )
    - kinds_where(lambda row: row.is_softmax or row.options == "L2NormOptions")
    - {"PRELU"}
)

# The values of the data come out unchanged, if at other places or fewer.
_HANDING_ON = kinds_where(
    lambda row: (
        row.scale == "same"
        and row.inputs.split().count("x") == 1
        and not (row.averages or row.interpolates or row.pads or row.unpacks)
    )
)


def same_quant(a: Quant | None, b: Quant | None) -> bool:
    """True where stored integers mean the same numbers."""
    if a is None or b is None:
        return a is b
    return (
        a.axis == b.axis
        and a.block is b.block
        and np.array_equal(a.scale, b.scale)
        and np.array_equal(a.zero_point, b.zero_point)
    )


def order_of(transpose: Op, rank: int) -> list[int] | None:
    """The constant order of so many dimensions."""
    order = constant_numbers(transpose.inputs[1]) if len(transpose.inputs) > 1 else None
    if order is None or order.dtype.kind != "i" or sorted(order.tolist()) != list(range(rank)):
        return None
    return order.tolist()


def ordered(source: Tensor, order: list[int], like: Op) -> Op:
    """A transpose of the source that writes what another writes."""
    values = frozen(np.array(order, np.int32))
    constant = Tensor(f"{like.outputs[0].name}/order", values.shape, "int32", values)
    return replace(like, inputs=(source, constant))


def reshape_ones(graph: Graph) -> Edited:
    """A transpose that only moves dimensions of size one is a reshape, which moves nothing."""
    replaced: dict[Op, tuple[Op, ...]] = {}
    for op in _fixed(graph, lambda op: OPS[op.kind].transposes):
        source, target = op.inputs[0], op.outputs[0]
        order = None if source is None else order_of(op, len(source.shape))
        if source is None or order is None or order == sorted(order):
            continue
        kept = [axis for axis in order if source.shape[axis] != 1]
        if kept == sorted(kept) and same_quant(source.quant, target.quant):
            shape = frozen(np.array(target.shape, np.int32))
            sizes = Tensor(f"{target.name}/shape", shape.shape, "int32", shape)
            replaced[op] = (Op("RESHAPE", (source, sizes), op.outputs),)
    touched: list[str] = [
        phrase("{op_name} moves nothing and is a reshape now", op_name(op)) for op in replaced
    ]
    return rewrite(graph, ops=replaced), touched, []


def join_slices(graph: Graph) -> Edited:
    """A slice of a slice is one slice, of what the first one reads."""
    replaced: dict[Op, tuple[Op, ...]] = {}
    able = {op.outputs[0]: op for op in _fixed(graph, lambda op: op.kind == "SLICE")}
    for op in able.values():
        source = op.inputs[0]
        before = able.get(source) if source is not None else None
        if before is None or before in replaced or before.inputs[0] is None:
            continue
        begins = [constant_numbers(one.inputs[1]) for one in (before, op)]
        if begins[0] is None or begins[1] is None:
            continue
        replaced[op] = (_slice(before.inputs[0], begins[0] + begins[1], op.outputs[0]),)
    touched: list[str] = [
        phrase("{op_name} reads what the slice before it read", op_name(op)) for op in replaced
    ]
    return rewrite(graph, ops=replaced), touched, []


def join_strided_slices(graph: Graph) -> Edited:
    """Slices along some dimensions of slices along others are one, as of every second row and then
    of every second column."""
    replaced: dict[Op, tuple[Op, ...]] = {}
    able = {op.outputs[0]: op for op in _fixed(graph, lambda op: op.kind == "STRIDED_SLICE")}
    for op in able.values():
        source = op.inputs[0]
        before = able.get(source) if source is not None else None
        if before is None or before in replaced:
            continue
        joined = _joined_strides(before, op)
        if joined is not None:
            replaced[op] = (joined,)
    touched: list[str] = [
        phrase("{op_name} reads what the slice before it read", op_name(op)) for op in replaced
    ]
    return rewrite(graph, ops=replaced), touched, []


def _joined_strides(first: Op, second: Op) -> Op | None:
    """Both slices as one, where no dimension is cut by both."""
    pair, source = (first, second), first.inputs[0]
    odd = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask", "offset")
    if source is None or any(op.option(name) for op in pair for name in odd):
        return None
    rank = len(source.shape)
    settings = [[constant_numbers(t) for t in op.inputs[1:4]] for op in pair]
    if any(values is None or values.shape != (rank,) for one in settings for values in one):
        return None
    rows = [np.stack([v for v in one if v is not None]) for one in settings]
    is_whole = [
        (rows[i][2] == 1) & (np.array(_shape_before(op)) == np.array(op.outputs[0].shape))
        for i, op in enumerate(pair)
    ]
    if not np.all(is_whole[0] | is_whole[1]) or second.options is None:
        return None
    chosen = np.where(is_whole[1], rows[0], rows[1]).astype(np.int32)
    masks: dict[str, int] = {}
    for name in ("begin_mask", "end_mask"):
        bits = [int(op.option(name) or 0) for op in pair]  # type: ignore[arg-type]
        own = sum(1 << axis for axis in range(rank) if not is_whole[1][axis])
        masks[name] = (bits[0] & ~own) | (bits[1] & own)
    constants = [
        Tensor(f"{second.outputs[0].name}/{word}", (rank,), "int32", frozen(values))
        for word, values in zip(("begin", "end", "strides"), chosen, strict=True)
    ]
    return replace(second, inputs=(source, *constants), options=second.options.set(**masks))


def _shape_before(op: Op) -> tuple[int, ...]:
    return () if op.inputs[0] is None else op.inputs[0].shape


def slice_before_transposes(graph: Graph) -> Edited:
    """Where each reader takes one place of a transpose's first dimension, as the parts of packed
    queries, keys and values are taken, and the others stay in order, nothing has to be moved."""
    uses, replaced = consumers(graph), dict[Op, tuple[Op, ...]]()
    able = set(_fixed(graph, lambda op: op.kind in ("RESHAPE", "SLICE", "TRANSPOSE")))
    for op in (op for op in graph.ops if op.kind == "TRANSPOSE" and op in able):
        source, made = op.inputs[0], op.outputs[0]
        order = None if source is None else order_of(op, len(source.shape))
        if source is None or not order or order[0] == 0:
            continue
        readers = uses.get(made, [])
        if len(readers) == 1 and readers[0].kind == "RESHAPE" and made not in graph.outputs:
            made = readers[0].outputs[0]
            readers = uses.get(made, [])
        axis = order[0]
        others = [one for one in order[1:] if source.shape[one] != 1]
        places = [_only_place(reader, made) if reader in able else None for reader in readers]
        is_kept = made in graph.outputs or made.shape[0] != source.shape[axis]
        if (
            is_kept
            or not readers
            or others != sorted(others)
            or not same_quant(source.quant, made.quant)
        ):
            continue
        if None in places:
            continue
        for reader, place in zip(readers, places, strict=True):
            replaced[reader] = _picked(source, axis, place or 0, reader.outputs[0])
    touched: list[str] = [phrase("{op_name} needs no transpose", op_name(op)) for op in replaced]
    return rewrite(graph, ops=replaced), touched, []


def _only_place(op: Op, source: Tensor) -> int | None:
    """The place of the first dimension that a SLICE takes, and of the others all."""
    begin = constant_numbers(op.inputs[1]) if op.kind == "SLICE" else None
    if begin is None or op.outputs[0].shape != (1, *source.shape[1:]):
        return None
    return int(begin[0])


def _picked(source: Tensor, axis: int, place: int, target: Tensor) -> tuple[Op, Op]:
    """One place of an axis, in the shape of the target."""
    begin = np.zeros(len(source.shape), np.int32)
    begin[axis] = place
    shape = (*source.shape[:axis], 1, *source.shape[axis + 1 :])
    part = replace(target, name=f"{target.name}/part", shape=shape)
    sizes = frozen(np.array(target.shape, np.int32))
    setting = Tensor(f"{target.name}/shape", sizes.shape, "int32", sizes)
    return _slice(source, begin, part), Op("RESHAPE", (part, setting), (target,))


def _slice(source: Tensor, begin: Array, target: Tensor) -> Op:
    settings = [frozen(np.array(values, np.int32)) for values in (begin, target.shape)]
    names = (f"{target.name}/begin", f"{target.name}/size")
    constants = [
        Tensor(name, values.shape, "int32", values)
        for name, values in zip(names, settings, strict=True)
    ]
    return Op("SLICE", (source, *constants), (target,), Record("SliceOptions"))


class _Run(NamedTuple):
    """Ops that feed one another and nobody else, with what stands before and behind them."""

    first: Op
    between: tuple[Op, ...]
    last: Op


def join_distant_transposes(graph: Graph) -> Edited:
    """Two transposes around ops that work value by value become one behind them."""
    replaced: dict[Op, tuple[Op, ...]] = {}
    touched: list[str] = []
    ends = kinds_where(lambda row: row.transposes)
    for run in _runs(graph, ends, _BY_VALUE, ends):
        ops = (run.first, *run.between, run.last)
        source = run.first.inputs[0]
        if source is None or not run.between or any(op in replaced for op in ops):
            continue
        rank = len(source.shape)
        one, two = order_of(run.first, rank), order_of(run.last, rank)
        if one is None or two is None or not all(_keeps_shape(op) for op in run.between):
            continue
        data = source
        for op in run.between:
            made = replace(op.outputs[0], shape=source.shape)
            inputs = tuple(data if _is_computed(t) else _moved_back(t, one) for t in op.inputs)
            replaced[op] = (replace(op, inputs=inputs, outputs=(made,)),)
            data = made
        replaced[run.first] = ()
        replaced[run.last] = (ordered(data, [one[place] for place in two], run.last),)
        touched.append(
            phrase("joined {op_name} and {op_name2}", op_name(run.first), op_name(run.last))
        )
    return rewrite(graph, ops=replaced), touched, []


def _keeps_shape(op: Op) -> bool:
    """True where constants do not widen the data, and are of plain numbers."""
    (data,) = (t for t in op.inputs if _is_computed(t))
    others = (t for t in op.inputs if t is not None and t is not data)
    return op.outputs[0].shape == (data.shape if data is not None else ()) and all(
        constant_numbers(t) is not None and not (t.quant and t.quant.per_channel) for t in others
    )


def _is_computed(tensor: Tensor | None) -> bool:
    return tensor is not None and not tensor.is_const


def _moved_back(tensor: Tensor | None, order: list[int]) -> Tensor | None:
    """A constant beside transposed data as it stands beside the data itself."""
    if tensor is None or tensor.elements == 1:
        return tensor
    values = tensor.values()
    wide = values.reshape((1,) * (len(order) - values.ndim) + values.shape)
    data = frozen(np.ascontiguousarray(wide.transpose(np.argsort(order))))
    return replace(tensor, name=f"{tensor.name}/moved", shape=data.shape, data=data)


def move_integers(graph: Graph) -> Edited:
    """What is made float for ops that only hand values on, and then integers of the same scale
    again, stays integers: each value comes back as it was."""
    replaced: dict[Op, tuple[Op, ...]] = {}
    joined: dict[Tensor, Tensor] = {}
    touched: list[str] = []
    for run in _runs(graph, {"DEQUANTIZE"}, _HANDING_ON, {"QUANTIZE"}):
        source, target = run.first.inputs[0], run.last.outputs[0]
        ops = (*run.between, run.last)
        if source is None or any(op in replaced for op in ops) or not _is_same(source, target):
            continue
        if not all(_hands_on(op, source.dtype) for op in run.between):
            continue
        if not run.between:
            if target in graph.outputs or source in joined:
                continue
            joined[target] = source
        data = source
        for op in run.between:
            made = replace(op.outputs[0], dtype=source.dtype, quant=source.quant)
            made = target if op is run.between[-1] else made
            inputs = tuple(data if _is_computed(t) else t for t in op.inputs)
            version = OPS[op.kind].versions[source.dtype]
            replaced[op] = (replace(op, inputs=inputs, outputs=(made,), version=version),)
            data = made
        replaced[run.last] = ()
        touched.append(phrase("{op_name} and what leads to it stay integers", op_name(run.last)))
    return rewrite(graph, ops=replaced, tensors=joined), touched, []


def _hands_on(op: Op, dtype: str) -> bool:
    """True where integers are handed on as they are."""
    has_kernel = dtype in OPS[op.kind].versions
    return has_kernel and op.option("fused_activation_function") in (None, "NONE")


def _is_same(source: Tensor, target: Tensor) -> bool:
    quant = source.quant
    is_plain = quant is not None and not quant.per_channel and quant.block is None
    return is_plain and source.dtype == target.dtype and same_quant(quant, target.quant)


def _fixed(graph: Graph, wanted: Callable[[Op], bool]) -> Iterator[Op]:
    """Ops of fixed sizes, without effects and with constant settings."""
    late = late_tensors(graph)
    for op in filter(wanted, graph.ops):
        is_free = any(t in late or -1 in (t.dynamic or ()) for t in op_tensors(op))
        if not is_free and not has_effect(op) and not has_computed_settings(op):
            yield op


def _runs(graph: Graph, starts: Set[str], inner: Set[str], ends: Set[str]) -> Iterator[_Run]:
    """Every run of inner ops with one computed input each, between a start and an end."""
    uses = reads(graph)
    makers = {t: op for op in graph.ops for t in op.outputs}
    able = set(_fixed(graph, lambda op: op.kind in starts | inner | ends))
    for last in (op for op in graph.ops if op.kind in ends and op in able):
        between: list[Op] = []
        op = _only_maker(last, makers, uses)
        while op in able and op.kind in inner and op.kind not in starts:
            between.append(op)
            op = _only_maker(op, makers, uses)
        if op in able and op.kind in starts:
            yield _Run(op, tuple(between[::-1]), last)


def _only_maker(op: Op, makers: Mapping[Tensor, Op], uses: Reads) -> Op | None:
    """The op that makes the one computed input of another, and that for nobody else."""
    computed = [t for t in op.inputs if t is not None and not t.is_const]
    made = makers.get(computed[0]) if len(computed) == 1 else None
    if made is None or len(made.outputs) != 1:
        return None
    return made if uses.only_reader(made.outputs[0]) is not None else None

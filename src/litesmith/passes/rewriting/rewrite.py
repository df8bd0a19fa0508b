"""`rewrite`: the same model said with other ops, for accelerators that know only some."""

from dataclasses import dataclass
from functools import partial

from litesmith.errors import BadInput
from litesmith.ir.edit import regraph, rewrite, substitute
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import has_effect, is_repeatable, late_tensors
from litesmith.ir.types import Graph, Model, Op, op_tensors
from litesmith.passes.core.step import Change, Context, GraphEdit, Skip, on_graphs, settle
from litesmith.passes.rewriting.rewrite_layers import LAYERS
from litesmith.passes.rewriting.rewrite_parts import (
    Around,
    Parts,
    Unfit,
    Way,
    around,
    is_half,
    unpacked_half,
)
from litesmith.passes.rewriting.rewrite_shapes import SHAPES
from litesmith.passes.rewriting.rewrite_types import Narrowing, unpack
from litesmith.passes.rewriting.rewrite_values import VALUES
from litesmith.phrases import phrase

# Every rewrite. Its name is the kind that goes, followed by the result where a kind has several
# rewrites.
WAYS: dict[str, Way] = dict(sorted((VALUES | SHAPES | LAYERS).items()))


@dataclass(frozen=True)
class Rewrite:
    """Say the same with other ops, before a model is quantized.

    ops     the rewrites, in this order: a kind as HARD_SWISH, or KIND:WAY as PRELU:MAXIMUM
    int32   places and sizes in int64 become int32; the model's own inputs and outputs do not
    unpack  weights in small numbers beside float data become float32 again
    """

    ops: tuple[str, ...] = ()
    int32: bool = False
    unpack: bool = False

    def apply(self, model: Model, context: Context) -> Change:
        unknown = [name for name in self.ops if name not in WAYS]
        if unknown:
            raise BadInput(
                "rewrite(ops=[{unknown}]): there are {known}", unknown[0], ", ".join(WAYS)
            )
        if not self.ops and not self.int32 and not self.unpack:
            return Change(
                model,
                (),
                (Skip(phrase("all ops"), phrase("none is named, as in ops=[HARD_SWISH]")),),
            )
        edits: list[GraphEdit] = [lambda graph: Narrowing(graph).result()] if self.int32 else []
        edits += [unpack] if self.unpack else []
        edits += [partial(_rewritten, name) for name in self.ops]
        whole = Change(model)
        for edit in edits:
            whole = settle(whole.model, [partial(on_graphs, edit=edit)]).after(whole)
        return whole


def ways_for(kind: str) -> list[str]:
    """The rewrites that remove a kind."""
    return [name for name in WAYS if name.partition(":")[0] == kind]


def _rewritten(name: str, graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
    """The graph after one rewrite of every op that it applies to."""
    way, kind = WAYS[name], WAYS[name].at or name.partition(":")[0]
    near, late = around(graph), late_tensors(graph)
    replaced: dict[Op, tuple[Op, ...]] = {}
    touched: list[str] = []
    skipped: list[Skip] = []
    for op in graph.ops:
        if op.kind != kind or not op.outputs:
            continue
        try:
            made = _made_of_half(op, way, near)
            if made and any(tensor in late for tensor in op_tensors(op)):
                raise Unfit(phrase("the size of what it reads or makes depends on values"))
        except Unfit as why:
            skipped.append(Skip(op_name(op), str(why)))
            continue
        if made:
            replaced[op] = made
            touched.append(phrase("{op_name} is now {says}", op_name(op), way.says))
    return _without_orphans(graph, rewrite(graph, ops=replaced)), touched, skipped


def _made(op: Op, way: Way, near: Around) -> tuple[Op, ...]:
    if has_effect(op) and not op.is_custom:
        raise Unfit(phrase("it works on a state"))
    dtype = op.outputs[0].dtype
    if not way.moves and dtype != "float32":
        raise Unfit(phrase("it makes {dtype}; only float ops are said in other words", dtype))
    parts = Parts(op, near)
    way.make(parts, op)
    return parts.ops()


def _made_of_half(op: Op, way: Way, near: Around) -> tuple[Op, ...]:
    """The ops, where float16 constants can be computed with; constants that are only passed on stay
    as they are."""
    makers = {t: near.makers[t] for t in op.inputs if t is not None and t in near.makers}
    held = {
        tensor: unpacked_half(tensor, maker.inputs[0])
        for tensor, maker in makers.items()
        if is_half(maker) and maker.inputs[0] is not None
    }
    made = _made(substitute(op, held), way, near)
    back = {new: old for old, new in held.items()}
    return tuple(substitute(one, back) for one in made)


def _without_orphans(before: Graph, after: Graph) -> Graph:
    """The graph without the ops that nothing reads any more."""
    were_read = {t for op in before.ops for t in op.inputs}
    read = {*after.outputs}
    kept: list[Op] = []
    for op in reversed(after.ops):
        orphaned = read.isdisjoint(op.outputs) and not were_read.isdisjoint(op.outputs)
        if orphaned and is_repeatable(op):
            continue
        kept.append(op)
        read.update(t for t in op.inputs if t is not None)
    return regraph(after, ops=kept[::-1])

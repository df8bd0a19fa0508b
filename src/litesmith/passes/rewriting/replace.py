"""`replace`: ops of the model become one custom op, which computes the same in another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.effects import has_effect
from litesmith.ir.model_text import op_name
from litesmith.ir.partition import collapsed, part_graph, partition
from litesmith.ir.types import Graph, Model, Op, Tensor, op_tensors
from litesmith.ops.call import Call
from litesmith.ops.flexbuffer import encode
from litesmith.ops.registry import find_op
from litesmith.passes.core.pattern import Term, Word, is_builtin, matches, parse
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.phrases import phrase


@dataclass(frozen=True)
class Replace:
    """Put a custom op in the place of others, wherever a pattern is found or by their numbers.

    find  a pattern, as in "MUL(x, RELU6(ADD(x, 3)))"; its words become the inputs
    ops   or numbers of ops of the main graph; what they read becomes the inputs, constants too
          unless the function of the op takes fewer
    op    the custom op: its name, or a call with inputs and options, as in "Scaled(x, by=2.0)"
    """

    find: str = ""
    ops: tuple[int, ...] = ()
    op: str = ""

    def apply(self, model: Model, context: Context) -> Change:
        if not self.find and not self.ops:
            return Change(
                model, (), (Skip(phrase("the model"), phrase("no find and no ops say what goes")),)
            )
        if self.find and self.ops:
            raise BadInput("replace: give find or ops, not both")
        if not self.op:
            raise BadInput("replace: op= is missing: the name of the custom op")
        call = _call(self.op)
        if is_builtin(call.name):
            raise BadInput(
                "replace(op={op}): {name} is no custom op, but one of LiteRT's", self.op, call.name
            )
        return _found(model, parse(self.find), call) if self.find else _named(model, self.ops, call)


def _call(text: str) -> Term:
    """The custom op as it was written: a call, or a name alone."""
    if text.rstrip().endswith(")"):
        return parse(text)
    return Term(text, (), {})


def _found(model: Model, pattern: Term, call: Term) -> Change:
    words = list(dict.fromkeys(pattern.words()))
    wanted = [item.name for item in call.inputs if isinstance(item, Word)] or words
    unknown = [word for word in wanted if word not in words]
    if unknown or any(not isinstance(item, Word) for item in call.inputs):
        there = ", ".join(words) or "none"
        raise BadInput(
            "replace: inputs of {name} are words of the pattern: {there}", call.name, there
        )
    graphs: list[Graph] = []
    touched: list[str] = []
    for graph in model.graphs:
        for match in matches(graph, pattern):
            inputs = tuple(match.tensors[word] for word in wanted)
            new = _custom(call, inputs, match.root.outputs)
            graph = _with(graph, match.ops, new)
            touched.append(_deed(match.ops, new))
        graphs.append(graph)
    if not touched:
        return Change(
            model, (), (Skip(phrase("the model"), phrase("no ops of it are as the pattern says")),)
        )
    return Change(with_graphs(model, graphs), tuple(touched))


def _named(model: Model, numbers: Sequence[int], call: Term) -> Change:
    graph = model.main
    if call.inputs:
        raise BadInput("replace: with ops the inputs are what these read; name the op alone")
    wrong = [n for n in numbers if not 0 <= n < len(graph.ops)]
    if wrong:
        raise BadInput(
            "replace: no op {wrong}; the model has {count}, from 0", wrong[0], len(graph.ops)
        )
    ops = tuple(graph.ops[n] for n in sorted(set(numbers)))
    inside = part_graph(graph, ops)
    made = {t for op in ops for t in op.outputs}
    reads = dict.fromkeys(t for op in ops for t in op.inputs if t is not None and t not in made)
    read = tuple(reads) if _takes(call.name, len(reads)) else inside.inputs
    if not inside.outputs:
        raise CannotApply("{op_name}: nobody reads what these ops make", op_name(ops[0]))
    new = _custom(call, read, inside.outputs)
    edited = _with(graph, ops, new)
    return Change(with_graphs(model, [edited, *model.graphs[1:]]), (_deed(ops, new),))


def _takes(name: str, count: int) -> bool:
    """False where an operator is known to take another number of inputs."""
    operator = find_op(name)
    return operator is None or operator.takes_inputs(count)


def _custom(call: Term, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> Op:
    rest = {"custom_options": encode({**call.options})} if call.options else {}
    new = Op("CUSTOM", inputs, outputs, custom=call.name, rest=MappingProxyType(rest))
    operator = find_op(call.name)
    if operator is not None:
        try:
            made = Call(operator, new)
            shapes = made.shapes([t.shape for t in inputs if not t.is_const])
        except LitesmithError as error:
            raise CannotApply("replace: {error}", error) from error.__cause__
        wanted = [t.shape for t in outputs]
        if shapes != wanted:
            raise CannotApply(
                "replace: {name} gives the shapes {shapes}, not {wanted}", call.name, shapes, wanted
            )
    return new


def _with(graph: Graph, ops: Sequence[Op], new: Op) -> Graph:
    """The graph with one op in the place of some."""
    for op in ops:
        if (has_effect(op) and not op.is_custom) or any(t.variable for t in op_tensors(op)):
            raise CannotApply(
                "{op_name}: it has an effect or a state, which would be lost", op_name(op)
            )
    parts = partition(graph, set(ops))
    claimed = [part for part in parts if part.is_claimed]
    if len(claimed) > 1:
        between = next(op for op in parts[parts.index(claimed[0]) + 1].ops)
        raise CannotApply(
            "{op_name} reads from these ops and feeds them; name it too, or fewer", op_name(between)
        )
    return regraph(graph, ops=collapsed(parts, {claimed[0]: new}))


def _deed(ops: Sequence[Op], new: Op) -> str:
    kinds = ", ".join(op.label for op in ops)
    return phrase("{op_name} in place of {kinds}", op_name(new), kinds)

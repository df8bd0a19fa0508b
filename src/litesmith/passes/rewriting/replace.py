"""`replace`: a pattern of ops becomes one custom op.

A pattern is a text, `MUL(x, RELU6(ADD(x, 3)))`. An upper-case call is an op of that kind, another
one a custom op of that name; a word is a tensor, the same wherever it stands; a number is a
constant of that value throughout; `_` is any constant, or an input that is left out. `name=value`
is an option; an activation that is not named is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType

import numpy as np

from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.edit import regraph, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, has_effect
from litesmith.ir.partition import part_graph, partition, replace_parts
from litesmith.ir.types import Graph, Model, Op, Tensor, constant_numbers, op_tensors
from litesmith.ops.call import Call
from litesmith.ops.flexbuffer import encode
from litesmith.ops.registry import find_op
from litesmith.passes.core.step import Change, Context, Skip, on_graphs
from litesmith.phrases import phrase


@dataclass(frozen=True)
class Replace:
    """Put a custom op in the place of others, wherever a pattern is found or by their numbers.

    find  a pattern, as in "MUL(x, RELU6(ADD(x, 3)))"; its words become the inputs
    ops   or numbers of ops of the main graph; their inputs become the op's inputs, constants too
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
    """Parses the custom op as the user wrote it: a call, or only a name."""
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

    def edit(graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
        touched: list[str] = []
        for match in matches(graph, pattern):
            inputs = tuple(match.tensors[word] for word in wanted)
            new = _custom(call, inputs, match.root.outputs)
            graph = _with(graph, match.ops, new)
            touched.append(_deed(match.ops, new))
        return graph, touched, []

    change = on_graphs(model, edit)
    left = Skip(phrase("the model"), phrase("no ops of it are as the pattern says"))
    return change if change.touched else Change(model, (), (left,))


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
    return Change(with_main(model, edited), (_deed(ops, new),))


def _takes(name: str, count: int) -> bool:
    """False where an operator is known to take a different number of inputs."""
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
    """The graph with one op in place of several."""
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
    return regraph(graph, ops=replace_parts(parts, {claimed[0]: new}))


def _deed(ops: Sequence[Op], new: Op) -> str:
    kinds = ", ".join(op.label for op in ops)
    return phrase("{op_name} in place of {kinds}", op_name(new), kinds)


# Patterns: their parts, and their places in a graph.

Number = bool | int | float
Setting = Number | str

_ANY = "_"
_ACTIVATION = "fused_activation_function"


@dataclass(frozen=True)
class Word:
    """A name for a tensor; the same name always means the same tensor."""

    name: str


@dataclass(frozen=True)
class Term:
    """An op of a pattern: its kind, or the name of a custom op, with its inputs and some of its
    options."""

    name: str
    inputs: tuple[Term | Word | Number, ...]
    options: Mapping[str, Setting]

    def words(self) -> Iterator[str]:
        """The names of tensors, in reading order."""
        for item in self.inputs:
            if isinstance(item, Term):
                yield from item.words()
            elif isinstance(item, Word) and item.name != _ANY:
                yield item.name


@dataclass(frozen=True)
class Match:
    """A match of the pattern: its ops in order, and the meaning of its words."""

    root: Op
    ops: tuple[Op, ...]
    tensors: Mapping[str, Tensor]


def parse(text: str) -> Term:
    """The pattern that a text stands for.

    >>> [*parse("MUL(x, RELU6(ADD(x, 3)))").words()]
    ['x', 'x']
    """
    try:
        found = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadInput("pattern {what!r}: write it as MUL(x, RELU6(ADD(x, 3)))", text) from None
    if not isinstance(found, ast.Call):
        raise BadInput("pattern {what!r}: it is no op; write it as MUL(x, RELU6(ADD(x, 3)))", text)
    return _term(found, text)


def _term(call: ast.Call, text: str) -> Term:
    name = _literal(call.func)
    if not isinstance(name, str):
        raise BadInput("pattern {what!r}: an op is a name and its inputs, as in ADD(x, y)", text)
    options: dict[str, Setting] = {}
    for keyword in call.keywords:
        value = _literal(keyword.value)
        if keyword.arg is None or value is None:
            raise BadInput("pattern {what!r}: an option is a name and a number or a word", text)
        options[keyword.arg] = value
    return Term(name, tuple(_input(item, text) for item in call.args), options)


def _input(item: ast.expr, text: str) -> Term | Word | Number:
    if isinstance(item, ast.Call):
        return _term(item, text)
    value = _literal(item)
    if value is None:
        raise BadInput(
            "pattern {what!r}: {unparse!r} is no op, no word and no number", text, ast.unparse(item)
        )
    return Word(value) if isinstance(value, str) else value


def _literal(item: ast.expr) -> Setting | None:
    """Parses a word or a number; None for anything else."""
    if isinstance(item, ast.Name):
        return item.id
    try:
        value: object = ast.literal_eval(item)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def matches(graph: Graph, pattern: Term) -> Iterator[Match]:
    """Finds every match of the pattern in a graph, in the order of their first ops; matches share
    no op.

    No op outside a match may read the values inside it.
    """
    makers = {tensor: op for op in graph.ops for tensor in op.outputs}
    taken: set[Op] = set()
    for op in graph.ops:
        state = _at(op, pattern, _State({}, ()), makers)
        if state is None or taken.intersection(state.ops):
            continue
        ops = tuple(one for one in graph.ops if one in state.ops)
        if _is_closed(graph, op, ops):
            taken.update(ops)
            yield Match(op, ops, state.tensors)


@dataclass(frozen=True)
class _State:
    """What has been matched so far."""

    tensors: Mapping[str, Tensor]
    ops: tuple[Op, ...]


def _at(op: Op, term: Term, state: _State, makers: Mapping[Tensor, Op]) -> _State | None:
    """The state after an op was matched; None where the op does not match."""
    if term.name != (op.custom if op.is_custom else op.kind):
        return None
    if not _has_options(op, term.options):
        return None
    held = list(op.inputs)
    while len(held) > len(term.inputs) and held[-1] is None:
        held.pop()
    if len(held) != len(term.inputs):
        return None
    orders = permutations(held) if OPS[op.kind].is_commutative else [tuple(held)]
    begun = _State(state.tensors, (*state.ops, op))
    for order in orders:
        reached = _inputs(order, term.inputs, begun, makers)
        if reached is not None:
            return reached
    return None


def _inputs(
    tensors: Sequence[Tensor | None],
    items: Sequence[Term | Word | Number],
    state: _State,
    makers: Mapping[Tensor, Op],
) -> _State | None:
    for tensor, item in zip(tensors, items, strict=True):
        reached = _one(tensor, item, state, makers)
        if reached is None:
            return None
        state = reached
    return state


def _one(
    tensor: Tensor | None,
    item: Term | Word | Number,
    state: _State,
    makers: Mapping[Tensor, Op],
) -> _State | None:
    if isinstance(item, Term):
        maker = makers.get(tensor) if tensor is not None else None
        return None if maker is None else _at(maker, item, state, makers)
    if isinstance(item, Word):
        if item.name == _ANY:
            return state if tensor is None or tensor.is_const else None
        if tensor is None or state.tensors.get(item.name, tensor) is not tensor:
            return None
        return _State({**state.tensors, item.name: tensor}, state.ops)
    return state if tensor is not None and _is_number(tensor, item) else None


def _is_number(tensor: Tensor, number: Number) -> bool:
    """True for a constant of this value throughout, within half a step where it is quantized."""
    values = constant_numbers(tensor)
    if values is None or not values.size or values.dtype.kind not in "biuf":
        return False
    real, step = values.astype(np.float64), 0.0
    if tensor.quant is not None and tensor.quant.scale.size == 1:
        step = float(tensor.quant.scale[0]) / 2
        real = (real - float(tensor.quant.zero_point[0])) * step * 2
    return bool((np.abs(real - number) <= step + 1e-6 * abs(number)).all())


def _has_options(op: Op, wanted: Mapping[str, Setting]) -> bool:
    settings = {_ACTIVATION: "NONE", **wanted} if op.option(_ACTIVATION) is not None else wanted
    return all(op.option(name) == value for name, value in settings.items())


def _is_closed(graph: Graph, root: Op, ops: Sequence[Op]) -> bool:
    """True where only the outputs of the root are read outside the match."""
    inside, hidden = set(ops), {t for op in ops if op is not root for t in op.outputs}
    read = {t for op in graph.ops if op not in inside for t in op.inputs if t is not None}
    return not hidden & (read | {*graph.outputs})


def is_builtin(name: str) -> bool:
    return name in OPS and name != "CUSTOM"

"""Patterns of ops as a text: `MUL(x, RELU6(ADD(x, 3)))`, and where a graph has them.

An upper-case call is an op of that kind, another one a custom op of that name; a word is a tensor,
the same wherever it stands; a number is a constant of that value throughout; `_` is any constant,
or an input that is left out. `name=value` is an option; an activation that is not named is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor, constant_numbers

Number = bool | int | float
Setting = Number | str

_ANY = "_"
_ACTIVATION = "fused_activation_function"


@dataclass(frozen=True)
class Word:
    """A tensor, by a name that is the same for the same tensor."""

    name: str


@dataclass(frozen=True)
class Term:
    """An op: its kind, or the name of a custom one, its inputs and some of its options."""

    name: str
    inputs: tuple[Term | Word | Number, ...]
    options: Mapping[str, Setting]

    def words(self) -> Iterator[str]:
        """The names of tensors, in the order that they are read."""
        for item in self.inputs:
            if isinstance(item, Term):
                yield from item.words()
            elif isinstance(item, Word) and item.name != _ANY:
                yield item.name


@dataclass(frozen=True)
class Match:
    """Where a graph has a pattern: its ops in order, and what its words stand for."""

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
    """A word or number; None for anything else."""
    if isinstance(item, ast.Name):
        return item.id
    try:
        value: object = ast.literal_eval(item)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def matches(graph: Graph, pattern: Term) -> Iterator[Match]:
    """Every place where a graph has the pattern, from its first op on; no op is in two of them.

    What flows inside is read by nobody else.
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
    """The state with an op matched; None where it is another one."""
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
    """True for a constant of that value throughout, to a half step where it is quantized."""
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
    """True where nothing but the root's outputs is read outside."""
    inside, hidden = set(ops), {t for op in ops if op is not root for t in op.outputs}
    read = {t for op in graph.ops if op not in inside for t in op.inputs if t is not None}
    return not hidden & (read | {*graph.outputs})


def is_builtin(name: str) -> bool:
    return name in OPS and name != "CUSTOM"

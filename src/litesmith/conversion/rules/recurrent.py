"""Rules for layers with a memory: LSTM, GRU and RNN, step by step or in a loop.

All inputs are multiplied with their weights at once; each step is one product with the state. A
few steps are written out. Where the packed copies that XNNPACK makes of the weights, one a step,
would leave the CPU's cache, a loop runs as many steps a turn as fit. LiteRT's own sequence ops
keep their state from one call to the next, and were not faster in any size that was measured.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from litesmith.conversion.core.inner_graphs import while_loop
from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import cut_out
from litesmith.conversion.rules.values import clamp, elu, like, softplus
from litesmith.ir.types import Tensor, constant_numbers

# XNNPACK packs the weights for every step that is written out, so these bytes bound how many are:
# of all steps, and of those of a loop's turn. A network has many such layers.
ALL_STEPS = 1 << 20
A_TURN = 1 << 19
MOST_STEPS, MOST_A_TURN = 32, 8

Activation = Callable[[Lowering, Tensor], Tensor]
States = tuple[Tensor, ...]


class Weights(NamedTuple):
    """One direction's weights: of the inputs, of the state, its biases and its peepholes."""

    inputs: Tensor
    state: Tensor
    input_bias: Tensor | None
    state_bias: Tensor | None
    peepholes: tuple[Tensor, ...]


class Cell(NamedTuple):
    """What all steps of one direction share."""

    node: Node
    weights: Weights
    functions: tuple[Activation, ...]
    hidden: int


# The product of one step's inputs, the state and the cell as they are before; then after.
Step = Callable[[Lowering, Cell, Tensor, States], States]


# Activations


def _line(lower: Lowering, x: Tensor, factor: float, offset: float) -> Tensor:
    scaled = x if factor == 1 else lower.op("MUL", x, like(x, factor))
    return scaled if offset == 0 else lower.op("ADD", scaled, like(x, offset))


def _above(lower: Lowering, x: Tensor, edge: float) -> Tensor:
    return lower.op("SELECT_V2", lower.op("GREATER", x, like(x, edge)), x, like(x, 0))


def _soft_sign(lower: Lowering, x: Tensor) -> Tensor:
    return lower.op("DIV", x, _line(lower, lower.op("ABS", x), 1, 1))


# Each with the values that its two numbers have where none are given; None where it takes none.
_FUNCTIONS: dict[
    str,
    tuple[float | None, float | None, Callable[[Lowering, Tensor, float, float], Tensor]],
] = {
    "affine": (1, 0, _line),
    "elu": (1, None, lambda lower, x, a, b: elu(lower, x, a)),
    "hardsigmoid": (0.2, 0.5, lambda lower, x, a, b: _hard(lower, x, a, b)),
    "leakyrelu": (0.01, None, lambda lower, x, a, b: lower.op("LEAKY_RELU", x, alpha=a)),
    "relu": (None, None, lambda lower, x, a, b: lower.op("RELU", x)),
    "scaledtanh": (
        1,
        1,
        lambda lower, x, a, b: _line(lower, lower.op("TANH", _line(lower, x, b, 0)), a, 0),
    ),
    "sigmoid": (None, None, lambda lower, x, a, b: lower.op("LOGISTIC", x)),
    "softplus": (None, None, lambda lower, x, a, b: softplus(lower, x)),
    "softsign": (None, None, lambda lower, x, a, b: _soft_sign(lower, x)),
    "tanh": (None, None, lambda lower, x, a, b: lower.op("TANH", x)),
    "thresholdedrelu": (1, None, lambda lower, x, a, b: _above(lower, x, a)),
}


def _hard(lower: Lowering, x: Tensor, factor: float, offset: float) -> Tensor:
    return lower.op("RELU_0_TO_1", _line(lower, x, factor, offset))


def _functions(node: Node, defaults: Sequence[str], directions: int) -> list[Activation]:
    """The activations of all directions; numbers go to those that take one, in order."""
    names = [name.lower() for name in node.words("activations") or [*defaults] * directions]
    if len(names) != len(defaults) * directions:
        raise Unsupported(
            "{found} activations for {wanted} places", len(names), len(defaults) * directions
        )
    firsts = list(node.numbers("activation_alpha"))
    seconds = list(node.numbers("activation_beta"))
    found: list[Activation] = []
    for place, name in enumerate(names):
        if name not in _FUNCTIONS:
            raise Unsupported("its activation {name!r} is not one of ONNX's", name)
        first, second, compute = _FUNCTIONS[name]
        a = firsts.pop(0) if first is not None and firsts else first or 0
        b = seconds.pop(0) if second is not None and seconds else second or 0
        # What an LSTM gives of its cell is not clipped (onnxruntime's way).
        clip = 0.0 if place % len(defaults) == 2 else node.number("clip")
        found.append(_activation(compute, a, b, clip))
    return found


def _activation(
    compute: Callable[[Lowering, Tensor, float, float], Tensor], a: float, b: float, clip: float
) -> Activation:
    def function(lower: Lowering, x: Tensor) -> Tensor:
        if clip:
            bounds = (lower.const(like(x, v)) for v in (-clip, clip))
            x = clamp(lower, x, *bounds)
        return compute(lower, x, a, b)

    return function


# Steps


def _part(lower: Lowering, x: Tensor, start: int, size: int, axis: int = -1) -> Tensor:
    cut = [(0, d, 1) for d in x.shape]
    cut[axis] = (start, start + size, 1)
    return cut_out(lower, x, cut)


def _gates(lower: Lowering, x: Tensor, count: int) -> Sequence[Tensor]:
    return lower.ops("SPLIT", np.array(1, np.int32), x, num_splits=count) if count > 1 else [x]


def _product(lower: Lowering, state: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    values = constant_numbers(state)
    if values is not None and not values.any():  # the first step mostly starts from nothing
        if bias is not None:
            return lower.reshape(bias, (1, bias.elements))
        return lower.const(np.zeros((1, weight.shape[0]), np.float32))
    return lower.op("FULLY_CONNECTED", state, weight, bias)


def _sum(lower: Lowering, a: Tensor, b: Tensor) -> Tensor:
    values = constant_numbers(b)
    return a if values is not None and not values.any() else lower.op("ADD", a, b)


def _times(lower: Lowering, a: Tensor, b: Tensor) -> Tensor:
    values = constant_numbers(b)
    return b if values is not None and not values.any() else lower.op("MUL", a, b)


def _simple_step(lower: Lowering, cell: Cell, x: Tensor, states: States) -> States:
    total = _sum(lower, x, _product(lower, states[0], cell.weights.state, None))
    return (cell.functions[0](lower, total),)


def _gru_step(lower: Lowering, cell: Cell, x: Tensor, states: States) -> States:
    (state,), weights, size = states, cell.weights, cell.hidden
    gate, memory = cell.functions
    linear = bool(cell.node.integer("linear_before_reset"))
    if linear:
        whole = _product(lower, state, weights.state, weights.state_bias)
        front, back = _part(lower, whole, 0, 2 * size), _part(lower, whole, 2 * size, size)
    else:
        front = _product(lower, state, _part(lower, weights.state, 0, 2 * size, 0), None)
        back = None
    gates = gate(lower, _sum(lower, _part(lower, x, 0, 2 * size), front))
    update, reset = _gates(lower, gates, 2)
    if back is None:
        rest = _part(lower, weights.state, 2 * size, size, 0)
        inner = _product(lower, _times(lower, reset, state), rest, None)
    else:
        inner = _times(lower, reset, back)
    new = memory(lower, _sum(lower, _part(lower, x, 2 * size, size), inner))
    kept = lower.op("SUB", state, new)
    return (lower.op("ADD", new, lower.op("MUL", update, kept)),)


def _lstm_step(lower: Lowering, cell: Cell, x: Tensor, states: States) -> States:
    (state, memory), size = states, cell.hidden
    gate, candidate, output = cell.functions
    total = _sum(lower, x, _product(lower, state, cell.weights.state, None))
    coupled = bool(cell.node.integer("input_forget"))
    if cell.weights.peepholes:
        return _peeping_step(lower, cell, total, memory)
    gates = gate(lower, _part(lower, total, 0, (2 if coupled else 3) * size))
    i, o, *f = _gates(lower, gates, 2 if coupled else 3)
    forget = f[0] if f else lower.op("SUB", like(i, 1), i)
    new = candidate(lower, _part(lower, total, 3 * size, size))
    memory = _sum(lower, lower.op("MUL", i, new), _times(lower, forget, memory))
    return lower.op("MUL", o, output(lower, memory)), memory


def _peeping_step(lower: Lowering, cell: Cell, total: Tensor, memory: Tensor) -> States:
    """An LSTM with peepholes: its gates read the cell."""
    gate, candidate, output = cell.functions
    i, o, f, c = _gates(lower, total, 4)
    see_i, see_o, see_f = cell.weights.peepholes
    i = gate(lower, _sum(lower, i, _times(lower, see_i, memory)))
    if cell.node.integer("input_forget"):
        f = lower.op("SUB", like(i, 1), i)
    else:
        f = gate(lower, _sum(lower, f, _times(lower, see_f, memory)))
    new = lower.op("MUL", i, candidate(lower, c))
    memory = _sum(lower, new, _times(lower, f, memory))
    o = gate(lower, lower.op("ADD", o, lower.op("MUL", see_o, memory)))
    return lower.op("MUL", o, output(lower, memory)), memory


# Sequences


class Way(NamedTuple):
    """One direction through time, a row for each step of each sequence: the products of the
    inputs, and where sequences end at different times 1, 0 for a step that counts, else 0, 1."""

    products: Tensor
    counts: Tensor | None
    batch: int
    turned: bool

    @property
    def steps(self) -> int:
        return self.products.shape[0] // self.batch


def _one_step(
    lower: Lowering, cell: Cell, step: Step, x: Tensor, counts: Tensor | None, states: States
) -> tuple[States, Tensor]:
    """The states after a step, and its output; a sequence that has ended keeps its states."""
    new = step(lower, cell, x, states)
    if counts is None:
        return new, new[0]
    # By products instead of SELECT_V2, which would split XNNPACK's partition at every step.
    counted, ended = _gates(lower, counts, 2)
    given = [lower.op("MUL", counted, n) for n in new]
    kept = (_sum(lower, g, _times(lower, ended, s)) for g, s in zip(given, states, strict=True))
    return tuple(kept), given[0]


def _some_steps(
    lower: Lowering, cell: Cell, step: Step, way: Way, states: States
) -> tuple[States, Tensor]:
    """Steps written out: the states after them, and all results, a row each."""
    places = range(way.steps)[:: -1 if way.turned else 1]
    results: dict[int, Tensor] = {}
    for t in places:
        now = _cut(lower, way, t, t + 1)
        states, results[t] = _one_step(lower, cell, step, now.products, now.counts, states)
    rows = [results[t] for t in range(way.steps)]
    return states, rows[0] if len(rows) == 1 else lower.op("CONCATENATION", *rows, axis=0)


def _fitting(cell: Cell, room: int, most: int) -> int:
    return max(1, min(most, room // (4 * cell.weights.state.elements)))


def _all_steps(
    lower: Lowering, cell: Cell, step: Step, way: Way, states: States
) -> tuple[States, Tensor]:
    """All steps, in a loop where there are many."""
    if way.steps <= _fitting(cell, ALL_STEPS, MOST_STEPS):
        return _some_steps(lower, cell, step, way, states)
    most = _fitting(cell, A_TURN, MOST_A_TURN)
    even = (n for n in range(most, (most - 1) // 2, -1) if way.steps % n == 0)
    many = next(even, most)  # better a few less a turn than some left over
    turns, rest = divmod(way.steps, many)
    if turns < 2:
        return _some_steps(lower, cell, step, way, states)
    if not rest:
        return _loop(lower, cell, step, way, states, many)
    # What is left over comes last: at the end of time, or at its beginning.
    border = rest if way.turned else turns * many
    early, late = _cut(lower, way, 0, border), _cut(lower, way, border, way.steps)
    first, last = (late, early) if way.turned else (early, late)
    states, begun = _loop(lower, cell, step, first, states, many)
    states, ended = _some_steps(lower, cell, step, last, states)
    parts = (ended, begun) if way.turned else (begun, ended)
    return states, lower.op("CONCATENATION", *parts, axis=0)


def _cut(lower: Lowering, way: Way, start: int, end: int) -> Way:
    parts = (
        t and _part(lower, t, start * way.batch, (end - start) * way.batch, 0)
        for t in (way.products, way.counts)
    )
    products, counts = parts
    assert products is not None
    return way._replace(products=products, counts=counts)


def _loop(
    lower: Lowering, cell: Cell, step: Step, way: Way, states: States, many: int
) -> tuple[States, Tensor]:
    weights = cell.weights
    turns, rows = way.steps // many, many * way.batch
    # A turn picks its part by one number.
    products, counts = (
        t and lower.reshape(t, (turns, rows * t.shape[1])) for t in (way.products, way.counts)
    )
    assert products is not None
    read = [products, weights.state]
    read += [t for t in (counts, weights.state_bias, *weights.peepholes) if t is not None]

    def turn(
        inner: Lowering, number: Tensor, held: Sequence[Tensor], seen: Sequence[Tensor]
    ) -> list[Tensor]:
        *before, results = held
        known = dict(zip(read, seen, strict=True))
        if way.turned:
            number = inner.op("SUB", np.array([turns - 1], np.int32), number)
        one, two = (
            t
            and inner.reshape(
                inner.op("GATHER", known[t], number, axis=0), (rows, t.shape[1] // rows)
            )
            for t in (products, counts)
        )
        assert one is not None
        part = way._replace(products=one, counts=two)
        own = weights._replace(
            state=known[weights.state],
            state_bias=weights.state_bias and known[weights.state_bias],
            peepholes=tuple(known[t] for t in weights.peepholes),
        )
        after, made = _some_steps(inner, cell._replace(weights=own), step, part, tuple(before))
        corner = inner.op("MUL", number, np.array([rows, 0], np.int32))
        return [*after, inner.op("DYNAMIC_UPDATE_SLICE", results, made, corner)]

    empty = lower.const(np.zeros((turns * rows, cell.hidden), np.float32))
    count = lower.const(np.array([turns], np.int32))
    *after, made = while_loop(lower, count, [*states, empty], read, turn)
    return tuple(after), made


# The operators


class Kind(NamedTuple):
    gates: int
    states: int
    activations: tuple[str, ...]
    step: Step


def recurrent(kind: Kind) -> Rule:
    def rule(lower: Lowering, node: Node) -> list[Tensor]:
        x, *others = lower.inputs(node, 8)
        x = lower.need(x)
        if x.dtype != "float32":
            raise Unsupported("it computes in {dtype}; LiteRT's products are of float32", x.dtype)
        if len(x.shape) != 3:
            raise Unsupported("its data has {rank} dimensions, not 3", len(x.shape))
        batch_first = bool(node.integer("layout"))
        if batch_first:
            x = lower.transpose(x, (1, 0, 2))
        where = node.word("direction", "forward")
        turned = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(where)
        if turned is None:
            raise Unsupported("its direction {where!r} is not one of ONNX's", where)
        functions = _functions(node, kind.activations, len(turned))
        made: list[tuple[States, Tensor]] = []
        for d, backwards in enumerate(turned):
            own = functions[d * len(kind.activations) : (d + 1) * len(kind.activations)]
            made.append(_direction(lower, node, kind, x, others, d, backwards, tuple(own)))
        return _results(lower, made, x.shape, batch_first)

    return rule


def _direction(
    lower: Lowering,
    node: Node,
    kind: Kind,
    x: Tensor,
    others: Sequence[Tensor | None],
    place: int,
    turned: bool,
    functions: tuple[Activation, ...],
) -> tuple[States, Tensor]:
    steps, batch, width = x.shape
    lengths, starts = others[3], others[4 : 4 + kind.states]
    weights = _weights(lower, kind, others, place, bool(node.integer("linear_before_reset")))
    hidden = weights.state.shape[1]
    rows = lower.reshape(x, (steps * batch, width))
    products = lower.op("FULLY_CONNECTED", rows, weights.inputs, weights.input_bias)
    counts = None if lengths is None else _counting(lower, lengths, steps)
    way = Way(products, counts, batch, turned)
    states = tuple(
        _start(lower, t, place, batch, hidden, bool(node.integer("layout"))) for t in starts
    )
    return _all_steps(lower, Cell(node, weights, functions, hidden), kind.step, way, states)


def _weights(
    lower: Lowering, kind: Kind, others: Sequence[Tensor | None], place: int, linear: bool
) -> Weights:
    def own(tensor: Tensor | None) -> Tensor:
        part = _part(lower, lower.need(tensor), place, 1, 0)
        return lower.reshape(part, part.shape[1:])

    inputs, state = own(others[0]), own(others[1])
    size = kind.gates * state.shape[1]
    bias = kept = None
    if others[2] is not None:
        both = own(others[2])
        bias, kept = _part(lower, both, 0, size), _part(lower, both, size, size)
        if not linear:
            bias, kept = lower.op("ADD", bias, kept), None
    peepholes: tuple[Tensor, ...] = ()
    if kind.states == 2 and others[6] is not None:
        whole = own(others[6])
        hidden = state.shape[1]
        peepholes = tuple(_part(lower, whole, i * hidden, hidden) for i in range(3))
    return Weights(inputs, state, bias, kept, peepholes)


def _start(
    lower: Lowering, given: Tensor | None, place: int, batch: int, hidden: int, batch_first: bool
) -> Tensor:
    """A state before the first step."""
    if given is None:
        return lower.const(np.zeros((batch, hidden), np.float32))
    return lower.reshape(_part(lower, given, place, 1, 1 if batch_first else 0), (batch, hidden))


def _counting(lower: Lowering, lengths: Tensor, steps: int) -> Tensor | None:
    """Which steps belong to each sequence, a row for each; None where all do."""
    values = constant_numbers(lengths)
    if values is not None and np.all(values == steps):
        return None
    times = np.arange(steps, dtype=np.int32)[:, None]
    ends = lower.reshape(lower.cast(lengths, "int32"), (1, lengths.elements))
    counted = lower.reshape(lower.op("LESS", times, ends), (steps * lengths.elements, 1))
    ended = lower.op("LOGICAL_NOT", counted)
    parts = (lower.cast(t, "float32") for t in (counted, ended))
    return lower.op("CONCATENATION", *parts, axis=1)


def _results(
    lower: Lowering,
    made: Sequence[tuple[States, Tensor]],
    sizes: Sequence[int],
    batch_first: bool,
) -> list[Tensor]:
    """All results, (T, directions, batch, hidden), and the last states."""
    steps, batch, _ = sizes

    def joined(parts: Sequence[Tensor], shape: Sequence[int], order: Sequence[int]) -> Tensor:
        axis = shape.index(0)
        whole = [lower.reshape(p, [1 if d == 0 else d for d in shape]) for p in parts]
        one = whole[0] if len(whole) == 1 else lower.op("CONCATENATION", *whole, axis=axis)
        return lower.transpose(one, order) if batch_first else one

    hidden = made[0][0][0].shape[1]
    every = joined([y for _, y in made], (steps, 0, batch, hidden), (2, 0, 1, 3))
    last = [
        joined(states, (0, batch, hidden), (1, 0, 2))
        for states in zip(*(s for s, _ in made), strict=True)
    ]
    return [every, *last]


RULES: dict[str, Rule] = {
    "GRU": recurrent(Kind(3, 1, ("Sigmoid", "Tanh"), _gru_step)),
    "LSTM": recurrent(Kind(4, 2, ("Sigmoid", "Tanh", "Tanh"), _lstm_step)),
    "RNN": recurrent(Kind(1, 1, ("Tanh",), _simple_step)),
}

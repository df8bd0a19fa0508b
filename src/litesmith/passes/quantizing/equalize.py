"""`equalize`: channels of unlike size are made alike, so that one scale serves them all.

A factor on a channel of an activation can be moved into the layers that write it, and its inverse
into those that read it: ReLU, pooling and sums let it through. The float model computes the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.edit import consumers, rewrite
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Tensor, constant_numbers, frozen
from litesmith.numeric.affine import rows_of
from litesmith.numeric.arrays import along
from litesmith.numeric.ranges import Seen
from litesmith.passes.core.step import Change, Context, Observe, Skip, on_graphs
from litesmith.phrases import phrase
from litesmith.units import plain, ratio_text

Reals = NDArray[np.float64]

# An activation that ends at 6 cuts off values that grow beyond it. Channels are kept this factor
# below, because other data reaches farther than the samples.
_HEADROOM = 4.0

# The share of a channel's smallest observed value that it is assumed never to fall below, given
# this many values.
_CERTAIN = 0.5
_ENOUGH = 4096

# More would only make float32 and the next layer's weights suffer.
_MOST = 64.0

_CUT_OFF = phrase(
    "its activation ends at 6, and what is scaled would be cut off elsewhere; relu6=true "
    "allows it for channels that data shows to stay far below"
)

# Without data, weights on both sides of an activation depend on its neighbours' factors.
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Group:
    """Activations whose channels can only be scaled together, and the layers around them.

    ceiling  where an activation inside cuts off
    why      the obstacle to scaling them; empty where there is none
    """

    tensors: tuple[Tensor, ...]
    writers: tuple[Op, ...]
    readers: tuple[Op, ...]
    ceiling: float
    why: str

    @property
    def channels(self) -> int:
        return channels(self.tensors[0])

    @property
    def name(self) -> str:
        return op_name(self.writers[0])


@dataclass(frozen=True)
class Equalize:
    """Even out the channels of activations by factors moved between the layers around them.

    strength  the strength of the factors, from 0 (none) to 1
    absorb    move what a channel never falls below into the next layer's bias; needs data
    relu6     also scale channels that a ReLU6 cuts off; needs data. They are then cut off at four
              times their observed maximum, so that with few samples new data suffers
    """

    strength: float = 1.0
    absorb: bool = True
    relu6: bool = False

    def apply(self, model: Model, context: Context) -> Change:
        if not 0 <= self.strength <= 1:
            raise BadInput("equalize: strength={strength}; it is from 0 to 1", self.strength)
        observe = context.tools.observe if context.tools else None
        return on_graphs(model, lambda graph: self._edited(model, graph, observe))

    def _edited(
        self, model: Model, graph: Graph, observe: Observe | None
    ) -> tuple[Graph, list[str], list[Skip]]:
        found = [group for group in channel_groups(graph) if group.writers]
        skipped = [Skip(group.name, group.why) for group in found if group.why]
        groups = [group for group in found if group.readers and not group.why]
        if not self.relu6 or observe is None or graph is not model.main:
            skipped += [Skip(group.name, _CUT_OFF) for group in groups if group.ceiling < inf]
            groups = [group for group in groups if group.ceiling == inf]
        layers = _layers(groups)
        if observe is not None and graph is model.main:
            spans = _observed(model, groups, observe)
            touched = [text for g in spans for text in self._by_data(layers, g, spans[g])]
            why = phrase("a sample made it infinite or not a number, or there was none")
            skipped += [Skip(group.name, why) for group in groups if group not in spans]
        else:
            factors = _factors_by_weights(_layers(groups), groups)
            touched = [t for g in groups for t in layers.scale(g, factors[g] ** self.strength)]
        return layers.written(graph), touched, skipped

    def _by_data(self, layers: "_Layers", group: Group, span: "_Span") -> list[str]:
        """Evens out one group by its observed values."""
        touched: list[str] = []
        offsets = _offsets(group, span) if self.absorb else None
        if offsets is not None:
            layers.shift(group, offsets)
            span = _Span(span.low - offsets, span.high - offsets, span.values)
            moved = np.count_nonzero(offsets)
            touched.append(
                phrase(
                    "moved the offset of {moved} channels of {name} into biases", moved, group.name
                )
            )
        factors = _factors_by_data(layers, group, span.peak) ** self.strength
        return touched + layers.scale(group, factors)


@dataclass(frozen=True, eq=False)
class _Span:
    """The lowest and highest value of each channel, and the number of values."""

    low: Reals
    high: Reals
    values: int

    @property
    def peak(self) -> Reals:
        return np.maximum(np.abs(self.low), np.abs(self.high))


class _Layers:
    """The weights and biases of a graph's layers in float64, as they stand after each change."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self._weights = {op: _reals(op.inputs[1]) for op in ops}
        biased = [op for op in ops if len(op.inputs) > 2 and op.inputs[2] is not None]
        self._biases = {op: _reals(op.inputs[2]).reshape(-1) for op in biased}
        self._changed: dict[Op, None] = {}

    def outgoing(self, group: Group) -> Reals:
        """The largest weight that makes each channel of a group."""
        peaks = [np.abs(rows_of(self._weights[op], _axis(op))).max(axis=1) for op in group.writers]
        return np.max(peaks, axis=0)

    def incoming(self, group: Group) -> Reals:
        """The largest weight that reads each channel of a group."""
        return np.max([self._by_input(op).max(axis=0) for op in group.readers], axis=0)

    def share(self, group: Group) -> Reals:
        """The contribution of each channel of a group to the outputs computed from it, relative to
        the largest."""
        shares: list[Reals] = []
        for op in group.readers:
            peaks = self._by_input(op)
            largest = peaks.max(axis=1, keepdims=True)
            shares.append((peaks / np.where(largest > 0, largest, 1.0)).mean(axis=0))
        return np.max(shares, axis=0)

    def _by_input(self, op: Op) -> Reals:
        """The largest weight from each input channel: -> (outputs or multiplier, channels)."""
        weight = np.abs(self._weights[op])
        if OPS[op.kind].is_depthwise:
            return weight.reshape(-1, weight.shape[-1]).max(axis=0).reshape(-1, multiplier(op)).T
        return weight.reshape(weight.shape[0], -1, weight.shape[-1]).max(axis=1)

    def scale(self, group: Group, factors: Reals) -> list[str]:
        """Multiplies the channels of a group; says so where it is worth a word."""
        if np.allclose(factors, 1, rtol=1e-3):
            return []
        for op in group.writers:
            weight = self._weights[op]
            self._weights[op] = weight * along(factors, weight.ndim, _axis(op))
            if op in self._biases:
                self._biases[op] = self._biases[op] * factors
        for op in group.readers:
            self._weights[op] = self._weights[op] / np.repeat(factors, multiplier(op))
        self._changed |= dict.fromkeys((*group.writers, *group.readers))
        return _scaled_text(group, factors)

    def shift(self, group: Group, offsets: Reals) -> None:
        """Subtracts offsets from the channels of a group, and adds their effect behind the
        group."""
        for op in group.writers:
            self._biases[op] = self._bias(op) - offsets
        for op in group.readers:
            weight = self._weights[op]
            taken = weight * np.repeat(offsets, multiplier(op))
            self._biases[op] = self._bias(op) + rows_of(taken, _axis(op)).sum(axis=1)
        self._changed |= dict.fromkeys((*group.writers, *group.readers))

    def _bias(self, op: Op) -> Reals:
        return self._biases[op] if op in self._biases else np.zeros(_outputs(op))

    def written(self, graph: Graph) -> Graph:
        """The graph with the constants as they stand now."""
        return rewrite(graph, ops={op: (self._rewritten(op),) for op in self._changed})

    def _rewritten(self, op: Op) -> Op:
        source, weight, bias = (*op.inputs, None)[:3]
        assert weight is not None
        bias = bias or Tensor(f"{op.outputs[0].name}/bias", (_outputs(op),))
        has_bias = op in self._biases
        biases = (_constant_like(bias, self._biases[op]),) if has_bias else op.inputs[2:]
        return replace(op, inputs=(source, _constant_like(weight, self._weights[op]), *biases))


def _layers(groups: Sequence[Group]) -> _Layers:
    return _Layers([op for group in groups for op in (*group.writers, *group.readers)])


def _axis(op: Op) -> int:
    axis = OPS[op.kind].axis
    assert axis is not None
    return axis


def _outputs(op: Op) -> int:
    weight = op.inputs[1]
    assert weight is not None
    return weight.shape[_axis(op)]


def _reals(tensor: Tensor | None) -> Reals:
    assert tensor is not None and tensor.data is not None
    return tensor.data.astype(np.float64)


def _constant_like(tensor: Tensor, values: Reals) -> Tensor:
    return replace(tensor, data=frozen(values.astype(np.float32).reshape(tensor.shape)))


def _pads(op: Op) -> bool:
    """True where a layer reads zeros from beyond the border of its input."""
    weight = op.inputs[1]
    assert weight is not None
    return op.option("padding") == "SAME" and max(weight.shape[1:3]) > 1


def _observed(model: Model, groups: Sequence[Group], observe: Observe) -> dict[Group, _Span]:
    """The span of each group's channels, over all its tensors and all samples."""
    tensors = [t for group in groups for t in group.tensors]
    seen: Mapping[Tensor, Seen] = {}
    if tensors:
        seen = observe(model, tensors, frozenset({"channels"}))
    spans: dict[Group, _Span] = {}
    for group in groups:
        of_group = [seen[t] for t in group.tensors]
        lows = [s.channel_low for s in of_group if s.channel_low is not None]
        highs = [s.channel_high for s in of_group if s.channel_high is not None]
        if lows and not any(s.spoiled for s in of_group):
            low, high = np.min(lows, axis=0), np.max(highs, axis=0)
            values = of_group[0].samples * (group.tensors[0].elements // group.channels)
            spans[group] = _Span(low.astype(np.float64), high.astype(np.float64), values)
    return spans


def _ratio(above: Reals, below: Reals) -> Reals:
    """A quotient, 1 where either is nothing: a dead channel is left as it is."""
    alive = (above > 0) & (below > 0)
    return np.where(alive, above, 1.0) / np.where(alive, below, 1.0)


def _factors_by_weights(layers: _Layers, groups: Sequence[Group]) -> dict[Group, Reals]:
    """The factors that make the weights before and after each group alike: Nagel et al., 2019."""
    found = {group: np.ones(group.channels) for group in groups}
    for _ in range(_ROUNDS):
        for group in groups:
            factors = _ratio(layers.incoming(group), layers.outgoing(group)) ** 0.5
            factors = np.clip(factors * found[group], 1 / _MOST, _MOST) / found[group]
            layers.scale(group, factors)
            found[group] = found[group] * factors
    return found


def _factors_by_data(layers: _Layers, group: Group, peak: Reals) -> Reals:
    """The factors that make a group's channels alike.

    Where only depthwise layers read the group, every channel can span the whole range: each of
    their weights has a scale of its own channel. Elsewhere the price would be uneven weights, so
    the factor is the compromise of Xiao et al., SmoothQuant, 2022.
    """
    depthwise = all(OPS[op.kind].is_depthwise for op in group.readers)
    weights = np.ones_like(peak) if depthwise else layers.share(group)
    factors = _ratio(weights, peak) ** (1.0 if depthwise else 0.5)
    alive = (peak > 0) & (weights > 0)
    if not alive.any():
        return np.ones_like(peak)
    if group.ceiling == inf:
        middle = (factors[alive].min() * factors[alive].max()) ** 0.5
        return np.where(alive, np.clip(factors / middle, 1 / _MOST, _MOST), 1.0)
    limit = group.ceiling / _HEADROOM
    factors = factors * limit / (factors * peak)[alive].max()
    most = np.clip(limit / np.where(alive, peak, limit), 1.0, _MOST)
    return np.where(alive, np.clip(factors, 1.0, most), 1.0)


def _offsets(group: Group, span: _Span) -> Reals | None:
    """The part of each channel that is always there, where the layers around can do without it;
    otherwise None."""
    if len(group.tensors) > 1 or any(_pads(op) for op in group.readers):
        return None
    offsets = _CERTAIN * np.maximum(span.low, 0)
    if group.writers[0].option("fused_activation_function") == "NONE":
        offsets = offsets + _CERTAIN * np.minimum(span.high, 0)
    elif span.values < _ENOUGH:
        return None
    offsets[span.high * _HEADROOM > group.ceiling] = 0
    offsets[np.abs(offsets) < 0.01 * span.peak.max(initial=0)] = 0
    return offsets if offsets.any() else None


def _scaled_text(group: Group, factors: Reals) -> list[str]:
    tensor = plain(group.tensors[0].name)
    least, most = (ratio_text(float(f)) for f in (factors.min(), factors.max()))
    return [
        phrase(
            "scaled {size} channels of {tensor!r} by {least} to {most}",
            factors.size,
            tensor,
            least,
            most,
        )
    ]


# Which activations can have their channels scaled, and the layers that would take the factors.


def channels(tensor: Tensor) -> int:
    return tensor.shape[-1] if tensor.shape else 1


def channel_groups(graph: Graph) -> list[Group]:
    """The activations of a graph, joined where ops between them let a factor through."""
    joined = _Joined()
    ceilings: dict[Tensor, float] = {}
    against: dict[Tensor, str] = dict.fromkeys(
        (*graph.inputs, *graph.outputs), phrase("it is an input or an output of the graph")
    )
    readers = consumers(graph)
    for op in graph.ops:
        around = [t for t in (*op.inputs, *op.outputs) if t is not None and not t.is_const]
        is_layer = OPS[op.kind].is_layer
        why = _against_layer(op, readers) if is_layer else _against_passing(op, around)
        if why:
            against |= {t: why for t in around if t not in against}
        elif not is_layer:
            joined.join(around)
        if not why:
            ceilings[op.outputs[0]] = _ceiling(op)
    written = {t: op for op in graph.ops for t in op.outputs}
    groups: list[Group] = []
    for members in joined.groups(dict.fromkeys((*graph.inputs, *written))):
        by = [written[t] for t in members if t in written and OPS[written[t].kind].is_layer]
        read = [op for t in members for op in readers.get(t, []) if OPS[op.kind].is_layer]
        why = next((against[t] for t in members if t in against), "")
        if not read and all(t in graph.outputs for t in members):
            why = ""  # a result of the model: nothing is there to be scaled
        ceiling = min(ceilings.get(t, inf) for t in members)
        groups.append(Group(tuple(members), tuple(by), tuple(read), ceiling, why))
    return groups


class _Joined:
    """Tensors, some of them joined to others."""

    def __init__(self) -> None:
        self._parent: dict[Tensor, Tensor] = {}

    def _root(self, tensor: Tensor) -> Tensor:
        while tensor in self._parent:
            tensor = self._parent[tensor]
        return tensor

    def join(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors[1:]:
            a, b = self._root(tensors[0]), self._root(tensor)
            if a is not b:
                self._parent[b] = a

    def groups(self, tensors: Iterable[Tensor]) -> list[list[Tensor]]:
        found: dict[Tensor, list[Tensor]] = {}
        for tensor in tensors:
            found.setdefault(self._root(tensor), []).append(tensor)
        return list(found.values())


def _ceiling(op: Op) -> float:
    return 6.0 if "RELU6" in (op.kind, op.option("fused_activation_function")) else inf


def _against_layer(op: Op, readers: Mapping[Tensor, Sequence[Op]]) -> str:
    """Why no factor may go into a layer; empty where it may."""
    source, weight, *biases = op.inputs
    constants = [t for t in (weight, *biases) if t is not None]
    if any(constant_numbers(t) is None or t.dtype != "float32" for t in constants):
        return phrase("the weights of {op_name} are no float32 constants", op_name(op))
    if any(len(readers[t]) > 1 for t in constants):
        return phrase("the weights of {op_name} serve other ops too", op_name(op))
    assert source is not None and weight is not None
    outputs = channels(op.outputs[0])
    counts = (weight.shape[_axis(op)], *(t.elements for t in biases if t is not None))
    if not weight.elements or any(count != outputs for count in counts):
        return phrase("the weights or the bias of {op_name} do not fit its channels", op_name(op))
    if source.dtype != "float32" or source.is_const or source.variable:
        return phrase("{op_name} does not read a float32 activation", op_name(op))
    if channels(weight) != channels(source) * multiplier(op):
        return phrase("{op_name} does not read whole channels", op_name(op))
    activation = op.option("fused_activation_function")
    if activation not in _SCALABLE:
        return phrase(
            "the activation {activation} of {op_name} lets no factor through",
            activation,
            op_name(op),
        )
    return ""


_SCALABLE = frozenset({None, "NONE", "RELU", "RELU6"})


def multiplier(op: Op) -> int:
    """The number of output channels per input channel of a depthwise layer; 1 for other layers."""
    source, weight = op.inputs[:2]
    if not OPS[op.kind].is_depthwise or source is None or weight is None:
        return 1
    return max(channels(weight) // max(channels(source), 1), 1)


def _against_passing(op: Op, around: Sequence[Tensor]) -> str:
    """Why a factor on each channel does not pass through an op; empty where it does."""
    if op.kind not in _PASSING or not _PASSING[op.kind](op):
        return phrase("{op_name} lets no factor through", op_name(op))
    if any(t.dtype != "float32" or t.variable for t in around):
        return phrase("{op_name} does not compute in float32", op_name(op))
    if len({channels(t) for t in around}) != 1:
        return phrase("{op_name} does not keep channels apart", op_name(op))
    if op.option("fused_activation_function") not in _SCALABLE:
        return phrase("the activation of {op_name} lets no factor through", op_name(op))
    return ""


def _of_activations(op: Op) -> bool:
    """True where an op computes with nothing constant."""
    return not any(t is None or t.is_const for t in op.inputs)


def _other_axes(op: Op) -> bool:
    """True where the axes of an op are known and the last is not among them."""
    axes = constant_numbers(op.inputs[1])
    rank = len(op.inputs[0].shape) if op.inputs[0] is not None else 0
    return axes is not None and rank > 0 and not np.any(axes.reshape(-1) % rank == rank - 1)


def _other_widths(op: Op) -> bool:
    """True where an op pads by known widths and not the channels."""
    widths = constant_numbers(op.inputs[1])
    return widths is not None and widths.ndim == 2 and not widths[-1].any()


def _by_constant(op: Op) -> bool:
    return op.inputs[1] is not None and op.inputs[1].is_const


# Ops that give f × y for f × x, channel by channel, where the test holds.
_PASSING: dict[str, Callable[[Op], bool]] = {
    "ADD": _of_activations,
    "AVERAGE_POOL_2D": _of_activations,
    "LEAKY_RELU": _of_activations,
    "MAX_POOL_2D": _of_activations,
    "MEAN": _other_axes,
    "MIRROR_PAD": _other_widths,
    "PAD": _other_widths,
    "PRELU": _by_constant,
    "RELU": _of_activations,
    "RELU6": _of_activations,
    "RESHAPE": lambda op: True,  # the last dimension is the same before and after, and so the order
    "RESIZE_BILINEAR": _by_constant,
    "RESIZE_NEAREST_NEIGHBOR": _by_constant,
    "SQUEEZE": lambda op: True,
    "SUB": _of_activations,
    "SUM": _other_axes,
}

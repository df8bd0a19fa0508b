"""Which activations can have their channels scaled, and the layers that would take the factors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from litesmith.ir.edit import consumers
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor, constant_numbers
from litesmith.phrases import phrase


@dataclass(frozen=True, eq=False)
class Group:
    """Activations whose channels can only be scaled together, and the layers around them.

    ceiling  where an activation inside cuts off
    why      what stands against scaling them; empty where nothing does
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
    if not weight.elements or any(t.elements != outputs for t in biases if t is not None):
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
    """How many output channels a depthwise layer makes of each input channel; 1 for others."""
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

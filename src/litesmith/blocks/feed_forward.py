"""Feed-forward blocks: a layer, an activation, a layer back to the width it began with."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from litesmith.blocks.gelu import Activation
from litesmith.blocks.wiring import Wiring, data_of, is_weighted
from litesmith.ir.ops import OPS
from litesmith.ir.types import Op, Tensor

_GATING = frozenset({"MUL"})


class FeedForward(NamedTuple):
    """One feed-forward block.

    up     the layers that read what the block is given: one, or two where one gates the other
    down   the layer that writes its output
    inner  the ops between, which the activation is made of
    """

    up: tuple[Op, ...]
    down: Op
    inner: tuple[Op, ...]

    @property
    def widths(self) -> tuple[int, int]:
        """Channels outside and inside."""
        weight = self.down.inputs[1]
        assert weight is not None
        return _width(self.down.outputs[0]), _width(weight)


def feed_forwards(wiring: Wiring, found: Mapping[Tensor, Activation]) -> Iterator[FeedForward]:
    """Every feed-forward block, found by its last layer; `found` has the activations by output."""
    for down in wiring.graph.ops:
        if not is_weighted(down):
            continue
        up, inner = _before(wiring, down.inputs[0], found)
        sources = {wiring.origin(op.inputs[0]) for op in up}
        widths = {_width(source) for source in sources}
        if not up or len(sources) != 1 or widths != {_width(down.outputs[0])}:
            continue
        has_curve = bool(inner) or any(_fuses(op) for op in up)
        if has_curve and _is_added(wiring, down):
            yield FeedForward(tuple(up), down, tuple(inner))


def _before(
    wiring: Wiring, tensor: Tensor | None, found: Mapping[Tensor, Activation]
) -> tuple[list[Op], list[Op]]:
    """The layers whose results a tensor is made of by activations and gates, and these."""
    op = wiring.maker(tensor)
    if op is None:
        return [], []
    if is_weighted(op):
        return [op], []
    curve = found.get(op.outputs[0])
    if curve is not None:
        layers, inner = _before(wiring, curve.source, found)
        return layers, [*inner, *curve.ops]
    if OPS[op.kind].clamps is not None or op.kind in ("ELU", "HARD_SWISH", "LEAKY_RELU", "TANH"):
        layers, inner = _before(wiring, op.inputs[0], found)
        return layers, [*inner, op]
    if op.kind not in _GATING or len(data_of(op)) != 2:
        return [], []
    sides = [_before(wiring, one, found) for one in data_of(op)]
    if not all(layers for layers, _ in sides) or not any(inner for _, inner in sides):
        return [], []
    layers = list(dict.fromkeys(layer for side, _ in sides for layer in side))
    return layers, [*(one for _, inner in sides for one in inner), op]


def _width(tensor: Tensor | None) -> int:
    return tensor.shape[-1] if tensor is not None and tensor.shape else 0


def _fuses(op: Op) -> bool:
    return op.option("fused_activation_function") not in (None, "NONE")


def _is_added(wiring: Wiring, op: Op) -> bool:
    """True where a layer's result is added to something computed: the block stands beside a
    shortcut, as in every transformer."""
    users = wiring.users(op.outputs[0], ("ADD", "MUL"))
    return any(user.kind == "ADD" and len(data_of(user)) == 2 for user in users)

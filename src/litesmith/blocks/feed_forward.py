"""Feed-forward blocks: a layer, an activation, and a layer back to the original width."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from litesmith.blocks.gelu import Activation
from litesmith.blocks.wiring import Wiring, data_of, is_weighted
from litesmith.ir.ops import OPS
from litesmith.ir.types import Op, Tensor

_GATING = frozenset({"MUL"})


class FeedForward(NamedTuple):
    """One feed-forward block.

    up     the layers that read the block's input: one, or two where one gates the other
    down   the layer that writes its output
    inner  the ops of the activation between them
    """

    up: tuple[Op, ...]
    down: Op
    inner: tuple[Op, ...]

    @property
    def widths(self) -> tuple[int, int]:
        """The channels outside and inside the block."""
        weight = self.down.inputs[1]
        assert weight is not None
        return _width(self.down.outputs[0]), _width(weight)


def feed_forwards(wiring: Wiring, found: Mapping[Tensor, Activation]) -> Iterator[FeedForward]:
    """Finds every feed-forward block by its last layer; `found` holds the activations by their
    outputs.
    """
    for down in wiring.graph.ops:
        if not is_weighted(down):
            continue
        up, inner = _layers_before(wiring, down.inputs[0], found)
        sources = {wiring.origin(op.inputs[0]) for op in up}
        widths = {_width(source) for source in sources}
        if not up or len(sources) != 1 or widths != {_width(down.outputs[0])}:
            continue
        has_curve = bool(inner) or any(_fuses(op) for op in up)
        if has_curve and _is_added(wiring, down):
            yield FeedForward(tuple(up), down, tuple(inner))


def _layers_before(
    wiring: Wiring, tensor: Tensor | None, found: Mapping[Tensor, Activation]
) -> tuple[list[Op], list[Op]]:
    """The layers from which activations and gates compute a tensor, and the ops of these
    activations and gates.
    """
    op = wiring.maker(tensor)
    if op is None:
        return [], []
    if is_weighted(op):
        return [op], []
    curve = found.get(op.outputs[0])
    if curve is not None:
        layers, inner = _layers_before(wiring, curve.source, found)
        return layers, [*inner, *curve.ops]
    if OPS[op.kind].clamps is not None or op.kind in ("ELU", "HARD_SWISH", "LEAKY_RELU", "TANH"):
        layers, inner = _layers_before(wiring, op.inputs[0], found)
        return layers, [*inner, op]
    if op.kind not in _GATING or len(data_of(op)) != 2:
        return [], []
    sides = [_layers_before(wiring, one, found) for one in data_of(op)]
    if not all(layers for layers, _ in sides) or not any(inner for _, inner in sides):
        return [], []
    layers = list(dict.fromkeys(layer for side, _ in sides for layer in side))
    return layers, [*(one for _, inner in sides for one in inner), op]


def _width(tensor: Tensor | None) -> int:
    return tensor.shape[-1] if tensor is not None and tensor.shape else 0


def _fuses(op: Op) -> bool:
    return op.option("fused_activation_function") not in (None, "NONE")


def _is_added(wiring: Wiring, op: Op) -> bool:
    """True where a layer's result is added to something computed: then the block has a shortcut, as
    in every transformer.
    """
    users = wiring.users(op.outputs[0], ("ADD", "MUL"))
    return any(user.kind == "ADD" and len(data_of(user)) == 2 for user in users)

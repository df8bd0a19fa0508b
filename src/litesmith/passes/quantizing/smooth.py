"""`smooth`: large channels of a normalization's output are moved into the layers that read it.

One step serves all channels of a tensor, but the weights of every output of a layer have a step of
their own. So a factor on each channel goes from the gain and the bias of the normalization, where
it costs nothing, into the columns of the weights behind: Xiao et al., SmoothQuant, 2022. The float
model computes the same, with no op more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.blocks.normalization import Normalization, normalizations
from litesmith.blocks.wiring import Wiring
from litesmith.errors import BadInput
from litesmith.ir.edit import regraph, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op, Record, Tensor, constant_numbers, frozen
from litesmith.passes.core.schemes import Names, chosen
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.passes.quantizing.level import channel_peaks
from litesmith.phrases import phrase
from litesmith.units import ratio_text

Reals = NDArray[np.float64]

# More would only make float32 and the weights suffer.
_MOST = 64.0

_NO_DATA = phrase("which channels are large is seen from data; give some")
_OTHERS = phrase("other ops than layers read it, a sum between blocks for one")
_NO_LAYERS = phrase("no dense layer with float weights of its own reads it")
_NO_GAIN = phrase("it has no gain and bias of its own that a factor could go into")


class _Group(NamedTuple):
    """What layers read of a normalization, and where its factors go: into a gain and a bias, or
    into a product in front of the layers where there are none of these."""

    read: Tensor
    scaling: tuple[tuple[Op, int], ...]
    readers: tuple[Op, ...]


@dataclass(frozen=True)
class Smooth:
    """Move large channels behind a normalization into the weights that read them.

    strength  how much of a channel's size is moved: 0 leaves it to the data, 1 moves all of it into
              the weights
    products  ops whose results have large channels, and no normalization that could take factors: a
              product before the layers takes them, one op more; names as for `quantize`
    """

    strength: float = 0.5
    products: Names = ()

    def apply(self, model: Model, context: Context) -> Change:
        if not 0 <= self.strength <= 1:
            raise BadInput("smooth: strength={strength}; it is from 0 to 1", self.strength)
        wiring = Wiring.of(model.main)
        named = chosen(model.graphs, (), self.products) if self.products else set[Op]()
        groups: list[_Group] = []
        skipped: list[Skip] = []
        for one in normalizations(wiring):
            found = _group(wiring, one)
            if isinstance(found, _Group):
                groups.append(found)
            elif named.isdisjoint(one.ops):
                skipped.append(Skip(op_name(wiring.makers[one.output]), found))
        folded = {group.read for group in groups}
        for op in (op for op in wiring.graph.ops if op in named and folded.isdisjoint(op.outputs)):
            layers = layers_behind(wiring, op)
            if layers:
                groups.append(_Group(op.outputs[0], (), layers))
            else:
                skipped.append(Skip(op_name(op), _NO_LAYERS))
        if not groups:
            return Change(model, skipped=tuple(skipped))
        if context.tools is None:
            where = op_name(wiring.makers[groups[0].read])
            return Change(model, skipped=(*skipped, Skip(where, _NO_DATA)))
        wanted = [group.read for group in groups]
        seen = context.tools.observe(model, wanted, frozenset({"channels"}))
        work = _Smoothing()
        for group in groups:
            peaks = channel_peaks(seen[group.read])
            if peaks is not None:
                factors = _factors(peaks, _columns(group.readers), self.strength)
                work.take(group, factors, wiring.makers[group.read])
        return work.change(model, tuple(skipped))


def _group(wiring: Wiring, one: Normalization) -> _Group | str:
    """The place that takes factors without another op, or the reason why there is none."""
    readers = wiring.readers.get(one.output, [])
    is_read = bool(readers) and one.output not in wiring.graph.outputs
    if not is_read or not all(_is_layer(wiring, op, one.output) for op in readers):
        return _OTHERS
    scaling = _scaling(wiring, one)
    return _Group(one.output, scaling, tuple(readers)) if scaling else _NO_GAIN


def layers_behind(wiring: Wiring, op: Op) -> tuple[Op, ...]:
    """The dense layers that read an op's output, and could have a product before them."""
    source = op.outputs[0]
    readers = wiring.readers.get(source, [])
    return tuple(reader for reader in readers if _is_layer(wiring, reader, source))


def is_folded(wiring: Wiring, one: Normalization) -> bool:
    """True where factors go into a normalization itself."""
    return isinstance(_group(wiring, one), _Group)


def _is_layer(wiring: Wiring, op: Op, source: Tensor) -> bool:
    """True for a dense layer with float weights of its own that reads whole channels."""
    if not OPS[op.kind].is_dense or op.inputs[0] is not source:
        return False
    weight = op.inputs[1]
    values = constant_numbers(weight)
    if weight is None or values is None or weight.dtype != "float32":
        return False
    return len(wiring.readers[weight]) == 1 and weight.shape[-1:] == source.shape[-1:]


def _scaling(wiring: Wiring, one: Normalization) -> tuple[tuple[Op, int], ...]:
    """The ops that end a normalization with a gain and a bias, and the places of these."""
    last = wiring.makers[one.output]
    found: list[tuple[Op, int]] = []
    if last.kind == "ADD" and (place := _vector(wiring, last)) is not None:
        found.append((last, place))
        inner = last.inputs[1 - place]
        maker = None if inner is None else wiring.makers.get(inner)
        if maker is None or maker not in one.ops or len(wiring.readers[maker.outputs[0]]) > 1:
            return ()
        last = maker
    place = _vector(wiring, last) if last.kind == "MUL" and last in one.ops else None
    return () if place is None else (*found, (last, place))


def _vector(wiring: Wiring, op: Op) -> int | None:
    """The place of a constant with one number a channel, which nothing else reads."""
    if op.option("fused_activation_function") not in (None, "NONE"):
        return None
    width = op.outputs[0].shape[-1] if op.outputs[0].shape else 0
    for place, tensor in enumerate(op.inputs):
        values = constant_numbers(tensor)
        if tensor is not None and values is not None and tensor.dtype == "float32":
            is_own = len(wiring.readers[tensor]) == 1
            return place if is_own and values.size == width == tensor.shape[-1] else None
    return None


def _columns(readers: Sequence[Op]) -> Reals:
    """The largest weight that reads each channel."""
    weights = [op.inputs[1] for op in readers]
    return np.max([np.abs(w.values()).max(axis=0) for w in weights if w is not None], axis=0)


def _factors(peaks: Reals, columns: Reals, strength: float) -> Reals:
    """The divisors of the channels; their geometric mean is 1."""
    alive = (peaks > 0) & (columns > 0)
    if not alive.any():
        return np.ones_like(peaks)
    safe = np.where(alive, peaks, 1.0) ** strength
    factors = safe / np.where(alive, columns, 1.0).astype(np.float64) ** (1 - strength)
    middle = np.exp(np.log(factors[alive]).mean())
    return np.where(alive, np.clip(factors / middle, 1 / _MOST, _MOST), 1.0)


class _Smoothing:
    """The edits of a graph: scaled constants, and products behind some ops."""

    def __init__(self) -> None:
        self._replaced: dict[Op, Op] = {}
        self._behind: dict[Op, Op] = {}
        self._touched: list[str] = []

    def take(self, group: _Group, factors: Reals, maker: Op) -> None:
        if np.allclose(factors, 1, rtol=1e-3):
            return
        for op, place in group.scaling:
            self._multiply(op, place, 1 / factors)
        for op in group.readers:
            self._multiply(op, 1, factors)
        if not group.scaling:
            product = _product(group.read, 1 / factors)
            self._behind[maker] = product
            for op in group.readers:
                now = self._replaced[op]
                self._replaced[op] = replace(now, inputs=(product.outputs[0], *now.inputs[1:]))
        self._touched.append(_text(maker, factors))

    def _multiply(self, op: Op, place: int, factors: Reals) -> None:
        now = self._replaced.get(op, op)
        tensor = now.inputs[place]
        assert tensor is not None
        values = (tensor.values().astype(np.float64) * factors).astype(np.float32)
        made = replace(tensor, data=frozen(values.reshape(tensor.shape)))
        inputs = (*now.inputs[:place], made, *now.inputs[place + 1 :])
        self._replaced[op] = replace(now, inputs=inputs)

    def change(self, model: Model, skipped: tuple[Skip, ...]) -> Change:
        if not self._touched:
            return Change(model, skipped=skipped)
        ops = [made for op in model.main.ops for made in self._made(op)]
        graph = regraph(model.main, ops=ops)
        return Change(with_main(model, graph), tuple(self._touched), skipped)

    def _made(self, op: Op) -> list[Op]:
        now = self._replaced.get(op, op)
        return [now, self._behind[op]] if op in self._behind else [now]


def _product(tensor: Tensor, factors: Reals) -> Op:
    values = factors.astype(np.float32)
    constant = Tensor(f"{tensor.name}/factors", values.shape, "float32", frozen(values))
    made = replace(tensor, name=f"{tensor.name}/smooth")
    options = Record("MulOptions", {"fused_activation_function": "NONE"})
    return Op("MUL", (tensor, constant), (made,), options)


def _text(op: Op, factors: Reals) -> str:
    return phrase(
        "moved channels of {op_name} into the weights behind, by {least} to {most}",
        op_name(op),
        ratio_text(float(factors.min())),
        ratio_text(float(factors.max())),
    )

"""`smooth`: large channels of what a normalization writes are moved into the layers that read it.

One step has to serve all channels of a tensor, but every output of a layer has a step of its own
for its weights. So a factor on each channel goes from the gain and the bias of the normalization,
where it costs nothing, into the columns of the weights behind: Xiao et al., SmoothQuant, 2022. The
float model computes the same, with no op more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.blocks.normalization import Normalization, normalizations
from litesmith.blocks.wiring import Wiring
from litesmith.errors import BadInput
from litesmith.ir.edit import with_ops
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op, Tensor, constant_numbers, frozen
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.phrases import phrase
from litesmith.units import ratio_text

Reals = NDArray[np.float64]

# More would only make float32 and the weights suffer.
_MOST = 64.0

_NO_DATA = phrase("which channels are large is seen from data; give some")
_OTHERS = phrase("other ops than layers read it, a sum between blocks for one")
_NO_GAIN = phrase("it has no gain and bias of its own that a factor could go into")


class _Group(NamedTuple):
    """A normalization whose result layers alone read."""

    output: Tensor
    scaling: tuple[tuple[Op, int], ...]
    readers: tuple[Op, ...]


@dataclass(frozen=True)
class Smooth:
    """Move large channels behind a normalization into the weights that read them.

    strength  how much of a channel's size is moved: 0 leaves it to the data, 1 moves it whole into
              the weights
    """

    strength: float = 0.5

    def apply(self, model: Model, context: Context) -> Change:
        if not 0 <= self.strength <= 1:
            raise BadInput("smooth: strength={strength}; it is from 0 to 1", self.strength)
        wiring = Wiring.of(model.main)
        groups: list[_Group] = []
        skipped: list[Skip] = []
        for one in normalizations(wiring):
            found = _group(wiring, one)
            if isinstance(found, str):
                skipped.append(Skip(op_name(wiring.makers[one.output]), found))
            else:
                groups.append(found)
        if not groups:
            return Change(model, skipped=tuple(skipped))
        if context.tools is None:
            where = op_name(wiring.makers[groups[0].output])
            return Change(model, skipped=(*skipped, Skip(where, _NO_DATA)))
        wanted = [group.output for group in groups]
        seen = context.tools.observe(model, wanted, frozenset({"channels"}))
        replaced: dict[Op, Op] = {}
        touched: list[str] = []
        for group in groups:
            span = seen[group.output]
            if span.channel_low is None or span.channel_high is None or span.spoiled:
                continue
            peaks = np.maximum(-span.channel_low, span.channel_high).astype(np.float64)
            factors = _factors(peaks, _columns(group.readers), self.strength)
            if not np.allclose(factors, 1, rtol=1e-3):
                _scale(group, factors, replaced)
                touched.append(_text(wiring.makers[group.output], factors))
        made = with_ops(model, replaced) if touched else model
        return Change(made, tuple(touched), tuple(skipped))


def _group(wiring: Wiring, one: Normalization) -> _Group | str:
    """What can be scaled, or why nothing can."""
    readers = wiring.readers.get(one.output, [])
    is_read = bool(readers) and one.output not in wiring.graph.outputs
    if not is_read or not all(_is_layer(wiring, op, one.output) for op in readers):
        return _OTHERS
    scaling = _scaling(wiring, one)
    return _Group(one.output, scaling, tuple(readers)) if scaling else _NO_GAIN


def _is_layer(wiring: Wiring, op: Op, source: Tensor) -> bool:
    """True for a dense layer with float weights of its own that reads whole channels."""
    if not OPS[op.kind].is_dense or op.inputs[0] is not source:
        return False
    weight = op.inputs[1]
    values = constant_numbers(weight)
    if weight is None or values is None or weight.dtype != "float32":
        return False
    return len(wiring.readers[weight]) == 1 and weight.shape[-1] == source.shape[-1]


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
    """What the channels are divided by; their geometric middle is 1."""
    alive = (peaks > 0) & (columns > 0)
    if not alive.any():
        return np.ones_like(peaks)
    safe = np.where(alive, peaks, 1.0) ** strength
    factors = safe / np.where(alive, columns, 1.0).astype(np.float64) ** (1 - strength)
    middle = np.exp(np.log(factors[alive]).mean())
    return np.where(alive, np.clip(factors / middle, 1 / _MOST, _MOST), 1.0)


def _scale(group: _Group, factors: Reals, replaced: dict[Op, Op]) -> None:
    for op, place in group.scaling:
        _multiply(op, place, 1 / factors, replaced)
    for op in group.readers:
        _multiply(op, 1, factors, replaced)


def _multiply(op: Op, place: int, factors: Reals, replaced: dict[Op, Op]) -> None:
    now = replaced.get(op, op)
    tensor = now.inputs[place]
    assert tensor is not None
    values = (tensor.values().astype(np.float64) * factors).astype(np.float32)
    made = replace(tensor, data=frozen(values.reshape(tensor.shape)))
    inputs = (*now.inputs[:place], made, *now.inputs[place + 1 :])
    replaced[op] = replace(now, inputs=inputs)


def _text(op: Op, factors: Reals) -> str:
    return phrase(
        "moved channels of {op_name} into the weights behind, by {least} to {most}",
        op_name(op),
        ratio_text(float(factors.min())),
        ratio_text(float(factors.max())),
    )

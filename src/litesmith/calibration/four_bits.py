"""Weights of 4 bits: which layers get them, and the form in which kernels are fast with them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from litesmith.anatomy.findings import AS_CONNECTED
from litesmith.errors import CannotApply
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op
from litesmith.passes.core.layers import Layer, layers_of
from litesmith.passes.core.recipe import Recipe, apply, parse
from litesmith.passes.core.schemes import SCHEMES, Names
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.quantize import Quantize

# XNNPACK has kernels of 4-bit weights for FULLY_CONNECTED, the builtin ones for CONV_2D take four
# times as long: 404 and 114 µs for 256 channels at 14 × 14 places (int8: 114).
_AS_CONNECTED = parse(AS_CONNECTED)

# The smallest layers keep 8 bits, up to this share of all weights: that costs a fiftieth of the
# file's size and spares the layers that read the image.
_SMALL = 0.04

# The number of inputs that share a scale where data is float; kernels take only its multiples.
_BLOCK = 32


def four_bit_steps(model: Model, step: Quantize, *, on_cpu: bool = True) -> Recipe:
    """The steps that give a tidy model 4-bit weights, in place of one step that names no ops; that
    step itself where nothing can be changed, because it says so.

    Convolutions keep their kind where anything but a CPU's kernels runs them: TensorFlow Lite Micro
    has no scale per channel for FULLY_CONNECTED, and NPUs are made for CONV_2D.
    """
    if SCHEMES[step.to].unpacked:
        return (step,)
    front: Recipe = ()
    if on_cpu:
        said = apply(model, _AS_CONNECTED, Context())
        front, model = (_AS_CONNECTED if said.touched else ()), said.model
    whole = _whole_layers(model)
    eight = _find_fine(whole)
    coarse, fine = ([n for n in whole if (n in eight) is told] for told in (False, True))
    if SCHEMES[step.to].is_integer:
        both = (replace(step, keep=tuple(fine)), replace(step, to="int8"))
        return (*front, *(both if fine and coarse else (step,)))
    return (*front, *(tuple(_useful(model, _by_storing(step, whole, coarse, fine))) or (step,)))


def _whole_layers(model: Model) -> dict[int, Layer]:
    """The layers, by their number in the graph."""
    layers = layers_of(model.main)
    return {n: layers[op] for n, op in enumerate(model.main.ops) if op in layers}


def _find_fine(layers: dict[int, Layer]) -> set[int]:
    """The layers that keep 8 bits: depthwise layers, whose channels have too few weights for errors
    to cancel out, and the smallest of the others."""
    sizes = {n: layer.weight.elements for n, layer in layers.items()}
    found = {n for n, layer in layers.items() if OPS[layer.op.kind].is_depthwise}
    left = _SMALL * sum(sizes.values())
    for number in sorted(set(sizes) - found, key=lambda n: (sizes[n], n)):
        left -= sizes[number]
        if left < 0:
            break
        found.add(number)
    return found


def _by_storing(
    step: Quantize, layers: dict[int, Layer], coarse: Sequence[int], fine: Sequence[int]
) -> Iterator[Quantize]:
    """Stores weights in blocks where layers are large enough, else per channel. In 8 bits: dense
    layers that quantize their data at run time, and other layers that restore float weights, which
    is faster."""
    block = step.block or _BLOCK
    fits = [n for n in coarse if _is_dense(layers[n].op) and not _width(layers[n]) % block]
    yield from _only(replace(step, block=block), fits)
    yield from _only(replace(step, block=0), (n for n in coarse if n not in fits))
    windows = [n for n in fine if not _is_dense(layers[n].op)]
    yield from _only(replace(step, to="weight-int8", block=0), windows)
    yield replace(step, to="dynamic", block=0)


def _only(step: Quantize, numbers: Iterable[int]) -> Iterator[Quantize]:
    names: Names = tuple(numbers)
    if names:
        yield replace(step, only=names)


def _is_dense(op: Op) -> bool:
    return OPS[op.kind].is_dense


def _width(layer: Layer) -> int:
    return layer.weight.shape[-1]


def _useful(model: Model, steps: Iterable[Quantize]) -> Iterator[Quantize]:
    """The steps, in order, that find something to change; none of them looks at data."""
    for step in steps:
        try:
            model = step.apply(model, Context()).model
        except CannotApply:
            continue
        yield step

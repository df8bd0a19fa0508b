"""Layer normalization written as several ops: centring, scaling to power 1, a gain and a bias."""

from collections.abc import Iterator
from typing import NamedTuple

from litesmith.blocks.wiring import ELEMENTWISE, Wiring, data_of, over_last
from litesmith.ir.types import Op, Tensor


class Normalization(NamedTuple):
    """One normalization over the last axis.

    source    the tensor that is normalized
    output    the result, after gain and bias
    ops       its ops, in order
    centres   False where the mean is not subtracted: only the power is scaled to 1
    """

    source: Tensor
    output: Tensor
    ops: tuple[Op, ...]
    centres: bool


def normalizations(wiring: Wiring) -> Iterator[Normalization]:
    """Finds every normalization by the root of a mean of squares."""
    for op in wiring.graph.ops:
        squares = _mean_of_squares(wiring, op) if op.kind in ("RSQRT", "SQRT", "POW") else None
        if squares is not None:
            found = _normalization_around(wiring, op, *squares)
            if found is not None:
                yield found


def _mean_of_squares(wiring: Wiring, root: Op) -> tuple[Op, Tensor, Tensor | None] | None:
    """The mean under a root, the tensor that is squared for it, and the mean of that tensor where
    it is subtracted before squaring.
    """
    mean = wiring.maker(root.inputs[0], ("ADD", "MAXIMUM"))
    if mean is None or mean.kind != "MEAN" or not over_last(mean):
        return None
    square = wiring.maker(mean.inputs[0])
    if square is None:
        return None
    given = [wiring.origin(tensor) for tensor in data_of(square)]
    if square.kind == "SQUARED_DIFFERENCE" and len(given) == 2 and given[0] is not None:
        return mean, given[0], given[1]
    is_square = square.kind in ("SQUARE", "POW") or (
        square.kind == "MUL" and len(given) == 2 and given[0] is given[1]
    )
    return (mean, given[0], None) if is_square and given and given[0] is not None else None


def _normalization_around(
    wiring: Wiring, root: Op, mean: Op, squared: Tensor, own: Tensor | None
) -> Normalization | None:
    """The normalization around a root."""
    source, centres = squared, own is not None
    centring = wiring.makers.get(squared)
    if own is None and centring is not None and centring.kind == "SUB":
        average = wiring.maker(centring.inputs[1])
        begun = wiring.origin(centring.inputs[0])
        of = None if average is None else wiring.origin(average.inputs[0])
        if average is not None and average.kind == "MEAN" and begun is not None and of is begun:
            source, centres = begun, True
    inside = _inside(wiring, source, root)
    if mean not in inside:
        return None
    last = [op for op in inside if op.outputs and op.outputs[0].shape == source.shape]
    return Normalization(source, last[-1].outputs[0], inside, centres) if last else None


def _inside(wiring: Wiring, source: Tensor, root: Op) -> tuple[Op, ...]:
    """The ops that compute with the source and constants alone, with means over the last axis."""
    known, found = {source}, list[Op]()
    has_root = False
    for op in wiring.graph.ops:
        given = data_of(op)
        is_piece = op.kind in ELEMENTWISE or (op.kind == "MEAN" and over_last(op))
        is_conversion = op.kind in ("QUANTIZE", "DEQUANTIZE", "RESHAPE")
        if not given or not known.issuperset(given) or not (is_piece or is_conversion):
            continue
        if is_conversion and (given[0] is source or _leaves(wiring, op)):
            continue
        found.append(op)
        known.update(op.outputs)
        has_root = has_root or op is root
    return tuple(found) if has_root else ()


def _leaves(wiring: Wiring, op: Op) -> bool:
    """True where no elementwise op reads an op's output."""
    readers = [reader for made in op.outputs for reader in wiring.readers.get(made, ())]
    return not any(reader.kind in ELEMENTWISE or reader.kind == "MEAN" for reader in readers)

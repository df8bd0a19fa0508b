"""Activations that exporters leave in pieces: GELU by a tanh or a logistic, SiLU."""

from collections.abc import Iterator
from typing import NamedTuple

from litesmith.blocks.wiring import Wiring, data_of, has_scalar
from litesmith.ir.types import Op, Tensor

# The factor of the cube in GELU by a tanh, and that of the argument in GELU by a logistic.
_CUBE, _LOGISTIC = 0.044715, 1.702

# A GELU has no more pieces than this.
_MOST = 16


class Activation(NamedTuple):
    """An activation of one tensor.

    name  GELU or SILU
    ops   its pieces, in order; one where it is whole
    """

    name: str
    source: Tensor
    output: Tensor
    ops: tuple[Op, ...]


def activations(wiring: Wiring) -> Iterator[Activation]:
    """Every GELU, whole or in pieces, and every SiLU."""
    for op in wiring.graph.ops:
        if op.kind == "GELU" and op.inputs[0] is not None:
            yield Activation("GELU", op.inputs[0], op.outputs[0], (op,))
        elif op.kind in ("TANH", "LOGISTIC"):
            found = _in_pieces(wiring, op)
            if found is not None:
                yield found


def _in_pieces(wiring: Wiring, curve: Op) -> Activation | None:
    """The activation that a tanh or a logistic is the heart of: the nearest tensor before it that
    its result is multiplied with."""
    tensor = curve.inputs[0]
    for _ in range(_MOST):
        if tensor is None or tensor.is_const:
            return None
        found = _of_source(wiring, curve, tensor)
        if found is not None:
            return found
        op = wiring.makers.get(tensor)
        if op is None or op.kind not in ("ADD", "MUL", "POW", "SQUARE", "DEQUANTIZE", "QUANTIZE"):
            return None
        given = sorted(data_of(op), key=lambda t: len(wiring.readers.get(t, ())))
        tensor = given[-1] if given else None
    return None


def _of_source(wiring: Wiring, curve: Op, source: Tensor) -> Activation | None:
    pieces = tuple(wiring.made_of([source]))
    if curve not in pieces or len(pieces) > _MOST or pieces[-1].kind != "MUL":
        return None
    constants = (_CUBE,) if curve.kind == "TANH" else (_LOGISTIC, 0.0)
    if any(constant and has_scalar(pieces, constant) for constant in constants):
        return Activation("GELU", source, pieces[-1].outputs[0], pieces)
    is_silu = curve.kind == "LOGISTIC" and len(pieces) == 2 and source in pieces[-1].inputs
    return Activation("SILU", source, pieces[-1].outputs[0], pieces) if is_silu else None

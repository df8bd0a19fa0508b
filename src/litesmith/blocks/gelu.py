"""Activations that exporters write as several ops: GELU by a tanh or a logistic, SiLU."""

from collections.abc import Iterator
from typing import NamedTuple

from litesmith.blocks.wiring import Wiring, data_of, has_scalar
from litesmith.ir.types import Op, Tensor

# The factor of the cube in GELU by a tanh, and that of the argument in GELU by a logistic.
_CUBE, _LOGISTIC = 0.044715, 1.702

# The most ops of a GELU.
_MOST = 16


class Activation(NamedTuple):
    """An activation of one tensor.

    name  GELU or SILU
    ops   its ops, in order; a single one where the format has the activation
    """

    name: str
    source: Tensor
    output: Tensor
    ops: tuple[Op, ...]


def activations(wiring: Wiring) -> Iterator[Activation]:
    """Finds every GELU, as one op or several, and every SiLU."""
    for op in wiring.graph.ops:
        if op.kind == "GELU" and op.inputs[0] is not None:
            yield Activation("GELU", op.inputs[0], op.outputs[0], (op,))
        elif op.kind in ("TANH", "LOGISTIC"):
            found = _around_curve(wiring, op)
            if found is not None:
                yield found


def _around_curve(wiring: Wiring, curve: Op) -> Activation | None:
    """The activation around a tanh or a logistic; its source is the nearest earlier tensor with
    which the result is multiplied.
    """
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

"""Constants of a quantized source as the codes that they were made of."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.errors import LitesmithError
from litesmith.ir.types import Array, Quant, Tensor, constant_numbers, frozen
from litesmith.phrases import phrase


class Stays(LitesmithError):
    """Why an op is left in float."""


class Weight(NamedTuple):
    """A constant as codes around zero, and the scales of its channels."""

    codes: Array
    scale: Array
    axis: int

    def tensor(self, like: Tensor) -> Tensor:
        data = frozen(np.ascontiguousarray(self.codes.astype(np.int8)))
        quant = Quant.of(self.scale, 0, self.axis)
        return replace(like, dtype="int8", data=data, quant=quant)


def shifted_codes(tensor: Tensor, form: Quant | None) -> Tensor:
    """Codes of a constant in int8."""
    values = tensor.values().astype(np.int16) - (128 if tensor.dtype == "uint8" else 0)
    return replace(tensor, dtype="int8", data=frozen(values.astype(np.int8)), quant=form)


def holds(quant: Quant, value: float) -> bool:
    """True where a code stands for the value, or the value is beyond all of them."""
    place = value / float(quant.scale[0]) + int(quant.zero_point[0])
    return abs(place - round(place)) < 1e-3 or not -128 <= place <= 127


def weight_of(tensor: Tensor) -> Weight | None:
    """A float constant as the codes that it was made of; None where int8 around 0 has none."""
    values, quant = constant_numbers(tensor), tensor.quant
    if values is None or quant is None or values.dtype != np.float32:
        return None
    shape = [-1 if i == quant.axis else 1 for i in range(values.ndim)]
    steps = quant.scale.reshape(shape) if quant.per_channel else quant.scale.reshape(())
    codes = np.rint(values / steps)
    if codes.size and (codes.min() < -128 or codes.max() > 127):
        return None
    return Weight(codes, quant.scale, quant.axis)


def bias_codes(tensor: Tensor, steps: Array) -> Tensor:
    """A bias at the scale of the products."""
    values = constant_numbers(tensor)
    if values is None:
        raise Stays(phrase("its bias is computed"))
    codes = np.rint(values.astype(np.float64) / steps)
    if codes.size and np.abs(codes).max() >= 2**30:
        raise Stays(phrase("its bias is too large for the scale of its weights"))
    data = frozen(codes.astype(np.int32))
    return replace(tensor, dtype="int32", data=data, quant=Quant.of(steps, 0))


def operand_codes(tensor: Tensor) -> Tensor:
    """A constant operand as codes: those of the source, or of a single number."""
    values = constant_numbers(tensor)
    assert values is not None
    quant = tensor.quant
    if quant is None and values.size == 1:
        size = float(np.abs(values).max())
        quant = Quant.of(size / 127 if size else 1.0, 0)
    if quant is None or quant.per_channel:
        raise Stays(phrase("a constant of it has no scale, or several"))
    around = np.rint(values / quant.scale[0]) + quant.zero_point[0]
    for shift in (0, 128):  # codes of int8, and of uint8
        codes = around - shift
        if not codes.size or (codes.min() >= -128 and codes.max() <= 127):
            form = replace(quant, zero_point=quant.zero_point - shift)
            if -128 <= int(form.zero_point[0]) <= 127:
                return replace(tensor, dtype="int8", data=frozen(codes.astype(np.int8)), quant=form)
    raise Stays(phrase("a constant of it is none that int8 holds"))


def nearest_codes(tensor: Tensor, form: Quant) -> tuple[Array, Array]:
    """The codes nearest to a constant's values, and where these lie among the codes."""
    values = constant_numbers(tensor)
    assert values is not None
    places = values.astype(np.float64) / form.scale[0] + form.zero_point[0]
    return np.clip(np.rint(places), -128, 127), places

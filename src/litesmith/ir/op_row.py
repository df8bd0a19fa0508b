"""The type of a row of the op table."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from litesmith.ir.infer import ShapeRule
from litesmith.ir.types import Op, Value


class Row(NamedTuple):
    """The facts about one operator kind.

    inputs   the role of each input in order: `x` data, `w` weight, `b` bias, `s` a setting that is
             nearly always constant (axes, sizes, paddings), `i` indices, conditions or a resource:
             computed, but never with a scale; `v` a state kept between calls; `?` optional, `*`
             any number
    options  the table of its settings in the schema; "" for none
    axis     the weight's output-channel axis
    scale    free: the output has a scale of its own; same: it shares that of the `x` inputs, of
             the weight where there are none; fixed: the kernel dictates it (see `fixed`); none: it
             never carries one
    fixed    dtype -> (scale, zero point) that an integer kernel demands of the output
    dtype    the outputs' element types, one word each, the last one for all that follow: a type,
             `x` as the first data input's, `each` as the input's in the same place, or
             `option:NAME` for a type stored in an option
    macs     multiply-accumulates of one call
    shape    output shapes from the inputs and options; None where they depend on computed values
    defaults option values that a sensible call has where the schema's default is unusable
    versions integer kernels of the stock runtime that were seen to be right, each with the op
             version that brought it; see `versions`. A key is the element type of the data (of the
             result for QUANTIZE), or DATA:WEIGHT where the weights say more:
             int8, int16      weights in int8 with a scale a channel, or one where `scale` is same;
                              bias int32, with int16 data int64
             int8:int4        the same with weights in int4; int16:int4 too
             float32:int8     data is quantized as it runs, the bias is float; float32:int4 too
             float32:tensor8  the same where the kernel takes one scale for a whole weight only
             float32:block4   int4 weights with float16 scales, one a block of 32 or its multiple
             channel8, int4, float16  (DEQUANTIZE) a stored weight; int8 has one scale there
    """

    inputs: str = "*"
    options: str = ""
    axis: int | None = None
    scale: str = "none"
    fixed: Mapping[str, tuple[float, int]] = MappingProxyType({})
    dtype: str = "x"
    macs: Callable[[Op], int] | None = None
    shape: ShapeRule | None = None
    defaults: Mapping[str, Value] = MappingProxyType({})
    versions: Mapping[str, int] = MappingProxyType({})

    @property
    def is_full(self) -> bool:
        return self.inputs != "*"

    @property
    def weight(self) -> int | None:
        """Which input is the weight."""
        return self._place("w")

    @property
    def bias(self) -> int | None:
        return self._place("b")

    def _place(self, role: str) -> int | None:
        for place, word in enumerate(self.inputs.split()):
            if word.rstrip("?*") == role:
                return place
        return None

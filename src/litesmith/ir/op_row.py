"""The type of a row of the op table."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from litesmith.ir.shape_rule import ShapeRule
from litesmith.ir.types import Op, Value


class Row(NamedTuple):
    """The facts about one operator kind: first its columns, then its traits.

    inputs   the role of each input in order: `x` data, `w` weight, `b` bias, `s` a setting that is
             nearly always constant (axes, sizes, paddings), `i` indices, conditions or a resource:
             computed, but never with a scale; `v` a state kept between calls; `?` optional, `*`
             any number
    scale    free: the output has a scale of its own; same: it shares that of the `x` inputs, of
             the weight where there are none; fixed: the kernel dictates it (see `fixed`); none: it
             never carries one
    shape    output shapes from the inputs and options; None where they depend on computed values
    options  the table of its settings in the schema; "" for the one that has the kind's own name,
             where there is such
    fixed    dtype -> (scale, zero point) that an integer kernel demands of the output
    dtype    the outputs' element types, one word each, the last one for all that follow: a type,
             `x` as the first data input's, `each` as the input's in the same place, or
             `option:NAME` for a type stored in an option
    axis     the weight's output-channel axis
    depth    the weight's input-channel axis, where a filter reads all channels of the data
    rank     how many dimensions the weight has; its bias, if any, has one value an output channel
    macs     multiply-accumulates of one call
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

    is_layer             a product of data, weight and bias, in this order, with an activation fused
    is_depthwise         each filter reads one channel of the data
    has_window           a window moves over the data
    spreads              a window moves over the output, to which each value is added
    has_sparse_kernel    the stock runtime skips the zeros of its float weights
    fuses_activation     all kernels, XNNPACK's among them, apply an activation on the way out
    clamps               the lowest and highest value that an activation of straight lines lets out
    arithmetic           the sign of the operation on two inputs: + - * /
    is_commutative       the two inputs can change places
    averages             each result is the mean of some values of one channel
    interpolates         results lie between values of the data
    is_softmax           scores become probabilities that add up to 1, or their logarithms
    makes_probabilities  scores become probabilities, or their logarithms
    is_logarithm         results are logarithms
    saturates            results are meant to reach the ends of a fixed range
    reshapes             the same values in the same order, in another shape
    pads                 the same values in a frame of one number
    transposes           the same values, the axes in another order
    converts             the same values in another element type
    rescales             the same values, as codes at another scale or as real numbers
    unpacks              what is computed with is made of what is stored
    reads_shape_only     no value of the data matters
    takes_shape          a setting is the shape of the output
    sized_by_values      results have as many elements as the values of the inputs say
    has_effect           something outside the graph may change: a variable, a table, whatever a
                         foreign kernel likes
    uses_variable        a variable that is kept between calls is read or written
    varies               the inputs alone do not decide the result
    is_control_flow      another graph is run
    """

    inputs: str = "*"
    scale: str = "none"
    shape: ShapeRule | None = None
    options: str = ""
    fixed: Mapping[str, tuple[float, int]] = MappingProxyType({})
    dtype: str = "x"
    axis: int | None = None
    depth: int | None = None
    rank: int | None = None
    macs: Callable[[Op], int] | None = None
    defaults: Mapping[str, Value] = MappingProxyType({})
    versions: Mapping[str, int] = MappingProxyType({})

    is_layer: bool = False
    is_depthwise: bool = False
    has_window: bool = False
    spreads: bool = False
    has_sparse_kernel: bool = False
    fuses_activation: bool = False
    clamps: tuple[float, float] | None = None
    arithmetic: str = ""
    is_commutative: bool = False
    averages: bool = False
    interpolates: bool = False
    is_softmax: bool = False
    makes_probabilities: bool = False
    is_logarithm: bool = False
    saturates: bool = False
    reshapes: bool = False
    pads: bool = False
    transposes: bool = False
    converts: bool = False
    rescales: bool = False
    unpacks: bool = False
    reads_shape_only: bool = False
    takes_shape: bool = False
    sized_by_values: bool = False
    has_effect: bool = False
    uses_variable: bool = False
    varies: bool = False
    is_control_flow: bool = False

    @property
    def is_full(self) -> bool:
        """False for a bare row, which does not describe the inputs."""
        return self.inputs != "*"

    @property
    def moves_data(self) -> bool:
        """True where the outputs are values of the data in other places."""
        return self.reshapes or self.pads or self.transposes

    @property
    def is_dense(self) -> bool:
        """True for a layer that is a single matrix product."""
        return self.is_layer and not self.has_window

    @property
    def is_convolution(self) -> bool:
        """True for a layer whose window moves over all channels at once."""
        return self.is_layer and self.has_window and self.mixes_channels

    @property
    def mixes_channels(self) -> bool:
        """True where every filter reads all channels of the data."""
        return self.depth is not None

    @property
    def channel_axes(self) -> tuple[int, ...]:
        """The weight's axes of channels, the output's first; () where none is known."""
        if self.axis is None or not (self.is_depthwise or self.mixes_channels):
            return ()
        return (self.axis,) if self.depth is None else (self.axis, self.depth)

    @property
    def data(self) -> int | None:
        """The place of the first data input."""
        return self._place("x")

    @property
    def weight(self) -> int | None:
        """The place of the weight among the inputs."""
        return self._place("w")

    @property
    def bias(self) -> int | None:
        """The place of the bias among the inputs."""
        return self._place("b")

    @property
    def setting(self) -> int | None:
        """The place of the first setting among the inputs."""
        return self._place("s")

    @property
    def type_option(self) -> str:
        """The option that stores the element type of an output; "" where none does."""
        words = (word for word in self.dtype.split() if word.startswith("option:"))
        return next(words, "").removeprefix("option:")

    def _place(self, role: str) -> int | None:
        for place, word in enumerate(self.inputs.split()):
            if word.rstrip("?*") == role:
                return place
        return None

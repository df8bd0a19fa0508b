"""Layers as papers write them, on a Builder: batch normalization is folded, weights are filled in.

A layer's output has the layer's name; its constants are `NAME/weight` and `NAME/bias`.
"""

from collections.abc import Callable
from math import prod, sqrt

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.types import Array, Model, Tensor, Value
from litesmith.ir.window import Slide, pads

# (shape, standard deviation) -> float32 values
Fill = Callable[[tuple[int, ...], float], Array]
Window = tuple[int, int]

# The factor by which a layer raises the mean square of its input, so that its activation brings it
# back. Hard swish halves small numbers and passes large ones on: a gain that suits one of them
# makes the other grow or fade from layer to layer.
GAINS = {"NONE": 1.0, "RELU": 2.0, "RELU6": 2.0, "HARD_SWISH": 2.2}

# The gain of the last layer of a branch that is added to its own input, so that sums grow only a
# little.
BRANCH = 0.2

# The gain behind a gate, whose value is about a half.
GATED = 4.0

# The gain of the last layer of a gate, so that the gate is rarely closed or fully open.
_GATE = 0.1

# The deviation of biases: enough to keep channels alive where inputs are almost zero.
_BIAS = 0.1


def random_fill(seed: int) -> Fill:
    """Normal numbers; the same seed gives the same bytes."""
    random = np.random.default_rng(seed)

    def fill(shape: tuple[int, ...], deviation: float) -> Array:
        return random.standard_normal(shape, np.float32) * np.float32(deviation)

    return fill


def no_fill(shape: tuple[int, ...], deviation: float) -> Array:
    """Zeros, for when only the graph is needed."""
    del deviation
    return np.zeros(shape, np.float32)


class Net:
    """Collects the layers of one network.

    style   "tf": windows are padded like TensorFlow's SAME, and the network ends in a softmax;
            "torch": windows are padded equally on both sides, and the network ends in logits
    """

    def __init__(self, fill: Fill, style: str) -> None:
        self.style = style
        self._fill = fill
        self._builder = Builder()

    def input(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return self._builder.input(name, shape)

    def conv(
        self,
        x: Tensor,
        channels: int,
        name: str,
        *,
        window: int | Window = 1,
        stride: int | Window = 1,
        act: str = "NONE",
        gain: float = 0,
    ) -> Tensor:
        """Convolution, bias, activation: (1, h, w, c) -> (1, h / stride, w / stride, channels)."""
        shape = (channels, *_pair(window), x.shape[3])
        fan_in = _used_window(x, shape) * shape[3]
        parts = self._parts(name, shape, fan_in, channels, gain or GAINS[act])
        return self._slide("CONV_2D", x, parts, name, stride=_pair(stride), act=act)

    def depthwise(
        self, x: Tensor, name: str, *, window: int = 3, stride: int | Window = 1, act: str = "NONE"
    ) -> Tensor:
        """A depthwise convolution: each channel has its own window."""
        shape = (1, window, window, x.shape[3])
        parts = self._parts(name, shape, _used_window(x, shape), shape[3], GAINS[act])
        return self._slide("DEPTHWISE_CONV_2D", x, parts, name, stride=_pair(stride), act=act)

    def dense(self, x: Tensor, units: int, name: str, act: str = "NONE") -> Tensor:
        weight, bias = self._parts(name, (units, x.shape[1]), x.shape[1], units, GAINS[act])
        return self._with_activation("FULLY_CONNECTED", (x, weight, bias), name, act)

    def max_pool(self, x: Tensor, name: str, *, window: int, stride: int) -> Tensor:
        """Max pooling of data that is not negative, because torch's padding is written as zeros."""
        x, padding = self._pad_input(x, (window, window), (stride, stride), name)
        return self._builder.op(
            "MAX_POOL_2D",
            x,
            name=name,
            padding=padding,
            filter_height=window,
            filter_width=window,
            stride_h=stride,
            stride_w=stride,
        )

    def add(self, a: Tensor, b: Tensor, name: str, act: str = "NONE") -> Tensor:
        return self._builder.op("ADD", a, b, name=name, fused_activation_function=act)

    def more_channels(self, x: Tensor, channels: int, name: str) -> Tensor:
        """Appends channels of zeros."""
        paddings = [[0, 0], [0, 0], [0, 0], [0, channels - x.shape[3]]]
        return self._builder.op("PAD", x, paddings, name=name)

    def gate(self, x: Tensor, inner: int, name: str) -> Tensor:
        """Squeeze and excite: each channel times a factor from 0 to 1, computed from the means of
        all channels.
        """
        b = self._builder
        means = b.op("MEAN", x, [1, 2], name=f"{name}/squeeze", keep_dims=True)
        hidden = self.conv(means, inner, f"{name}/reduce", act="RELU")
        raised = self.conv(hidden, x.shape[3], f"{name}/expand", gain=_GATE)
        three, sixth = np.full((), 3, np.float32), np.full((), 1 / 6, np.float32)
        clipped = b.op("ADD", raised, three, name=f"{name}/clip", fused_activation_function="RELU6")
        return b.op("MUL", x, b.op("MUL", clipped, sixth, name=f"{name}/share"), name=name)

    def mean(self, x: Tensor, name: str) -> Tensor:
        """(1, h, w, c) -> (1, c)."""
        return self._builder.op("MEAN", x, [1, 2], name=name)

    def end(self, embedding: Tensor, classes: int) -> Model:
        """Adds the classifier and returns the model."""
        result = self.dense(embedding, classes, "logits")
        if self.style == "tf":
            result = self._builder.op("SOFTMAX", result, name="scores", beta=1.0)
        return self._builder.model(result, signature="serving_default")

    def _parts(
        self, name: str, shape: tuple[int, ...], fan_in: int, channels: int, gain: float
    ) -> tuple[Tensor, Tensor]:
        weight = self._fill(shape, sqrt(gain / fan_in))
        bias = self._fill((channels,), _BIAS)
        const = self._builder.const
        return const(weight, f"{name}/weight"), const(bias, f"{name}/bias")

    def _slide(
        self,
        kind: str,
        x: Tensor,
        parts: tuple[Tensor, Tensor],
        name: str,
        *,
        stride: Window,
        act: str,
    ) -> Tensor:
        height, width = parts[0].shape[1:3]
        x, padding = self._pad_input(x, (height, width), stride, name)
        strides = {"stride_h": stride[0], "stride_w": stride[1]}
        return self._with_activation(kind, (x, *parts), name, act, padding=padding, **strides)

    def _with_activation(
        self, kind: str, inputs: tuple[Tensor, ...], name: str, act: str, **options: Value
    ) -> Tensor:
        """An op with its activation, which is fused, or a separate op where no kernel fuses it."""
        op = self._builder.op
        if act == "HARD_SWISH":
            return op(act, op(kind, *inputs, name=f"{name}/linear", **options), name=name)  # pyright: ignore[reportArgumentType]
        options["fused_activation_function"] = act
        return op(kind, *inputs, name=name, **options)  # pyright: ignore[reportArgumentType]

    def _pad_input(
        self, x: Tensor, window: Window, stride: Window, name: str
    ) -> tuple[Tensor, str]:
        """The tensor that a window slides over, and the padding option of that op."""
        sizes = x.shape[1:3]
        same = [
            pads("SAME", size, Slide(w, s, 1))
            for size, w, s in zip(sizes, window, stride, strict=True)
        ]
        wanted = [(w // 2, w // 2) for w in window]
        if self.style == "tf" or same == wanted or window == (1, 1):
            return x, "SAME"
        return self._builder.op("PAD", x, [[0, 0], *wanted, [0, 0]], name=f"{name}/pad"), "VALID"


def _used_window(x: Tensor, shape: tuple[int, ...]) -> int:
    """The largest number of positions in a window that read more than padding."""
    return prod(min(pair) for pair in zip(x.shape[1:3], shape[1:3], strict=True))


def _pair(size: int | Window) -> Window:
    return (size, size) if isinstance(size, int) else size


def round_channels(channels: float, step: int = 8) -> int:
    """Rounds channels to a multiple of the step; the result is at least one step and at least nine
    tenths of `channels`.
    """
    nearest = max(step, int(channels + step / 2) // step * step)
    return nearest + step if nearest < 0.9 * channels else nearest

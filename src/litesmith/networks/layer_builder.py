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

# By how much a layer raises the mean square of what it is given, so that its activation brings it
# back to where it was. Hard swish halves small numbers and passes large ones on: with a gain that
# suits either, the others would grow or fade without end.
GAINS = {"NONE": 1.0, "RELU": 2.0, "RELU6": 2.0, "HARD_SWISH": 2.2}

# The same for the last layer of a branch that is added to its own input: sums grow by little.
BRANCH = 0.2

# The same behind a gate, which is about a half.
GATED = 4.0

# The same for the last layer of a gate, so that it is rarely shut or fully open.
_GATE = 0.1

# What a bias deviates by: enough to keep channels alive where next to nothing comes in.
_BIAS = 0.1


def random_fill(seed: int) -> Fill:
    """Normal numbers; the same seed gives the same bytes."""
    random = np.random.default_rng(seed)

    def fill(shape: tuple[int, ...], deviation: float) -> Array:
        return random.standard_normal(shape, np.float32) * np.float32(deviation)

    return fill


def no_fill(shape: tuple[int, ...], deviation: float) -> Array:
    """Zeros, where only the graph is wanted."""
    del deviation
    return np.zeros(shape, np.float32)


class Net:
    """Collects the layers of one network.

    style   "tf": windows are padded as TensorFlow's SAME does, and softmax is the end;
            "torch": they are padded alike on both sides, and the end is the logits
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
        fan_in = _seen(x, shape) * shape[3]
        parts = self._parts(name, shape, fan_in, channels, gain or GAINS[act])
        return self._slide("CONV_2D", x, parts, name, stride=_pair(stride), act=act)

    def depthwise(
        self, x: Tensor, name: str, *, window: int = 3, stride: int | Window = 1, act: str = "NONE"
    ) -> Tensor:
        """A window of its own for each channel."""
        shape = (1, window, window, x.shape[3])
        parts = self._parts(name, shape, _seen(x, shape), shape[3], GAINS[act])
        return self._slide("DEPTHWISE_CONV_2D", x, parts, name, stride=_pair(stride), act=act)

    def dense(self, x: Tensor, units: int, name: str, act: str = "NONE") -> Tensor:
        weight, bias = self._parts(name, (units, x.shape[1]), x.shape[1], units, GAINS[act])
        return self._activated("FULLY_CONNECTED", (x, weight, bias), name, act)

    def max_pool(self, x: Tensor, name: str, *, window: int, stride: int) -> Tensor:
        """Data must not be negative: torch's padding is zeros here."""
        x, padding = self._padded(x, (window, window), (stride, stride), name)
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
        """Zeros as further channels, behind the others."""
        paddings = [[0, 0], [0, 0], [0, 0], [0, channels - x.shape[3]]]
        return self._builder.op("PAD", x, paddings, name=name)

    def gate(self, x: Tensor, inner: int, name: str) -> Tensor:
        """Squeeze and excite: each channel times what the means of all say of it, 0 to 1."""
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
        """The classifier, and the model that ends with it."""
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
        x, padding = self._padded(x, (height, width), stride, name)
        strides = {"stride_h": stride[0], "stride_w": stride[1]}
        return self._activated(kind, (x, *parts), name, act, padding=padding, **strides)

    def _activated(
        self, kind: str, inputs: tuple[Tensor, ...], name: str, act: str, **options: Value
    ) -> Tensor:
        """The op; its activation is fused, or an op of its own where no kernel fuses it."""
        op = self._builder.op
        if act == "HARD_SWISH":
            return op(act, op(kind, *inputs, name=f"{name}/linear", **options), name=name)  # pyright: ignore[reportArgumentType]
        options["fused_activation_function"] = act
        return op(kind, *inputs, name=name, **options)  # pyright: ignore[reportArgumentType]

    def _padded(self, x: Tensor, window: Window, stride: Window, name: str) -> tuple[Tensor, str]:
        """What a window slides over, and how that op pads it."""
        sizes = x.shape[1:3]
        same = [
            pads("SAME", size, Slide(w, s, 1))
            for size, w, s in zip(sizes, window, stride, strict=True)
        ]
        wanted = [(w // 2, w // 2) for w in window]
        if self.style == "tf" or same == wanted or window == (1, 1):
            return x, "SAME"
        return self._builder.op("PAD", x, [[0, 0], *wanted, [0, 0]], name=f"{name}/pad"), "VALID"


def _seen(x: Tensor, shape: tuple[int, ...]) -> int:
    """Places of a window that see more than padding, at most."""
    return prod(min(pair) for pair in zip(x.shape[1:3], shape[1:3], strict=True))


def _pair(size: int | Window) -> Window:
    return (size, size) if isinstance(size, int) else size


def rounded(channels: float, step: int = 8) -> int:
    """Channels as a multiple of the step, at least one; never below nine tenths of those given."""
    nearest = max(step, int(channels + step / 2) // step * step)
    return nearest + step if nearest < 0.9 * channels else nearest

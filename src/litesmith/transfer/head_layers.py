"""The layers of a head with random weights on a backbone's maps."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.edit import needed_ops, regraph, with_graphs
from litesmith.ir.types import Array, Model, Tensor
from litesmith.transfer.feature_maps import FeatureMap

# Channels of a head.
_WIDE = 64

# Small weights in the last layers, so that every place starts with the same answer.
_SMALL = 0.01

# The prefix of the head's names, by which training distinguishes it from the backbone.
HEAD = "head/"


class HeadBuilder:
    """The ops of a head as they are added behind a backbone."""

    def __init__(
        self, backbone: Model, maps: Sequence[FeatureMap], random: np.random.Generator
    ) -> None:
        self._backbone, self._random = backbone, random
        self._builder = Builder()
        graph = backbone.main
        self._builder.inputs[:] = graph.inputs
        self._builder.ops[:] = needed_ops(graph.ops, [m.tensor for m in maps], lambda op: False)

    def _weights(self, *shape: int, deviation: float) -> Array:
        return self._random.normal(0, deviation, shape).astype(np.float32)

    def conv(self, value: Tensor, wide: int, name: str, last: float | None = None) -> Tensor:
        """A 1×1 convolution; `last` is the initial bias of a last layer."""
        deep = value.shape[3]
        deviation = (2 / deep) ** 0.5 if last is None else _SMALL
        weight = self._weights(wide, 1, 1, deep, deviation=deviation)
        bias = np.full(wide, last or 0.0, np.float32)
        return self._builder.op(
            "CONV_2D",
            value,
            self._builder.const(weight, name=f"{HEAD}{name}/weight"),
            self._builder.const(bias, name=f"{HEAD}{name}/bias"),
            name=f"{HEAD}{name}",
            fused_activation_function="RELU" if last is None else "NONE",
        )

    def lateral(self, one: FeatureMap) -> Tensor:
        return self.conv(one.tensor, _WIDE, f"lateral{one.stride}")

    def merge_down(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Adds to each map the next coarser one, enlarged, which has seen more of the image."""
        merged = [values[-1]]
        for place in reversed(range(len(values) - 1)):
            value = values[place]
            sizes = self._builder.const(np.array(value.shape[1:3], np.int32))
            larger = self._builder.op(
                "RESIZE_NEAREST_NEIGHBOR", merged[0], sizes, name=f"{HEAD}{place}/larger"
            )
            merged.insert(0, self._builder.op("ADD", value, larger, name=f"{HEAD}{place}/merged"))
        return merged

    def separable(self, value: Tensor, name: str) -> Tensor:
        """A depthwise convolution, then a 1×1 convolution."""
        deep = value.shape[3]
        weight = self._weights(1, 3, 3, deep, deviation=(1 / 9) ** 0.5)
        windows = self._builder.op(
            "DEPTHWISE_CONV_2D",
            value,
            self._builder.const(weight, name=f"{HEAD}{name}/window/weight"),
            self._builder.const(np.zeros(deep, np.float32), name=f"{HEAD}{name}/window/bias"),
            name=f"{HEAD}{name}/window",
            depth_multiplier=1,
        )
        return self.conv(windows, _WIDE, name)

    def reshape(self, value: Tensor, shape: list[int], name: str) -> Tensor:
        return self._builder.op("RESHAPE", value, shape, name=f"{HEAD}{name}")

    def join(self, parts: Sequence[Tensor], name: str) -> Tensor:
        """Rows of several maps, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return self._builder.op("CONCATENATION", *parts, axis=1, name=f"{HEAD}{name}")

    def enlarge(self, value: Tensor, size: tuple[int, int], name: str) -> Tensor:
        """Resizes a map smoothly."""
        return self._builder.op(
            "RESIZE_BILINEAR", value, [*size], half_pixel_centers=True, name=f"{HEAD}{name}"
        )

    def finish(self, *outputs: Tensor) -> Model:
        graph = regraph(
            self._backbone.main,
            ops=self._builder.ops,
            inputs=self._backbone.main.inputs,
            outputs=outputs,
        )
        return replace(with_graphs(self._backbone, (graph,)), signatures=(), metadata=())

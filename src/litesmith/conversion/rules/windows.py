"""The windows of convolutions and pools: how the source gives them, and how LiteRT takes them."""

from collections.abc import Sequence
from typing import NamedTuple

from litesmith.conversion.core.lowering import Lowering, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import padded
from litesmith.ir.types import Tensor

Frame = list[tuple[int, int]]


class Window(NamedTuple):
    """How an op reads each spatial dimension; the frame is what lies before and after the data."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    frame: Frame

    @property
    def reach(self) -> list[int]:
        """How many values a window spans, its gaps included."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]


def read_window(node: Node, sizes: Sequence[int], kernel: Sequence[int]) -> Window:
    """The window that a node asks for over data of these sizes."""
    count = len(sizes)
    strides = list(node.integers("strides", [1] * count))
    dilations = list(node.integers("dilations", [1] * count))
    pads = node.integers("pads", [0] * (2 * count))
    if min(*kernel, *strides, *dilations, 1) < 1:
        raise Unsupported(
            "its window of {kernel} with strides {strides} makes no sense; the file is damaged",
            kernel,
            strides,
        )
    window = Window(kernel, strides, dilations, [(0, 0)] * count)
    how = node.word("auto_pad", "NOTSET")
    if how == "VALID":
        return window
    if how not in ("SAME_UPPER", "SAME_LOWER"):
        return window._replace(frame=[(pads[i], pads[i + count]) for i in range(count)])
    frame = same_frame(window, sizes)
    return window._replace(frame=frame if how == "SAME_UPPER" else [pair[::-1] for pair in frame])


def same_frame(window: Window, sizes: Sequence[int]) -> Frame:
    """The frame of LiteRT's SAME padding, whose odd value comes after the data."""
    frame: Frame = []
    for size, stride, reach in zip(sizes, window.strides, window.reach, strict=True):
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        frame.append((total // 2, total - total // 2))
    return frame


def add_frame(lower: Lowering, x: Tensor, frame: Frame, filling: Tensor | None = None) -> Tensor:
    """A tensor N, spatial …, C in a frame."""
    return padded(lower, x, [(0, 0), *frame, (0, 0)], "constant", filling)

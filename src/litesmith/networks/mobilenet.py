"""MobileNet v1, v2 and v3.

v1  depthwise separable convolutions (Howard et al. 2017, table 1)
v2  inverted residuals with linear bottlenecks (Sandler et al. 2018, table 2)
v3  searched blocks, gates, hard swish (Howard et al. 2019, tables 1 and 2); the minimalistic ones
    have no gates, no hard swish and windows of 3 only
"""

from typing import NamedTuple

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import BRANCH, GATED, Net, rounded

# output channels, stride
V1_BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
)


def mobilenet_v1(net: Net, image: Tensor, width: float, act: str = "RELU6") -> Tensor:
    x = net.conv(image, rounded(32 * width), "stem", window=3, stride=2, act=act)
    for number, (channels, stride) in enumerate(V1_BLOCKS, 1):
        x = net.depthwise(x, f"block_{number}/depthwise", stride=stride, act=act)
        x = net.conv(x, rounded(channels * width), f"block_{number}/pointwise", act=act)
    return net.mean(x, "embedding")


def wake_words(net: Net, image: Tensor, width: float) -> Tensor:
    """MLPerf Tiny's: the same with RELU."""
    return mobilenet_v1(net, image, width, "RELU")


# expansion, output channels, repeats, stride of the first
V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(net: Net, image: Tensor, width: float) -> Tensor:
    x = net.conv(image, rounded(32 * width), "stem", window=3, stride=2, act="RELU6")
    number = 0
    for expansion, channels, repeats, stride in V2_STAGES:
        for repeat in range(repeats):
            number += 1
            first_stride = 1 if repeat else stride
            x = inverted(
                net, x, f"block_{number}", (expansion, rounded(channels * width), 3, first_stride)
            )
    x = net.conv(x, rounded(1280 * max(1.0, width)), "features", act="RELU6")
    return net.mean(x, "embedding")


def inverted(net: Net, x: Tensor, name: str, block: tuple[int, int, int, int]) -> Tensor:
    """One block: (expansion, output channels, window, stride)."""
    expansion, channels, window, stride = block
    inner = x
    if expansion != 1:
        inner = net.conv(x, expansion * x.shape[3], f"{name}/expand", act="RELU6")
    inner = net.depthwise(inner, f"{name}/depthwise", window=window, stride=stride, act="RELU6")
    if stride == 1 and x.shape[3] == channels:
        return net.add(x, net.conv(inner, channels, f"{name}/project", gain=BRANCH), name)
    return net.conv(inner, channels, f"{name}/project")


class Block(NamedTuple):
    """A row of the tables of MobileNet v3."""

    window: int
    inner: int
    channels: int
    gate: bool
    act: str
    stride: int


V3_LARGE = (
    Block(3, 16, 16, False, "RELU", 1),
    Block(3, 64, 24, False, "RELU", 2),
    Block(3, 72, 24, False, "RELU", 1),
    Block(5, 72, 40, True, "RELU", 2),
    Block(5, 120, 40, True, "RELU", 1),
    Block(5, 120, 40, True, "RELU", 1),
    Block(3, 240, 80, False, "HARD_SWISH", 2),
    Block(3, 200, 80, False, "HARD_SWISH", 1),
    Block(3, 184, 80, False, "HARD_SWISH", 1),
    Block(3, 184, 80, False, "HARD_SWISH", 1),
    Block(3, 480, 112, True, "HARD_SWISH", 1),
    Block(3, 672, 112, True, "HARD_SWISH", 1),
    Block(5, 672, 160, True, "HARD_SWISH", 2),
    Block(5, 960, 160, True, "HARD_SWISH", 1),
    Block(5, 960, 160, True, "HARD_SWISH", 1),
)

V3_SMALL = (
    Block(3, 16, 16, True, "RELU", 2),
    Block(3, 72, 24, False, "RELU", 2),
    Block(3, 88, 24, False, "RELU", 1),
    Block(5, 96, 40, True, "HARD_SWISH", 2),
    Block(5, 240, 40, True, "HARD_SWISH", 1),
    Block(5, 240, 40, True, "HARD_SWISH", 1),
    Block(5, 120, 48, True, "HARD_SWISH", 1),
    Block(5, 144, 48, True, "HARD_SWISH", 1),
    Block(5, 288, 96, True, "HARD_SWISH", 2),
    Block(5, 576, 96, True, "HARD_SWISH", 1),
    Block(5, 576, 96, True, "HARD_SWISH", 1),
)


def v3_large(net: Net, image: Tensor, width: float) -> Tensor:
    return _v3(net, image, width, (V3_LARGE, 1280, "HARD_SWISH"))


def v3_small(net: Net, image: Tensor, width: float) -> Tensor:
    return _v3(net, image, width, (V3_SMALL, 1024, "HARD_SWISH"))


def v3_large_minimalistic(net: Net, image: Tensor, width: float) -> Tensor:
    return _v3(net, image, width, (_simplify(V3_LARGE), 1280, "RELU"))


def v3_small_minimalistic(net: Net, image: Tensor, width: float) -> Tensor:
    return _v3(net, image, width, (_simplify(V3_SMALL), 1024, "RELU"))


def _simplify(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(block._replace(window=3, gate=False, act="RELU") for block in blocks)


def _v3(net: Net, image: Tensor, width: float, table: tuple[tuple[Block, ...], int, str]) -> Tensor:
    blocks, units, act = table
    x = net.conv(image, rounded(16 * width), "stem", window=3, stride=2, act=act)
    before = 16
    for number, block in enumerate(blocks, 1):
        inner, channels = block.inner / before * x.shape[3], block.channels * width
        scaled = block._replace(inner=rounded(inner), channels=rounded(channels))
        x = _v3_block(net, x, f"block_{number}", scaled)
        before = block.channels
    x = net.conv(x, 6 * x.shape[3], "features", act=act)
    return net.dense(net.mean(x, "pooled"), rounded(units * max(1.0, width)), "embedding", act)


def _v3_block(net: Net, x: Tensor, name: str, block: Block) -> Tensor:
    inner = x
    if block.inner != x.shape[3]:
        inner = net.conv(x, block.inner, f"{name}/expand", act=block.act)
    inner = net.depthwise(
        inner, f"{name}/depthwise", window=block.window, stride=block.stride, act=block.act
    )
    if block.gate:
        inner = net.gate(inner, rounded(block.inner // 4), f"{name}/gate")
    gain = GATED if block.gate else 1.0
    if block.stride == 1 and x.shape[3] == block.channels:
        branch = net.conv(inner, block.channels, f"{name}/project", gain=gain * BRANCH)
        return net.add(x, branch, name)
    return net.conv(inner, block.channels, f"{name}/project", gain=gain)

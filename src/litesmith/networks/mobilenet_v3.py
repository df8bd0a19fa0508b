"""MobileNet v3: searched blocks, gates, hard swish (Howard et al. 2019, tables 1 and 2).

The minimalistic ones have no gates, no hard swish and windows of 3 only.
"""

from typing import NamedTuple

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import BRANCH, GATED, Net, rounded


class Block(NamedTuple):
    """A row of the paper's tables."""

    window: int
    inner: int
    channels: int
    gate: bool
    act: str
    stride: int


LARGE = (
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

SMALL = (
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


def large(net: Net, image: Tensor, width: float) -> Tensor:
    return _network(net, image, width, (LARGE, 1280, "HARD_SWISH"))


def small(net: Net, image: Tensor, width: float) -> Tensor:
    return _network(net, image, width, (SMALL, 1024, "HARD_SWISH"))


def large_minimalistic(net: Net, image: Tensor, width: float) -> Tensor:
    return _network(net, image, width, (_minimal(LARGE), 1280, "RELU"))


def small_minimalistic(net: Net, image: Tensor, width: float) -> Tensor:
    return _network(net, image, width, (_minimal(SMALL), 1024, "RELU"))


def _minimal(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(block._replace(window=3, gate=False, act="RELU") for block in blocks)


def _network(
    net: Net, image: Tensor, width: float, table: tuple[tuple[Block, ...], int, str]
) -> Tensor:
    blocks, units, act = table
    x = net.conv(image, rounded(16 * width), "stem", window=3, stride=2, act=act)
    before = 16
    for number, block in enumerate(blocks, 1):
        inner, channels = block.inner / before * x.shape[3], block.channels * width
        scaled = block._replace(inner=rounded(inner), channels=rounded(channels))
        x = _block(net, x, f"block_{number}", scaled)
        before = block.channels
    x = net.conv(x, 6 * x.shape[3], "features", act=act)
    return net.dense(net.mean(x, "pooled"), rounded(units * max(1.0, width)), "embedding", act)


def _block(net: Net, x: Tensor, name: str, block: Block) -> Tensor:
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

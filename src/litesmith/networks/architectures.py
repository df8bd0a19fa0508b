"""The layers of every network, from its input to the features that the classifier reads.

MobileNet v1  depthwise separable convolutions (Howard et al. 2017, table 1)
         v2  inverted residuals with linear bottlenecks (Sandler et al. 2018, table 2)
         v3  searched blocks, gates, hard swish (Howard et al. 2019, tables 1 and 2); the
             minimalistic ones have no gates, no hard swish and windows of 3 only
EfficientNet-Lite  EfficientNet without gates, with RELU6; stem and head are never scaled
DS-CNN  keyword spotting on 49 frames of 10 MFCC (Zhang et al. 2017, "Hello Edge", table 7)
ResNet  sums around pairs of convolutions (He et al. 2016), for ImageNet and for CIFAR-10; the
        bottleneck of the 50 has its stride in the window of 3, as torchvision's weights require
"""

from functools import partial
from math import ceil
from typing import NamedTuple

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import BRANCH, GATED, Net, Window, round_channels

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
    x = net.conv(image, round_channels(32 * width), "stem", window=3, stride=2, act=act)
    for number, (channels, stride) in enumerate(V1_BLOCKS, 1):
        x = net.depthwise(x, f"block_{number}/depthwise", stride=stride, act=act)
        x = net.conv(x, round_channels(channels * width), f"block_{number}/pointwise", act=act)
    return net.mean(x, "embedding")


def wake_words(net: Net, image: Tensor, width: float) -> Tensor:
    """MLPerf Tiny's MobileNet v1, with RELU instead of RELU6."""
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
    x = net.conv(image, round_channels(32 * width), "stem", window=3, stride=2, act="RELU6")
    number = 0
    for expansion, channels, repeats, stride in V2_STAGES:
        for repeat in range(repeats):
            number += 1
            first_stride = 1 if repeat else stride
            x = inverted(
                net,
                x,
                f"block_{number}",
                (expansion, round_channels(channels * width), 3, first_stride),
            )
    x = net.conv(x, round_channels(1280 * max(1.0, width)), "features", act="RELU6")
    return net.mean(x, "embedding")


def inverted(net: Net, x: Tensor, name: str, block: tuple[int, int, int, int]) -> Tensor:
    """One inverted residual block: (expansion, output channels, window, stride)."""
    expansion, channels, window, stride = block
    inner = x
    if expansion != 1:
        inner = net.conv(x, expansion * x.shape[3], f"{name}/expand", act="RELU6")
    inner = net.depthwise(inner, f"{name}/depthwise", window=window, stride=stride, act="RELU6")
    if stride == 1 and x.shape[3] == channels:
        return net.add(x, net.conv(inner, channels, f"{name}/project", gain=BRANCH), name)
    return net.conv(inner, channels, f"{name}/project")


class V3Block(NamedTuple):
    """A row of the tables of MobileNet v3."""

    window: int
    inner: int
    channels: int
    gate: bool
    act: str
    stride: int


V3_LARGE = (
    V3Block(3, 16, 16, False, "RELU", 1),
    V3Block(3, 64, 24, False, "RELU", 2),
    V3Block(3, 72, 24, False, "RELU", 1),
    V3Block(5, 72, 40, True, "RELU", 2),
    V3Block(5, 120, 40, True, "RELU", 1),
    V3Block(5, 120, 40, True, "RELU", 1),
    V3Block(3, 240, 80, False, "HARD_SWISH", 2),
    V3Block(3, 200, 80, False, "HARD_SWISH", 1),
    V3Block(3, 184, 80, False, "HARD_SWISH", 1),
    V3Block(3, 184, 80, False, "HARD_SWISH", 1),
    V3Block(3, 480, 112, True, "HARD_SWISH", 1),
    V3Block(3, 672, 112, True, "HARD_SWISH", 1),
    V3Block(5, 672, 160, True, "HARD_SWISH", 2),
    V3Block(5, 960, 160, True, "HARD_SWISH", 1),
    V3Block(5, 960, 160, True, "HARD_SWISH", 1),
)

V3_SMALL = (
    V3Block(3, 16, 16, True, "RELU", 2),
    V3Block(3, 72, 24, False, "RELU", 2),
    V3Block(3, 88, 24, False, "RELU", 1),
    V3Block(5, 96, 40, True, "HARD_SWISH", 2),
    V3Block(5, 240, 40, True, "HARD_SWISH", 1),
    V3Block(5, 240, 40, True, "HARD_SWISH", 1),
    V3Block(5, 120, 48, True, "HARD_SWISH", 1),
    V3Block(5, 144, 48, True, "HARD_SWISH", 1),
    V3Block(5, 288, 96, True, "HARD_SWISH", 2),
    V3Block(5, 576, 96, True, "HARD_SWISH", 1),
    V3Block(5, 576, 96, True, "HARD_SWISH", 1),
)


def _simplify(blocks: tuple[V3Block, ...]) -> tuple[V3Block, ...]:
    return tuple(block._replace(window=3, gate=False, act="RELU") for block in blocks)


def _v3(
    net: Net, image: Tensor, width: float, *, blocks: tuple[V3Block, ...], units: int, act: str
) -> Tensor:
    x = net.conv(image, round_channels(16 * width), "stem", window=3, stride=2, act=act)
    before = 16
    for number, block in enumerate(blocks, 1):
        inner, channels = block.inner / before * x.shape[3], block.channels * width
        scaled = block._replace(inner=round_channels(inner), channels=round_channels(channels))
        x = _v3_block(net, x, f"block_{number}", scaled)
        before = block.channels
    x = net.conv(x, 6 * x.shape[3], "features", act=act)
    return net.dense(
        net.mean(x, "pooled"), round_channels(units * max(1.0, width)), "embedding", act
    )


def _v3_block(net: Net, x: Tensor, name: str, block: V3Block) -> Tensor:
    inner = x
    if block.inner != x.shape[3]:
        inner = net.conv(x, block.inner, f"{name}/expand", act=block.act)
    inner = net.depthwise(
        inner, f"{name}/depthwise", window=block.window, stride=block.stride, act=block.act
    )
    if block.gate:
        inner = net.gate(inner, round_channels(block.inner // 4), f"{name}/gate")
    gain = GATED if block.gate else 1.0
    if block.stride == 1 and x.shape[3] == block.channels:
        branch = net.conv(inner, block.channels, f"{name}/project", gain=gain * BRANCH)
        return net.add(x, branch, name)
    return net.conv(inner, block.channels, f"{name}/project", gain=gain)


v3_large = partial(_v3, blocks=V3_LARGE, units=1280, act="HARD_SWISH")
v3_small = partial(_v3, blocks=V3_SMALL, units=1024, act="HARD_SWISH")
v3_large_minimalistic = partial(_v3, blocks=_simplify(V3_LARGE), units=1280, act="RELU")
v3_small_minimalistic = partial(_v3, blocks=_simplify(V3_SMALL), units=1024, act="RELU")


# expansion, output channels, repeats, stride of the first, window
_LITE_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def _efficientnet_lite(
    net: Net, image: Tensor, width: float, *, wide: float, deep: float
) -> Tensor:
    x = net.conv(image, 32, "stem", window=3, stride=2, act="RELU6")
    number = 0
    for stage in _LITE_STAGES:
        expansion, channels, repeats, stride, window = stage
        is_end = stage in (_LITE_STAGES[0], _LITE_STAGES[-1])
        for repeat in range(repeats if is_end else ceil(deep * repeats)):
            number += 1
            block = (
                expansion,
                round_channels(channels * wide * width),
                window,
                1 if repeat else stride,
            )
            x = inverted(net, x, f"block_{number}", block)
    return net.mean(net.conv(x, 1280, "features", act="RELU6"), "embedding")


lite0 = partial(_efficientnet_lite, wide=1.0, deep=1.0)
lite1 = partial(_efficientnet_lite, wide=1.0, deep=1.1)
lite2 = partial(_efficientnet_lite, wide=1.1, deep=1.2)
lite3 = partial(_efficientnet_lite, wide=1.2, deep=1.4)
lite4 = partial(_efficientnet_lite, wide=1.4, deep=1.8)


def _ds_cnn(
    net: Net, mfcc: Tensor, width: float, *, channels: int, strides: tuple[Window, ...]
) -> Tensor:
    wide = round_channels(channels * width, 4)
    x = net.conv(mfcc, wide, "stem", window=(10, 4), stride=strides[0], act="RELU")
    for number, stride in enumerate(strides[1:], 1):
        x = net.depthwise(x, f"block_{number}/depthwise", stride=stride, act="RELU")
        x = net.conv(x, wide, f"block_{number}/pointwise", act="RELU")
    return net.mean(x, "embedding")


_ONE, _TWO = (1, 1), (2, 2)
ds_cnn_small = partial(_ds_cnn, channels=64, strides=(_TWO, _ONE, _ONE, _ONE, _ONE))
ds_cnn_medium = partial(_ds_cnn, channels=172, strides=((2, 1), _TWO, _ONE, _ONE, _ONE))
ds_cnn_large = partial(_ds_cnn, channels=276, strides=((2, 1), _TWO, _ONE, _ONE, _ONE, _ONE))


_RESNET_STAGES = (64, 128, 256, 512)
_CIFAR_STAGES = (16, 32, 64)


def _imagenet_resnet(
    net: Net, image: Tensor, width: float, *, repeats: tuple[int, ...], bottleneck: bool
) -> Tensor:
    block = _bottleneck if bottleneck else _pair
    x = net.conv(image, round_channels(64 * width), "stem", window=7, stride=2, act="RELU")
    x = net.max_pool(x, "pool", window=3, stride=2)
    for stage, (channels, count) in enumerate(zip(_RESNET_STAGES, repeats, strict=True), 1):
        for number in range(1, count + 1):
            stride = 2 if stage > 1 and number == 1 else 1
            x = block(
                net, x, round_channels(channels * width), stride, f"stage_{stage}/block_{number}"
            )
    return net.mean(x, "embedding")


def _cifar_resnet(net: Net, image: Tensor, width: float, *, repeats: int, projects: bool) -> Tensor:
    x = net.conv(image, round_channels(16 * width), "stem", window=3, act="RELU")
    for stage, channels in enumerate(_CIFAR_STAGES, 1):
        for number in range(1, repeats + 1):
            stride = 2 if stage > 1 and number == 1 else 1
            name = f"stage_{stage}/block_{number}"
            x = _pair(net, x, round_channels(channels * width), stride, name, projects)
    return net.mean(x, "embedding")


def _pair(
    net: Net, x: Tensor, channels: int, stride: int, name: str, projects: bool = True
) -> Tensor:
    inner = net.conv(x, channels, f"{name}/conv_1", window=3, stride=stride, act="RELU")
    inner = net.conv(inner, channels, f"{name}/conv_2", window=3, gain=BRANCH)
    return net.add(inner, _shortcut(net, x, channels, stride, name, projects), name, "RELU")


def _bottleneck(net: Net, x: Tensor, channels: int, stride: int, name: str) -> Tensor:
    inner = net.conv(x, channels, f"{name}/conv_1", act="RELU")
    inner = net.conv(inner, channels, f"{name}/conv_2", window=3, stride=stride, act="RELU")
    inner = net.conv(inner, 4 * channels, f"{name}/conv_3", gain=BRANCH)
    return net.add(inner, _shortcut(net, x, 4 * channels, stride, name, True), name, "RELU")


def _shortcut(net: Net, x: Tensor, channels: int, stride: int, name: str, projects: bool) -> Tensor:
    """The input of a block in the shape of its output: unchanged, by weights, or with added
    zeros.
    """
    if stride == 1 and x.shape[3] == channels:
        return x
    if projects:
        return net.conv(x, channels, f"{name}/shortcut", stride=stride)
    fewer = net.max_pool(x, f"{name}/every_other", window=1, stride=stride)
    return net.more_channels(fewer, channels, f"{name}/shortcut")


resnet8 = partial(_cifar_resnet, repeats=1, projects=True)
resnet20 = partial(_cifar_resnet, repeats=3, projects=False)
resnet32 = partial(_cifar_resnet, repeats=5, projects=False)
resnet56 = partial(_cifar_resnet, repeats=9, projects=False)
resnet18 = partial(_imagenet_resnet, repeats=(2, 2, 2, 2), bottleneck=False)
resnet34 = partial(_imagenet_resnet, repeats=(3, 4, 6, 3), bottleneck=False)
resnet50 = partial(_imagenet_resnet, repeats=(3, 4, 6, 3), bottleneck=True)

"""ResNet: sums around pairs of convolutions (He et al. 2016), for ImageNet and for CIFAR-10.

The bottleneck of the 50 has its stride in the window of 3, as torchvision's weights want it.
"""

from functools import partial

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import BRANCH, Net, rounded

_STAGES = (64, 128, 256, 512)
_SMALL_STAGES = (16, 32, 64)


def _imagenet(
    net: Net, image: Tensor, width: float, *, repeats: tuple[int, ...], bottleneck: bool
) -> Tensor:
    block = _bottleneck if bottleneck else _pair
    x = net.conv(image, rounded(64 * width), "stem", window=7, stride=2, act="RELU")
    x = net.max_pool(x, "pool", window=3, stride=2)
    for stage, (channels, count) in enumerate(zip(_STAGES, repeats, strict=True), 1):
        for number in range(1, count + 1):
            stride = 2 if stage > 1 and number == 1 else 1
            x = block(net, x, rounded(channels * width), stride, f"stage_{stage}/block_{number}")
    return net.mean(x, "embedding")


def _cifar(net: Net, image: Tensor, width: float, *, repeats: int, projects: bool) -> Tensor:
    x = net.conv(image, rounded(16 * width), "stem", window=3, act="RELU")
    for stage, channels in enumerate(_SMALL_STAGES, 1):
        for number in range(1, repeats + 1):
            stride = 2 if stage > 1 and number == 1 else 1
            name = f"stage_{stage}/block_{number}"
            x = _pair(net, x, rounded(channels * width), stride, name, projects)
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
    """The input of a block in the shape of its output: as it is, by weights, or with zeros."""
    if stride == 1 and x.shape[3] == channels:
        return x
    if projects:
        return net.conv(x, channels, f"{name}/shortcut", stride=stride)
    fewer = net.max_pool(x, f"{name}/every_other", window=1, stride=stride)
    return net.more_channels(fewer, channels, f"{name}/shortcut")


resnet8 = partial(_cifar, repeats=1, projects=True)
resnet20 = partial(_cifar, repeats=3, projects=False)
resnet32 = partial(_cifar, repeats=5, projects=False)
resnet56 = partial(_cifar, repeats=9, projects=False)
resnet18 = partial(_imagenet, repeats=(2, 2, 2, 2), bottleneck=False)
resnet34 = partial(_imagenet, repeats=(3, 4, 6, 3), bottleneck=False)
resnet50 = partial(_imagenet, repeats=(3, 4, 6, 3), bottleneck=True)

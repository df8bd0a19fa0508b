"""MobileNet v2: inverted residuals with linear bottlenecks (Sandler et al. 2018, table 2)."""

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import BRANCH, Net, rounded

# expansion, output channels, repeats, stride of the first
STAGES = (
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
    for expansion, channels, repeats, stride in STAGES:
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

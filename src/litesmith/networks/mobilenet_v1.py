"""MobileNet v1: depthwise separable convolutions (Howard et al. 2017, table 1)."""

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import Net, rounded

# output channels, stride
BLOCKS = (
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
    for number, (channels, stride) in enumerate(BLOCKS, 1):
        x = net.depthwise(x, f"block_{number}/depthwise", stride=stride, act=act)
        x = net.conv(x, rounded(channels * width), f"block_{number}/pointwise", act=act)
    return net.mean(x, "embedding")


def wake_words(net: Net, image: Tensor, width: float) -> Tensor:
    """MLPerf Tiny's: the same with RELU."""
    return mobilenet_v1(net, image, width, "RELU")

"""EfficientNet-Lite: EfficientNet without gates, with RELU6; stem and head are never scaled."""

from functools import partial
from math import ceil

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import Net, rounded
from litesmith.networks.mobilenet import inverted

# expansion, output channels, repeats, stride of the first, window
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def _network(net: Net, image: Tensor, width: float, *, wide: float, deep: float) -> Tensor:
    x = net.conv(image, 32, "stem", window=3, stride=2, act="RELU6")
    number = 0
    for stage in STAGES:
        expansion, channels, repeats, stride, window = stage
        is_end = stage in (STAGES[0], STAGES[-1])
        for repeat in range(repeats if is_end else ceil(deep * repeats)):
            number += 1
            block = (expansion, rounded(channels * wide * width), window, 1 if repeat else stride)
            x = inverted(net, x, f"block_{number}", block)
    return net.mean(net.conv(x, 1280, "features", act="RELU6"), "embedding")


lite0 = partial(_network, wide=1.0, deep=1.0)
lite1 = partial(_network, wide=1.0, deep=1.1)
lite2 = partial(_network, wide=1.1, deep=1.2)
lite3 = partial(_network, wide=1.2, deep=1.4)
lite4 = partial(_network, wide=1.4, deep=1.8)

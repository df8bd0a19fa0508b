"""DS-CNN: keyword spotting on 49 frames of 10 MFCC (Zhang et al. 2017, "Hello Edge", table 7)."""

from functools import partial

from litesmith.ir.types import Tensor
from litesmith.networks.layer_builder import Net, Window, rounded


def _network(
    net: Net, mfcc: Tensor, width: float, *, channels: int, strides: tuple[Window, ...]
) -> Tensor:
    wide = rounded(channels * width, 4)
    x = net.conv(mfcc, wide, "stem", window=(10, 4), stride=strides[0], act="RELU")
    for number, stride in enumerate(strides[1:], 1):
        x = net.depthwise(x, f"block_{number}/depthwise", stride=stride, act="RELU")
        x = net.conv(x, wide, f"block_{number}/pointwise", act="RELU")
    return net.mean(x, "embedding")


_ONE, _TWO = (1, 1), (2, 2)
small = partial(_network, channels=64, strides=(_TWO, _ONE, _ONE, _ONE, _ONE))
medium = partial(_network, channels=172, strides=((2, 1), _TWO, _ONE, _ONE, _ONE))
large = partial(_network, channels=276, strides=((2, 1), _TWO, _ONE, _ONE, _ONE, _ONE))

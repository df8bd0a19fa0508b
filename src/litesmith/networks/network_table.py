"""The networks of the catalogue: one row each, with the published figures.

A new network is a function in `architectures.py` and a row here.
"""

from collections.abc import Callable
from typing import NamedTuple

from litesmith.ir.types import Tensor
from litesmith.known_networks import Published
from litesmith.networks import architectures
from litesmith.networks.layer_builder import Net
from litesmith.phrases import phrase

# (net, input, width) -> what the classifier reads: (1, channels)
Make = Callable[[Net, Tensor, float], Tensor]


class Row(NamedTuple):
    """A network.

    name        as users type it
    title       what it is, in a few words
    make        its layers from the input to the features that the classifier reads
    published   the published sizes, the usual one first
    data        the data that they were trained on; accuracies are shares of its test images or
                words
    source      the source of the published figures
    width, resolution, classes   the defaults
    stride      the input pixels per feature, which is also the least resolution
    shape       the input's height, width and channels where it has no resolution
    norm        the normalisation for the published weights: a name of `--norm`, or words
    scaling     the mean and the deviation of pixels that the words stand for
    style       padding and end of the graph (see `Net`), unless weights decide them
    epsilon     the epsilon of batch normalization in torchvision, whose files lack it
    """

    name: str
    title: str
    make: Make
    published: tuple[Published, ...]
    data: str
    source: str
    width: float = 1.0
    resolution: int = 224
    classes: int = 1000
    stride: int = 32
    shape: tuple[int, int, int] | None = None
    norm: str = "tf"
    scaling: tuple[float, float] | None = None
    style: str = "tf"
    epsilon: float = 1e-5


_V1 = (
    Published(1.0, 224, "4.2 M", "569 M", "70.6 %"),
    Published(0.75, 224, "2.6 M", "325 M", "68.4 %"),
    Published(0.5, 224, "1.3 M", "149 M", "63.7 %"),
    Published(0.25, 224, "0.5 M", "41 M", "50.6 %"),
    Published(1.0, 192, "4.2 M", "418 M", "69.1 %"),
    Published(1.0, 160, "4.2 M", "290 M", "67.2 %"),
    Published(1.0, 128, "4.2 M", "186 M", "64.4 %"),
)

_V2 = (
    Published(1.0, 224, "3.47 M", "300 M", "71.8 %"),
    Published(1.4, 224, "6.06 M", "582 M", "75.0 %"),
    Published(1.3, 224, "5.34 M", "509 M", "74.4 %"),
    Published(1.0, 192, "3.47 M", "221 M", "70.7 %"),
    Published(1.0, 160, "3.47 M", "154 M", "68.8 %"),
    Published(1.0, 128, "3.47 M", "99 M", "65.3 %"),
    Published(1.0, 96, "3.47 M", "56 M", "60.3 %"),
    Published(0.75, 224, "2.61 M", "209 M", "69.8 %"),
    Published(0.75, 192, "2.61 M", "153 M", "68.7 %"),
    Published(0.75, 160, "2.61 M", "107 M", "66.4 %"),
    Published(0.75, 128, "2.61 M", "69 M", "63.2 %"),
    Published(0.75, 96, "2.61 M", "39 M", "58.8 %"),
    Published(0.5, 224, "1.95 M", "97 M", "65.4 %"),
    Published(0.5, 192, "1.95 M", "71 M", "63.9 %"),
    Published(0.5, 160, "1.95 M", "50 M", "61.0 %"),
    Published(0.5, 128, "1.95 M", "32 M", "57.7 %"),
    Published(0.5, 96, "1.95 M", "18 M", "51.2 %"),
    Published(0.35, 224, "1.66 M", "59 M", "60.3 %"),
    Published(0.35, 192, "1.66 M", "43 M", "58.2 %"),
    Published(0.35, 160, "1.66 M", "30 M", "55.7 %"),
    Published(0.35, 128, "1.66 M", "20 M", "50.8 %"),
    Published(0.35, 96, "1.66 M", "11 M", "45.5 %"),
)

_SLIM = "TF-slim's README"
_MLPERF = "MLPerf Tiny (target)"
# The paper prints operations, 5.4, 19.8 and 56.9 M: two for a MAC, and one for each bias added.
_HELLO_EDGE = "Zhang et al. 2017 (MACs: half its operations)"
_V3_EPSILON = 1e-3

_LITE_MADDS = phrase(
    "the list counts about three more for each value that a convolution outputs, as if batch "
    "normalization and activation were included"
)
_SMALL_MINIMALISTIC = phrase("the definition beside that README gives 52 M too")


def _lite(number: int, make: Make, resolution: int, figures: tuple[str, str, str]) -> Row:
    return Row(
        f"efficientnet_lite{number}",
        phrase("inverted residuals"),
        make,
        (Published(1.0, resolution, *figures, _LITE_MADDS),),
        "ImageNet",
        "EfficientNet-Lite's README",
        resolution=resolution,
        norm="mean 127, std 128",
        scaling=(127.0, 128.0),
    )


def _imagenet(depth: int, make: Make, figures: tuple[str, str, str]) -> Row:
    return Row(
        f"resnet{depth}",
        phrase("residuals, large images"),
        make,
        (Published(1.0, 224, *figures),),
        "ImageNet",
        phrase("torchvision's table"),
        norm="torch",
        style="torch",
    )


def _cifar(depth: int, make: Make, parameters: str, accuracy: str) -> Row:
    return Row(
        f"resnet{depth}",
        phrase("residuals, small images"),
        make,
        (Published(1.0, 32, parameters, "", accuracy),),
        "CIFAR-10",
        "He et al. 2016",
        resolution=32,
        classes=10,
        stride=4,
        norm=phrase("the mean image is subtracted"),
    )


def _keywords(name: str, title: str, make: Make, macs: str, accuracy: str, source: str) -> Row:
    return Row(
        name,
        title,
        make,
        (Published(1.0, 0, "", macs, accuracy),),
        phrase("Speech Commands"),
        source,
        resolution=0,
        classes=12,
        shape=(49, 10, 1),
        norm=phrase("10 MFCC of 49 frames"),
    )


ROWS = (
    Row(
        "mobilenet_v1",
        phrase("separable convolutions"),
        architectures.mobilenet_v1,
        _V1,
        "ImageNet",
        "Howard et al. 2017",
    ),
    Row(
        "mobilenet_v1_vww",
        phrase("v1, is a person there?"),
        architectures.wake_words,
        (Published(0.25, 96, "", "", "80 %"),),
        phrase("Visual Wake Words"),
        _MLPERF,
        width=0.25,
        resolution=96,
        classes=2,
        norm="unit",
    ),
    Row(
        "mobilenet_v2",
        phrase("inverted residuals"),
        architectures.mobilenet_v2,
        _V2,
        "ImageNet",
        _SLIM,
    ),
    Row(
        "mobilenet_v3_large",
        phrase("gates, hard swish"),
        architectures.v3_large,
        (
            Published(1.0, 224, "5.4 M", "217 M", "75.2 %"),
            Published(0.75, 224, "4.0 M", "155 M", "73.3 %"),
        ),
        "ImageNet",
        _SLIM,
        epsilon=_V3_EPSILON,
    ),
    Row(
        "mobilenet_v3_small",
        phrase("gates, hard swish"),
        architectures.v3_small,
        (
            Published(1.0, 224, "2.5 M", "56 M", "67.4 %"),
            Published(0.75, 224, "2.0 M", "44 M", "65.4 %"),
        ),
        "ImageNet",
        "Howard et al. 2019",
        epsilon=_V3_EPSILON,
    ),
    Row(
        "mobilenet_v3_large_min",
        phrase("v3 minimalistic: plain"),
        architectures.v3_large_minimalistic,
        (Published(1.0, 224, "3.9 M", "209 M", "72.3 %"),),
        "ImageNet",
        _SLIM,
        epsilon=_V3_EPSILON,
    ),
    Row(
        "mobilenet_v3_small_min",
        phrase("v3 minimalistic: plain"),
        architectures.v3_small_minimalistic,
        (Published(1.0, 224, "2.0 M", "65 M", "61.9 %", _SMALL_MINIMALISTIC),),
        "ImageNet",
        _SLIM,
        epsilon=_V3_EPSILON,
    ),
    _lite(0, architectures.lite0, 224, ("4.7 M", "407 M", "75.1 %")),
    _lite(1, architectures.lite1, 240, ("5.4 M", "631 M", "76.7 %")),
    _lite(2, architectures.lite2, 260, ("6.1 M", "899 M", "77.6 %")),
    _lite(3, architectures.lite3, 280, ("8.2 M", "1.44 G", "79.8 %")),
    _lite(4, architectures.lite4, 300, ("13.0 M", "2.64 G", "81.5 %")),
    Row(
        "resnet8",
        phrase("residuals, tiny"),
        architectures.resnet8,
        (Published(1.0, 32, "", "", "85 %"),),
        "CIFAR-10",
        _MLPERF,
        resolution=32,
        classes=10,
        stride=4,
        norm="raw",
    ),
    _cifar(20, architectures.resnet20, "0.27 M", "91.25 %"),
    _cifar(32, architectures.resnet32, "0.46 M", "92.49 %"),
    _cifar(56, architectures.resnet56, "0.85 M", "93.03 %"),
    _imagenet(18, architectures.resnet18, ("11.7 M", "1.81 G", "69.76 %")),
    _imagenet(34, architectures.resnet34, ("21.8 M", "3.66 G", "73.31 %")),
    _imagenet(50, architectures.resnet50, ("25.6 M", "4.09 G", "76.13 %")),
    _keywords("ds_cnn", "keywords, as ds_cnn_s", architectures.ds_cnn_small, "", "90 %", _MLPERF),
    _keywords(
        "ds_cnn_s", "keywords, small", architectures.ds_cnn_small, "2.7 M", "94.4 %", _HELLO_EDGE
    ),
    _keywords(
        "ds_cnn_m", "keywords, medium", architectures.ds_cnn_medium, "9.9 M", "94.9 %", _HELLO_EDGE
    ),
    _keywords(
        "ds_cnn_l", "keywords, large", architectures.ds_cnn_large, "28.4 M", "95.4 %", _HELLO_EDGE
    ),
)

MEMBERS = {row.name: row for row in ROWS}


def families() -> tuple[Row, ...]:
    """Every network, without a size."""
    return ROWS

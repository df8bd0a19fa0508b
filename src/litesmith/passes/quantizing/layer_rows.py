"""What the weights of a layer are multiplied with, row by row."""

import numpy as np

from litesmith.ir.ops import OPS
from litesmith.ir.types import Array
from litesmith.ir.window import slides
from litesmith.numeric.patches import depthwise_patches, patches
from litesmith.passes.core.layers import Layer
from litesmith.passes.quantizing.paired_walk import Visit
from litesmith.phrases import phrase


def why_no_rows(layer: Layer) -> str:
    """Why a layer has no such rows; "" where it has."""
    if not OPS[layer.op.kind].is_layer:
        return phrase("there is no rounding for {kind}", layer.op.kind)
    if layer.in_groups:
        return phrase("its channels are in groups")
    return ""


def affine_of(visit: Visit) -> tuple[float, int]:
    """The scale and zero point of what a layer reads."""
    if visit.quant is None:
        return 1.0, 0
    return float(visit.quant.scale[0]), int(visit.quant.zero_point[0])


def rows_of_layer(layer: Layer, samples: Array, fill: int, most: int) -> Array:
    """What the weights are multiplied with: samples (N, 1, …) -> rows in the order of a filter."""
    row = OPS[layer.op.kind]
    if row.is_dense:
        return samples.reshape(-1, layer.weight.shape[-1])
    assert layer.op.options is not None
    images = samples.reshape(-1, *samples.shape[-3:])
    moves = slides(layer.op.options, layer.weight.shape[1:3])
    padding = layer.op.options.word("padding")
    if not row.is_depthwise:
        return patches(images, moves, padding, fill=fill, most=most)
    windows = depthwise_patches(images, moves, padding, fill=fill, most=most)
    return np.repeat(windows, layer.channels // windows.shape[0], axis=0)

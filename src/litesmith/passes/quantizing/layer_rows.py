"""The inputs of a layer's weights, as rows of a matrix, for two models at once."""

from collections.abc import Iterator

import numpy as np

from litesmith.ir.ops import OPS
from litesmith.ir.types import Array
from litesmith.ir.window import slides
from litesmith.numeric.patches import depthwise_patches, patches, some_places
from litesmith.passes.core.layers import Layer
from litesmith.phrases import phrase


def why_no_rows(layer: Layer) -> str:
    """Why a layer has no such rows; "" where it has."""
    if not OPS[layer.op.kind].is_layer:
        return phrase("there is no rounding for {kind}", layer.op.kind)
    if layer.in_groups:
        return phrase("its channels are in groups")
    return ""


def paired_rows(
    layers: tuple[Layer, Layer], samples: tuple[Array, Array], *, zero: int, most: int, group: int
) -> Iterator[tuple[Array, Array]]:
    """The inputs of two layers' weights, this many samples at a time; `zero` stands for 0 in those
    of the first."""
    for start in range(0, len(samples[0]), group):
        ours, theirs = (values[start : start + group] for values in samples)
        yield rows_of_layer(layers[0], ours, zero, most), rows_of_layer(layers[1], theirs, 0, most)


def rows_of_layer(layer: Layer, samples: Array, fill: int, most: int) -> Array:
    """The inputs of a layer's weights: samples (N, 1, …) -> rows in the order of a filter, at
    `most` places of each sample."""
    row = OPS[layer.op.kind]
    if row.is_dense:
        rows = samples.reshape(len(samples), -1, layer.weight.shape[-1])
        return rows[:, some_places(rows.shape[1], most)].reshape(-1, rows.shape[-1])
    assert layer.op.options is not None
    images = samples.reshape(-1, *samples.shape[-3:])
    moves = slides(layer.op.options, layer.weight.shape[1:3])
    padding = layer.op.options.word("padding")
    if not row.is_depthwise:
        return patches(images, moves, padding, fill=fill, most=most)
    windows = depthwise_patches(images, moves, padding, fill=fill, most=most)
    return np.repeat(windows, layer.channels // windows.shape[0], axis=0)


def products(rows: Array, weights: Array) -> Array:
    """Outputs (R, channels) of rows (R, k), or of each channel's own rows (channels, R, k)."""
    if rows.ndim == 2:
        return rows @ weights.T
    return np.matmul(rows, weights[:, :, None])[..., 0].T

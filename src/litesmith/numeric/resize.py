"""Kernels that resample images: (batch, height, width, channels)."""

import numpy as np

from litesmith.ir.types import Array, Record
from litesmith.numeric.arrays import demand, integers
from litesmith.phrases import phrase


def _ratio(size: int, wanted: int, align_corners: bool) -> np.float32:
    if align_corners and wanted > 1:
        return np.float32(size - 1) / np.float32(wanted - 1)
    return np.float32(size) / np.float32(wanted)


def _wanted(x: Array, size: Array) -> tuple[int, int]:
    height, width = integers(size)
    if x.ndim != 4 or min(height, width, *x.shape[1:3]) < 1:
        raise ValueError(phrase("{shape} resized to {height} by {width}", x.shape, height, width))
    return height, width


def _blend(x: Array, axis: int, wanted: int, options: Record) -> Array:
    """Linear interpolation along one dimension, with places in float32 as the runtime has them."""
    size = x.shape[axis]
    ratio = _ratio(size, wanted, bool(options["align_corners"]))
    places = np.arange(wanted, dtype=np.float32)
    if options["half_pixel_centers"]:
        places = (places + np.float32(0.5)) * ratio - np.float32(0.5)
    else:
        places = places * ratio
    lower = np.clip(np.floor(places), 0, size - 1)
    upper = np.clip(np.ceil(places), 0, size - 1)
    share = (places - lower).reshape([-1 if at == axis else 1 for at in range(x.ndim)])
    low, high = (np.take(x, ends.astype(np.int64), axis) for ends in (lower, upper))
    return low * (1 - share) + high * share


def bilinear(options: Record, x: Array, size: Array) -> Array:
    demand("float32", x)
    height, width = _wanted(x, size)
    return _blend(_blend(x, 1, height, options), 2, width, options)


def nearest(options: Record, x: Array, size: Array) -> Array:
    height, width = _wanted(x, size)
    rows = np.take(x, _nearest(x.shape[1], height, options), 1)
    return np.take(rows, _nearest(x.shape[2], width, options), 2)


def _nearest(size: int, wanted: int, options: Record) -> Array:
    align_corners = bool(options["align_corners"])
    shift = np.float32(0.5 if options["half_pixel_centers"] else 0)
    places = (np.arange(wanted, dtype=np.float32) + shift) * _ratio(size, wanted, align_corners)
    rounded = np.floor(places + np.float32(0.5)) if align_corners else np.floor(places)
    return np.clip(rounded.astype(np.int64), 0, size - 1)

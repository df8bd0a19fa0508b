"""One item as a sample holds it."""

import numpy as np

from litesmith.data.images import channel_axis, picture
from litesmith.data.preparation import Preparation, normalize
from litesmith.errors import BadInput
from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Array, Tensor
from litesmith.run.litert.numpy_walker import dequantize
from litesmith.units import plain


def is_real(tensor: Tensor) -> bool:
    """True where an input stands for real numbers."""
    return DTYPES[tensor.dtype].is_float or tensor.quant is not None


def are_pixels(tensor: Tensor, array: Array) -> bool:
    """True for the bytes of an image where the input takes one."""
    return array.dtype == np.uint8 and picture(tensor) is not None


def prepare_item(tensor: Tensor, item: Array, preparation: Preparation) -> Array:
    """An item as a sample holds it: real numbers, or the input's own type where it has no scale."""
    if not is_real(tensor):
        return _in_own_type(tensor, item)
    if are_pixels(tensor, item) or preparation.is_chosen:
        return normalize(item, preparation.as_norm(), channel_axis(tensor))
    if tensor.quant is not None and item.dtype == tensor.dtype:
        return dequantize(item, tensor.quant)
    return item.astype(np.float32)


def _in_own_type(tensor: Tensor, item: Array) -> Array:
    if tensor.dtype == "string" or item.dtype == tensor.dtype:
        return np.asarray(item)
    if tensor.dtype == "int8" and are_pixels(tensor, item):
        return (item.astype(np.int16) - 128).astype(np.int8)
    own = item.astype(DTYPES[tensor.dtype].storage)
    if not np.array_equal(own, item):
        raise BadInput(
            "input {name!r} is {dtype}, which cannot hold the data's {dtype2} values; convert them",
            plain(tensor.name),
            tensor.dtype,
            item.dtype,
        )
    return own

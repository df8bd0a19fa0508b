"""Torch ops of sliding windows, matrix products and resampling; channels are the last dimension.

A window op sees its data through a permuted view, which torch takes for its own layout with
channels last: nothing is copied.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch.nn import functional

from litesmith.ir.types import Array, Op, Record
from litesmith.ir.window import Slide, pads, slides
from litesmith.numeric.arrays import integers
from litesmith.training.ops.elementwise_ops import TorchOp, apply_activation, options_of


def _channels_first(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, x.ndim - 1, *range(1, x.ndim - 1))


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, *range(2, x.ndim), 1)


def _amounts(padding: str, sizes: Sequence[int], moves: Sequence[Slide]) -> list[tuple[int, int]]:
    if padding == "VALID":
        return [(0, 0)] * len(moves)
    return [pads(padding, size, move) for size, move in zip(sizes, moves, strict=True)]


def _pad(x: torch.Tensor, amounts: Sequence[tuple[int, int]], fill: float = 0) -> torch.Tensor:
    """Pads the last dimensions; `amounts` names the outermost of them first."""
    flat = [amount for pair in reversed(amounts) for amount in pair]
    return functional.pad(x, flat, value=fill) if any(flat) else x


def _even(amounts: Sequence[tuple[int, int]]) -> list[int] | None:
    """The padding of each dimension where both sides get the same."""
    return [a for a, _ in amounts] if all(a == b for a, b in amounts) else None


def _convolve(
    op: Op, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Weight (out, in of a group, *window): (batch, *sizes, channels) -> the same."""
    options = options_of(op)
    moves = slides(options, weight.shape[2:], "dhw"[-(weight.ndim - 2) :])
    amounts = _amounts(options.word("padding"), x.shape[1:-1], moves)
    view, even = _channels_first(x), _even(amounts)
    if even is None:
        view, even = _pad(view, amounts), [0] * len(moves)
    convolve = functional.conv2d if len(moves) == 2 else functional.conv3d
    strides, dilations = [m.stride for m in moves], [m.dilation for m in moves]
    groups = x.shape[-1] // weight.shape[1]
    bias = None if bias is None else bias.reshape(-1)
    result = convolve(view, weight, bias, strides, even, dilations, groups)
    return _channels_last(apply_activation(op, result))


def convolution(*order: int) -> TorchOp:
    """A convolution; its weight's axes in torch's order."""

    def convolve(
        op: Op, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        return _convolve(op, x, weight.permute(order), bias)

    return convolve


def transposed(*order: int) -> TorchOp:
    """A transposed convolution; its weight's axes in torch's order."""

    def convolve(
        op: Op,
        shape: Array,
        weight: torch.Tensor,
        x: torch.Tensor,
        bias: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return _spread(op, shape, weight.permute(order), x, bias)

    return convolve


def _spread(
    op: Op, shape: Array, weight: torch.Tensor, x: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Weight (in, out, *window); the batch that the shape states is the data's own."""
    options, sizes = options_of(op), integers(shape)[1:-1]
    moves = slides(options, weight.shape[2:], "dhw"[-len(sizes) :])
    spread = functional.conv_transpose2d if len(sizes) == 2 else functional.conv_transpose3d
    strides, dilations = [m.stride for m in moves], [m.dilation for m in moves]
    full = spread(_channels_first(x), weight, None, strides, dilation=dilations)
    before = [a for a, _ in _amounts(options.word("padding"), sizes, moves)]
    # Places that no value reached hold zeros; what exceeds the size is cut off.
    cuts = [(-a, a + n - m) for a, n, m in zip(before, sizes, full.shape[2:], strict=True)]
    result = _channels_last(_pad(full, cuts))
    return apply_activation(op, result if bias is None else result + bias.reshape(-1))


def _pool_moves(options: Record) -> tuple[Slide, ...]:
    return slides(options, (options.integer("filter_height"), options.integer("filter_width")))


def max_pool(op: Op, x: torch.Tensor) -> torch.Tensor:
    options = options_of(op)
    moves = _pool_moves(options)
    amounts = _amounts(options.word("padding"), x.shape[1:3], moves)
    view, even = _channels_first(x), _even(amounts)
    if even is None:
        view, even = _pad(view, amounts, -torch.inf), [0, 0]
    windows, strides = [m.window for m in moves], [m.stride for m in moves]
    return _channels_last(apply_activation(op, functional.max_pool2d(view, windows, strides, even)))


def average_pool(op: Op, x: torch.Tensor) -> torch.Tensor:
    return apply_activation(op, _average_window(op, x))


def l2_pool(op: Op, x: torch.Tensor) -> torch.Tensor:
    return apply_activation(op, _average_window(op, x.square()).sqrt())


def _average_window(op: Op, x: torch.Tensor) -> torch.Tensor:
    """The mean of each window; padding does not count."""
    options = options_of(op)
    moves = _pool_moves(options)
    amounts = _amounts(options.word("padding"), x.shape[1:3], moves)
    windows, strides = [m.window for m in moves], [m.stride for m in moves]
    view, even = _channels_first(x), _even(amounts)
    if even is not None:
        pooled = functional.avg_pool2d(view, windows, strides, even, count_include_pad=False)
        return _channels_last(pooled)
    ones = _pad(x.new_ones(1, 1, *x.shape[1:3]), amounts)
    total = functional.avg_pool2d(_pad(view, amounts), windows, strides)
    return _channels_last(total / functional.avg_pool2d(ones, windows, strides))


def fully_connected(
    op: Op, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    options = options_of(op)
    if options.word("weights_format") != "DEFAULT":
        raise ValueError("shuffled weights")
    rows = x if x.shape[-1] == weight.shape[1] and x.ndim == 2 else x.reshape(-1, weight.shape[1])
    result = apply_activation(
        op, functional.linear(rows, weight, None if bias is None else bias.view(-1))
    )
    return result.reshape(*x.shape[:-1], -1) if options["keep_num_dims"] else result


def batch_matmul(op: Op, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    options = options_of(op)
    left = x.transpose(-1, -2) if options["adj_x"] else x
    return left @ (y.transpose(-1, -2) if options["adj_y"] else y)


def fixed_values(values: Array, device: torch.device) -> torch.Tensor:
    """Numbers that are the same in every run, copied to a device once."""
    return _copy_once(values.tobytes(), values.dtype.name, device)


@lru_cache(maxsize=256)
def _copy_once(content: bytes, dtype: str, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype).copy()).to(device)


def _ratio(size: int, wanted: int, options: Record) -> np.float32:
    if options["align_corners"] and wanted > 1:
        return np.float32(size - 1) / np.float32(wanted - 1)
    return np.float32(size) / np.float32(wanted)


def _interpolate(x: torch.Tensor, axis: int, wanted: int, options: Record) -> torch.Tensor:
    """Linear interpolation along one dimension; positions are float32, as in the runtime."""
    size = x.shape[axis]
    ratio = _ratio(size, wanted, options)
    places = np.arange(wanted, dtype=np.float32)
    if options["half_pixel_centers"]:
        places = (places + np.float32(0.5)) * ratio - np.float32(0.5)
    else:
        places = places * ratio
    lower, upper = (np.clip(edge(places), 0, size - 1) for edge in (np.floor, np.ceil))
    share = fixed_values(places - lower, x.device).to(x.dtype)
    share = share.reshape([-1 if at == axis else 1 for at in range(x.ndim)])
    low, high = (
        x.index_select(axis, fixed_values(ends.astype(np.int64), x.device))
        for ends in (lower, upper)
    )
    return torch.lerp(low, high, share)


def resize_bilinear(op: Op, x: torch.Tensor, size: Array) -> torch.Tensor:
    options, (height, width) = options_of(op), integers(size)
    return _interpolate(_interpolate(x, 1, height, options), 2, width, options)


def resize_nearest(op: Op, x: torch.Tensor, size: Array) -> torch.Tensor:
    options = options_of(op)
    for axis, wanted in enumerate(integers(size), 1):
        places = _nearest(x.shape[axis], wanted, options).astype(np.int64)
        x = x.index_select(axis, fixed_values(places, x.device))
    return x


def _nearest(size: int, wanted: int, options: Record) -> Array:
    shift = np.float32(0.5 if options["half_pixel_centers"] else 0)
    places = (np.arange(wanted, dtype=np.float32) + shift) * _ratio(size, wanted, options)
    return np.clip(
        np.floor(places + np.float32(0.5 if options["align_corners"] else 0)), 0, size - 1
    )


LAYERS: dict[str, TorchOp] = {
    "AVERAGE_POOL_2D": average_pool,
    "BATCH_MATMUL": batch_matmul,
    "CONV_2D": convolution(0, 3, 1, 2),
    "CONV_3D": convolution(4, 3, 0, 1, 2),
    "CONV_3D_TRANSPOSE": transposed(4, 3, 0, 1, 2),
    "DEPTHWISE_CONV_2D": convolution(3, 0, 1, 2),
    "FULLY_CONNECTED": fully_connected,
    "L2_POOL_2D": l2_pool,
    "MAX_POOL_2D": max_pool,
    "RESIZE_BILINEAR": resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "TRANSPOSE_CONV": transposed(3, 0, 1, 2),
}

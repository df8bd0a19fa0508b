"""Rules for images of another size: by LiteRT's own ops where they are exact, else by products."""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import positive
from litesmith.ir.types import Array, Tensor


class Axis(NamedTuple):
    """How one axis is resized, from `before` values to `size`.

    how     how the source counts coordinates, as `coordinate_transformation_mode` names it
    region  where the kept part begins and ends, as shares of the axis; None where all is kept
    """

    how: str
    before: int
    size: int
    scale: float
    region: tuple[float, float] | None = None


def resize(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    sizes, scales = _target(lower, node, x)
    how = node.word(
        "coordinate_transformation_mode", "half_pixel" if lower.opset > 10 else "asymmetric"
    )
    axes = _list_axes(how, x, sizes, scales)
    if how == "tf_crop_and_resize":
        regions = _regions(lower, node, len(axes))
        axes = [a._replace(region=region) for a, region in zip(axes, regions, strict=True)]
        return _by_matrices(lower, node, x, axes, range(len(axes)))
    moved = [place for place, a in enumerate(axes) if a.size != a.before or a.scale != 1]
    if not moved:
        return x
    return _own_op(lower, node, x, axes) or _by_matrices(lower, node, x, axes, moved)


def _list_axes(how: str, x: Tensor, sizes: Sequence[int], scales: Sequence[float]) -> list[Axis]:
    return [Axis(how, *row) for row in zip(x.shape, sizes, scales, strict=True)]


def _regions(lower: Lowering, node: Node, rank: int) -> list[tuple[float, float]]:
    """The beginning and the end of the kept part of each axis."""
    axes = [positive(a, rank) for a in node.integers("axes", range(rank))]
    given = lower.known(lower.inputs(node, 2)[1], "regions").reshape(2, len(axes))
    regions = [(0.0, 1.0)] * rank
    for axis, begin, end in zip(axes, *given.tolist(), strict=True):
        regions[axis] = float(begin), float(end)
    return regions


def upsample(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    scales = node.numbers("scales") or tuple(
        lower.known(lower.inputs(node, 2)[1], "scales").tolist()
    )
    sizes = tuple(floor(d * s) for d, s in zip(x.shape, scales, strict=True))
    plain = Node(
        "Resize",
        node.inputs,
        node.outputs,
        {"mode": node.word("mode", "nearest"), "nearest_mode": "floor"},
    )
    axes = _list_axes("asymmetric", x, sizes, scales)
    moved = [place for place, a in enumerate(axes) if a.size != a.before]
    return _own_op(lower, plain, x, axes) or _by_matrices(lower, plain, x, axes, moved)


def _target(lower: Lowering, node: Node, x: Tensor) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Sizes and scales of all axes."""
    rank = len(x.shape)
    inputs = lower.inputs(node, 4)
    scale, size = (inputs[1], None) if lower.opset < 11 else (inputs[2], inputs[3])
    axes = [a % rank for a in node.integers("axes", range(rank))]
    sizes, scales = list(x.shape), [1.0] * rank
    told, plain = lower.told(node), "keep_aspect_ratio_policy" not in node.settings
    if size is not None and size.elements:
        if told is not None and plain and lower.is_computed(node, 3):
            wanted = tuple(told[a] for a in axes)
        else:
            wanted = lower.integers(size, "sizes")
        ratios = [w / x.shape[a] for w, a in zip(wanted, axes, strict=True)]
        policy = node.word("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(ratios) if policy == "not_larger" else max(ratios)
            ratios = [one] * len(ratios)
            wanted = tuple(floor(one * x.shape[a] + 0.5) for a in axes)
        for axis, w, ratio in zip(axes, wanted, ratios, strict=True):
            sizes[axis], scales[axis] = w, ratio
    elif scale is not None and scale.elements:
        for axis, s in zip(axes, lower.known(scale, "scales").reshape(-1).tolist(), strict=True):
            sizes[axis], scales[axis] = floor(x.shape[axis] * s), s
    else:
        raise Unsupported("it has neither sizes nor scales")
    return tuple(sizes), tuple(scales)


def _own_op(lower: Lowering, node: Node, x: Tensor, axes: Sequence[Axis]) -> Tensor | None:
    """The op that LiteRT has for it, where that computes the same."""
    how, mode, sizes = axes[0].how, node.word("mode", "nearest"), [a.size for a in axes[2:]]
    exact = all(abs(a.scale - a.size / a.before) < 1e-6 for a in axes)
    if len(axes) != 4 or any(a.size != a.before for a in axes[:2]):
        return None
    if not exact or x.dtype != "float32":
        return None
    if node.integer("antialias") and any(a.scale < 1 for a in axes):
        return None
    options: dict[str, Any] | None = {
        "half_pixel": {"half_pixel_centers": True, "align_corners": False},
        "pytorch_half_pixel": {"half_pixel_centers": True, "align_corners": False},
        "asymmetric": {"half_pixel_centers": False, "align_corners": False},
        "align_corners": {"half_pixel_centers": False, "align_corners": True},
    }.get(how)
    if options is None or (how == "pytorch_half_pixel" and 1 in sizes):
        return None
    if how == "align_corners" and 1 in (*sizes, *x.shape[2:]):
        return None
    if mode == "linear":
        kind = "RESIZE_BILINEAR"
    elif mode == "nearest" and all(_is_plain_nearest(node, a) for a in axes[2:]):
        kind = "RESIZE_NEAREST_NEIGHBOR"
        options = {"half_pixel_centers": False, "align_corners": False}
    else:
        return None
    made = lower.op(kind, lower.channels_last(x), np.array(sizes, np.int32), **options)
    return lower.channels_first(made)


def _is_plain_nearest(node: Node, axis: Axis) -> bool:
    """True where each pixel comes from floor(place × old / new), as LiteRT's op has it."""
    _, before, size, *_ = axis
    ours = _nearest(node, axis._replace(scale=size / before))
    return np.array_equal(ours, np.minimum(np.arange(size) * before // size, before - 1))


def _places(axis: Axis) -> Array:
    """The position of each value of the new axis on the old one."""
    how, before, size, scale, region = axis
    place = np.arange(size, dtype=np.float64)
    length = before * scale
    if how == "half_pixel":
        return (place + 0.5) / scale - 0.5
    if how == "half_pixel_symmetric":
        adjustment = size / length
        centre = before / 2
        return centre * (1 - adjustment) + (place + 0.5) / scale - 0.5
    if how == "pytorch_half_pixel":
        return (place + 0.5) / scale - 0.5 if size > 1 else np.zeros(size)
    if how == "align_corners":
        return place * (before - 1) / (length - 1) if length != 1 else np.zeros(size)
    if how == "asymmetric":
        return place / scale
    if how == "tf_crop_and_resize" and region is not None:
        start, end = region
        if size == 1:
            return np.full(1, 0.5 * (start + end) * (before - 1))
        return start * (before - 1) + place * (end - start) * (before - 1) / (size - 1)
    raise Unsupported("coordinate_transformation_mode {how}", how)


def _nearest(node: Node, axis: Axis) -> Array:
    places = _places(axis)
    way = node.word("nearest_mode", "round_prefer_floor")
    rounded = {
        "round_prefer_floor": np.ceil(places - 0.5),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }[way]
    return rounded.clip(0, axis.before - 1).astype(np.int64)


def _by_matrices(
    lower: Lowering, node: Node, x: Tensor, axes: Sequence[Axis], moved: Sequence[int]
) -> Tensor:
    """One axis after another, by a product with the weights of its old values."""
    rank, mode = len(axes), node.word("mode", "nearest")
    crops = axes[0].how == "tf_crop_and_resize"
    outside = np.ones([a.size for a in axes], bool) if crops else None
    for place in moved:
        axis = axes[place]
        if outside is not None:
            places = _places(axis)
            good = (places >= 0) & (places <= axis.before - 1)
            outside &= good.reshape([-1 if i == place else 1 for i in range(rank)])
        if mode == "nearest":
            x = lower.op("GATHER", x, _nearest(node, axis).astype(np.int32), axis=place)
            continue
        matrix = _weights(node, axis, mode)
        order = [i for i in range(rank) if i != place] + [place]
        turned = lower.cast(lower.transpose(x, order), "float32")
        made = lower.op("FULLY_CONNECTED", turned, matrix, None, keep_num_dims=rank > 2)
        x = lower.cast(lower.transpose(made, [order.index(i) for i in range(rank)]), x.dtype)
    if outside is not None and not outside.all():
        value = np.array(node.number("extrapolation_value"), x.dtype)
        x = lower.op("SELECT_V2", outside, x, value)
    return x


def _weights(node: Node, axis: Axis, mode: str) -> Array:
    """The weight of each old value in each new one."""
    places, before = _places(axis), axis.before
    soft = bool(node.integer("antialias"))
    narrow = min(axis.scale, 1.0) if soft else 1.0
    reach = ceil({"linear": 1, "cubic": 2}[mode] / narrow)
    matrix = np.zeros((axis.size, before))
    for row, place in enumerate(places.tolist()):
        before_it = int(place // 1)
        taps = np.arange(before_it - reach + 1, before_it + reach + 1)
        shares = _filter(np.abs(taps - place) * narrow, mode, node.number("cubic_coeff_a", -0.75))
        if soft:
            shares = shares / shares.sum()
        if node.integer("exclude_outside"):
            shares = np.where((taps >= 0) & (taps < before), shares, 0)
            shares = shares / (shares.sum() or 1)
        np.add.at(matrix[row], taps.clip(0, before - 1), shares)
    return matrix.astype(np.float32)


def _filter(distance: Array, mode: str, a: float) -> Array:
    if mode == "linear":
        return np.maximum(1 - distance, 0)
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


RULES: dict[str, Rule] = {"Resize": resize, "Upsample": upsample}

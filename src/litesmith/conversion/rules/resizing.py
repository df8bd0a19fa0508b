"""Rules for images of another size: by LiteRT's own ops where they are exact, else by products."""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import positive
from litesmith.ir.types import Array, Tensor


def resize(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    rank = len(x.shape)
    sizes, scales = _target(lower, node, x)
    how = node.word(
        "coordinate_transformation_mode", "half_pixel" if lower.opset > 10 else "asymmetric"
    )
    mode = node.word("mode", "nearest")
    moved = [axis for axis in range(rank) if sizes[axis] != x.shape[axis] or scales[axis] != 1]
    if how == "tf_crop_and_resize":
        regions = _regions(lower, node, rank)
        return _by_matrices(lower, x, list(range(rank)), node, sizes, scales, how, regions)
    if not moved:
        return x
    quick = _own_op(lower, node, x, sizes, scales, how, mode)
    return quick or _by_matrices(lower, x, moved, node, sizes, scales, how, None)


def _regions(lower: Lowering, node: Node, rank: int) -> Array:
    """The beginnings of the kept part on every axis, then its ends."""
    axes = [positive(a, rank) for a in node.integers("axes", range(rank))]
    given = lower.known(lower.inputs(node, 2)[1], "regions").reshape(2, len(axes))
    whole = np.array([[0.0] * rank, [1.0] * rank])
    whole[:, axes] = given
    return whole.reshape(-1)


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
    quick = _own_op(lower, plain, x, sizes, scales, "asymmetric", node.word("mode", "nearest"))
    moved = [axis for axis in range(len(sizes)) if sizes[axis] != x.shape[axis]]
    return quick or _by_matrices(lower, x, moved, plain, sizes, scales, "asymmetric", None)


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


def _own_op(
    lower: Lowering,
    node: Node,
    x: Tensor,
    sizes: Sequence[int],
    scales: Sequence[float],
    how: str,
    mode: str,
) -> Tensor | None:
    """The op that LiteRT has for it, where that computes the same."""
    exact = all(abs(s - n / d) < 1e-6 for s, n, d in zip(scales, sizes, x.shape, strict=True))
    if len(x.shape) != 4 or sizes[:2] != x.shape[:2] or not exact or x.dtype != "float32":
        return None
    if node.integer("antialias") and any(s < 1 for s in scales):
        return None
    options: dict[str, Any] | None = {
        "half_pixel": {"half_pixel_centers": True, "align_corners": False},
        "pytorch_half_pixel": {"half_pixel_centers": True, "align_corners": False},
        "asymmetric": {"half_pixel_centers": False, "align_corners": False},
        "align_corners": {"half_pixel_centers": False, "align_corners": True},
    }.get(how)
    if options is None or (how == "pytorch_half_pixel" and 1 in sizes[2:]):
        return None
    if how == "align_corners" and 1 in (*sizes[2:], *x.shape[2:]):
        return None
    if mode == "linear":
        kind = "RESIZE_BILINEAR"
    elif mode == "nearest" and _is_same_nearest(node, how, sizes, x.shape):
        kind = "RESIZE_NEAREST_NEIGHBOR"
        options = {"half_pixel_centers": False, "align_corners": False}
    else:
        return None
    made = lower.op(kind, lower.channels_last(x), np.array(sizes[2:], np.int32), **options)
    return lower.channels_first(made)


def _is_same_nearest(node: Node, how: str, sizes: Sequence[int], old: Sequence[int]) -> bool:
    """True where each pixel comes from floor(place × old / new), as LiteRT's op has it."""
    for size, before in zip(sizes[2:], old[2:], strict=True):
        ours = _nearest(node, how, size, before, size / before)
        if not np.array_equal(ours, np.minimum(np.arange(size) * before // size, before - 1)):
            return False
    return True


def _places(
    how: str, size: int, before: int, scale: float, region: tuple[float, float] | None
) -> Array:
    """The position of each value of the new axis on the old one."""
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


def _nearest(
    node: Node,
    how: str,
    size: int,
    before: int,
    scale: float,
    region: tuple[float, float] | None = None,
) -> Array:
    places = _places(how, size, before, scale, region)
    way = node.word("nearest_mode", "round_prefer_floor")
    rounded = {
        "round_prefer_floor": np.ceil(places - 0.5),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }[way]
    return rounded.clip(0, before - 1).astype(np.int64)


def _by_matrices(
    lower: Lowering,
    x: Tensor,
    axes: Sequence[int],
    node: Node,
    sizes: Sequence[int],
    scales: Sequence[float],
    how: str,
    regions: Array | None,
) -> Tensor:
    """One axis after another, by a product with the weights of its old values."""
    rank, mode = len(x.shape), node.word("mode", "nearest")
    outside = np.ones(sizes, bool) if how == "tf_crop_and_resize" else None
    start = x
    for axis in axes:
        region = None if regions is None else (float(regions[axis]), float(regions[axis + rank]))
        before = start.shape[axis]
        if outside is not None:
            places = _places(how, sizes[axis], before, scales[axis], region)
            good = (places >= 0) & (places <= before - 1)
            outside &= good.reshape([-1 if i == axis else 1 for i in range(rank)])
        if mode == "nearest":
            picked = _nearest(node, how, sizes[axis], before, scales[axis], region)
            x = lower.op("GATHER", x, picked.astype(np.int32), axis=axis)
            continue
        matrix = _weights(node, how, sizes[axis], before, scales[axis], region, mode)
        order = [i for i in range(rank) if i != axis] + [axis]
        turned = lower.cast(lower.transpose(x, order), "float32")
        made = lower.op("FULLY_CONNECTED", turned, matrix, None, keep_num_dims=rank > 2)
        x = lower.cast(lower.transpose(made, [order.index(i) for i in range(rank)]), x.dtype)
    if outside is not None and not outside.all():
        value = np.array(node.number("extrapolation_value"), x.dtype)
        x = lower.op("SELECT_V2", outside, x, value)
    return x


def _weights(
    node: Node,
    how: str,
    size: int,
    before: int,
    scale: float,
    region: tuple[float, float] | None,
    mode: str,
) -> Array:
    """The weight of each old value in each new one."""
    places = _places(how, size, before, scale, region)
    soft = bool(node.integer("antialias"))
    narrow = min(scale, 1.0) if soft else 1.0
    reach = ceil({"linear": 1, "cubic": 2}[mode] / narrow)
    matrix = np.zeros((size, before))
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

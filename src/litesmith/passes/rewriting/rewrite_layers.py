"""Rewrites of layers: convolutions, fully connected layers, means, pools and sizes."""

from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Array, Op, Tensor, constant_numbers
from litesmith.ir.window import pads, slides
from litesmith.passes.rewriting.rewrite_parts import (
    Parts,
    Unfit,
    Way,
    floats,
    front_axis,
    given,
    int32,
    integers,
    refuse_free,
    refuse_shapeless,
    settings,
    target_shape,
)
from litesmith.phrases import phrase

# MediaPipe's own op: a transposed convolution with a bias. By its CPU code
# (util/tflite/operations/transpose_conv_bias.cc), window − (size − 1) % stride − 1 places are cut
# off, half of them in front; TRANSPOSE_CONV cuts off window − stride. Both are one only where the
# stride divides the size and the window is no smaller than it.
_TRANSPOSED = "Convolution2DTransposeBias"
_PADDINGS = {1: "SAME", 2: "VALID"}

# The types of data and weights of convolutions that may become fully connected layers, and the
# version of FULLY_CONNECTED whose output may keep the dimensions of its data.
_CONNECTED = {("float32", "float32"): 5, ("int8", "int8"): 5, ("int8", "int4"): 10}

# XNNPACK's depthwise kernels are made for windows of up to this many places.
_MOST_PLACES = 25

# The version of TRANSPOSE_CONV that brought the bias.
_WITH_BIAS = 3


def _mean_axes(op: Op) -> tuple[Tensor, list[int]]:
    source = given(op, 0)
    rank = len(source.shape)
    return source, sorted({front_axis(axis, rank) for axis in integers(op, 1)})


def _mean_as_pool(parts: Parts, op: Op) -> None:
    source, axes = _mean_axes(op)
    if len(source.shape) != 4 or axes != [1, 2]:
        raise Unfit(phrase("it is no mean over height and width of an image"))
    if -1 in (source.dynamic or ())[1:3]:
        raise Unfit(phrase("height or width is free"))
    if source.shape[1:3] == (1, 1):  # XNNPACK gives zeros for two such pools in a row
        parts.end("RESHAPE", source, target_shape(op.outputs[0]))
        return
    window = {"filter_height": source.shape[1], "filter_width": source.shape[2]}
    stride = {"stride_h": source.shape[1], "stride_w": source.shape[2]}
    if settings(op).fields.get("keep_dims"):
        parts.end("AVERAGE_POOL_2D", source, padding="VALID", **window, **stride)
    else:
        pooled = parts.add("AVERAGE_POOL_2D", source, padding="VALID", **window, **stride)
        parts.end("RESHAPE", pooled, target_shape(op.outputs[0]))


def _pool_as_mean(parts: Parts, op: Op) -> None:
    """A pool over all places of an image, padded or not: only places that there are count."""
    source, target, found = given(op, 0), op.outputs[0], settings(op)
    refuse_shapeless(source, target)
    refuse_free(source)
    window = found.fields.get("filter_height", 1), found.fields.get("filter_width", 1)
    if target.shape[1:3] != (1, 1) or window != source.shape[1:3]:
        raise Unfit(phrase("its window is not the whole image"))
    if found.fields.get("fused_activation_function", "NONE") != "NONE":
        raise Unfit(phrase("it has an activation of its own"))
    parts.end("MEAN", source, int32([1, 2]), keep_dims=True)


def _pool_as_depthwise(parts: Parts, op: Op) -> None:
    """A convolution of each channel with equal weights; borders that are padded count less."""
    source, found = given(op, 0), settings(op)
    refuse_free(source)
    size = found.integer("filter_height"), found.integer("filter_width")
    places = size[0] * size[1]
    if places > _MOST_PLACES:
        raise Unfit(phrase("a window of {places} places is slow as a convolution", places))
    down, across = slides(found, size)
    borders = zip(source.shape[1:3], (down, across), strict=True)
    if any(sum(pads(found.word("padding"), *border)) for border in borders):
        raise Unfit(phrase("it is padded, and averages only places that there are"))
    channels = source.shape[3]
    parts.end(
        "DEPTHWISE_CONV_2D",
        source,
        np.full((1, *size, channels), 1 / places, np.float32),
        np.zeros(channels, np.float32),
        padding="VALID",
        stride_h=down.stride,
        stride_w=across.stride,
        fused_activation_function=found.word("fused_activation_function"),
    )


def _mean_with_dims(parts: Parts, op: Op) -> None:
    source, axes = _mean_axes(op)
    if settings(op).fields.get("keep_dims"):
        return
    kept = parts.add("MEAN", source, int32(axes), keep_dims=True)
    parts.end("RESHAPE", kept, target_shape(op.outputs[0]))


def _joined_mean(parts: Parts, op: Op) -> None:
    """A mean that follows a mean or a TRANSPOSE reads the input of that op instead."""
    source, axes = _mean_axes(op)
    before = parts.near.maker(source, "MEAN", "TRANSPOSE")
    if before is None or settings(op).fields.get("keep_dims"):
        return
    inner = given(before, 0)
    if before.kind == "MEAN":
        gone = set(_mean_axes(before)[1])
        order = [axis for axis in range(len(inner.shape)) if axis not in gone]
        if settings(before).fields.get("keep_dims"):
            order = [*range(len(inner.shape))]
    else:
        gone = set[int]()
        order = [front_axis(axis, len(inner.shape)) for axis in integers(before, 1)]
    reduced = {order[axis] for axis in axes} | gone
    kept = [axis for axis in order if axis not in reduced]
    if kept != sorted(kept):
        raise Unfit(phrase("what stays of its dimensions would be in another order"))
    parts.end("MEAN", inner, int32(sorted(reduced)))


def _layer(op: Op) -> tuple[Array, Tensor | None]:
    """The weights of a layer, which must be constants, and its bias."""
    weights = floats(given(op, 1))
    if weights is None:
        raise Unfit(phrase("its weights are computed, or not float32"))
    return weights, op.inputs[2] if len(op.inputs) > 2 else None


def _fully_connected_as_conv(parts: Parts, op: Op) -> None:
    """A window of one place over the rows, laid out as an image one place high."""
    source, (weights, bias) = given(op, 0), _layer(op)
    refuse_free(source)
    if settings(op).fields.get("weights_format", "DEFAULT") != "DEFAULT":
        raise Unfit(phrase("its weights are shuffled"))
    units, depth = weights.shape
    rows = source.elements // max(depth, 1)
    fused = settings(op).word("fused_activation_function")
    image = parts.add("RESHAPE", source, int32((1, 1, rows, depth)))
    shaped = weights.reshape(units, 1, 1, depth)
    bias = np.zeros(units, np.float32) if bias is None else bias
    made = parts.add("CONV_2D", image, shaped, bias, fused_activation_function=fused)
    parts.end("RESHAPE", made, target_shape(op.outputs[0]))


def _without_reshape(parts: Parts, op: Op) -> None:
    """A fully connected layer flattens its input itself, so a RESHAPE before it can go."""
    flat = given(op, 0)
    before = parts.near.makers.get(flat)
    keeps = bool(settings(op).fields.get("keep_num_dims"))
    if before is None or before.kind not in ("RESHAPE", "SQUEEZE"):
        return
    if keeps and len(flat.shape) != 2:
        return
    source = given(before, 0)
    if source.shape[-1:] != flat.shape[-1:]:
        return
    parts.again(source, *op.inputs[1:], options=settings(op).set(keep_num_dims=False))


def _conv_of_one_place(parts: Parts, op: Op) -> None:
    """A RESHAPE of a convolution with a single output place becomes a fully connected layer."""
    before = parts.near.maker(op.inputs[0], "CONV_2D")
    if before is None:
        return
    source, made, target = given(before, 0), before.outputs[0], op.outputs[0]
    weights, bias = _layer(before)
    single = source.shape[:3] == made.shape[:3] == (1, 1, 1) and weights.shape[1:3] == (1, 1)
    if not single or target.shape != (1, made.shape[-1]) or made.dynamic or source.dynamic:
        return
    fused = settings(before).word("fused_activation_function")
    flat = weights.reshape(weights.shape[0], -1)
    parts.end("FULLY_CONNECTED", source, flat, bias, fused_activation_function=fused)


def _conv_as_connected(parts: Parts, op: Op) -> None:
    """A window of one place, at every place, multiplies the channels of each by one matrix: of
    floats, or of int8 data with weights of 8 or 4 bits."""
    source, weight, found = given(op, 0), given(op, 1), settings(op)
    if weight.shape[1:3] != (1, 1):
        return
    refuse_shapeless(source)
    if (found.fields.get("stride_h", 1), found.fields.get("stride_w", 1)) != (1, 1):
        raise Unfit(phrase("its window skips places"))
    if weight.shape[-1] != source.shape[-1]:
        raise Unfit(phrase("its channels are in groups"))
    if weight.data is None or weight.sparsity or (source.dtype, weight.dtype) not in _CONNECTED:
        raise Unfit(phrase("its weights are computed, or of a type that is not taken over"))
    shape = weight.shape[0], weight.shape[-1]
    data = weight.data if DTYPES[weight.dtype].is_packed else weight.data.reshape(shape)
    parts.end(
        "FULLY_CONNECTED",
        source,
        replace(weight, shape=shape, data=data),
        *op.inputs[2:],
        fused_activation_function=found.word("fused_activation_function"),
        keep_num_dims=True,
        version=_CONNECTED[source.dtype, weight.dtype],
    )


def _batch_matmul(parts: Parts, op: Op) -> None:
    """A product with a constant matrix becomes a fully connected layer over rows."""
    source, held = given(op, 0), floats(given(op, 1))
    if held is None or held.ndim < 2 or prod(held.shape[:-2]) != 1:
        raise Unfit(phrase("it multiplies by what is computed, or by several matrices"))
    if settings(op).fields.get("adj_x"):
        raise Unfit(phrase("it turns what it multiplies"))
    matrix = held.reshape(held.shape[-2:])
    weights = matrix if settings(op).fields.get("adj_y") else matrix.T
    keeps = len(source.shape) > 2
    parts.end(
        "FULLY_CONNECTED",
        source,
        np.ascontiguousarray(weights),
        np.zeros(len(weights), np.float32),
        keep_num_dims=keeps,
        version=5 if keeps else 1,
    )


def _channels_padded(parts: Parts, op: Op) -> None:
    """Zero channels as those of a convolution that passes the others on."""
    source, widths = given(op, 0), integers(op, 1)
    if len(source.shape) != 4 or not any(widths[6:]):
        return
    depth, (before, behind) = source.shape[3], widths[6:]
    weights = np.zeros((before + depth + behind, 1, 1, depth), np.float32)
    weights[before : before + depth, 0, 0] = np.eye(depth, dtype=np.float32)
    bias = np.zeros(weights.shape[0], np.float32)
    if any(widths[:6]):
        others = np.array([*widths[:6], 0, 0], np.int32).reshape(4, 2)
        source = parts.add("PAD", source, others)
    parts.end("CONV_2D", source, weights, bias, padding="VALID")


class _Transposed(NamedTuple):
    """MediaPipe's transposed convolution as the inputs and options of the stock one."""

    inputs: tuple[Array | Tensor, ...]
    bias: Tensor
    padding: str
    strides: tuple[int, int]


def _transposed(op: Op) -> _Transposed:
    """The op's own options: padding and both strides, as int32."""
    if op.custom != _TRANSPOSED:
        raise Unfit(phrase("nothing is known about it"))
    held = _custom_numbers(op)
    source, window, target = given(op, 0), given(op, 1), op.outputs[0]
    if len(held) < 3 or held[0] not in _PADDINGS or min(held[1:3]) < 1 or len(window.shape) != 4:
        raise Unfit(phrase("its options are of another sort than MediaPipe's"))
    refuse_free(source, target)
    padding, across, down = _PADDINGS[held[0]], *held[1:3]
    if padding == "VALID":
        raise Unfit(phrase("it is padded VALID, of which no model was seen"))
    if target.shape[1:3] != (source.shape[1] * down, source.shape[2] * across):
        raise Unfit(phrase("its output is not its input by its strides"))
    sizes = zip(source.shape[1:3], window.shape[1:3], (down, across), strict=True)
    if any(size % stride or reach < stride for size, reach, stride in sizes):
        raise Unfit(phrase("MediaPipe pads it in another way than TRANSPOSE_CONV, by its sizes"))
    inputs = (int32(target.shape), window, source)
    return _Transposed(inputs, given(op, 2), padding, (down, across))


def _custom(parts: Parts, op: Op) -> None:
    found = _transposed(op)
    down, across = found.strides
    parts.end(
        "TRANSPOSE_CONV",
        *found.inputs,
        found.bias,
        version=_WITH_BIAS,
        padding=found.padding,
        stride_h=down,
        stride_w=across,
    )


def _custom_and_add(parts: Parts, op: Op) -> None:
    found = _transposed(op)
    down, across = found.strides
    made = parts.add(
        "TRANSPOSE_CONV", *found.inputs, padding=found.padding, stride_h=down, stride_w=across
    )
    parts.end("ADD", made, found.bias)


def _custom_numbers(op: Op) -> list[int]:
    """The custom options as int32 numbers; none where they are something else."""
    stored = op.rest.get("custom_options")
    if not isinstance(stored, bytes | np.ndarray):
        return []
    content = bytes(stored)
    return [int(n) for n in np.frombuffer(content, "<i4")] if len(content) % 4 == 0 else []


def _corner_centres(parts: Parts, op: Op) -> None:
    """Half-pixel centres change nothing where each place is repeated a whole number of times."""
    source, target, found = given(op, 0), op.outputs[0], settings(op)
    if not found.fields.get("half_pixel_centers") or constant_numbers(given(op, 1)) is None:
        return
    refuse_shapeless(source, target)
    refuse_free(source)
    before, after = source.shape[1:3], target.shape[1:3]
    whole = all(a and b % a == 0 for a, b in zip(before, after, strict=True))
    if not (before == (1, 1) or (op.kind == "RESIZE_NEAREST_NEIGHBOR" and whole)):
        raise Unfit(phrase("without half-pixel centres it would give other values"))
    parts.end(op.kind, source, given(op, 1))


def _repeated(parts: Parts, op: Op) -> None:
    """Each value beside itself, then each row: channels lie last, so that both are CONCATENATION
    with a reshape behind it."""
    source, target = given(op, 0), op.outputs[0]
    refuse_shapeless(source, target)
    refuse_free(source)
    before, after = source.shape[1:3], target.shape[1:3]
    if not all(_repeats(op, *sizes) for sizes in zip(before, after, strict=True)):
        raise Unfit(phrase("it does not repeat each place equally often"))
    down, across = (b // a for a, b in zip(before, after, strict=True))
    count, high, _, channels = target.shape
    wide = parts.add("CONCATENATION", *[source] * across, axis=3)
    rows = parts.add("RESHAPE", wide, int32((count, high // down, after[1] * channels)))
    parts.end("RESHAPE", parts.add("CONCATENATION", *[rows] * down, axis=2), int32(target.shape))


def _repeats(op: Op, before: int, after: int) -> bool:
    """True where the kernel, which computes places in float32, takes each place equally often."""
    found = settings(op).fields
    if not before or after % before or found.get("align_corners"):
        return False
    centre = np.float32(0.5 if found.get("half_pixel_centers") else 0)
    scale = np.float32(before) / np.float32(after)
    places = np.floor((np.arange(after, dtype=np.float32) + centre) * scale)
    return bool((places == np.arange(after) // (after // before)).all())


_AS_CONNECTED = Way(_conv_of_one_place, phrase("FULLY_CONNECTED with the convolution before it"))
_AT_CORNERS = Way(
    _corner_centres, phrase("the same without half-pixel centres, exactly"), moves=True
)

LAYERS: dict[str, Way] = {
    "AVERAGE_POOL_2D:DEPTHWISE_CONV_2D": Way(
        _pool_as_depthwise,
        phrase("DEPTHWISE_CONV_2D with equal weights, to the rounding of float32"),
    ),
    "AVERAGE_POOL_2D:MEAN": Way(
        _pool_as_mean, phrase("MEAN over height and width, to the rounding of float32")
    ),
    "BATCH_MATMUL": Way(_batch_matmul, phrase("FULLY_CONNECTED, to the rounding of float32")),
    "CONV_2D:FULLY_CONNECTED": Way(
        _conv_as_connected,
        phrase("FULLY_CONNECTED at every place, to the rounding of float32"),
        moves=True,
    ),
    "CUSTOM": Way(_custom, phrase("TRANSPOSE_CONV with a bias, to the rounding of float32")),
    "CUSTOM:ADD": Way(
        _custom_and_add, phrase("TRANSPOSE_CONV, and ADD of its bias, to the rounding of float32")
    ),
    "FULLY_CONNECTED": Way(
        _fully_connected_as_conv, phrase("CONV_2D over its rows, to the rounding of float32")
    ),
    "MEAN": Way(_mean_as_pool, phrase("AVERAGE_POOL_2D, to the rounding of float32")),
    "MEAN:JOIN": Way(_joined_mean, phrase("one MEAN, to the rounding of float32")),
    "MEAN:KEEP_DIMS": Way(
        _mean_with_dims, phrase("MEAN that keeps dimensions, and RESHAPE, exactly")
    ),
    "PAD": Way(
        _channels_padded, phrase("CONV_2D that passes channels on and adds empty ones, exactly")
    ),
    "RESHAPE:CONV_2D": _AS_CONNECTED,
    "RESHAPE:FULLY_CONNECTED": Way(
        _without_reshape, phrase("reading what was flattened for it, exactly"), at="FULLY_CONNECTED"
    ),
    "RESIZE_BILINEAR": _AT_CORNERS,
    "RESIZE_NEAREST_NEIGHBOR": _AT_CORNERS,
    "RESIZE_NEAREST_NEIGHBOR:CONCATENATION": Way(
        _repeated, phrase("CONCATENATION with itself along both sides, exactly")
    ),
    "SQUEEZE:CONV_2D": _AS_CONNECTED,
}

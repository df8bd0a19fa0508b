"""The ops that Arm's Ethos-U55 and U65 take by Vela's own report, for machines without Vela."""

from math import prod

import numpy as np

from litesmith.ir.types import Op
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import (
    constant,
    given,
    makes,
    numbers,
    options,
    reads,
    same_scale,
    settings_constant,
    weights,
)
from litesmith.run.rules.rule_row import Rules, data, takes, told_if, when

_NARROW = ("int8", "uint8", "int16")
_BY_CHANNEL = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
_UNSCALED = ("ARG_MAX", "EXPAND_DIMS", "MIRROR_PAD", "PAD", "PADV2", "QUANTIZE", "TRANSPOSE")
_UNSCALED_INT32 = ("NEG", "SUM")
_MOST_WEIGHT = 127 * 65_536
_MOST_POOLED = 65_536
_MOST_REDUCED = {"int8": 2**24, "uint8": 2**23, "int16": 2**16}

_narrow = reads(*_NARROW)
_narrow_out = makes(*_NARROW)
_bytes = reads("int8", "uint8")
_wide = reads(*_NARROW, "int32")
_integers = reads(*_NARROW, "int32", "int64")


_shaped = when(
    lambda op: any(not t.shape and not t.is_const for t in (*data(op), *op.outputs)),
    phrase("{kind} on a single value; it takes values with dimensions"),
)


def _scaled(op: Op) -> str:
    plain = op.kind in _UNSCALED_INT32 and data(op)[0].dtype == "int32"
    if plain or op.kind in _UNSCALED:
        return ""
    for tensor in (*data(op), *op.outputs):
        if tensor.quant is None or not tensor.quant.scale.size:
            return phrase("{kind} on values without a scale; it takes quantized ones only", op.kind)
        if tensor.quant.per_channel and op.kind not in _BY_CHANNEL:
            return phrase("{kind} on values with a scale a channel; it takes one scale", op.kind)
    return ""


def _short_stride(op: Op) -> str:
    """Longer strides are only for windows that are neither dilated nor padded."""
    found = options(op)
    longest = max(found.integer("stride_h"), found.integer("stride_w"))
    dilated = any(found.fields.get(f"dilation_{axis}_factor", 1) != 1 for axis in "hw")
    if longest <= 3 or (not dilated and found["padding"] == "VALID"):
        return ""
    return phrase(
        "{kind} with stride {longest}; it takes up to 3 where there is padding", op.kind, longest
    )


def _stride_of_three(op: Op) -> str:
    longest = max(options(op).integer("stride_h"), options(op).integer("stride_w"))
    told = phrase("{kind} with stride {longest}; it takes up to 3", op.kind, longest)
    return told_if(longest > 3, told)


def _light(op: Op) -> str:
    """The weights of one output sum to no more than its adders hold."""
    held, tensor = numbers(op, 1), given(op, 1)
    if held is None or tensor is None:
        return ""
    point = tensor.quant.zero_point[0] if tensor.quant and tensor.quant.zero_point.size else 0
    axis = 3 if op.kind == "DEPTHWISE_CONV_2D" else 0
    rows = np.moveaxis(held.astype(np.int64) - int(point), axis, 0).reshape(held.shape[axis], -1)
    heaviest = int(np.abs(rows).sum(axis=1).max(initial=0))
    told = phrase("the weights of {kind} sum to {heaviest}", op.kind, heaviest)
    return told_if(heaviest > _MOST_WEIGHT, told)


def _small_pool(op: Op) -> str:
    high, wide = options(op).integer("filter_height"), options(op).integer("filter_width")
    least = op.kind == "AVERAGE_POOL_2D" and options(op)["padding"] != "VALID"
    fits = max(high, wide) <= 8 if least else high <= 256 and high * wide <= _MOST_POOLED
    told = phrase("{kind} over {high}×{wide}; its windows are smaller", op.kind, high, wide)
    return told_if(not fits, told)


def _doubles(op: Op) -> str:
    """Sizes grow twice, four or eight times, both ways alike; with half-pixel centres twice."""
    before, after = data(op)[0].shape[1:3], op.outputs[0].shape[1:3]
    if before in (after, (1, 1)):
        return ""
    corners = bool(options(op)["align_corners"])
    less = 1 if corners else 0
    ratios = {(b - less) / max(a - less, 1) for a, b in zip(before, after, strict=True) if b > 1}
    halves = bool(options(op)["half_pixel_centers"]) and op.kind == "RESIZE_BILINEAR"
    if len(ratios) == 1 and ratios <= ({2.0} if halves else {2.0, 4.0, 8.0}):
        return ""
    return phrase(
        "{kind} from {before}×{before2} to {after}×{after2}; it doubles only",
        op.kind,
        before[0],
        before[1],
        after[0],
        after[1],
    )


def _reduces(op: Op) -> str:
    source, held = data(op)[0], numbers(op, 1)
    if held is None:
        return phrase("the axes of {kind} are computed; it takes constants only", op.kind)
    axes = {int(axis) % len(source.shape) for axis in held.ravel()}
    if len(source.shape) == 4 and (0 in axes or source.shape[0] != 1):
        return phrase("{kind} of a batch; it takes one sample", op.kind)
    if prod(source.shape[axis] for axis in axes) > _MOST_REDUCED.get(source.dtype, 0):
        return phrase("{kind} over more values than it can add", op.kind)
    depth = len(source.shape) - 1 in axes and 1 not in (1, 1, *source.shape)[-3:]
    return phrase("{kind} over channels of more than a row", op.kind) if depth else ""


def _same_types(op: Op) -> str:
    first, last = data(op)[0].dtype, op.outputs[0].dtype
    told = phrase("{kind} from {first} to {last}; it takes one type", op.kind, first, last)
    return told_if(first != last, told)


def _over_channels(op: Op) -> str:
    source, held = data(op)[0], numbers(op, 1)
    by_depth = held is not None and int(held.ravel()[0]) in (-1, len(source.shape) - 1)
    fits = by_depth and source.shape[-1] <= 127
    return told_if(not fits, phrase("ARG_MAX over more than 127 channels"))


def _by_places(op: Op) -> str:
    """Steps go forward, and are longer than 1 along height and width only."""
    held = numbers(op, 3)
    if held is None or (held < 1).any():
        return phrase("STRIDED_SLICE that goes back")
    wrong = held[-1] != 1 or (held[:-3] != 1).any()
    return phrase("STRIDED_SLICE with steps along batch or channels") if wrong else ""


def _transposed(op: Op) -> str:
    found, window = options(op), given(op, 1)
    steps = found.integer("stride_h"), found.integer("stride_w")
    if steps not in ((1, 1), (2, 2)) or window is None:
        return phrase("TRANSPOSE_CONV with stride {max}; it takes 1 and 2", max(steps))
    before, after = data(op)[0].shape[1:3], op.outputs[0].shape[1:3]
    more = (0, 0) if found["padding"] == "SAME" else (window.shape[1], window.shape[2])
    wanted = tuple(
        size * step + max(reach - step, 0)
        for size, step, reach in zip(before, steps, more, strict=True)
    )
    return told_if(
        after != wanted, phrase("TRANSPOSE_CONV to a size that its stride does not give")
    )


def _matrices(op: Op) -> str:
    """Weights that are computed make it a product of two matrices, which is for int8."""
    factor = given(op, 1)
    return "" if factor is None or factor.is_const else reads("int8")(op)


def _full_gates(op: Op) -> str:
    count = len(op.inputs)
    return told_if(count != 24, phrase("{kind} of {count} inputs; it takes 24", op.kind, count))


_ADDERS = (_narrow, _narrow_out, weights("int8", "uint8"), _light)
_LAYER = (*_ADDERS, constant(1, "weights"), constant(2, "biases"))

ETHOS_U = Rules(
    sources=(phrase("Arm Vela: SUPPORTED_OPS, Ethos-U55 and Ethos-U65"),),
    takes={
        **takes("ADD EXPAND_DIMS MUL NEG RESHAPE SQUEEZE SUB", _wide, settings_constant),
        **takes("ABS CONCATENATION EXP LEAKY_RELU LOGISTIC PACK PRELU", _narrow),
        **takes("QUANTIZE RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 TANH UNPACK", _narrow, _narrow_out),
        **takes("SQUARED_DIFFERENCE", _narrow),
        **takes("ARG_MAX", _bytes, _over_channels),
        **takes("AVERAGE_POOL_2D MAX_POOL_2D", _narrow, _small_pool, _short_stride),
        **takes("BATCH_MATMUL", reads("int8")),
        **takes("CONV_2D", *_LAYER, _short_stride),
        **takes("DEPTHWISE_CONV_2D", *_LAYER, _stride_of_three),
        **takes("ELU", reads("int8"), _same_types),
        **takes("FULLY_CONNECTED", *_ADDERS, constant(2, "biases"), _matrices),
        **takes("GELU HARD_SWISH", _bytes, _same_types),
        **takes("LOG RSQRT", reads("int8", "int16"), _same_types),
        **takes("MAXIMUM MINIMUM", _narrow, same_scale),
        **takes("MEAN", _narrow, _reduces),
        **takes("MIRROR_PAD", _wide, settings_constant),
        **takes("PAD PADV2 SLICE SPLIT SPLIT_V TILE", _narrow, settings_constant),
        **takes("REDUCE_MAX REDUCE_MIN", _narrow),
        **takes("SUM", _wide),
        **takes("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR", _narrow, _doubles),
        **takes("SOFTMAX", _narrow, _same_types),
        **takes("STRIDED_SLICE", _narrow, settings_constant, _by_places),
        **takes("TRANSPOSE", _wide, settings_constant),
        **takes("TRANSPOSE_CONV", *_ADDERS, constant(3, "biases"), _transposed),
        **takes("UNIDIRECTIONAL_SEQUENCE_LSTM", _narrow, _full_gates),
    },
    always=(_integers, _shaped, _scaled),
    wants=_NARROW,
    way_out="litesmith quantize MODEL --to int8 --io int8 --data DATA -o OUT.tflite",
    static=True,
    final=True,
)

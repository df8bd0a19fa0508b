"""The ops that Android's NNAPI takes through its delegate, from Android 11 (NNAPI 1.3) on.

NNAPI is deprecated since Android 15; LiteRT's own accelerators take its place. Whether a phone's
driver then runs what NNAPI takes is known on the phone only.
"""

from litesmith.ir.types import Op
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import (
    constant,
    given,
    makes,
    no_activation,
    numbers,
    options,
    present,
    ranks,
    reads,
    same_scale,
    settings_constant,
    versions,
)
from litesmith.run.rules.rule_row import Check, Rules, data, takes, told_if, when

_MOST_POOLED = 256

_float = reads("float32", "float16")
_numbers = reads("float32", "float16", "int8", "uint8")
_numbers_or_indices = reads("float32", "float16", "int8", "uint8", "int32")
_anything = reads("float32", "float16", "int8", "uint8", "int32", "bool")


def _plain_integers(op: Op) -> str:
    return no_activation(op) if data(op)[0].dtype == "int32" else ""


def _small_pool(op: Op) -> str:
    window = options(op).integer("filter_height") * options(op).integer("filter_width")
    told = phrase(
        "{kind} of {window} quantized values; it takes up to {most_pooled}",
        op.kind,
        window,
        _MOST_POOLED,
    )
    return told_if(data(op)[0].dtype != "float32" and window > _MOST_POOLED, told)


_not_single = when(lambda op: not op.outputs[0].shape, phrase("{kind} down to a single value"))


def _uncropped(op: Op) -> str:
    held = numbers(op, 2)
    return phrase("BATCH_TO_SPACE_ND that crops") if held is None or held.any() else ""


def _int32_at(place: int) -> Check:
    def check(op: Op) -> str:
        tensor = given(op, place)
        if tensor is None or tensor.dtype == "int32":
            return ""
        return phrase("{kind} with {dtype} indices; it takes int32", op.kind, tensor.dtype)

    return check


def _listed_indices(op: Op) -> str:
    places = given(op, 1)
    return phrase("GATHER of a single index") if places is not None and not places.shape else ""


_same_shapes = when(
    lambda op: len({tensor.shape for tensor in op.inputs if tensor is not None}) > 1,
    phrase("SELECT of different shapes; it does not broadcast"),
)


def _not_last(op: Op) -> str:
    axis, rank = options(op).integer("axis"), len(data(op)[0].shape)
    return phrase("{kind} along the last axis", op.kind) if axis in (-1, rank - 1) else ""


def _stored_weight(op: Op) -> str:
    tensor = op.inputs[0]
    half = tensor is not None and tensor.dtype == "float16"
    return "" if half else reads("int8", "uint8")(op)


_LAYER = (_numbers, constant(1, "weights"))
_SIZED = (_numbers, constant(1, "sizes"))

NNAPI = Rules(
    sources=(
        phrase("Android NDK: ANeuralNetworksOperationCode and feature levels"),
        phrase("LiteRT: tflite/delegates/nnapi, what the delegate validates"),
        "Android: NNAPI migration guide (deprecated since Android 15)",
    ),
    takes={
        **takes("ADD MUL SUB", _numbers_or_indices, _plain_integers, ranks(0, 4)),
        **takes("ARG_MAX ARG_MIN", _numbers_or_indices, makes("int32")),
        **takes("AVERAGE_POOL_2D", _numbers, _small_pool),
        **takes("BATCH_TO_SPACE_ND", _numbers, _uncropped),
        **takes("CAST", _numbers_or_indices, makes("float32", "int32", "int8", "uint8")),
        **takes("CONCATENATION", _numbers, no_activation, ranks(1, 4)),
        **takes("CONV_2D", *_LAYER, present(2, "a bias"), versions(3)),
        **takes("DEPTHWISE_CONV_2D", *_LAYER, versions(3)),
        **takes("DEQUANTIZE", _stored_weight),
        **takes("DEPTH_TO_SPACE SPACE_TO_DEPTH", _numbers),
        **takes("ABS DIV ELU EXP FLOOR L2_POOL_2D LOG LOG_SOFTMAX POW RSQRT SIN SQRT", _float),
        **takes("EMBEDDING_LOOKUP", _int32_at(0)),
        **takes("EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL", _anything),
        **takes("EXPAND_DIMS", _numbers_or_indices, constant(1, "axes"), _int32_at(1)),
        **takes("FILL", constant(0, "sizes"), _numbers_or_indices),
        **takes("FULLY_CONNECTED", _numbers, versions(5)),
        **takes("GATHER", _numbers_or_indices, _int32_at(1), _listed_indices),
        **takes("HARD_SWISH LOGISTIC MAX_POOL_2D RELU RELU6 RELU_N1_TO_1 TANH", _numbers),
        **takes("L2_NORMALIZATION", _numbers, no_activation),
        **takes("LEAKY_RELU PRELU", _numbers),
        **takes("LOCAL_RESPONSE_NORMALIZATION LSTM RNN SVDF", _float),
        **takes("LOGICAL_AND LOGICAL_NOT LOGICAL_OR", reads("bool")),
        **takes("MAXIMUM MINIMUM", _numbers_or_indices),
        **takes("MEAN", _numbers, _not_single, same_scale),
        **takes("NEG", reads("float32", "int32")),
        **takes("PACK", reads("float32", "int8"), _not_last),
        **takes("PAD PADV2", _numbers),
        **takes("QUANTIZE", _numbers, makes("int8", "uint8")),
        **takes("REDUCE_ANY", reads("bool"), _not_single),
        **takes("REDUCE_MAX REDUCE_MIN", _numbers),
        **takes("REDUCE_PROD SUM", _float, _not_single),
        **takes("RESHAPE", _numbers, constant(1, "shapes"), _not_single),
        **takes("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR", *_SIZED, ranks(4, 4)),
        **takes("SELECT", _same_shapes),
        **takes("SLICE", _numbers_or_indices, _int32_at(1), _int32_at(2)),
        **takes("SOFTMAX", _numbers, ranks(1, 4), makes("float32", "int8", "uint8")),
        **takes("SPACE_TO_BATCH_ND STRIDED_SLICE TILE TRANSPOSE", _numbers, settings_constant),
        **takes("SPLIT SPLIT_V", _numbers_or_indices, settings_constant),
        **takes("SQUARED_DIFFERENCE", _numbers_or_indices, ranks(0, 4)),
        **takes("SQUEEZE", _numbers_or_indices),
        **takes("TOPK_V2", _numbers_or_indices, constant(1, "counts")),
        **takes("TRANSPOSE_CONV", _numbers, constant(0, "sizes"), constant(1, "weights")),
        **takes("UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN", _float),
        **takes("UNPACK", _numbers, ranks(1, 4), _not_last),
    },
    most=3,
)

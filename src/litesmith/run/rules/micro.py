"""What TensorFlow Lite Micro takes: the kernels of its wheel, by the element type of the data.

Seen by running a call of each op in each type. A model is taken wholly or not at all: there is no
CPU behind the interpreter to which an op could be left. What runs and gives other numbers than
LiteRT is refused too.
"""

from litesmith.ir.types import Model, Op, op_tensors
from litesmith.phrases import phrase
from litesmith.run.core.target import MICRO_OPS
from litesmith.run.rules.op_conditions import (
    constant,
    given,
    makes,
    numbers,
    options,
    ranks,
    reads,
)
from litesmith.run.rules.rule_row import Check, Rules, data, first_left, takes, told_if, when

_FLOAT = reads("float32")
_FLOAT_8 = reads("float32", "int8")
_FLOAT_8_16 = reads("float32", "int8", "int16")
_FLOAT_8_16_32 = reads("float32", "int8", "int16", "int32")
_MOVED = reads("bool", "float32", "int8", "int16", "int32")

_known_custom = when(
    lambda op: op.custom not in MICRO_OPS,
    phrase("it has no kernel for this custom op"),
)


def _same_weights(op: Op) -> str:
    """Float data with integer weights is what other runtimes quantize at run time."""
    held, own = given(op, 1), data(op)[0]
    if op.kind == "TRANSPOSE_CONV" and held is not None:
        own = given(op, 2) or own
    if held is None or (held.dtype == "float32") is (own.dtype == "float32"):
        return ""
    told = phrase("{kind} of {dtype} data and {weights} weights", op.kind, own.dtype, held.dtype)
    return phrase("{told}; it has no hybrid kernels", told)


def _int4_beside(*dtypes: str) -> Check:
    """Weights of four bits need data of one of these types."""

    def check(op: Op) -> str:
        held, own = given(op, 1), data(op)[0].dtype
        told = phrase("{kind} of {dtype} data and int4 weights", op.kind, own)
        return told_if(held is not None and held.dtype == "int4" and own not in dtypes, told)

    return check


def _one_scale_int4(op: Op) -> str:
    held = given(op, 1)
    is_split = held is not None and held.quant is not None and held.quant.per_channel
    told = phrase("{kind} with int4 weights and a scale for each row; it takes one", op.kind)
    return told_if(is_split and held is not None and held.dtype == "int4", told)


def _no_clamped_integers(op: Op) -> str:
    """The kernel for int32 leaves the activation out."""
    clamped = str(options(op)["fused_activation_function"]) != "NONE"
    told = phrase("{kind} of int32 with an activation; it gives other numbers", op.kind)
    return told_if(clamped and data(op)[0].dtype == "int32", told)


def _padded_with_zero(op: Op) -> str:
    quant, paddings = data(op)[0].quant, numbers(op, 2)
    zero = 0 if quant is None or quant.zero_point.size != 1 else int(quant.zero_point.item())
    is_plain = paddings is not None and not paddings.any()
    told = phrase("{kind} that pads, with the zero point {zero}; it pads with 0", op.kind, zero)
    return told_if(bool(zero) and not is_plain, told)


def _same_types(op: Op) -> str:
    found = {tensor.dtype for tensor in data(op)}
    told = phrase("{kind} of {types}; it takes one type", op.kind, ", ".join(sorted(found)))
    return told_if(len(found) > 1, told)


def _stored_as_made(op: Op) -> str:
    """The kernel copies rows: it restores no floats from stored codes."""
    held = given(op, 1)
    told = phrase("{kind} that makes {dtype} of other rows", op.kind, op.outputs[0].dtype)
    return told_if(held is not None and held.dtype != op.outputs[0].dtype, told)


def _plain_positions(op: Op) -> str:
    """The kernel reads a position for each dimension, whether it is there or not."""
    if options(op)["ellipsis_mask"] or options(op)["new_axis_mask"]:
        return phrase("{kind} with an ellipsis or a new axis; it leaves them out", op.kind)
    begin, rank = numbers(op, 1), len(data(op)[0].shape)
    told = phrase("{kind} with fewer positions than dimensions; it reads beyond them", op.kind)
    return told_if(begin is not None and begin.size != rank, told)


def _all_states(op: Op) -> str:
    told = phrase("{kind} with {count} inputs; it takes 24", op.kind, len(op.inputs))
    return told_if(len(op.inputs) != 24, told)


_indices = when(
    lambda op: any(t is not None and t.dtype == "int64" for t in op.inputs[1:]),
    phrase("{kind} with int64 positions; it takes int32"),
)


def _has_bias(place: int) -> Check:
    return when(
        lambda op: given(op, place) is None,
        phrase("{kind} without a bias; its kernel crashes on it"),
    )


_has_values = when(
    lambda op: any(0 in t.shape and len(t.shape) > 1 for t in op_tensors(op)),
    phrase("{kind} reads or makes a tensor without elements; it takes none"),
)

_CASTS = ("bool", "float32", "int8", "int16", "int32", "uint32")

MICRO = Rules(
    sources=(
        "TensorFlow Lite Micro: micro_mutable_op_resolver.h",
        phrase("Seen: tflite-micro of October 2026 running one model a kind and type"),
    ),
    takes={
        **takes("CEIL COS EXP FLOOR FLOOR_DIV FLOOR_MOD L2_POOL_2D LOG NEG", _FLOAT),
        **takes("RELU6 ROUND SIN SQRT SQUARE", _FLOAT),
        **takes("ADD_N BATCH_TO_SPACE_ND DEPTH_TO_SPACE ELU HARD_SWISH L2_NORMALIZATION", _FLOAT_8),
        **takes("LOG_SOFTMAX PRELU REDUCE_MAX REDUCE_MIN RESIZE_BILINEAR RSQRT", _FLOAT_8),
        **takes("SPACE_TO_DEPTH", _FLOAT_8),
        **takes("ABS AVERAGE_POOL_2D EXPAND_DIMS LEAKY_RELU LOGISTIC MAX_POOL_2D", _FLOAT_8_16),
        **takes("RELU RESIZE_NEAREST_NEIGHBOR SOFTMAX TANH TRANSPOSE", _FLOAT_8_16),
        **takes("MEAN SUM", _FLOAT_8_16, constant(1, "axes")),
        **takes("DYNAMIC_UPDATE_SLICE MUL SPLIT SPLIT_V SQUEEZE SUB UNPACK", _FLOAT_8_16_32),
        **takes("MAXIMUM MINIMUM", reads("float32", "int8", "int16", "int32", "int64")),
        **takes("BROADCAST_TO RESHAPE REVERSE_V2", _MOVED),
        **takes("SLICE", _MOVED, constant(1, "positions"), constant(2, "sizes")),
        **takes("STRIDED_SLICE", _MOVED, constant(1, "positions"), ranks(0, 4), _plain_positions),
        **takes("LOGICAL_AND LOGICAL_NOT LOGICAL_OR REDUCE_ALL", reads("bool")),
        **takes("EQUAL NOT_EQUAL", reads("bool", "float32", "int8", "int32", "int64")),
        **takes(
            "GREATER GREATER_EQUAL LESS LESS_EQUAL", reads("float32", "int8", "int32", "int64")
        ),
        **takes("DIV SQUARED_DIFFERENCE", reads("float32", "int8", "int32")),
        **takes("ADD", _FLOAT_8_16_32, _no_clamped_integers),
        **takes("ARG_MAX ARG_MIN", _FLOAT_8, makes("int32")),
        **takes("ASSIGN_VARIABLE CALL_ONCE IF READ_VARIABLE VAR_HANDLE WHILE"),
        **takes("BATCH_MATMUL", _FLOAT_8_16, _same_types),
        **takes("BROADCAST_ARGS", reads("int32")),
        **takes("CAST", reads(*_CASTS), makes(*_CASTS)),
        **takes("CONCATENATION PACK", reads("bool", "float32", "int8", "int16", "int32", "int64")),
        **takes("CONV_2D", _FLOAT_8_16, _same_weights, _int4_beside("int8")),
        **takes("CUMSUM", _FLOAT_8),
        **takes("CUSTOM", _known_custom),
        **takes(
            "DEPTHWISE_CONV_2D", _FLOAT_8_16, _has_bias(2), _same_weights, _int4_beside("int8")
        ),
        **takes("DEQUANTIZE", reads("int8", "uint8", "int16"), makes("float32")),
        **takes("EMBEDDING_LOOKUP", makes("float32", "int8"), _stored_as_made),
        **takes("FILL", makes("float32", "int8", "int32", "int64")),
        **takes(
            "FULLY_CONNECTED", _FLOAT_8_16, _same_weights, _int4_beside("int8"), _one_scale_int4
        ),
        **takes("GATHER GATHER_ND", reads("float32", "int8", "int32"), _indices),
        **takes("MIRROR_PAD", _FLOAT_8, _indices),
        **takes("PAD PADV2", _FLOAT_8_16_32, _indices, constant(1, "paddings")),
        **takes("QUANTIZE", reads("float32", "int8", "uint8", "int16", "int32")),
        **takes("SELECT_V2", makes("float32", "int8", "int16")),
        **takes("SHAPE", makes("int32")),
        **takes("SPACE_TO_BATCH_ND", _FLOAT_8, _padded_with_zero),
        **takes("SVDF", _FLOAT_8, _has_bias(3), _same_weights),
        **takes("TRANSPOSE_CONV", _FLOAT_8_16, _same_weights, _int4_beside()),
        **takes("UNIDIRECTIONAL_SEQUENCE_LSTM", _FLOAT_8_16, _all_states),
        **takes("ZEROS_LIKE", reads("float32", "int8", "int32", "int64")),
    },
    always=(_has_values,),
    whole=True,
)


# Remedies for models with ops that read all of these types.
_WAYS_OUT = (
    (
        {"float16"},
        phrase('litesmith apply MODEL "fold(float16=true) | fuse" -o OUT.tflite unpacks it'),
    ),
    ({"uint8"}, phrase('litesmith apply MODEL "upgrade" -o OUT.tflite makes it int8')),
    ({"float32", "int8"}, phrase("quantize the float model to int8 instead, its data too")),
    (set[str](), phrase("TensorFlow Lite Micro needs a model without it")),
)


def why_unfit(model: Model) -> str:
    """The first op that keeps a model from a microcontroller, why, and what helps; "" for none."""
    left = first_left(MICRO, model.main)
    if left is None:
        return ""
    read = {tensor.dtype for tensor in op_tensors(model.main.ops[left.place])}
    way_out = next(way for types, way in _WAYS_OUT if types <= read)
    why = left.why if left.kind in left.why else phrase("{kind}: {why}", left.kind, left.why)
    return phrase("op {place}: {why}; {way_out}", left.place, why, way_out)

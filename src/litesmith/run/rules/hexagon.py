"""The ops that Qualcomm's Hexagon takes: nearly every op, so that kinds decide."""

from litesmith.ir.ops import OPS
from litesmith.ir.types import Op
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import given, known_types, no_blocks
from litesmith.run.rules.rule_row import Rules, data, takes, told_if, when


def _htp_weights(op: Op) -> str:
    """Seen with LiteRT 2.3.0 for the SM8650, one model a kind, type, and sort of scale."""
    place = OPS[op.kind].weight
    held = None if place is None else given(op, place)
    if held is None or held.quant is None:
        return ""
    if data(op)[0].dtype.startswith("float"):
        told = phrase(
            "{kind} of floats with {dtype} weights; it takes one kind of numbers",
            op.kind,
            held.dtype,
        )
        return told_if((op.kind, held.dtype) != ("FULLY_CONNECTED", "int8"), told)
    by_channel = held.quant.per_channel
    if held.dtype == "int2" and not (op.kind == "FULLY_CONNECTED" and by_channel):
        return phrase("{kind} with int2 weights; Qualcomm's HTP library refuses it", op.kind)
    if held.dtype == "int4" and by_channel and op.kind in ("CONV_2D", "TRANSPOSE_CONV"):
        return phrase("{kind} with int4 weights at a scale a channel; it takes one scale", op.kind)
    return ""


# Kinds that Qualcomm's HTP library was seen to refuse in a type or in five dimensions.
_NO_INT32 = frozenset(
    takes(
        "ARG_MIN DEPTH_TO_SPACE FLOOR_DIV GATHER GATHER_ND MEAN MIRROR_PAD NEG ONE_HOT PAD PADV2 "
        "POW REDUCE_MAX SIGN SLICE SPACE_TO_DEPTH SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE UNPACK"
    )
)
_BOOL = frozenset(
    takes(
        "BROADCAST_TO LOGICAL_AND LOGICAL_NOT LOGICAL_OR REDUCE_ALL REDUCE_ANY RESHAPE SELECT "
        "SELECT_V2 TILE"
    )
)
_FOUR = frozenset({"CEIL", "COS", "ELU", "FLOOR", "NEG", "ROUND", "SIGN", "SIN"})


def _htp_types(op: Op) -> str:
    for tensor in data(op):
        narrow = tensor.dtype in ("int8", "int16", "uint8") and tensor.quant is None
        refused = (
            tensor.dtype == "int64"
            or (tensor.dtype == "bool" and op.kind not in _BOOL)
            or (tensor.dtype == "int32" and op.kind in _NO_INT32)
        )
        if narrow:
            return phrase(
                "{kind} on {dtype} without a scale; it takes quantized ones only",
                op.kind,
                tensor.dtype,
            )
        if refused:
            return phrase(
                "{kind} reads {dtype}; Qualcomm's HTP library refuses it", op.kind, tensor.dtype
            )
        if len(tensor.shape) > 4 and op.kind in _FOUR:
            return phrase(
                "{kind} on {count} dimensions; it takes up to 4", op.kind, len(tensor.shape)
            )
    wide = any(tensor.dtype == "int64" for tensor in op.outputs)
    return phrase("{kind} makes int64; Qualcomm's HTP library refuses it", op.kind) if wide else ""


_whole_numbers = when(
    lambda op: data(op)[0].dtype == "float32", phrase("FLOOR_MOD of floats; it takes int32")
)
# Seen with LiteRT 2.3.0 for the SM8650: its HTP backend validates the depthwise one only.
_not_in_sixteen_bits = when(
    lambda op: data(op)[0].dtype == "int16",
    phrase("CONV_2D in int16; its HTP backend refuses it, and takes int8 and float"),
)


HEXAGON = Rules(
    sources=(
        phrase("LiteRT: Qualcomm QNN compiler support, types, quantization and operations"),
        phrase("Seen: LiteRT 2.3.0 partitioning for the SM8650, one model a kind"),
    ),
    takes={
        **takes("ABS ADD ADD_N ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND"),
        **takes("BROADCAST_TO CAST CEIL CONCATENATION CONV_3D COS CUMSUM DEPTHWISE_CONV_2D"),
        **takes("DEPTH_TO_SPACE DEQUANTIZE DIV ELU EMBEDDING_LOOKUP EQUAL"),
        **takes("EXP FLOOR FLOOR_DIV FULLY_CONNECTED GATHER GATHER_ND GELU GREATER"),
        **takes("GREATER_EQUAL HARD_SWISH L2_NORMALIZATION LEAKY_RELU LESS LESS_EQUAL"),
        **takes("LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D"),
        **takes("MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL ONE_HOT PACK PAD PADV2 POW PRELU"),
        **takes("QUANTIZE REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1"),
        **takes("RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND"),
        **takes("RSQRT SCATTER_ND SELECT SELECT_V2 SIGN SIN SLICE SOFTMAX SPACE_TO_BATCH_ND"),
        **takes(
            "SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE"
        ),
        **takes("SUB SUM TANH TILE TOPK_V2 TRANSPOSE TRANSPOSE_CONV UNPACK"),
        **takes("CONV_2D", _not_in_sixteen_bits),
        **takes("FLOOR_MOD", _whole_numbers),
    },
    always=(known_types, _htp_types, no_blocks, _htp_weights),
    static=True,
    sizes=True,
)

"""What Intel's OpenVINO takes, by kinds, and where it fails on ops that it has: it dies, gives
other numbers, or does not read them."""

import numpy as np

from litesmith.ir.types import Op
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import known_types, no_blocks, numbers, options
from litesmith.run.rules.rule_row import Check, Rules, data, takes, told_if, when

_named_dimensions = when(
    lambda op: not options(op).integers("squeeze_dims"),
    phrase("SQUEEZE that names no dimensions; its reader crashes on it"),
)


def _no_activation(op: Op) -> str:
    fused = str(options(op)["fused_activation_function"])
    told = phrase("{kind} with {fused}; OpenVINO leaves the {fused} out", op.kind, fused)
    return told_if(fused != "NONE", told)


def _by_whole_factors(op: Op) -> str:
    asked = options(op)
    sizes = zip(data(op)[0].shape[1:3], op.outputs[0].shape[1:3], strict=False)
    is_enlarged = all(old > 0 and new % old == 0 for old, new in sizes)
    if not asked["half_pixel_centers"] or (is_enlarged and not asked["align_corners"]):
        return ""
    return phrase("{kind} with half-pixel centers; OpenVINO takes other pixels", op.kind)


def _different_places(op: Op) -> str:
    """Equal places are added up by LiteRT."""
    indices = numbers(op, 0)
    if indices is not None:
        rows = indices.reshape(-1, max(1, *indices.shape[-1:]))
        if len(np.unique(rows, axis=0)) == len(rows):
            return ""
    how = "computed places" if indices is None else "repeated places"
    return phrase("{kind} to {how}; OpenVINO does not add up what goes to one place", op.kind, how)


def _zero_point(op: Op) -> int:
    quant = data(op)[0].quant
    return 0 if quant is None or quant.zero_point.size != 1 else int(quant.zero_point.item())


def _no_zero_point_in(dtype: str) -> Check:
    def check(op: Op) -> str:
        told = phrase(
            "{kind} in {dtype} with a zero point; OpenVINO gives other numbers", op.kind, dtype
        )
        return told_if(data(op)[0].dtype == dtype and _zero_point(op) != 0, told)

    return check


def _padded_with_zero(op: Op) -> str:
    zero, paddings = _zero_point(op), numbers(op, 2)
    right = {"int8": -128, "uint8": 128}  # besides 0
    is_plain = paddings is not None and not paddings.any()
    if is_plain or zero in (0, right.get(data(op)[0].dtype)):
        return ""
    return phrase(
        "{kind} that pads, with the zero point {zero}; OpenVINO pads with another number",
        op.kind,
        zero,
    )


def _not_in_eight_bits(op: Op) -> str:
    dtype = data(op)[0].dtype
    told = phrase("{kind} in {dtype}; OpenVINO gives other numbers", op.kind, dtype)
    return told_if(dtype in ("int8", "uint8"), told)


# Ops of which OpenVINO dies, or that it computes differently from LiteRT without a word: seen with
# 2026.4.1 on one model per kind and type.
FLAWS: dict[str, Check] = {
    "REDUCE_MAX": _no_zero_point_in("int8"),
    "REDUCE_MIN": _no_zero_point_in("uint8"),
    "RELU_0_TO_1": _not_in_eight_bits,
    "RESIZE_NEAREST_NEIGHBOR": _by_whole_factors,
    "SCATTER_ND": _different_places,
    "SPACE_TO_BATCH_ND": _padded_with_zero,
    "SQUEEZE": _named_dimensions,
    "TRANSPOSE_CONV": _no_activation,
}


def _no_four_bits(op: Op) -> str:
    held = op.inputs[1]
    if held is None or held.dtype != "int4" or held.shape[-1] < data(op)[0].shape[-1]:
        return ""
    return phrase("CONV_2D with int4 weights; its reader cannot turn them around")


_no_complex = when(
    lambda op: any(t.dtype.startswith("complex") for t in data(op)),
    phrase("{kind} of complex numbers; it has none"),
)


OPENVINO = Rules(
    sources=(
        "OpenVINO: TensorFlow Lite frontend, supported operations",
        phrase("Seen: OpenVINO 2026.4 reading one model a kind"),
    ),
    takes={
        **takes("ABS ADD ADD_N ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND"),
        **takes("BROADCAST_ARGS BROADCAST_TO CAST CEIL CONCATENATION CONV_2D CONV_3D COS CUMSUM"),
        **takes("DENSIFY DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE DIV ELU EMBEDDING_LOOKUP"),
        **takes("EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER"),
        **takes("GATHER_ND GELU GREATER GREATER_EQUAL HARD_SWISH L2_NORMALIZATION LEAKY_RELU LESS"),
        **takes("LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX"),
        **takes("MATRIX_DIAG MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL"),
        **takes("ONE_HOT PACK PAD PADV2 POW PRELU QUANTIZE RANGE RANK REDUCE_ALL REDUCE_ANY"),
        **takes("REDUCE_MAX REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RESHAPE RESIZE_BILINEAR"),
        **takes("RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 ROUND RSQRT SCATTER_ND"),
        **takes("SEGMENT_SUM SELECT SELECT_V2 SHAPE SIGN SIN SLICE SOFTMAX SPACE_TO_BATCH_ND"),
        **takes("SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE"),
        **takes("STRIDED_SLICE SUB SUM TANH TILE TOPK_V2 TRANSPOSE TRANSPOSE_CONV UNIQUE UNPACK"),
        **takes("COMPLEX_ABS RFFT2D WHERE ZEROS_LIKE"),
        **takes("CAST", _no_complex),
        **takes("CONV_2D", _no_four_bits),
        **{kind: (check,) for kind, check in FLAWS.items()},
    },
    always=(known_types, no_blocks),
    sizes=True,
    whole=True,
    inside=("complex64",),
)

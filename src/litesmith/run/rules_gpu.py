"""What LiteRT's GPU accelerator takes: floats, and 8-bit values that it computes as floats."""

from litesmith.ir.types import Op
from litesmith.run.rules_checks import (
    activations,
    constant,
    given,
    option_is,
    options,
    padded,
    ranks,
    reads,
)
from litesmith.run.rules_row import Check, Rules, data, takes

_FLOATS = ("float32", "float16")
_NUMBERS = (*_FLOATS, "int8", "uint8")

# What else an op may read or make as it runs.
_ALSO_READS = {
    **dict.fromkeys(("CAST", "EMBEDDING_LOOKUP", "GATHER", "ONE_HOT"), ("int32", "bool")),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"), ("bool",)),
    **dict.fromkeys(("SELECT", "SELECT_V2"), ("bool",)),
}
_COMPARES = ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL")
_ALSO_MAKES = {
    "CAST": ("int32", "bool"),
    "TOPK_V2": ("int32",),
    **dict.fromkeys((*_COMPARES, "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"), ("bool",)),
}


def _flowing_types(op: Op) -> str:
    """Only what is computed counts: constants are converted as they are loaded."""
    sides = ((op.inputs, "reads", _ALSO_READS), (op.outputs, "makes", _ALSO_MAKES))
    for tensors, verb, also in sides:
        for tensor in tensors:
            if tensor is None or tensor.is_const:
                continue
            if tensor.dtype not in (*_NUMBERS, *also.get(op.kind, ())):
                return f"{op.kind} {verb} {tensor.dtype}; it takes floats and 8-bit integers"
            if len(tensor.shape) > 4:
                return f"{op.kind} on {len(tensor.shape)} dimensions; it takes up to 4"
    return ""


def _data_flows(op: Op) -> str:
    fed = given(op, 0)
    return f"{op.kind} of a constant" if fed is not None and fed.is_const else ""


def _broadcasts(op: Op) -> str:
    """Shapes of one rank, a single row, or a 3-D, 1×1 or batch-by-channel one on a 4-D one."""
    long, short = sorted((t.shape for t in data(op)[:2]), key=len, reverse=True)
    if len(short) < 2 or len(long) == len(short):
        return ""
    fits = len(long) == 4 and (
        (len(short) == 3 and long[0] == 1)
        or (len(short) == 2 and long[0] == 1 and short == (1, 1))
        or (len(short) == 2 and (long[0], long[3]) == short)
    )
    return "" if fits else f"{op.kind} of shapes that it cannot broadcast"


def _indices(op: Op) -> str:
    places = given(op, 1)
    if places is None or (places.dtype == "int32" and len(places.shape) == 1):
        return ""
    return f"GATHER by {places.dtype} of {len(places.shape)} dimensions; it takes a list of int32"


def _multiplies(op: Op) -> str:
    depths = data(op)[0].shape[-1] * options(op).integer("depth_multiplier")
    fits = depths == op.outputs[0].shape[-1]
    return "" if fits else "DEPTHWISE_CONV_2D whose channels are no multiple of its input's"


def _int32_axes(op: Op) -> str:
    held = given(op, 1)
    if held is not None and held.is_const and held.dtype == "int32":
        return ""
    return f"{op.kind} over axes that are no int32 constants"


def _choices(op: Op) -> str:
    shape = op.outputs[0].shape
    wrong = [t for t in op.inputs[1:] if t and t.shape != shape and t.elements > 1]
    return f"{op.kind} that broadcasts what it picks from" if wrong else ""


def _two_inputs(op: Op) -> str:
    return "" if len(op.inputs) == 2 else f"{op.kind} of {len(op.inputs)}; it adds two"


def _larger_block(op: Op) -> str:
    return "" if options(op).integer("block_size") > 1 else f"{op.kind} by blocks of 1"


_KNOWN = activations("RELU", "RELU6", "RELU_N1_TO_1", "TANH", "SIGMOID")
_SLICED: tuple[Check, ...] = (ranks(3, 4),)
_UNMASKED = tuple(option_is(f"{n}_mask", 0) for n in ("ellipsis", "new_axis", "shrink_axis"))

GPU = Rules(
    sources=(
        "LiteRT: GPU delegates, supported ops",
        "LiteRT: tflite/tools/versioning/gpu_compatibility, what the GPU backends validate",
    ),
    takes={
        **takes("ABS CEIL COS ELU EXP FLOOR GELU HARD_SWISH LOG LOGISTIC NEG ROUND", _data_flows),
        **takes("RSQRT SIGN SIN SQRT SQUARE TANH LOGICAL_NOT QUANTIZE TILE TOPK_V2", _data_flows),
        **takes("LEAKY_RELU PACK PRELU RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 SPLIT SPLIT_V UNPACK"),
        **takes("EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND"),
        **takes("ATAN2 LOGICAL_OR MAXIMUM MINIMUM NOT_EQUAL POW SQUARED_DIFFERENCE", ranks(0, 4)),
        **takes("BATCH_MATMUL BATCH_TO_SPACE_ND CAST CONCATENATION CUMSUM DENSIFY"),
        **takes("EMBEDDING_LOOKUP ONE_HOT SPACE_TO_BATCH_ND"),
        **takes("ADD MUL", _broadcasts, _KNOWN),
        **takes("ADD_N", _two_inputs),
        **takes("AVERAGE_POOL_2D MAX_POOL_2D CONV_2D", _KNOWN),
        **takes("DEPTHWISE_CONV_2D", _KNOWN, ranks(4, 4), _multiplies),
        **takes("DEPTH_TO_SPACE SPACE_TO_DEPTH", _larger_block),
        **takes("DEQUANTIZE", reads(*_NUMBERS)),
        **takes("DIV SUB", _KNOWN),
        **takes("FULLY_CONNECTED", option_is("weights_format", "DEFAULT"), _data_flows),
        **takes("GATHER", _indices),
        **takes("LSTM", reads(*_FLOATS)),
        **takes("MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD REVERSE_V2 SUM", _int32_axes),
        **takes("MIRROR_PAD", option_is("mode", "REFLECT"), padded(range(4), (3, 4))),
        **takes("PAD PADV2", padded(range(4), (3, 4))),
        **takes("RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR TRANSPOSE", _data_flows),
        **takes("SELECT SELECT_V2", _choices),
        **takes("SLICE", *_SLICED),
        **takes("SOFTMAX", option_is("beta", 1.0)),
        **takes("STRIDED_SLICE", ranks(1, 4), *_UNMASKED, *_SLICED),
        **takes("TRANSPOSE_CONV", constant(0, "sizes")),
    },
    always=(_flowing_types,),
)

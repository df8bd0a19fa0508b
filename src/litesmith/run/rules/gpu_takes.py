"""What LiteRT's GPU accelerator takes: floats, 8-bit values that it computes as floats, and in some
ops whole numbers. Checked against the accelerator of LiteRT 2.3.0 for WebGPU, op by op."""

from litesmith.ir.types import Op
from litesmith.phrases import phrase
from litesmith.run.rules.gpu_flaws import FLAWS, storage
from litesmith.run.rules.op_conditions import (
    activations,
    constant,
    given,
    option_is,
    options,
    padded,
    ranks,
)
from litesmith.run.rules.rule_row import Check, Rules, data, takes
from litesmith.units import plain

_FLOATS = ("float32", "float16")
_NUMBERS = (*_FLOATS, "int8", "uint8")

_COMPARES = frozenset({"EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"})
_LOGIC = frozenset({"LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "REDUCE_ALL", "REDUCE_ANY"})
_COUNTS = takes(
    "ABS ADD ATAN2 COS DIV FLOOR_DIV FLOOR_MOD MAXIMUM MINIMUM MUL NEG REDUCE_MAX REDUCE_MIN "
    "REDUCE_PROD RIGHT_SHIFT SIGN SIN SUB SUM TILE"
).keys()
_MOVES = takes(
    "CAST CONCATENATION GATHER PACK PAD PADV2 RESHAPE REVERSE_V2 SELECT SELECT_V2 SLICE "
    "STRIDED_SLICE TRANSPOSE"
).keys()
_WHOLE = ("int16", "int32")
_ALL = (*_WHOLE, "uint16", "uint32", "bool")

# What else an op may read or make as it runs.
_ALSO_READS = {
    **dict.fromkeys(_COMPARES | _MOVES, _ALL),
    **dict.fromkeys(_COUNTS, _WHOLE),
    **dict.fromkeys(_LOGIC | {"ARG_MAX"}, ("bool",)),
    **dict.fromkeys(("EMBEDDING_LOOKUP", "ONE_HOT"), ("int32",)),
}
_ALSO_MAKES = {
    **dict.fromkeys(_MOVES, _ALL),
    **dict.fromkeys(_COUNTS, _WHOLE),
    **dict.fromkeys(_COMPARES | _LOGIC, ("bool",)),
    **dict.fromkeys(("ARG_MAX", "TOPK_V2"), ("int32",)),
}


_READS = phrase("{kind} reads {dtype}; it takes floats and 8-bit integers")
_MAKES = phrase("{kind} makes {dtype}; it takes floats and 8-bit integers")


def _flowing_types(op: Op) -> str:
    """Only what is computed counts: constants are converted as they are loaded."""
    for tensors, told, also in (
        (op.inputs, _READS, _ALSO_READS),
        (op.outputs, _MAKES, _ALSO_MAKES),
    ):
        for tensor in tensors:
            if tensor is None or tensor.is_const:
                continue
            if tensor.dtype not in (*_NUMBERS, *also.get(op.kind, ())):
                return told.format(kind=op.kind, dtype=tensor.dtype)
            if len(tensor.shape) > 4:
                return phrase(
                    "{kind} on {count} dimensions; it takes up to 4", op.kind, len(tensor.shape)
                )
    return ""


def _data_flows(op: Op) -> str:
    fed = given(op, 0)
    return phrase("{kind} of a constant", op.kind) if fed is not None and fed.is_const else ""


def _no_single_number(op: Op) -> str:
    single = any(not tensor.shape for tensor in data(op) if not tensor.is_const)
    return phrase("{kind} of a tensor without dimensions", op.kind) if single else ""


def _halves_are_constant(op: Op) -> str:
    fed = given(op, 0)
    is_half = fed is not None and fed.dtype == "float16" and not fed.is_const
    return phrase("DEQUANTIZE of computed float16") if is_half else ""


def _makes_dimensions(op: Op) -> str:
    return "" if op.outputs[0].shape else phrase("{kind} to a tensor without dimensions", op.kind)


def _short_settings(op: Op) -> str:
    is_long = any(t is not None and t.dtype == "int64" for t in op.inputs[1:])
    return phrase("{kind} by int64 numbers", op.kind) if is_long else ""


def _each_named(op: Op) -> str:
    starts, fed = given(op, 1), given(op, 0)
    is_short = starts is not None and fed is not None and starts.shape != (len(fed.shape),)
    return phrase("{kind} that does not name all dimensions", op.kind) if is_short else ""


def _forward(op: Op) -> str:
    strides = given(op, 3)
    is_back = strides is not None and strides.is_const and bool((strides.values() < 0).any())
    return phrase("{kind} backwards", op.kind) if is_back else ""


def _named(op: Op) -> str:
    return (
        ""
        if op.custom in _CUSTOM
        else phrase("CUSTOM {custom} is not in its list of ops", plain(op.custom))
    )


def _indices(op: Op) -> str:
    places = given(op, 1)
    if places is None or (places.dtype == "int32" and len(places.shape) == 1):
        return ""
    return phrase(
        "GATHER by {dtype} of {count} dimensions; it takes a list of int32",
        places.dtype,
        len(places.shape),
    )


def _multiplies(op: Op) -> str:
    depths = data(op)[0].shape[-1] * options(op).integer("depth_multiplier")
    fits = depths == op.outputs[0].shape[-1]
    return "" if fits else phrase("DEPTHWISE_CONV_2D whose channels are no multiple of its input's")


def _int32_axes(op: Op) -> str:
    held = given(op, 1)
    if held is not None and held.is_const and held.dtype == "int32":
        return ""
    return phrase("{kind} over axes that are no int32 constants", op.kind)


def _choices(op: Op) -> str:
    shape = op.outputs[0].shape
    wrong = [t for t in op.inputs[1:] if t and t.shape != shape and t.elements > 1]
    return phrase("{kind} that broadcasts what it picks from", op.kind) if wrong else ""


def _two_inputs(op: Op) -> str:
    return (
        ""
        if len(op.inputs) == 2
        else phrase("{kind} of {count}; it adds two", op.kind, len(op.inputs))
    )


def _larger_block(op: Op) -> str:
    return "" if options(op).integer("block_size") > 1 else phrase("{kind} by blocks of 1", op.kind)


_CUSTOM = ("Convolution2DTransposeBias", "MaxPoolingWithArgmax2D", "MaxUnpooling2D", "Resampler")
_KNOWN = activations("RELU", "RELU6", "RELU_N1_TO_1", "TANH", "SIGMOID")
_SLICED: tuple[Check, ...] = (ranks(2, 4),)
_UNMASKED = tuple(option_is(f"{n}_mask", 0) for n in ("ellipsis", "new_axis", "shrink_axis"))

_TAKES: dict[str, tuple[Check, ...]] = {
    **takes("ABS CEIL COS ELU EXP FLOOR GELU HARD_SWISH LOG LOGISTIC NEG ROUND", _data_flows),
    **takes("RSQRT SIGN SIN SQRT SQUARE TANH LOGICAL_NOT QUANTIZE TILE TOPK_V2", _data_flows),
    **takes("LEAKY_RELU PACK RELU RELU6 RELU_N1_TO_1 RIGHT_SHIFT SPLIT SPLIT_V UNPACK"),
    **takes("EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND"),
    **takes("ATAN2 LOGICAL_OR MAXIMUM MINIMUM NOT_EQUAL POW SQUARED_DIFFERENCE", ranks(0, 4)),
    **takes("ARG_MAX BATCH_MATMUL CAST CONCATENATION CUMSUM ONE_HOT REDUCE_ALL REDUCE_ANY"),
    **takes("ADD MUL SUB", _no_single_number, _KNOWN),
    **takes("ADD_N", _two_inputs),
    **takes("AVERAGE_POOL_2D MAX_POOL_2D CONV_2D", _KNOWN),
    **takes("DEPTHWISE_CONV_2D", _KNOWN, ranks(4, 4), _multiplies),
    **takes("DEPTH_TO_SPACE SPACE_TO_DEPTH", _larger_block),
    **takes("CUSTOM", _named),
    **takes("DEQUANTIZE", _halves_are_constant),
    **takes("DIV", _KNOWN),
    **takes("EMBEDDING_LOOKUP"),
    **takes("FULLY_CONNECTED", option_is("weights_format", "DEFAULT"), _data_flows),
    **takes("GATHER", _indices),
    **takes("MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD REVERSE_V2 SUM", _int32_axes),
    **takes("MIRROR_PAD", option_is("mode", "REFLECT"), padded(range(4), (3, 4))),
    **takes("PRELU", constant(1, "slopes")),
    **takes("PAD PADV2", padded(range(4), (3, 4))),
    **takes("RESHAPE", _data_flows, _makes_dimensions),
    **takes("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR TRANSPOSE", _data_flows),
    **takes("SELECT SELECT_V2", _choices),
    **takes("SLICE", *_SLICED, _short_settings),
    **takes("SOFTMAX", option_is("beta", 1.0)),
    **takes("STRIDED_SLICE", *_UNMASKED, *_SLICED, _forward, _each_named),
    **takes("TRANSPOSE_CONV", constant(0, "sizes")),
}

GPU = Rules(
    sources=(
        "LiteRT: GPU delegates, supported ops",
        phrase("LiteRT: ml_drift_delegate/tflite/model_builder.cc, what the accelerator validates"),
        phrase("LiteRT 2.3.0's accelerator for WebGPU, seen with models of one op each"),
    ),
    takes={
        kind: (*checks, FLAWS[kind]) if kind in FLAWS else checks for kind, checks in _TAKES.items()
    },
    always=(_flowing_types, storage),
    fixed=True,
    most=1,
)


def flaw(op: Op) -> str:
    """What the accelerator does wrong with an op that it takes; "" where it is sound or left."""
    if op.kind not in _TAKES or storage(op):
        return storage(op)
    if op.kind not in FLAWS or any(check(op) for check in (_flowing_types, *_TAKES[op.kind])):
        return ""
    return FLAWS[op.kind](op)

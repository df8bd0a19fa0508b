"""LiteRT's GPU accelerator: what it takes, and what it computes wrongly or dies of.

It takes floats, 8-bit values that it computes as floats, and in some ops whole numbers. Checked
against the accelerator of LiteRT 2.3.0 for WebGPU in float32, with over 4000 models of one op each.
"""

from collections.abc import Iterator

from litesmith.ir.types import Op, Tensor
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import (
    activations,
    axes,
    constant,
    given,
    numbers,
    option_is,
    options,
    padded,
    ranks,
)
from litesmith.run.rules.rule_row import Check, Rules, data, takes, told_if, when
from litesmith.units import plain

# The reason for ops that the accelerator computes differently from the CPU kernels, or dies of.
_WRONG = phrase("LiteRT computes it wrongly on the GPU")
_DIES = phrase("LiteRT dies of it on the GPU")
_SLICE = 4  # channels are stored in fours
_INTEGERS = ("int16", "int32", "uint16", "uint32", "bool")


def _told(op: Op, is_wrong: bool, how: str, *, why: str = _WRONG) -> str:
    return told_if(is_wrong, f"{op.kind} {how}; {why}")


def _broken_fours(tensor: Tensor) -> bool:
    return bool(tensor.shape) and tensor.shape[-1] % _SLICE != 0


def _is_last(op: Op) -> bool:
    named = axes(op)
    return named is None or len(data(op)[0].shape) - 1 in named


def _stored(op: Op) -> Iterator[tuple[Tensor, int]]:
    """Constants of more than one value among the data, with the result's number of dimensions."""
    rank = len(op.outputs[0].shape)
    return ((t, rank) for t in op.inputs if t is not None and t.is_const and t.elements > 1)


def _plain_constants(op: Op) -> str:
    """Constants stored with fewer than four dimensions lose the first of them."""
    if any(t.dtype in _INTEGERS for t in data(op)):
        wrong = any(len(t.shape) < rank for t, rank in _stored(op))
        return _told(op, wrong, phrase("of integers and a constant of fewer dimensions"))
    wrong = any(len(t.shape) == rank < 4 and t.shape[0] > 1 for t, rank in _stored(op))
    return _told(op, wrong, phrase("with a constant for each of a batch"))


def _arithmetic(op: Op) -> str:
    fused = str(options(op).fields.get("fused_activation_function", "NONE"))
    is_whole = op.outputs[0].dtype in _INTEGERS
    how = phrase("of integers with {fused}, which is left out", fused)
    return _told(op, is_whole and fused != "NONE", how) or _plain_constants(op)


def _equal_shapes(op: Op) -> str:
    shapes = {t.shape for t in op.inputs if t is not None}
    return _told(op, len(shapes) > 1, phrase("that broadcasts")) or _plain_constants(op)


def _shifts(op: Op) -> str:
    by = given(op, 1)
    return _told(op, by is not None and by.is_const, phrase("by a constant"), why=_DIES)


def _argmax(op: Op) -> str:
    fed = data(op)[0]
    broken = len(fed.shape) > 2 and _broken_fours(fed) and _is_last(op)
    return _told(op, fed.dtype == "bool", phrase("of bool")) or _told(
        op, broken, phrase("over channels that are no multiple of 4")
    )


def _matmul(op: Op) -> str:
    left, right = op.inputs[:2]
    if left is None or right is None or (right.is_const and len(right.shape) == 2):
        return ""
    return _told(op, left.shape[:-2] != right.shape[:-2], phrase("that broadcasts"))


def _cumsum(op: Op) -> str:
    asked = options(op)
    turned = bool(asked["exclusive"]) or bool(asked["reverse"])
    first = axes(op)
    return _told(op, turned, phrase("that is exclusive or backwards")) or _told(
        op, first is None or 0 in first, phrase("over the first dimension")
    )


def _one_of_a_batch(op: Op) -> str:
    return _told(op, data(op)[0].shape[0] > 1, phrase("of a batch"))


def _depthwise(op: Op) -> str:
    fed, weights = op.inputs[:2]
    if fed is None or weights is None:
        return ""
    widens = 1 < fed.shape[-1] < weights.shape[-1] and weights.shape[1:3] == (1, 1)
    return _told(op, widens, phrase("by 1x1 with more channels than it reads"))


def _lookup(op: Op) -> str:
    places = given(op, 0)
    is_constant = places is not None and places.is_const
    return _told(op, is_constant, phrase("of constant places"), why=_DIES)


def _dense(op: Op) -> str:
    fed, weights = op.inputs[:2]
    if fed is None or weights is None:
        return ""
    flattens = len(fed.shape) > 2 and fed.shape[-1] != weights.shape[-1]
    return _told(op, len(fed.shape) == 1, phrase("of one dimension")) or _told(
        op, flattens, phrase("that flattens what it reads")
    )


def _pads(op: Op) -> str:
    fed, amounts = data(op)[0], numbers(op, 1)
    first = amounts is None or (amounts.size > 0 and bool(amounts.reshape(-1, 2)[0].any()))
    is_batch = len(fed.shape) == 3 and fed.shape[0] > 1
    return (
        _told(op, fed.dtype in _INTEGERS, phrase("of {dtype}", fed.dtype))
        or _told(op, first, phrase("of the first dimension"))
        or _told(op, is_batch, phrase("of a batch of three dimensions"))
    )


def _reversed(op: Op) -> str:
    fed = data(op)[0]
    broken = _broken_fours(fed) and fed.shape[-1] > _SLICE and _is_last(op)
    return _told(op, broken and len(fed.shape) > 1, phrase("of channels that are no multiple of 4"))


def _softmax(op: Op) -> str:
    return _told(op, len(data(op)[0].shape) == 1, phrase("of one dimension"))


def _top(op: Op) -> str:
    fed = data(op)[0]
    too_few = fed.shape[-1] < _SLICE
    return (
        _told(op, too_few, phrase("of fewer than 4 values"), why=_DIES)
        or _told(op, _broken_fours(fed), phrase("of values that are no multiple of 4"))
        or _told(op, fed.dtype in ("int8", "uint8"), phrase("of {dtype}", fed.dtype))
    )


def storage(op: Op) -> str:
    """For any op: empty tensors, and weights in forms that the accelerator does not know."""
    held = [t for t in op.inputs if t is not None]
    is_empty = any(not t.is_const and 0 in t.shape for t in (*held, *op.outputs))
    is_sparse = any(t.sparsity is not None for t in held)
    has_blocks = any(t.quant is not None and t.quant.block is not None for t in held)
    return (
        _told(op, is_empty, phrase("of an empty tensor"), why=_DIES)
        or _told(op, has_blocks, phrase("with a scale for each block of weights"), why=_DIES)
        or _told(op, is_sparse, phrase("with sparse weights"))
    )


def _grouped(op: Op) -> str:
    fed, weights = op.inputs[:2]
    apart = fed is not None and weights is not None and fed.shape[-1] != weights.shape[-1]
    return _told(op, apart, phrase("in groups"))


def _upsampled(op: Op) -> str:
    """The accelerator derives the padding from the size of the input instead of the output."""
    asked, fed, weights = options(op), given(op, 2), given(op, 1)
    fused = str(asked["fused_activation_function"])
    how = phrase("with {fused}, which is left out", fused)
    if fused != "NONE" or fed is None or weights is None or asked["padding"] != "SAME":
        return _told(op, fused != "NONE", how)
    wrong = False
    for axis, name in ((1, "stride_h"), (2, "stride_w")):
        stride, size = asked.integer(name), weights.shape[axis]
        read, made = fed.shape[axis], op.outputs[0].shape[axis]
        wrong |= _same_padding(read, size, stride) != _same_padding(made, size, stride)
    return _told(op, wrong, phrase("of this size with padding"))


def _same_padding(length: int, size: int, stride: int) -> int:
    return max(0, size - (length % stride or stride)) // 2


_ARITHMETIC = ("ADD", "DIV", "MUL", "SUB")
_PAIRS = (
    *("EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    *("LOGICAL_AND", "LOGICAL_OR", "MAXIMUM", "MINIMUM", "NOT_EQUAL", "POW", "SQUARED_DIFFERENCE"),
)

FLAWS: dict[str, Check] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys(_PAIRS, _plain_constants),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), _one_of_a_batch),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2"), _pads),
    "ARG_MAX": _argmax,
    "ATAN2": _equal_shapes,
    "BATCH_MATMUL": _matmul,
    "CONV_2D": _grouped,
    "CUMSUM": _cumsum,
    "DEPTHWISE_CONV_2D": _depthwise,
    "EMBEDDING_LOOKUP": _lookup,
    "FULLY_CONNECTED": _dense,
    "REVERSE_V2": _reversed,
    "RIGHT_SHIFT": _shifts,
    "SOFTMAX": _softmax,
    "TOPK_V2": _top,
    "TRANSPOSE_CONV": _upsampled,
}


# The types that it takes.
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

# Further types that an op may read or write.
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
    """Only computed tensors count: constants are converted as they are loaded."""
    for tensors, told, also in (
        (op.inputs, _READS, _ALSO_READS),
        (op.outputs, _MAKES, _ALSO_MAKES),
    ):
        for tensor in tensors:
            if tensor is None or tensor.is_const:
                continue
            if tensor.dtype not in (*_NUMBERS, *also.get(op.kind, ())):
                return phrase(told, op.kind, tensor.dtype)
            count = len(tensor.shape)
            if count > 4:
                return phrase("{kind} on {count} dimensions; it takes up to 4", op.kind, count)
    return ""


def _reads_constant(op: Op) -> bool:
    fed = given(op, 0)
    return fed is not None and fed.is_const


_data_flows = when(_reads_constant, phrase("{kind} of a constant"))
_no_single_number = when(
    lambda op: any(not tensor.shape for tensor in data(op) if not tensor.is_const),
    phrase("{kind} of a tensor without dimensions"),
)


def _halves_are_constant(op: Op) -> str:
    fed = given(op, 0)
    is_half = fed is not None and fed.dtype == "float16" and not fed.is_const
    return phrase("DEQUANTIZE of computed float16") if is_half else ""


_makes_dimensions = when(
    lambda op: not op.outputs[0].shape, phrase("{kind} to a tensor without dimensions")
)
_short_settings = when(
    lambda op: any(t is not None and t.dtype == "int64" for t in op.inputs[1:]),
    phrase("{kind} by int64 numbers"),
)


def _each_named(op: Op) -> str:
    starts, fed = given(op, 1), given(op, 0)
    is_short = starts is not None and fed is not None and starts.shape != (len(fed.shape),)
    return phrase("{kind} that does not name all dimensions", op.kind) if is_short else ""


def _forward(op: Op) -> str:
    strides = given(op, 3)
    is_back = strides is not None and strides.is_const and bool((strides.values() < 0).any())
    return phrase("{kind} backwards", op.kind) if is_back else ""


def _named(op: Op) -> str:
    told = phrase("CUSTOM {custom} is not in its list of ops", plain(op.custom))
    return told_if(op.custom not in _CUSTOM, told)


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
    count = len(op.inputs)
    return told_if(count != 2, phrase("{kind} of {count}; it adds two", op.kind, count))


_larger_block = when(
    lambda op: options(op).integer("block_size") <= 1, phrase("{kind} by blocks of 1")
)


_CUSTOM = ("Convolution2DTransposeBias", "MaxPoolingWithArgmax2D", "MaxUnpooling2D", "Resampler")
_KNOWN = activations("RELU", "RELU6", "RELU_N1_TO_1", "TANH", "SIGMOID")
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
    **takes("SLICE", ranks(2, 4), _short_settings),
    **takes("SOFTMAX", option_is("beta", 1.0)),
    **takes("STRIDED_SLICE", *_UNMASKED, ranks(2, 4), _forward, _each_named),
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
    """The accelerator's error in an op that it takes; "" where the op is sound or left to
    the CPU."""
    if op.kind not in _TAKES or storage(op):
        return storage(op)
    if op.kind not in FLAWS or any(check(op) for check in (_flowing_types, *_TAKES[op.kind])):
        return ""
    return FLAWS[op.kind](op)

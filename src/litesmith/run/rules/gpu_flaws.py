"""Where LiteRT's GPU accelerator computes something else than its CPU kernels, or dies: seen with
over 4000 models of one op each, with LiteRT 2.3.0 for WebGPU in float32."""

from collections.abc import Iterator

from litesmith.ir.types import Op, Tensor
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import axes, given, numbers, options
from litesmith.run.rules.rule_row import Check, data

_WRONG = phrase("LiteRT computes it wrongly on the GPU")
_DIES = phrase("LiteRT dies of it on the GPU")
_SLICE = 4  # channels are stored in fours
_INTEGERS = ("int16", "int32", "uint16", "uint32", "bool")


def _told(op: Op, is_wrong: bool, how: str, *, why: str = _WRONG) -> str:
    return f"{op.kind} {how}; {why}" if is_wrong else ""


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
    """What is stored with fewer than four dimensions loses the first of them."""
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
    return _told(
        op, places is not None and places.is_const, phrase("of constant places"), why=_DIES
    )


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
    return (
        _told(op, fed.dtype in _INTEGERS, phrase("of {dtype}", fed.dtype))
        or _told(op, first, phrase("of the first dimension"))
        or _told(
            op, len(fed.shape) == 3 and fed.shape[0] > 1, phrase("of a batch of three dimensions")
        )
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
    """Of any op: tensors of nothing, and weights in forms that the accelerator does not know."""
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
    """Its padding is worked out from the size of what it reads, not of what it makes."""
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

"""The ops that the Core ML delegate takes: float models, with constants possibly in float16."""

from math import prod

from litesmith.ir.types import Op, Tensor
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import (
    axes,
    constant,
    flat,
    given,
    no_activation,
    option_is,
    options,
    padded,
    ranks,
    reads,
    versions,
    weights,
)
from litesmith.run.rules.rule_row import Rules, data, takes, told_if, when

_FLOATS = ("float32", "float16")
_HIGHEST_VERSION = {"DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 6, "DEQUANTIZE": 3}
_REACH = 16_384


def _known_version(op: Op) -> str:
    return versions(_HIGHEST_VERSION.get(op.kind, 1))(op)


def _as_four(tensor: Tensor) -> tuple[int, ...]:
    return (1,) * (4 - len(tensor.shape)) + tensor.shape


def _broadcasts(op: Op) -> str:
    """One input covers the other by batch, by place as a whole, and by channel."""
    a, b = data(op)[0], data(op)[1]
    one, two = _as_four(a), _as_four(b)
    lone = any(t.is_const and t.elements == 1 for t in (a, b))
    places = one[1:3] == two[1:3] or prod(one[1:3]) == 1 or prod(two[1:3]) == 1
    channels = one[3] == two[3] or 1 in (one[3], two[3])
    if (one[0] == two[0] or lone) and places and channels:
        return ""
    return phrase("{kind} of shapes that it cannot broadcast", op.kind)


def _by_channel(op: Op) -> str:
    rank, axis = len(data(op)[0].shape), options(op).integer("axis")
    if rank in (3, 4) and axis in (-1, rank - 1) and len(op.inputs) > 1:
        return ""
    return phrase("CONCATENATION along axis {axis} of {rank}; it joins channels only", axis, rank)


def _small_window(op: Op) -> str:
    window = given(op, 1)
    is_large = window is not None and max(window.shape[1:3], default=0) > _REACH
    return told_if(is_large, phrase("{kind} with a window over {reach} wide", op.kind, _REACH))


def _mean_of_places(op: Op) -> str:
    if not options(op)["keep_dims"] or len(data(op)[0].shape) != 4:
        return phrase("MEAN that drops dimensions or has not 4; it takes 4 and keeps them")
    return "" if set(axes(op) or (0,)) <= {1, 2} else phrase("MEAN over more than height and width")


def _is_half_constant(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.is_const and tensor.dtype == "float16"


_half_constant = when(
    lambda op: not _is_half_constant(op.inputs[0]),
    phrase("DEQUANTIZE of computed values; it takes float16 constants only"),
)
_not_reshaped = when(
    lambda op: True, phrase("RESHAPE is taken with Core ML 2 only; version 3 is the default")
)
_LAYER = (constant(1, "weights"), constant(2, "biases"), weights(*_FLOATS))

CORE_ML = Rules(
    sources=(
        phrase("LiteRT: Core ML delegate, supported models and ops"),
        phrase("LiteRT: tflite/delegates/coreml, options of the delegate"),
    ),
    takes={
        **takes("HARD_SWISH LOGISTIC RELU RELU6 RELU_N1_TO_1 TANH"),
        **takes("ADD MUL", ranks(0, 4), _broadcasts),
        **takes("AVERAGE_POOL_2D MAX_POOL_2D", no_activation),
        **takes("CONCATENATION", no_activation, _by_channel),
        **takes("CONV_2D DEPTHWISE_CONV_2D", *_LAYER, _small_window),
        **takes("DEQUANTIZE", _half_constant),
        **takes("FULLY_CONNECTED", *_LAYER, option_is("weights_format", "DEFAULT"), flat),
        **takes("MEAN", _mean_of_places),
        **takes("MIRROR_PAD", option_is("mode", "REFLECT"), padded((1, 2), (4,))),
        **takes("PAD PADV2", padded((1, 2), (4,))),
        **takes("RESHAPE", _not_reshaped),
        **takes("RESIZE_BILINEAR", constant(1, "sizes")),
        **takes("SOFTMAX", option_is("beta", 1.0)),
        **takes("TRANSPOSE_CONV", constant(0, "sizes"), constant(1, "weights"), weights(*_FLOATS)),
    },
    always=(reads(*_FLOATS), _known_version),
    wants=_FLOATS,
    way_out=phrase("use the float model that it was made of"),
    least=2,
)

"""The ops that Coral's Edge TPU takes: 8-bit models of fixed shapes, from their start to the first
gap."""

from math import prod

from litesmith.ir.types import Op
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import (
    axes,
    constant,
    even_dilation,
    flat,
    flat_output,
    given,
    makes,
    no_activation,
    numbers,
    option_is,
    options,
    padded,
    reads,
    unreduced,
    versions,
    weights,
)
from litesmith.run.rules.rule_row import Rules, data, takes, told_if, when

_INTEGERS = ("int8", "uint8")
_MOST_SCORES = 16_000


_scaled = when(
    lambda op: any(t.quant is None or not t.quant.scale.size for t in (*data(op), *op.outputs)),
    phrase("{kind} on values without a scale; it takes quantized ones only"),
)


def _three_dimensions(op: Op) -> str:
    """Only the three innermost dimensions of a computed tensor may be larger than 1."""
    for tensor in (*data(op), *op.outputs):
        if not tensor.is_const and prod(tensor.shape[:-3]) > 1:
            shape = "×".join(map(str, tensor.shape))
            return phrase(
                "{kind} on {shape}; only the three innermost dimensions may exceed 1",
                op.kind,
                shape,
            )
    return ""


def _zeros_beside(op: Op) -> str:
    """A constant may be joined to one other input only, and only as zeros."""
    held = [numbers(op, place) for place, tensor in enumerate(op.inputs) if tensor.is_const]  # type: ignore[union-attr]
    if not held or (len(op.inputs) == 2 and all(v is not None and not v.any() for v in held)):
        return ""
    return phrase("CONCATENATION with a constant; it takes one other input, and zeros only")


_not_by_batch = when(
    lambda op: options(op).integer("axis") % max(len(op.outputs[0].shape), 1) == 0,
    phrase("{kind} along the batch"),
)


def _split_within(op: Op) -> str:
    held = numbers(op, 0)
    if held is None:
        return phrase("SPLIT along a computed axis; it takes constants only")
    is_first = int(held.ravel()[0]) % len(data(op)[0].shape) == 0
    return told_if(is_first, phrase("SPLIT along the batch"))


def _depth_by_four(op: Op) -> str:
    last = len(data(op)[0].shape) - 1
    depth = data(op)[0].shape[-1] if data(op)[0].shape else 0
    if last not in (axes(op) or ()) or depth % 4 == 0:
        return ""
    return phrase("{kind} over {depth} channels; it takes multiples of 4", op.kind, depth)


def _few_scores(op: Op) -> str:
    count = data(op)[0].elements
    told = phrase("SOFTMAX over {count} values; it takes up to {most_scores}", count, _MOST_SCORES)
    return told_if(count > _MOST_SCORES, told)


def _leading_ones(op: Op) -> str:
    """Only leading dimensions of 1 may go, so that no value moves."""
    full = data(op)[0].shape
    kept = op.outputs[0].shape
    moved = full[len(full) - len(kept) :] != kept
    return phrase("SQUEEZE of an inner dimension; it takes leading ones only") if moved else ""


def _steps_of_one(op: Op) -> str:
    held = numbers(op, 3)
    told = phrase("STRIDED_SLICE with steps; it takes steps of 1 only")
    return told_if(held is None or bool((held != 1).any()), told)


def _slopes_by_channel(op: Op) -> str:
    slopes = given(op, 1)
    told = phrase("PRELU with a slope for each place; it takes one for each channel")
    return told_if(slopes is not None and prod(slopes.shape[:-1]) != 1, told)


_RESIZES = (versions(2),)  # version 3 brought half-pixel centres, which its compiler does not know
_LAYER = (constant(1, "weights"), constant(2, "biases"))

EDGE_TPU = Rules(
    sources=(
        phrase(
            "Coral: TensorFlow models on the Edge TPU, model requirements and supported operations"
        ),
        phrase("Axis: ARTPEC-7 supported ops and optimization tips"),
    ),
    takes={
        **takes("ADD EXPAND_DIMS L2_NORMALIZATION LOGISTIC MAXIMUM MINIMUM MUL QUANTIZE RELU"),
        **takes("RELU6 RELU_N1_TO_1 RESHAPE RSQRT SLICE SPACE_TO_DEPTH SQUARED_DIFFERENCE SUB"),
        **takes("TANH TRANSPOSE UNIDIRECTIONAL_SEQUENCE_LSTM"),
        **takes("AVERAGE_POOL_2D MAX_POOL_2D", no_activation),
        **takes("CONCATENATION", no_activation, _zeros_beside),
        **takes("CONV_2D DEPTHWISE_CONV_2D", *_LAYER, even_dilation),
        **takes("FULLY_CONNECTED", *_LAYER, option_is("weights_format", "DEFAULT"), flat_output),
        **takes("MEAN", unreduced(0), _depth_by_four),
        **takes("REDUCE_MAX REDUCE_MIN SUM", unreduced(0)),
        **takes("PACK", _not_by_batch),
        **takes("PAD", padded((1, 2, 3), (2, 3, 4))),
        **takes("PRELU", _slopes_by_channel),
        **takes("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR", *_RESIZES),
        **takes("SOFTMAX", flat, _few_scores),
        **takes("SPLIT", _split_within),
        **takes("SQUEEZE", _leading_ones),
        **takes(
            "STRIDED_SLICE",
            _steps_of_one,
            option_is("ellipsis_mask", 0),
            option_is("new_axis_mask", 0),
        ),
        **takes("TRANSPOSE_CONV", constant(1, "weights"), constant(3, "biases")),
    },
    always=(
        reads(*_INTEGERS),
        makes(*_INTEGERS),
        weights(*_INTEGERS),
        _scaled,
        _three_dimensions,
    ),
    wants=_INTEGERS,
    way_out="litesmith quantize MODEL --to int8 --io int8 --data DATA -o OUT.tflite",
    static=True,
    stops=True,
)

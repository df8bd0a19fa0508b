"""`fuse`: arithmetic around a layer goes into it, so that it costs one op instead of four."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from litesmith import schema
from litesmith.ir.edit import consumers, rewrite
from litesmith.ir.match import chains
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, has_effect, kinds_where
from litesmith.ir.types import Array, Graph, Model, Op, Tensor, constant_numbers, frozen
from litesmith.ir.window import pads, slides
from litesmith.numeric.arrays import along
from litesmith.passes.core.step import Change, Context, GraphEdit, Skip, on_graphs, settle
from litesmith.passes.tidy.moves import same_quant
from litesmith.phrases import phrase

_LAYERS = kinds_where(lambda row: row.is_layer)
# Layers that a bias can be put in, but no activation that every delegate knows.
_SPREADING = kinds_where(lambda row: row.spreads and row.bias is not None)
# The versions that brought a bias, where it was not there from the start.
_WITH_BIAS = {"TRANSPOSE_CONV": 3}
_PADDABLE = kinds_where(lambda row: row.is_layer and row.has_window)
_ACTIVATING = kinds_where(lambda row: row.fuses_activation)
# The activations that the format can name in another op's options.
_ACTIVATIONS = kinds_where(lambda row: row.clamps is not None) & frozenset(
    schema.ENUMS["ActivationFunctionType"].names
)

# The op that a pair of ops becomes, why it cannot, or None where the pair is of another sort.
Fused = Op | str | None

Readers = Mapping[Tensor, Sequence[Op]]


@dataclass(frozen=True)
class Fuse:
    """Put paddings, scales, offsets and activations into the convolutions and layers beside them.

    pad         a PAD of zeros before a convolution that SAME padding can stand for
    scale       MUL or DIV by a constant a channel, as batch normalization leaves it, after a layer
    bias        ADD or SUB of a constant a channel after a layer
    activation  RELU, RELU6 or RELU_N1_TO_1 after an op that can apply it itself
    """

    pad: bool = True
    scale: bool = True
    bias: bool = True
    activation: bool = True

    def apply(self, model: Model, context: Context) -> Change:
        asked = self.pad, self.scale, self.bias, self.activation
        wanted = [rule for rule, is_asked in zip(_RULES, asked, strict=True) if is_asked]
        edits: list[GraphEdit] = [partial(_fuse, rule=rule) for rule in wanted]
        moved = dict(zip((_SCALING, _SHIFTING, _ACTIVATIONS), asked[1:], strict=True))
        kinds = frozenset(kind for held, is_asked in moved.items() if is_asked for kind in held)
        edits.insert(0, partial(_before_shuffles, kinds=kinds))
        return settle(model, [partial(on_graphs, edit=edit) for edit in edits])


# What comes first, what follows, and how the two become one.
Rule = tuple[frozenset[str], frozenset[str], Callable[[Op, Op, Readers], Fused]]


def _fuse(graph: Graph, rule: Rule) -> tuple[Graph, list[str], list[Skip]]:
    """Joins every pair of the two kinds that the rule can join."""
    first, second, join = rule
    replaced: dict[Op, tuple[Op, ...]] = {}
    touched: list[str] = []
    skipped: list[Skip] = []
    readers = consumers(graph)
    for before, after in chains(graph, (first, second)):
        if before in replaced or after in replaced:
            continue  # the next round sees what is left
        fused = join(before, after, readers)
        if has_effect(before) or has_effect(after):
            fused = phrase("it works on a state, which may change in between")
        if fused is None:
            continue
        if isinstance(fused, str):
            skipped.append(Skip(op_name(after), fused))
            continue
        replaced[before], replaced[after] = (), (fused,)
        touched.append(phrase("fused {op_name} and {op_name2}", op_name(before), op_name(after)))
    return rewrite(graph, ops=replaced), touched, skipped


def _pad(pad: Op, layer: Op, readers: Readers) -> Fused:
    """A convolution that pads by itself what the PAD before it padded."""
    source, padded = pad.inputs[0], pad.outputs[0]
    widths = constant_numbers(pad.inputs[1])
    if source is None or widths is None or widths.shape != (4, 2):
        return phrase("its widths are computed, or its input has not four dimensions")
    if layer.inputs[0] is not padded or layer.option("padding") != "VALID":
        return phrase(
            "what follows does not read it as a convolution without padding reads its input"
        )
    if not same_quant(source.quant, padded.quant):
        return phrase("it changes the scale of what it pads")
    if any(tensor.dynamic for tensor in (source, padded)):
        return phrase("a dimension is free, so the padding that SAME gives is not known")
    wanted = _same_widths(layer, source)
    if wanted is None:
        return phrase("the layer after it is no convolution of an image")
    if widths.tolist() != wanted:
        return phrase(
            "it pads by {widths}, where SAME pads by {widths2}",
            _widths_text(widths.tolist()),
            _widths_text(wanted),
        )
    assert layer.options is not None
    inputs = (source, *layer.inputs[1:])
    return replace(layer, inputs=inputs, options=layer.options.set(padding="SAME"))


def _same_widths(layer: Op, source: Tensor) -> list[list[int]] | None:
    """The widths of a PAD that does what SAME padding of this layer does, if there are such."""
    weight = layer.inputs[1]
    if weight is None or layer.options is None or len(weight.shape) != 4 or len(source.shape) != 4:
        return None
    try:
        moves = slides(layer.options, weight.shape[1:3])
        spatial = [list(pads("SAME", *each)) for each in zip(source.shape[1:3], moves, strict=True)]
    except ValueError:
        return None
    return [[0, 0], *spatial, [0, 0]]


def _widths_text(widths: list[list[int]]) -> str:
    return " ".join(f"{before}+{after}" for before, after in widths)


def _scale(layer: Op, arithmetic: Op, readers: Readers) -> Fused:
    """A layer with weights and bias multiplied as the arithmetic after it would."""
    parts = _layer_parts(layer, arithmetic, readers)
    if not isinstance(parts, _Parts):
        return parts
    if OPS[arithmetic.kind].arithmetic == "/" and not parts.constant.all():
        return phrase("it divides by zero")
    factor = 1 / parts.constant if OPS[arithmetic.kind].arithmetic == "/" else parts.constant
    axis = OPS[layer.kind].axis
    assert axis is not None
    weight = parts.weight * along(factor, parts.weight.ndim, axis)
    return _with_constants(layer, arithmetic, weight, parts.bias * factor)


def _bias(layer: Op, arithmetic: Op, readers: Readers) -> Fused:
    """A layer with the constant that is added or subtracted after it in its bias."""
    parts = _layer_parts(layer, arithmetic, readers)
    if not isinstance(parts, _Parts):
        return parts
    offset = -parts.constant if OPS[arithmetic.kind].arithmetic == "-" else parts.constant
    return _with_constants(layer, arithmetic, None, parts.bias + offset)


@dataclass(frozen=True)
class _Parts:
    """What of a layer and the arithmetic after it is constant, in float64; one value a channel."""

    weight: Array
    bias: Array
    constant: Array


def _layer_parts(layer: Op, arithmetic: Op, readers: Readers) -> _Parts | str | None:
    row = OPS[layer.kind]
    assert row.weight is not None and row.bias is not None and row.axis is not None
    bias_tensor = layer.inputs[row.bias] if row.bias < len(layer.inputs) else None
    weight_tensor = layer.inputs[row.weight]
    weight = _float_constant(weight_tensor)
    bias = np.zeros(1) if bias_tensor is None else _float_constant(bias_tensor)
    constant = _other_operand(layer.outputs[0], arithmetic)
    if constant is None:
        return None
    if weight is None or bias is None:
        return phrase("the weights or the bias before it are not float32 constants")
    if layer.option("fused_activation_function") != "NONE":
        return phrase("an activation stands between it and the layer before")
    able = {"NONE"} if layer.kind in _SPREADING else {"NONE", *_ACTIVATIONS}
    if arithmetic.option("fused_activation_function") not in able:
        return phrase("the layer before cannot apply its activation")
    if weight.ndim <= row.axis or bias.size not in (1, weight.shape[row.axis]):
        return phrase("the weights and the bias before it do not fit each other")
    channels = weight.shape[row.axis]
    if constant.size not in (1, channels) or constant.size != (constant.shape or (1,))[-1]:
        return phrase(
            "its constant has shape {shape}, not one value a channel of {channels}",
            constant.shape,
            channels,
        )
    if layer.outputs[0].shape != arithmetic.outputs[0].shape:
        return phrase("it changes the shape")
    if weight_tensor is not None and len(readers.get(weight_tensor, [])) > 1:
        return phrase("the weights before it serve other ops too")
    flat = constant.reshape(-1)
    return _Parts(
        weight, np.broadcast_to(bias.reshape(-1), channels), np.broadcast_to(flat, channels)
    )


def _with_constants(layer: Op, arithmetic: Op, weight: Array | None, bias: Array) -> Fused:
    """The layer with new constants, in the place of the arithmetic after it."""
    row = OPS[layer.kind]
    assert row.weight is not None and row.bias is not None and layer.options is not None
    inputs = [*layer.inputs, *([None] * (row.bias + 1 - len(layer.inputs)))]
    old_weight, old_bias = inputs[row.weight], inputs[row.bias]
    assert old_weight is not None
    if old_bias is None:
        old_bias = Tensor(f"{layer.outputs[0].name}/bias", bias.shape)
    inputs[row.bias] = _constant_like(old_bias, bias)
    if weight is not None:
        inputs[row.weight] = _constant_like(old_weight, weight)
    new = [t.data for t in inputs if t is not None and t.data is not None]
    if not all(np.isfinite(data).all() for data in new):
        return phrase("the product leaves the range of float32")
    options = layer.options.set(
        fused_activation_function=arithmetic.option("fused_activation_function")
    )
    version = max(layer.version, _WITH_BIAS.get(layer.kind, 1))
    return replace(
        layer,
        inputs=tuple(inputs),
        outputs=arithmetic.outputs,
        options=options,
        version=version,
    )


def _constant_like(tensor: Tensor, values: Array) -> Tensor:
    with np.errstate(all="ignore"):
        data = values.astype(np.float32)
    return replace(tensor, shape=data.shape, data=frozen(data))


def _other_operand(known: Tensor, arithmetic: Op) -> Array | None:
    """The constant beside the known operand; only a product and a sum may have it first."""
    a, b = arithmetic.inputs
    if a is known and b is not known:
        return _float_constant(b)
    return _float_constant(a) if b is known and OPS[arithmetic.kind].is_commutative else None


def _float_constant(tensor: Tensor | None) -> Array | None:
    """A float32 constant in float64, so that products are rounded once."""
    if tensor is None or tensor.data is None or tensor.dtype != "float32" or tensor.sparsity:
        return None
    return tensor.data.astype(np.float64)


def _activation(op: Op, activation: Op, readers: Readers) -> Fused:
    """An op that applies the activation after it."""
    if op.options is None:
        return None
    if op.option("fused_activation_function") != "NONE":
        return phrase("the op before it applies another activation already")
    before, after = op.outputs[0], activation.outputs[0]
    if before.dtype != after.dtype or not same_quant(before.quant, after.quant):
        return phrase("it changes the scale, and one rounding is not two")
    options = op.options.set(fused_activation_function=activation.kind)
    return replace(op, outputs=activation.outputs, options=options)


def _before_shuffles(graph: Graph, kinds: frozenset[str]) -> tuple[Graph, list[str], list[Skip]]:
    """What is done to each value, or to each channel, behind an op that only moves values is done
    in front of it, where the layer that makes the values can take it in."""
    replaced: dict[Op, tuple[Op, ...]] = {}
    for layer, shuffle, after in chains(graph, (_LAYERS, _SHUFFLES, kinds)):
        made, shuffled = layer.outputs[0], shuffle.outputs[0]
        if made.quant is not None or shuffle in replaced or after in replaced:
            continue
        inputs = [
            made if t is shuffled else _ahead(t, shuffle, made, shuffled) for t in after.inputs
        ]
        if layer.option("fused_activation_function") != "NONE" or None in inputs:
            continue
        if after.outputs[0].shape != shuffled.shape or made.dtype != "float32":
            continue
        ahead = replace(made, name=f"{after.outputs[0].name}/ahead")
        moved = (ahead, *shuffle.inputs[1:])
        replaced[shuffle] = (replace(after, inputs=tuple(inputs), outputs=(ahead,)),)
        replaced[after] = (replace(shuffle, inputs=moved, outputs=after.outputs),)
    touched: list[str] = [
        phrase("moved {op_name} in front of {op_name2}", op_name(after[0]), op_name(shuffle))
        for shuffle, after in replaced.items()
        if shuffle.kind in _SHUFFLES
    ]
    return rewrite(graph, ops=replaced), touched, []


def _ahead(tensor: Tensor | None, shuffle: Op, made: Tensor, shuffled: Tensor) -> Tensor | None:
    """A constant of one value, or one a channel, as it stands in front of the op that moves."""
    values = _float_constant(tensor)
    if tensor is None or values is None or values.size not in (1, shuffled.shape[-1]):
        return None
    if values.size == 1:
        fits = len(tensor.shape) <= len(made.shape)
        return tensor if fits else _constant_like(tensor, values.reshape(1))
    if values.shape[-1] != values.size:
        return None
    block = shuffle.option("block_size")
    if isinstance(block, int):
        tiled = np.tile(values.reshape(-1), block * block)
        return replace(_constant_like(tensor, tiled), name=f"{tensor.name}/repeated")
    keeps = shuffle.kind != "TRANSPOSE" and made.shape[-1] == shuffled.shape[-1]
    return _constant_like(tensor, values.reshape(-1)) if keeps else None


# Ops that only move values.
_SHUFFLES = frozenset({"DEPTH_TO_SPACE", "EXPAND_DIMS", "RESHAPE", "SQUEEZE", "TRANSPOSE"})

_SCALING = kinds_where(lambda row: row.arithmetic in ("*", "/"))
_SHIFTING = kinds_where(lambda row: row.arithmetic in ("+", "-"))

# In the order of Fuse's fields.
_RULES: tuple[Rule, ...] = (
    (frozenset({"PAD"}), _PADDABLE, _pad),
    (_LAYERS | _SPREADING, _SCALING, _scale),
    (_LAYERS | _SPREADING, _SHIFTING, _bias),
    (_ACTIVATING, _ACTIVATIONS, _activation),
)

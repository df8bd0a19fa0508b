"""A quantized model beside its float one: pairs of tensors, and both models in one graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from litesmith.blocks.structure import names_by_output, structure_of
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.edit import called_graphs, regraph, substitute
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, has_effect
from litesmith.ir.softmax_scores import scores_of, trace_back
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Tensor
from litesmith.passes.core.layers import (
    Layer,
    layers_of,
    real_bias,
    real_values,
    unpacked_constants,
)
from litesmith.passes.core.schemes import SCHEMES
from litesmith.phrases import phrase
from litesmith.units import plain


@dataclass(frozen=True, eq=False)
class Twin:
    """A tensor of a quantized model, and its counterpart in the float model.

    place, op  the op that writes it, in the quantized model unless `renumber`; −1 and None for an
               input
    layers     that op and its counterpart, where they are layers
    part       the op's part in a recognised block, if any
    """

    ours: Tensor
    theirs: Tensor
    place: int = -1
    op: Op | None = None
    layers: tuple[Layer, Layer] | None = None
    part: str = ""

    @property
    def where(self) -> str:
        if self.op is None:
            return phrase("input {name!r}", _short_name(self.theirs))
        where = op_place(self.place, self.op, self.theirs)
        return phrase("{where} ({part})", where, self.part) if self.part else where

    @property
    def number(self) -> str:
        """The op's number, without its part in a block."""
        return self.where if self.op is None else phrase("op {place}", self.place)

    @property
    def quant(self) -> Quant | None:
        """The form of the values, where it is integers with one scale."""
        quant = self.ours.quant
        has_one = quant is not None and quant.block is None and quant.scale.size == 1
        return quant if has_one and "int" in self.ours.dtype else None


def op_place(place: int, op: Op, tensor: Tensor) -> str:
    """An op by its number, its kind and its output."""
    return phrase("op {place} {kind} {name!r}", place, op.kind, _short_name(tensor))


def _short_name(tensor: Tensor) -> str:
    return plain("/".join(tensor.name.split(";")[0].split("/")[-2:]))


def find_twins(model: Model, reference: Model) -> list[Twin]:
    """Pairs the tensors of both models, in order of execution.

    Layers are matched by their order where kinds and shapes agree throughout, otherwise by the
    names of their outputs; other ops are matched by their inputs.
    """
    why_not = inseparable(model) or inseparable(reference)
    if why_not:
        raise CannotRun(why_not)
    parts = names_by_output(structure_of(reference))
    found = _Matching(model.main, reference.main).find_twins()
    return [replace(twin, part=parts.get(twin.theirs, "")) for twin in found]


def renumber(found: Sequence[Twin], file: Model) -> list[Twin]:
    """The twins, with the numbers that their float ops have in the user's file."""
    makers = {t: (place, op) for place, op in enumerate(file.main.ops) for t in op.outputs}
    return [
        replace(twin, place=makers[twin.theirs][0], op=makers[twin.theirs][1])
        if twin.op is not None and twin.theirs in makers
        else twin
        for twin in found
    ]


def inseparable(model: Model) -> str:
    """Why the errors of single ops cannot be separated; "" where they can."""
    for op in model.main.ops:
        if op.is_custom:
            what = phrase("is a custom op, whose behaviour when run alone is not known")
        elif called_graphs(op):
            what = "runs another graph"
        elif has_effect(op):
            what = "keeps a state"
        else:
            continue
        return phrase(
            "{op_name} {what}; the errors of single layers cannot be separated", op_name(op), what
        )
    return ""


class Pair(NamedTuple):
    """A quantized model and its float one.

    reference  the float model, with its constants unpacked
    file       the float model as the user's file has it, whose ops a command numbers
    is_ours    True where the quantized model was made here, and the user has only the float one
    """

    model: Model
    reference: Model
    file: Model
    is_ours: bool

    @property
    def origin(self) -> str:
        """Whether the quantized model is the user's or was made here, in words."""
        if self.is_ours:
            without = phrase("without the correction that litesmith quantize adds")
            return phrase("quantized to int8 here (ranges only, {without})", without)
        return scheme_of(self.model)


def scheme_of(model: Model) -> str:
    """The scheme that most layers of a model follow."""
    counts: dict[str, int] = {}
    for layer in layers_of(model.main).values():
        data = "int8" if layer.data.dtype == "uint8" else layer.data.dtype
        weights = "int8" if layer.weight.dtype == "uint8" else layer.weight.dtype
        for name, scheme in SCHEMES.items():
            if scheme == (data, weights, layer.unpack is not None):
                counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else "int8"


class _Matching:
    def __init__(self, graph: Graph, reference: Graph) -> None:
        if len(graph.inputs) != len(reference.inputs):
            raise BadInput(
                "the model has {count} inputs, the float one {count2}; give the one it was "
                "made from",
                len(graph.inputs),
                len(reference.inputs),
            )
        self._graph, self._reference = graph, reference
        self._unpacked = unpacked_constants(graph)
        self._ours, self._theirs = layers_of(graph), layers_of(reference)
        self._by_order = self._pair_by_order()
        self._names = {t.name: t for op in reference.ops for t in op.outputs}
        self._makers = {t: op for op in reference.ops for t in op.outputs}
        self._alike: dict[object, list[Op]] = {}
        for op in reference.ops:
            self._alike.setdefault(_key(op.kind, _computed(op, {})), []).append(op)
        self.known: dict[Tensor, Tensor] = {}

    def find_twins(self) -> Iterator[Twin]:
        for ours, theirs in zip(self._graph.inputs, self._reference.inputs, strict=True):
            if ours.elements == theirs.elements:
                self.known[ours] = theirs
                yield Twin(ours, theirs)
        for place, op in enumerate(self._graph.ops):
            source = op.inputs[0] if OPS[op.kind].rescales else None
            if source in self.known:
                self.known[op.outputs[0]] = self.known[source]
            elif source is None:
                yield from self._outputs(place, op)

    def _outputs(self, place: int, op: Op) -> Iterator[Twin]:
        counterpart = self._counterpart(op)
        if counterpart is None:
            return
        mine, other = self._ours.get(op), self._theirs.get(counterpart)
        # A layer without some of its channels has no weights to put into the float layer.
        is_same = mine and other and mine.weight.elements == other.weight.elements
        layers = (mine, other) if mine and other and is_same else None
        for ours, theirs in zip(op.outputs, counterpart.outputs, strict=False):
            reached = self._after_activation(op, counterpart, theirs)
            if reached is not None and reached.shape == ours.shape:
                self.known[ours] = reached
                yield Twin(ours, reached, place, op, layers)

    def _counterpart(self, op: Op) -> Op | None:
        if op in self._by_order:
            return self._by_order[op]
        computed = _computed(op, self._unpacked)
        if all(t in self.known for t in computed):
            same = self._alike.get(_key(op.kind, [self.known[t] for t in computed]))
            if same:
                return same.pop(0)
        for name in (op.outputs[0].name, op.outputs[0].name.rpartition("/")[0]):
            found = self._makers.get(self._names.get(name, op.outputs[0]))
            if found is not None and found.kind == op.kind:
                return found
        return None

    def _pair_by_order(self) -> dict[Op, Op]:
        """Pairs the layers by their order; empty where the layers differ."""
        sides = [
            [(layer.op.kind, layer.weight.shape) for layer in layers.values()]
            for layers in (self._ours, self._theirs)
        ]
        return dict(zip(self._ours, self._theirs, strict=True)) if sides[0] == sides[1] else {}

    def _after_activation(self, op: Op, counterpart: Op, tensor: Tensor) -> Tensor | None:
        """The float tensor after the activation that only the quantized op has fused."""
        wanted, fused = (o.option("fused_activation_function") for o in (op, counterpart))
        if wanted == fused:
            return tensor
        readers = [o for o in self._reference.ops if tensor in o.inputs]
        if fused == "NONE" and len(readers) == 1 and readers[0].kind == wanted:
            return readers[0].outputs[0]
        return None


def _computed(op: Op, unpacked: Mapping[Tensor, Op]) -> list[Tensor]:
    return [t for t in op.inputs if t is not None and not t.is_const and t not in unpacked]


def _key(kind: str, tensors: Sequence[Tensor]) -> tuple[str, tuple[int, ...]]:
    return kind, tuple(id(t) for t in tensors)


def scores(reference: Model, found: Sequence[Twin]) -> list[Twin]:
    """The outputs of both models before a softmax, which hides errors or magnifies them."""
    by_float = {twin.theirs: twin for twin in found}
    chosen: list[Twin] = []
    for output in reference.main.outputs:
        tensor = trace_back(reference.main, scores_of(reference.main, output))
        twin = by_float.get(tensor) or by_float.get(output)
        if twin is not None and twin.theirs.dtype == "float32" and twin not in chosen:
            chosen.append(twin)
    if not chosen:
        raise CannotRun("no output of the model could be matched with one of the float model")
    return chosen


class Joined(NamedTuple):
    """Both models in one; `stored` has the output of each layer with the quantized weights.

    Such a layer computes in float, on the float model's inputs: its error comes from the stored
    weights and bias alone.
    """

    model: Model
    stored: dict[Twin, Tensor]


def join_models(model: Model, reference: Model, found: Sequence[Twin]) -> Joined:
    """One graph in which the two models, and each layer once more, run on the same inputs."""
    taken: dict[Tensor, Tensor] = {}
    ops: list[Op] = list(reference.main.ops)
    for ours, theirs in zip(model.main.inputs, reference.main.inputs, strict=True):
        if ours.dtype == theirs.dtype:
            taken[ours] = theirs
        elif ours.quant is None or theirs.dtype != "float32":
            raise BadInput(
                "input {name!r} is {dtype}, and {dtype2} in the float model; give the one "
                "it was made from",
                plain(ours.name),
                ours.dtype,
                theirs.dtype,
            )
        else:
            ops.append(to_codes(theirs, ours))
    ops += [substitute(op, taken) for op in model.main.ops]
    stored: dict[Twin, Tensor] = {}
    for twin in found:
        if twin.layers and has_stored_weights(twin.layers[0]):
            op = with_stored_weights(*twin.layers)
            stored[twin] = replace(op.outputs[0], name=f"{op.outputs[0].name}/stored")
            ops.append(replace(op, outputs=(stored[twin],)))
    graph = regraph(reference.main, ops=ops)
    return Joined(replace(reference, graphs=(graph,), signatures=(), metadata=()), stored)


def has_stored_weights(layer: Layer) -> bool:
    """True where the weights are integers with scales."""
    quant = layer.weight.quant
    return layer.weight.dtype != "float32" and (quant is None or quant.block is None)


def with_stored_weights(ours: Layer, theirs: Layer) -> Op:
    """The float layer with the values that the quantized layer's numbers stand for."""
    inputs = list(theirs.op.inputs)
    inputs[theirs.weight_at] = _in_float(theirs.weight, real_values(ours.weight))
    if ours.bias is not None or theirs.bias is not None:
        kept = theirs.bias or Tensor(f"{theirs.weight.name}/bias", (theirs.channels,))
        inputs[theirs.bias_at : theirs.bias_at + 1] = [_in_float(kept, real_bias(ours))]
    return replace(theirs.op, inputs=tuple(inputs))


def _in_float(tensor: Tensor, values: Array) -> Tensor:
    data = values.reshape(tensor.shape).astype(np.float32)
    return replace(tensor, dtype="float32", data=data, quant=None)


def to_codes(real: Tensor, stored: Tensor) -> Op:
    return Op("QUANTIZE", (real,), (stored,), version=OPS["QUANTIZE"].versions.get(stored.dtype, 1))


def to_real(stored: Tensor, real: Tensor) -> Op:
    version = OPS["DEQUANTIZE"].versions.get(stored.dtype, 1)
    return Op("DEQUANTIZE", (stored,), (real,), version=version)

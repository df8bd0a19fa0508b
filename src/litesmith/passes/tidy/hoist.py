"""`hoist`: what the steps of an unrolled recurrence make of their inputs is made for all steps at
once.

A step multiplies its input and the state that it was handed, side by side, with one large weight.
The part of the input does not wait for the state: computed for all steps together, its weights are
read once and not once a step, which is what such a network spends its time on. And the input and
the state, whose ranges are often far apart, each have a scale of their own then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from litesmith.blocks.recurrence import cells, step_layers
from litesmith.blocks.wiring import Wiring
from litesmith.ir.edit import needed_ops, regraph, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Record, Tensor, frozen
from litesmith.passes.core.layers import Layer, layer_of
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.phrases import phrase

# From so many shared weights on it was faster in float, dynamic and int8: with a quarter of them
# times were equal, with 4,096 a tenth longer.
_MANY = 1 << 17

_EFFECT = phrase("what it reads depends on something outside the graph")


class _Steps(NamedTuple):
    """Layers with one weight, in order, and the part of their data that none of them has made.

    inputs  that part, a tensor each
    states  the other part; None where the whole is made elsewhere
    begins  the first column of weights that the inputs are multiplied with
    """

    layers: tuple[Layer, ...]
    inputs: tuple[Tensor, ...]
    states: tuple[Tensor, ...] | None = None
    begins: int = 0

    @property
    def first(self) -> Layer:
        return self.layers[0]


@dataclass(frozen=True)
class Hoist:
    """Compute the inputs' part of an unrolled recurrence for all steps at once."""

    def apply(self, model: Model, context: Context) -> Change:
        touched: list[str] = []
        skipped: list[Skip] = []
        graph = model.main
        for steps in _all_steps(graph):
            before = _waiting(graph, steps)
            if any(OPS[op.kind].has_effect for op in before):
                skipped.append(Skip(op_name(steps.first.op), _EFFECT))
                continue
            graph = _hoisted(graph, steps, before)
            touched.append(
                phrase(
                    "computed the inputs' part of {op_name} for all {count} steps at once",
                    op_name(steps.first.op),
                    len(steps.layers),
                )
            )
        made = with_main(model, graph) if touched else model
        return Change(made, tuple(touched), tuple(skipped))


def is_worth_hoisting(model: Model) -> bool:
    """True where the weights that steps share are so many that it takes time to read them."""
    graph = model.main
    if not any(op.kind == "TANH" for op in graph.ops):
        return False
    return any(steps.first.weight.elements >= _MANY for steps in _all_steps(graph))


def _all_steps(graph: Graph) -> Iterator[_Steps]:
    """Layers of a recurrence that share their weight, where something that they read is made by
    none of them."""
    wiring = Wiring.of(graph)
    shared: dict[tuple[Tensor, Tensor | None], list[Layer]] = {}
    for op in step_layers(graph, cells(wiring)):
        layer = layer_of(op)
        if layer is not None and _is_plain(layer):
            shared.setdefault((layer.weight, layer.bias), []).append(layer)
    for layers in shared.values():
        if len(layers) > 1 and all(one.op.options == layers[0].op.options for one in layers):
            yield from _steps(wiring, layers)


def _is_plain(layer: Layer) -> bool:
    """True for a dense layer on float rows."""
    is_rows = len(layer.data.shape) == 2 and len(layer.op.outputs[0].shape) == 2
    is_float = layer.weight.dtype == layer.data.dtype == "float32" and layer.weight.quant is None
    is_free = all(t.dynamic is None for t in (layer.data, layer.op.outputs[0]))
    is_default = layer.op.option("weights_format") in (None, "DEFAULT")
    return OPS[layer.op.kind].is_dense and is_rows and is_float and is_free and is_default


def _steps(wiring: Wiring, layers: Sequence[Layer]) -> Iterator[_Steps]:
    later = _made_behind(wiring.graph, [layer.op for layer in layers])
    whole = tuple(layer.data for layer in layers)
    if later.isdisjoint(whole):
        is_alike = len({tensor.shape for tensor in whole}) == 1 and len(set(whole)) == len(whole)
        if is_alike:
            yield _Steps(tuple(layers), whole)
        return
    joins = [wiring.makers.get(tensor) for tensor in whole]
    parts = [_parts(op) for op in joins]
    if any(len(one) != 2 for one in parts) or len({one[0].shape for one in parts}) != 1:
        return
    for place in (0, 1):
        inputs = tuple(one[place] for one in parts)
        if later.isdisjoint(inputs) and len(set(inputs)) == len(inputs):
            states = tuple(one[1 - place] for one in parts)
            begins = place * parts[0][0].shape[-1]
            yield _Steps(tuple(layers), inputs, states, begins)
            return


def _made_behind(graph: Graph, ops: Sequence[Op]) -> set[Tensor]:
    """What depends on the results of some ops."""
    found = {tensor for op in ops for tensor in op.outputs}
    for op in graph.ops:
        if any(tensor in found for tensor in op.inputs if tensor is not None):
            found.update(op.outputs)
    return found


def _parts(op: Op | None) -> tuple[Tensor, ...]:
    """What stands side by side in the rows of a tensor; nothing where it is no such join."""
    if op is None or op.kind != "CONCATENATION" or len(op.outputs[0].shape) != 2:
        return ()
    if op.option("fused_activation_function") not in (None, "NONE"):
        return ()
    axis = op.option("axis")
    is_beside = isinstance(axis, int) and axis % 2 == 1
    parts = tuple(t for t in op.inputs if t is not None and not t.is_const)
    return parts if is_beside and len(parts) == len(op.inputs) else ()


def _waiting(graph: Graph, steps: _Steps) -> list[Op]:
    """The ops behind the first layer that the inputs of later steps need."""
    begins = graph.ops.index(steps.first.op)
    needed = set(needed_ops(graph.ops, steps.inputs, lambda op: False))
    return [op for op in graph.ops[begins:] if op in needed]


def _hoisted(graph: Graph, steps: _Steps, waiting: Sequence[Op]) -> Graph:
    made, results = _at_once(steps)
    rest = dict(_rest(steps, results))
    ops: list[Op] = []
    for op in graph.ops:
        if op is steps.first.op:
            ops += [*waiting, *made]
        if op in rest:
            ops += rest[op]
        elif op not in waiting:
            ops.append(op)
    joined = {layer.data for layer in steps.layers}
    read = {t for op in ops for t in op.inputs if t is not None} | set(graph.outputs)
    gone = {tensor for tensor in joined if tensor not in read}
    return regraph(graph, ops=[op for op in ops if gone.isdisjoint(op.outputs)])


def _at_once(steps: _Steps) -> tuple[list[Op], list[Tensor]]:
    """The layer for the inputs of all steps, and its results step by step."""
    layer, count = steps.first, len(steps.layers)
    rows, width = steps.inputs[0].shape
    name = layer.op.outputs[0].name
    data = Tensor(f"{name}/inputs", (rows * count, width))
    whole = Tensor(f"{name}/steps", (rows * count, layer.channels))
    results = [one.op.outputs[0] for one in steps.layers]
    op = layer.op
    if steps.states is not None:
        results = [replace(result, name=f"{result.name}/input") for result in results]
        op = replace(op, options=_without_activation(op))
    weight = _columns(layer.weight, steps.begins, width)
    axis = Tensor(f"{name}/axis", (), "int32", frozen(np.array(0, np.int32)))
    rows_first = Record("ConcatenationOptions", {"axis": 0, "fused_activation_function": "NONE"})
    return [
        Op("CONCATENATION", steps.inputs, (data,), rows_first),
        replace(op, inputs=(data, weight, *op.inputs[2:]), outputs=(whole,)),
        Op("SPLIT", (axis, whole), tuple(results), Record("SplitOptions", {"num_splits": count})),
    ], results


def _rest(steps: _Steps, results: Sequence[Tensor]) -> Iterator[tuple[Op, list[Op]]]:
    """What is left to do in each step: the state's part, added."""
    if steps.states is None:
        yield from ((layer.op, []) for layer in steps.layers)
        return
    width = steps.states[0].shape[-1]
    begins = steps.inputs[0].shape[-1] if steps.begins == 0 else 0
    weight = _columns(steps.first.weight, begins, width)
    for layer, state, result in zip(steps.layers, steps.states, results, strict=True):
        op, output = layer.op, layer.op.outputs[0]
        made = replace(output, name=f"{output.name}/state")
        inputs = (state, weight, *(None for _ in op.inputs[2:]))
        activation = op.option("fused_activation_function") or "NONE"
        options = Record("AddOptions", {"fused_activation_function": activation})
        yield (
            op,
            [
                replace(op, inputs=inputs, outputs=(made,), options=_without_activation(op)),
                Op("ADD", (result, made), (output,), options),
            ],
        )


def _without_activation(op: Op) -> Record | None:
    if op.options is None:
        return None
    return replace(op.options, fields={**op.options.fields, "fused_activation_function": "NONE"})


def _columns(weight: Tensor, begins: int, width: int) -> Tensor:
    """Some columns of a weight; the weight itself where it has no others."""
    if width == weight.shape[-1]:
        return weight
    values = np.ascontiguousarray(weight.values()[:, begins : begins + width])
    return replace(weight, name=f"{weight.name}/{begins}", shape=values.shape, data=frozen(values))

"""`resize`: inputs of fixed sizes, and everything that is computed from them in the sizes that
follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import called_graphs, substitute, with_graphs
from litesmith.ir.model_text import op_name, type_text
from litesmith.ir.ops import OPS, infer_shapes, is_repeatable, is_sized_late
from litesmith.ir.shape_rule import Dims, Shapes
from litesmith.ir.types import Array, Graph, Model, Op, Tensor, constant_numbers, frozen
from litesmith.numeric.kernels import evaluate
from litesmith.ops.call import Call
from litesmith.ops.registry import find_op
from litesmith.passes.core.step import Change, Context
from litesmith.phrases import phrase
from litesmith.type_guards import is_whole
from litesmith.units import plain

# Values that decide sizes are few; longer results are left to the runtime.
_MOST_VALUES = 4096
_LIMIT = 2**31  # the format stores a dimension as int32


@dataclass(frozen=True)
class Resize:
    """Fix the sizes of the model's inputs, and of all that is computed from them.

    shape  NAME=1,1280 for each input, by its own name or that in a signature; the sizes alone
           where there is one input
    """

    shape: tuple[str, ...] = ()

    def apply(self, model: Model, context: Context) -> Change:
        wanted = _wanted(model, self.shape)
        work = _Resizing(model)
        for number in _entries(model):
            graph = model.graphs[number]
            if any(tensor in wanted for tensor in graph.inputs):
                free = {t for t in graph.inputs if t not in wanted and t.dynamic is not None}
                work.walk(number, [wanted.get(t, t.shape) for t in graph.inputs], free)
        touched = [_told(t, work.moved[t]) for t in wanted if t in work.moved]
        return Change(work.model(), tuple(touched))


def shape_text(name: str, sizes: Sequence[int]) -> str:
    """The sizes of an input as the step takes them: `x=1,1280`."""
    listed = ",".join(map(str, sizes))
    return f"{name}={listed}" if name else listed


def split_shape(text: str) -> tuple[str, Dims]:
    """The name and the sizes that a text like `x=1,1280` holds; the name may be left out."""
    name, _, listed = text.rpartition("=")
    words = [word.strip() for word in listed.split(",")]
    if not all(is_whole(word) and 0 < int(word) < _LIMIT for word in words):
        raise BadInput(
            "shape {text!r}: sizes are whole numbers from 1 on, as in NAME=1,1280", plain(text)
        )
    return name, tuple(map(int, words))


def input_names(model: Model) -> dict[str, list[Tensor]]:
    """The inputs that a caller can name, by their own names and by those in signatures."""
    named: dict[str, list[Tensor]] = {}
    pairs = [(t.name, t) for number in _entries(model) for t in model.graphs[number].inputs]
    pairs += [pair for signature in model.signatures for pair in signature.inputs]
    for name, tensor in pairs:
        known = named.setdefault(name, [])
        if tensor not in known:
            known.append(tensor)
    return named


def _entries(model: Model) -> list[int]:
    """The numbers of the graphs that can be called from outside."""
    return list(dict.fromkeys((0, *(signature.graph for signature in model.signatures))))


def _wanted(model: Model, texts: Sequence[str]) -> dict[Tensor, Dims]:
    """The shape that is asked for of each input."""
    wanted: dict[Tensor, Dims] = {}
    for text in texts:
        name, sizes = split_shape(text)
        for tensor in _named(model, name, text):
            if tensor in wanted:
                raise BadInput("shape {text!r}: this input has a shape already", plain(text))
            if len(sizes) != len(tensor.shape):
                raise BadInput(
                    "shape {text!r}: {name!r} is {type}; give {count} sizes",
                    plain(text),
                    plain(tensor.name),
                    type_text(tensor),
                    len(tensor.shape),
                )
            wanted[tensor] = sizes
    return wanted


def _named(model: Model, name: str, text: str) -> Sequence[Tensor]:
    """The inputs of a name; where there is but one input, it needs none."""
    if not name and len(set(model.main.inputs)) == 1:
        return model.main.inputs[:1]
    found = input_names(model).get(name)
    if not found:
        listed = ", ".join(f"{plain(t.name)} {type_text(t)}" for t in model.main.inputs)
        raise BadInput(
            "shape {text!r}: no input {name!r}; there are {listed}",
            plain(text),
            plain(name),
            listed or phrase("none"),
        )
    return found


def _told(old: Tensor, new: Tensor) -> str:
    return phrase("{name!r} is {type}", plain(old.name), type_text(new))


class _Resizing:
    """A model whose graphs are walked with other shapes of their inputs.

    moved  what became of each tensor that depends on them
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._graphs = list(model.graphs)
        self._walked: dict[int, list[Dims]] = {}
        self.moved: dict[Tensor, Tensor] = {}

    def model(self) -> Model:
        return with_graphs(self._model, self._graphs, self.moved) if self.moved else self._model

    def inputs_of(self, number: int) -> tuple[Tensor, ...]:
        return self._model.graphs[number].inputs

    def walk(self, number: int, shapes: list[Dims], free: set[Tensor]) -> Shapes | None:
        """Gives the inputs of a graph these shapes; the shapes of its outputs, or None where only
        a run tells them. `free` are the inputs whose sizes stay open."""
        graph = self._model.graphs[number]
        if number in self._walked and self._walked[number] != shapes:
            raise CannotApply(
                "graph {name!r} is run with inputs of several shapes; no file has both",
                plain(graph.name),
            )
        self._walked[number] = shapes
        walked = _Walk(self, graph, shapes, free)
        self._graphs[number] = walked.resized()
        self.moved |= walked.moved
        if walked.late.intersection(graph.outputs):
            return None
        return tuple(walked.seen(tensor).shape for tensor in graph.outputs)


class _Walk:
    """One graph, op by op: the shapes that follow from those of its inputs.

    moved  the tensors that depend on these, in their new shapes
    late   those whose sizes only a run tells
    """

    def __init__(
        self, whole: _Resizing, graph: Graph, shapes: Sequence[Dims], free: set[Tensor]
    ) -> None:
        self._whole, self._graph, self._free = whole, graph, set(free)
        self._values = _empty_constants(graph)
        self.late: set[Tensor] = set()
        self.moved: dict[Tensor, Tensor] = {}
        for tensor, shape in zip(graph.inputs, shapes, strict=True):
            if tensor not in free and (shape != tensor.shape or tensor.dynamic is not None):
                self.moved[tensor] = replace(tensor, shape=shape, dynamic=None)
        for op in graph.ops:
            self._follow(op)

    def resized(self) -> Graph:
        new = self.moved
        return replace(
            self._graph,
            inputs=tuple(new.get(t, t) for t in self._graph.inputs),
            outputs=tuple(new.get(t, t) for t in self._graph.outputs),
            ops=tuple(substitute(op, new) for op in self._graph.ops),
            tensors=tuple(new.get(t, t) for t in self._graph.tensors),
        )

    def seen(self, tensor: Tensor) -> Tensor:
        """A tensor in its new shape, with its values where they are known."""
        new = self.moved.get(tensor, tensor)
        return replace(new, data=self._values[tensor]) if tensor in self._values else new

    def _follow(self, op: Op) -> None:
        """Gives the outputs of an op their shapes."""
        if any(t in self._free for t in op.inputs):
            self._free.update(op.outputs)
        called = replace(op, inputs=tuple(None if t is None else self.seen(t) for t in op.inputs))
        if any(t in self.late for t in op.inputs) or is_sized_late(called, ()):
            self.late.update(op.outputs)
            return
        if any(t in self.moved for t in op.inputs):
            _refuse_state(op, called)
            self._move(op, self._shapes(op, called))
        self._values |= _values(op, called)

    def _move(self, op: Op, shapes: Shapes | None) -> None:
        if shapes is None:
            self.late.update(op.outputs)
            return
        for tensor, shape in zip(op.outputs, shapes, strict=True):
            dynamic = _still_free(tensor, shape) if tensor in self._free else None
            self.moved[tensor] = replace(tensor, shape=shape, dynamic=dynamic)

    def _shapes(self, op: Op, called: Op) -> Shapes | None:
        """The shapes of an op's outputs; None where only a run tells them."""
        if called_graphs(op):
            return self._of_graphs(op, called)
        operator = find_op(op.custom) if op.is_custom else None
        if operator is not None:
            computed = [t.shape for t in called.inputs if t is not None and not t.is_const]
            return tuple(Call(operator, op).shapes(computed))
        shapes = infer_shapes(op.kind, called.inputs, op.options)
        if OPS[op.kind].shape is None and self._is_as_before(op, called):
            return tuple(tensor.shape for tensor in op.outputs)
        if shapes is None or len(shapes) != len(op.outputs) or _breaks_weights(op, called):
            raise _misfit(op, called)
        return shapes

    def _is_as_before(self, op: Op, called: Op) -> bool:
        """True where the inputs of an op are as the file has them."""
        pairs = zip(op.inputs, called.inputs, strict=True)
        same = all(a is b or (a and b and a.shape == b.shape) for a, b in pairs)
        return same and self._values.keys().isdisjoint(t for t in op.inputs if t is not None)

    def _of_graphs(self, op: Op, called: Op) -> Shapes | None:
        """The shapes of what other graphs give; a loop must give what it takes."""
        inputs = [t.shape for t in called.inputs if t is not None]
        given = inputs[1:] if op.kind == "IF" else inputs
        free = any(t in self._free for t in op.inputs)
        found: list[Shapes | None] = []
        for number in called_graphs(op):
            taken = self._whole.inputs_of(number)
            if len(taken) != len(given):
                raise _misfit(op, called)
            found.append(self._whole.walk(number, given, set(taken) if free else set()))
        results = found[-1:] if op.kind == "WHILE" else found
        if any(one != results[0] for one in results):
            raise _misfit(op, called)
        if op.kind == "WHILE" and not _can_loop(given, *found):
            raise _misfit(op, called)
        return results[0]


def _empty_constants(graph: Graph) -> dict[Tensor, Array]:
    """The constants that have no element, which files may leave without a content."""
    made = {*graph.inputs, *(t for op in graph.ops for t in op.outputs)}
    empty = [t for t in graph.tensors if t not in made and not t.is_const and 0 in t.shape]
    return {t: frozen(np.zeros(t.shape, DTYPES[t.dtype].storage)) for t in empty if not t.variable}


def _can_loop(given: Sequence[Dims], condition: Shapes | None, body: Shapes | None) -> bool:
    """True where a loop ends by one value, and its body gives what it takes."""
    ends = condition is None or all(np.prod(shape) == 1 for shape in condition)
    return ends and (body is None or body == tuple(given))


def _still_free(tensor: Tensor, shape: Dims) -> Dims | None:
    """The shape with the dimensions open that are open in the file."""
    if tensor.dynamic is None or len(tensor.dynamic) != len(shape):
        return None
    return tuple(-1 if old < 0 else new for old, new in zip(tensor.dynamic, shape, strict=True))


def _values(op: Op, called: Op) -> Mapping[Tensor, Array]:
    """What an op gives, where that is known before any run and short."""
    row = OPS[op.kind]
    if not is_repeatable(op) or any(t.quant is not None for t in op.outputs):
        return {}
    first = called.inputs[0] if called.inputs else None
    if op.kind == "SHAPE" and first is not None:
        return {op.outputs[0]: frozen(np.array(first.shape, op.outputs[0].dtype))}
    if row.reads_shape_only or not called.inputs:
        return {}
    arrays = [constant_numbers(tensor) for tensor in called.inputs]
    if any(array is None and t is not None for array, t in zip(arrays, called.inputs, strict=True)):
        return {}
    shapes = infer_shapes(op.kind, called.inputs, op.options)
    if shapes is None or any(np.prod(shape, dtype=float) > _MOST_VALUES for shape in shapes):
        return {}
    try:
        return dict(zip(op.outputs, map(frozen, evaluate(called, arrays)), strict=True))
    except ValueError:
        return {}


def _refuse_state(op: Op, called: Op) -> None:
    """Raises where an op keeps values between runs that would have to be of another size."""
    if OPS[op.kind].uses_variable:
        raise CannotApply(
            "resize: {op_name} keeps values between runs, in the size of the file", op_name(op)
        )
    before, after = op.inputs[0], called.inputs[0]
    states = [t for t in op.inputs if t is not None and t.variable]
    if before is None or after is None or not states:
        return
    fits = all(t.shape and t.shape[0] in after.shape[:-1] for t in states)
    if not fits or before.shape[-1:] != after.shape[-1:]:
        raise _misfit(op, called)


def _breaks_weights(op: Op, called: Op) -> bool:
    """True where a layer would meet data that its weights, or a constant shape of its output, are
    not made for."""
    row = OPS[op.kind]
    if not row.is_layer and not row.spreads:
        return False
    data, weight, bias = (
        None if place is None or place >= len(called.inputs) else called.inputs[place]
        for place in (row.data, row.weight, row.bias)
    )
    before = None if row.data is None else op.inputs[row.data]
    if data is None or weight is None or before is None:
        return False
    if row.spreads and row.takes_shape and op.inputs[0] is not None and op.inputs[0].is_const:
        return data.shape != before.shape
    if row.is_dense:
        return bias is not None and bias.elements != weight.shape[0]
    return data.shape[-1:] != before.shape[-1:]


def _misfit(op: Op, called: Op) -> CannotApply:
    given = ", ".join(type_text(replace(t, dynamic=None)) for t in called.inputs if t is not None)
    return CannotApply(
        "resize: {op_name} cannot take inputs of {given}; give other sizes", op_name(op), given
    )

"""`borders`: the inputs and outputs of a model in the types and sizes in which it computes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from litesmith.errors import BadInput
from litesmith.ir.edit import consumers, regraph, rewrite, substitute, with_graphs, with_main
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.passes.tidy.moves import same_quant
from litesmith.phrases import phrase
from litesmith.units import plain

_SMALL = ("int8", "uint8")
_TYPES = ("", "float", *_SMALL)
_SHIFT = 128


@dataclass(frozen=True)
class Borders:
    """Change the model's own inputs and outputs; the ops that converted them go.

    io     float, int8 or uint8 for tensors that are quantized inside; "" leaves them
    int32  int64 inputs and outputs that are int32 inside become int32
    fixed  the sizes in the file are final: no dimension stays free
    """

    io: str = ""
    int32: bool = False
    fixed: bool = False

    def apply(self, model: Model, context: Context) -> Change:
        if self.io not in _TYPES:
            raise BadInput("borders(io={io}): there are {known}", self.io, ", ".join(_TYPES[1:]))
        whole = Change(model)
        dtype = "float32" if self.io == "float" else self.io
        edits = (self.fixed, _fixed), (self.int32, _narrowed), (self.io, partial(_converted, dtype))
        for edit in (edit for asked, edit in edits if asked):
            whole = edit(whole.model).after(whole)
        return whole


def _fixed(model: Model) -> Change:
    """The model with no dimension marked as free."""
    tensors = chain.from_iterable(graph.tensors for graph in model.graphs)
    moved = {t: replace(t, dynamic=None) for t in tensors if t.dynamic is not None}
    told = [
        phrase("the size of {name!r} is final", plain(t.name))
        for t in moved
        if t in model.main.inputs
    ]
    return Change(
        _replaced(model, moved), tuple(told or [phrase("all sizes are final")] * bool(moved))
    )


def _replaced(model: Model, moved: dict[Tensor, Tensor]) -> Model:
    graphs = [
        replace(
            rewrite(graph, tensors=moved), tensors=tuple(moved.get(t, t) for t in graph.tensors)
        )
        for graph in model.graphs
    ]
    return with_graphs(model, graphs, moved) if moved else model


def _narrowed(model: Model) -> Change:
    """The main graph without the CASTs between int32 and its int64 inputs and outputs."""
    ends, skipped = _Ends(model.main), list[Skip]()
    for tensor in dict.fromkeys(t for t in model.main.inputs if t.dtype == "int64"):
        readers = ends.readers.get(tensor, [])
        narrow = readers and all(_casts(op, "int64", "int32") for op in readers)
        if not narrow or not ends.bypass_input(tensor, replace(tensor, dtype="int32"), readers):
            skipped.append(
                _kept("input", tensor, phrase("not all that read it turn it into int32"))
            )
    for tensor in dict.fromkeys(t for t in model.main.outputs if t.dtype == "int64"):
        maker = ends.makers.get(tensor)
        narrow = maker is not None and _casts(maker, "int32", "int64")
        if maker is None or not narrow or not ends.bypass_output(tensor, maker):
            skipped.append(_kept("output", tensor, phrase("it is not made of an int32 of its own")))
    told = tuple(f"{plain(t.name)!r} is int32" for t in ends.moved)
    changed = with_main(model, ends.graph(), ends.moved)
    return Change(changed if told else model, told, tuple(skipped))


def _kept(side: str, tensor: Tensor, why: str) -> Skip:
    return Skip(f"{side} {tensor.name!r}", phrase("{why}; it stays {dtype}", why, tensor.dtype))


def _casts(op: Op, before: str, after: str) -> bool:
    source = op.inputs[0] if op.kind == "CAST" else None
    return source is not None and (source.dtype, op.outputs[0].dtype) == (before, after)


class _Ends:
    """A graph whose first and last ops are removed one by one."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.readers = consumers(graph)
        self.makers = {t: op for op in graph.ops for t in op.outputs}
        self.moved: dict[Tensor, Tensor] = {}
        self.first: list[Op] = []
        self.last: list[Op] = []
        self._gone: set[Op] = set()
        self._instead: dict[Tensor, Tensor] = {}

    def bypass_input(self, old: Tensor, new: Tensor, conversions: list[Op]) -> bool:
        """What the conversions of an input made is now the input itself; False where the input or
        one of these is an output too."""
        made = [op.outputs[0] for op in conversions]
        if any(tensor in self._graph.outputs for tensor in (old, *made)):
            return False
        self.moved[old] = new
        self.join(conversions, new)
        return True

    def bypass_output(self, old: Tensor, conversion: Op) -> bool:
        """What the conversion read is now the output, under the output's name; False where that
        is a constant, an input, or another output."""
        inner = conversion.inputs[0]
        ends = (*self._graph.inputs, *self._graph.outputs, *self._instead)
        if inner is None or inner.is_const or inner in ends:
            return False
        self._instead[inner] = self.moved[old] = replace(inner, name=old.name)
        self.drop_unread(old, conversion)
        return True

    def join(self, conversions: list[Op], stored: Tensor) -> None:
        """Joins the outputs of several conversions of an input into one tensor, which another op
        writes."""
        self._gone.update(conversions)
        self._instead |= {op.outputs[0]: stored for op in conversions}

    def drop_unread(self, tensor: Tensor, maker: Op) -> None:
        if tensor not in self.readers:
            self._gone.add(maker)

    def graph(self) -> Graph:
        inputs = [self.moved.get(t, t) for t in self._graph.inputs]
        outputs = [self.moved.get(t, t) for t in self._graph.outputs]
        kept = [op for op in self._graph.ops if op not in self._gone]
        ops = [substitute(op, self._instead) for op in (*self.first, *kept, *self.last)]
        apart = _apart({*inputs, *outputs}, {t for op in ops for t in op.outputs})
        ops = [substitute(op, apart) for op in ops]
        return regraph(self._graph, ops=ops, inputs=inputs, outputs=outputs)


def _apart(ends: set[Tensor], made: set[Tensor]) -> dict[Tensor, Tensor]:
    """Renames inner tensors that have the name of an input or output."""
    names = {tensor.name for tensor in ends}
    clashing = [tensor for tensor in made - ends if tensor.name in names]
    return {tensor: replace(tensor, name=f"{tensor.name}/inside") for tensor in clashing}


def _converted(dtype: str, model: Model) -> Change:
    """The main graph with its quantized ends in another type."""
    work = _Converted(model.main, dtype)
    changed = with_main(model, work.graph(), work.moved)
    return Change(changed, tuple(work.touched), tuple(work.skipped))


class _Converted:
    """The main graph with quantized ends in another type, each converted by one op at most."""

    def __init__(self, graph: Graph, dtype: str) -> None:
        self._graph, self._dtype = graph, dtype
        self._ends = _Ends(graph)
        self.touched: list[str] = []
        self.skipped: list[Skip] = []

    @property
    def moved(self) -> dict[Tensor, Tensor]:
        return self._ends.moved

    def graph(self) -> Graph:
        for tensor in dict.fromkeys(self._graph.inputs):
            self._end("input", tensor, self._take)
        for tensor in dict.fromkeys(self._graph.outputs):
            self._end("output", tensor, self._give)
        return self._ends.graph()

    def _end(self, side: str, tensor: Tensor, change: Callable[[Tensor], str]) -> None:
        if tensor.dtype == self._dtype:
            return
        both = tensor in self._graph.inputs and tensor in self._graph.outputs
        why = phrase("it is passed on as it is") if both else change(tensor)
        if why:
            self.skipped.append(_kept(side, tensor, why))
        else:
            self.touched.append(
                phrase("{side} {name!r} is {dtype}", side, plain(tensor.name), self._dtype)
            )

    def _take(self, tensor: Tensor) -> str:
        """Why an input cannot have the type; "" where it has it now."""
        readers = self._ends.readers.get(tensor, [])
        inner = [op.outputs[0] for op in readers if op.kind == "QUANTIZE"]
        alone = bool(inner) and len(inner) == len(readers)
        if tensor.dtype == "float32" and not alone:
            return phrase("it is computed with in float")
        if any(made in self._graph.outputs for made in inner):
            return phrase("what it becomes is an output")
        stored = inner[0] if tensor.dtype == "float32" else tensor
        if not _is_small(stored) or (
            stored is not tensor and not all(_same(t, stored) for t in inner)
        ):
            return phrase("it is no 8-bit number inside, or at several scales")
        new = replace(self._converted(stored), name=tensor.name, dynamic=tensor.dynamic)
        if alone and all(_same(t, new) for t in inner):
            self._ends.bypass_input(tensor, new, readers)  # none of it is an output
            return ""
        if stored is not tensor:
            self._ends.join(readers, stored)
        self._ends.moved[tensor] = new
        self._ends.first.append(Op("QUANTIZE", (new,), (stored,)))
        return ""

    def _give(self, tensor: Tensor) -> str:
        """Why an output cannot have the type; "" where it has it now."""
        maker = self._ends.makers.get(tensor)
        inner = maker.inputs[0] if maker and OPS[maker.kind].rescales else None
        stored = inner if tensor.dtype == "float32" else tensor
        if maker is None or stored is None or not _is_small(stored):
            return phrase("it is made in float, or in other numbers than 8-bit ones")
        new = replace(self._converted(stored), name=tensor.name, dynamic=tensor.dynamic)
        is_bare = inner is not None and _same(inner, new)
        if is_bare and self._ends.bypass_output(tensor, maker):
            return ""
        kind = "DEQUANTIZE" if self._dtype == "float32" else "QUANTIZE"
        version = OPS[kind].versions["int8"] if stored.dtype == "int8" else 1
        self._ends.moved[tensor] = new
        self._ends.last.append(Op(kind, (stored,), (new,), version=version))
        if stored is inner:
            self._ends.drop_unread(tensor, maker)
        return ""

    def _converted(self, tensor: Tensor) -> Tensor:
        """A tensor that stands for the same numbers in the wanted type."""
        assert tensor.quant is not None
        if self._dtype == "float32":
            return replace(tensor, dtype="float32", quant=None)
        shift = (self._dtype == "uint8") - (tensor.dtype == "uint8")
        quant = replace(tensor.quant, zero_point=tensor.quant.zero_point + _SHIFT * shift)
        return replace(tensor, dtype=self._dtype, quant=quant)


def _is_small(tensor: Tensor) -> bool:
    return tensor.dtype in _SMALL and tensor.quant is not None and tensor.quant.scale.size == 1


def _same(tensor: Tensor, other: Tensor) -> bool:
    return tensor.dtype == other.dtype and same_quant(tensor.quant, other.quant)

"""`fold`: whatever depends on constants alone is computed now, once, instead of in every run."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from litesmith.ir.edit import consumers, regraph
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, infer_shapes, is_repeatable, is_sized_late
from litesmith.ir.types import Array, Graph, Model, Op, Tensor, frozen, memory_place
from litesmith.numeric.kernels import KERNELS, evaluate
from litesmith.numeric.sparse_encoding import dense_values
from litesmith.passes.core.step import Change, Context, Skip, on_graphs
from litesmith.phrases import phrase
from litesmith.units import bytes_text

# The number of bytes that a folded constant may exceed its inputs by, for the op that it saves.
_GRACE = 256


@dataclass(frozen=True)
class Fold:
    """Replace constant sub-graphs by their results, where that does not make the file larger.

    float16  also unpack float16 weights to float32 (the file grows; loading and running a float
             model does not wait for the unpacking)
    shapes   take the shapes in the file as final, even those marked as free
    sparse   also write out weights that list only what is not 0, so that they can be changed
    """

    float16: bool = False
    shapes: bool = False
    sparse: bool = False

    def apply(self, model: Model, context: Context) -> Change:
        constants = (t.data for g in model.graphs for t in g.tensors if t.data is not None)
        uses = Counter(map(memory_place, constants))
        return on_graphs(model, lambda graph: self._fold_graph(graph, uses))

    def _fold_graph(
        self, graph: Graph, uses: Counter[tuple[int, int]]
    ) -> tuple[Graph, list[str], list[Skip]]:
        resizable = not self.shapes and any(t.dynamic for t in graph.inputs)
        shared = {t for t, readers in consumers(graph).items() if len(readers) > 1}
        shared |= {
            t for t in graph.tensors if t.data is not None and uses[memory_place(t.data)] > 1
        }
        late: set[Tensor] = set()
        folded: dict[Tensor, Tensor] = {}
        kept: list[Op] = []
        touched: list[str] = []
        skipped: list[Skip] = []
        leaving = set(graph.outputs)
        for op in graph.ops:
            op = replace(op, inputs=tuple(folded.get(t, t) if t else None for t in op.inputs))
            if is_sized_late(op, late):
                late.update(op.outputs)
            if not _is_foldable(op):
                kept.append(op)
                continue
            why = self._why_not(op, leaving, resizable, late) or _growth(op, shared)
            results = why or _results(op)
            if isinstance(results, str):
                kept.append(op)
                skipped.append(Skip(op_name(op), results))
                continue
            folded.update(zip(op.outputs, results, strict=True))
            touched.append(phrase("computed {op_name}", op_name(op)))
        return regraph(graph, ops=kept), touched, skipped

    def _why_not(self, op: Op, leaving: set[Tensor], resizable: bool, late: set[Tensor]) -> str:
        """Why a foldable op must stay as it is; "" where it need not."""
        if any(tensor in leaving for tensor in op.outputs):
            return phrase("its result is an output of the graph")
        if op.kind == "SHAPE" and op.inputs[0] in late:
            return phrase("the size it asks for depends on values")
        if op.kind == "SHAPE" and resizable:
            return phrase(
                "an input has a free dimension; fold(shapes=true) takes the shapes as final"
            )
        if op.kind == "DEQUANTIZE" and op.inputs[0] is not None:
            source = op.inputs[0].dtype
            if source != "float16":
                return phrase("unpacking {source} weights would undo their quantization", source)
            if not self.float16:
                return phrase("unpacking float16 weights doubles them; fold(float16=true) does it")
        if op.kind == "DENSIFY" and not self.sparse:
            return phrase(
                "unpacking sparse weights would undo their compression; fold(sparse=true) does it"
            )
        return ""


def _is_foldable(op: Op) -> bool:
    """True where all inputs are constants, or only a shape is asked for."""
    if not is_repeatable(op):
        return False
    if op.kind == "SHAPE":
        return True
    return bool(op.inputs) and all(t is None or t.is_const for t in op.inputs)


def _growth(op: Op, shared: set[Tensor]) -> str:
    """Why folding would make the file larger; "" where it would not."""
    if OPS[op.kind].unpacks:
        return ""  # asked for
    freed = sum(t.nbytes for t in op.inputs if t is not None and t.is_const and t not in shared)
    added = sum(t.nbytes for t in op.outputs)
    if added <= freed + _GRACE:
        return ""
    return phrase(
        "its result takes {size} where {size2} make it", bytes_text(added), bytes_text(freed)
    )


def _results(op: Op) -> tuple[Tensor, ...] | str:
    """The outputs as constants, or why they cannot be computed ahead."""
    promised = tuple(t.shape for t in op.outputs)
    first = op.inputs[0]
    if op.kind == "SHAPE" and first is not None:
        arrays: tuple[Array, ...] = (np.array(first.shape, op.outputs[0].dtype),)
    elif any(t is not None and t.quant is not None for t in (*op.inputs, *op.outputs)):
        return phrase("its numbers are quantized, and only the runtime rounds as the runtime does")
    elif op.kind == "DENSIFY" and first is not None:
        arrays = (dense_values(first),)
    elif op.kind not in KERNELS:
        return phrase("there is no reference kernel for it")
    elif infer_shapes(op.kind, op.inputs, op.options) != promised:
        return phrase("the file promises another shape than its inputs give")
    else:
        try:
            arrays = evaluate(op, [None if t is None else t.values() for t in op.inputs])
        except ValueError as error:
            return phrase("the reference kernel refuses: {error}", error)
    if tuple(a.shape for a in arrays) != promised:
        return phrase("the file promises another shape than its inputs give")
    results = zip(op.outputs, map(frozen, arrays), strict=True)
    return tuple(replace(t, data=array, dynamic=None) for t, array in results)

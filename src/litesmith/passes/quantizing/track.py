"""A model run in parts, each from one layer up to the next, on every sample before the next part.

Every op runs once for each sample, in the runtime's own kernels. What later parts read is held.
"""

import mmap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import regraph
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Tensor
from litesmith.numeric.affine import dequantize
from litesmith.numeric.arrays import array_on_disk
from litesmith.passes.core.layers import Layer, layers_of, real_values, stored_weight
from litesmith.passes.core.step import Tools
from litesmith.units import plain

# Values of one tensor over all samples that take more bytes than this lie in a file.
_IN_MEMORY = 192_000_000

# After so many samples what lies in files is no longer kept in memory too.
_LET_GO = 64


class Track:
    """A model on its way over the data. Part 0 ends before the first layer; each other part begins
    with one, so that part n has layer n − 1."""

    def __init__(
        self,
        model: Model,
        tools: Tools,
        samples: Sequence[tuple[Array, ...]],
        *,
        in_memory: int = _IN_MEMORY,
    ) -> None:
        _refuse_inseparable(model)
        self.layers = list(layers_of(model.main).values())
        self._model, self._tools, self._in_memory = model, tools, in_memory
        self._stand_in = _StandIn(model.main)
        self._samples = samples
        self._held: dict[Tensor, Array] = {}
        self._parts = _parts(model.main.ops, self.layers)
        self._last = self._last_uses()
        self._take_inputs()

    def values(self, tensor: Tensor) -> tuple[Array, Quant | None]:
        """What a tensor holds for every sample, and how that stands for real numbers."""
        tensor = self._stand_in.of(tensor)
        return self._held[tensor], tensor.quant

    def unpack(self, tensor: Tensor, constant: Tensor) -> None:
        """Has a tensor hold what a constant stands for, from here on."""
        self._stand_in.unpack(tensor, constant)

    def run(self, number: int, replaced: Mapping[Op, Op]) -> None:
        """Runs a part, some of its ops replaced, and forgets what nobody reads any more."""
        part = [replaced.get(op, op) for op in self._parts[number]]
        ops = [new for op in part for new in self._stand_in.ops_of(op)]
        outputs = [t for op in ops for t in op.outputs if self._last.get(t, -1) > number]
        if outputs:
            self._compute(ops, outputs)
        for tensor in [t for t in self._held if self._last.get(t, -1) <= number]:
            del self._held[tensor]

    def _compute(self, ops: Sequence[Op], outputs: Sequence[Tensor]) -> None:
        made = {t for op in ops for t in op.outputs}
        read = dict.fromkeys(t for op in ops for t in op.inputs if t is not None)
        inputs = [t for t in read if t not in made and self._is_fed(t)]
        graph = regraph(Graph("", (), (), (), ()), ops=ops, inputs=inputs, outputs=outputs)
        sources, targets = [self._held[t] for t in inputs], [self._hold(t) for t in outputs]
        with self._tools.opened(Model((graph, *self._model.graphs[1:]))) as run:
            for place in range(len(self._samples)):
                results = run([source[place] for source in sources])
                for tensor, target, result in zip(outputs, targets, results, strict=True):
                    if result.shape != tensor.shape:
                        raise CannotApply(
                            "the size of {name!r} depends on values, or the data",
                            plain(tensor.name),
                        )
                    target[place] = result
                if place % _LET_GO == _LET_GO - 1:
                    _let_go((*sources, *targets))
            _let_go((*sources, *targets))

    def _is_fed(self, tensor: Tensor) -> bool:
        """Whether other parts, or the data, give a tensor; an empty one that nobody makes is a
        constant without a content."""
        return tensor in self._held or not (
            tensor.is_const or tensor.variable or not tensor.elements
        )

    def _take_inputs(self) -> None:
        for place, values in enumerate(self._samples):
            for tensor, value in zip(self._model.main.inputs, values, strict=True):
                if value.shape != tensor.shape:
                    raise CannotApply(
                        "a sample of shape {shape} for the input {name!r} of {shape2}: "
                        "layers are compared at one size; give data of that size",
                        value.shape,
                        plain(tensor.name),
                        tensor.shape,
                    )
                held = self._hold(self._stand_in.of(tensor))
                held[place] = _real(tensor, value) if _is_wide(tensor) else value

    def _hold(self, tensor: Tensor) -> Array:
        """Where the values of a tensor go, one sample a row."""
        if tensor not in self._held:
            dtype = np.dtype(DTYPES[tensor.dtype].storage)
            shape = (len(self._samples), *tensor.shape)
            if np.prod(shape, dtype=np.int64) * dtype.itemsize <= self._in_memory:
                self._held[tensor] = np.empty(shape, dtype)
            else:
                self._held[tensor] = array_on_disk(shape, dtype)
        return self._held[tensor]

    def _last_uses(self) -> dict[Tensor, int]:
        """The last part that reads each tensor."""
        return {
            self._stand_in.of(tensor): number
            for number, ops in enumerate(self._parts)
            for op in ops
            for tensor in op.inputs
            if tensor is not None and not tensor.is_const
        }


def chosen_samples(tools: Tools, model: Model, places: Collection[int]) -> list[tuple[Array, ...]]:
    """The samples at some places, as a model takes them."""
    return [sample for place, sample in enumerate(tools.samples(model)) if place in places]


def _let_go(arrays: Sequence[Array]) -> None:
    """Takes the pages of arrays that lie in files out of memory; they come back when read."""
    for array in arrays:
        mapping = getattr(array, "_mmap", None)
        if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)


def _refuse_inseparable(model: Model) -> None:
    """Raises where parts of a model cannot run apart. A state that one op keeps is no hindrance:
    every part sees all samples in order."""
    for _, _, op in model.ops():
        if any(t is not None and t.dtype == "resource" for t in (*op.inputs, *op.outputs)):
            raise CannotApply(
                "{op_name} shares a state with other ops; parts cannot run apart", op_name(op)
            )


def _parts(ops: Sequence[Op], layers: Sequence[Layer]) -> list[Sequence[Op]]:
    """The ops in order, cut before each layer."""
    first = {layer.op for layer in layers}
    cuts = [place for place, op in enumerate(ops) if op in first]
    return [ops[start:end] for start, end in pairwise([0, *cuts, len(ops)])]


class _StandIn:
    """What is run in place of ops whose own kernels are slow, with the same numbers.

    Int4 weights as int8 of the same codes; what is computed in int16, whose steps are finer than
    anything that matters here, in float; unpacked weights as float constants.
    """

    def __init__(self, graph: Graph) -> None:
        self._tensors: dict[Tensor, Tensor] = {}
        for op in graph.ops:
            if OPS[op.kind].rescales and op.inputs[0] is not None:
                source, target = op.inputs[0], op.outputs[0]
                if all(_is_wide(t) or t.dtype == "float32" for t in (source, target)):
                    self._tensors[target] = self.of(source)

    def of(self, tensor: Tensor) -> Tensor:
        if tensor not in self._tensors:
            is_wide = _is_wide(tensor)
            new = replace(tensor, dtype="float32", quant=None) if is_wide else tensor
            self._tensors[tensor] = new
        return self._tensors[tensor]

    def unpack(self, tensor: Tensor, constant: Tensor) -> None:
        self._tensors[tensor] = _in_float(constant)

    def ops_of(self, op: Op) -> list[Op]:
        """The ops to run for one: none where the values are there already."""
        if op.kind == "DEQUANTIZE" and op.inputs[0] is not None and op.inputs[0].is_const:
            self.unpack(op.outputs[0], op.inputs[0])
            return []
        wide = any(t is not None and _is_wide(t) for t in (*op.inputs, *op.outputs))
        inputs = tuple(None if t is None else self._constant_or(t, wide) for t in op.inputs)
        outputs = tuple(self.of(t) for t in op.outputs)
        if OPS[op.kind].rescales and inputs[0] is outputs[0]:
            return []
        if op.kind == "QUANTIZE" and outputs[0].quant is None:
            return [Op("DEQUANTIZE", inputs, outputs, version=OPS["DEQUANTIZE"].versions["int8"])]
        return [replace(op, inputs=inputs, outputs=outputs)]

    def _constant_or(self, tensor: Tensor, wide: bool) -> Tensor:
        if not tensor.is_const or tensor.quant is None:
            return self.of(tensor)
        if wide:
            return _in_float(tensor)
        if tensor.dtype == "int4" and tensor.quant.block is None:
            return stored_weight(tensor, tensor.values(), "int8", tensor.quant)
        return tensor


def _is_wide(tensor: Tensor) -> bool:
    is_flowing = not tensor.is_const and not tensor.variable
    return tensor.dtype == "int16" and tensor.quant is not None and is_flowing


def _real(tensor: Tensor, stored: Array) -> Array:
    assert tensor.quant is not None
    return dequantize(stored, tensor.quant.scale, tensor.quant.zero_point)


def _in_float(tensor: Tensor) -> Tensor:
    return replace(tensor, dtype="float32", data=real_values(tensor).astype(np.float32), quant=None)

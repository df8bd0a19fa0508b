"""`sparsify`: fully connected weights without their zeros, in the form that the runtime takes."""

from dataclasses import dataclass, replace

import numpy as np

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import consumers, regraph
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Op, Record, Tensor, frozen
from litesmith.passes.core.layers import Layer, layers_of
from litesmith.passes.core.step import Change, Context, Skip, on_graphs
from litesmith.phrases import phrase
from litesmith.units import percent_text

# The one form that the float kernel takes (LiteRT tflite/kernels/fully_connected.cc).
_BLOCK = 4
_VERSION = 8

# The share of zero blocks from which the sparse kernel beats XNNPACK's dense one, by the least
# number of weights; fewer than in the last row are never worth it. Seen on one thread of an AVX-512
# machine, batch 1 to 16, LiteRT 2.3.0, as times faster at 70, 80 and 90 %: 128×128 0.8, 0.9, 0.95;
# 256×256 0.7, 0.8, 1.2; 1024×1024 0.6, 0.9, 1.8; 2048×2048, which no cache holds, 1.0, 1.4, 2.5.
_LEAST = ((4_000_000, 0.75), (32_768, 0.85), (8_192, 0.92))

# Int8 weights have such a form too, in blocks of 16. It is left out: it is slower than the dense
# kernel, 0.3 to 0.8 times as fast up to 90 %, and some shapes differed from it by 1 to 2 %.
_INT8 = phrase("the runtime computes sparse int8 weights slower than dense ones")

_ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")


@dataclass(frozen=True)
class Sparsify:
    """Store float fully connected weights without their zeros, where that is faster and smaller.

    Zeros count in blocks of four neighbouring inputs, as `prune(block=1x4)` makes them. Goes last
    in a recipe: other steps leave such weights alone.

    least  the share of zero blocks from which a weight is stored so; none: where it is faster
    """

    least: float | None = None

    def apply(self, model: Model, context: Context) -> Change:
        if self.least is not None and not 0 <= self.least <= 1:
            raise BadInput("sparsify(least={least}): a share from 0 to 1 is needed", self.least)
        return on_graphs(model, self._graph)

    def _graph(self, graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
        readers = consumers(graph)
        stored: dict[Tensor, Tensor] = {}
        ops: list[Op] = []
        touched: list[str] = []
        skipped: list[Skip] = []
        layers = layers_of(graph)
        for op in graph.ops:
            layer = layers.get(op)
            if layer is None or not OPS[op.kind].has_sparse_kernel:
                ops.append(op)
                continue
            why = self._why_not(layer, graph, readers[op.inputs[layer.weight_at] or layer.weight])
            if why:
                skipped.append(Skip(op_name(op), why))
                ops.append(op)
                continue
            weight = stored.setdefault(layer.weight, without_zeros(layer.weight))
            ops.append(replace(layer.with_parts(weight, layer.bias), version=_VERSION))
            share = percent_text(_zero_blocks(layer.weight.values()))
            touched.append(
                phrase("stored {op_name} without {share} of its weights", op_name(op), share)
            )
        return regraph(graph, ops=ops), touched, skipped

    def _why_not(self, layer: Layer, graph: Graph, users: list[Op]) -> str:
        """Why a weight stays dense; "" where it need not."""
        weight = layer.weight
        why = _why_no_form(layer)
        if why:
            return why
        if any(not OPS[user.kind].has_sparse_kernel for user in users) or weight in graph.outputs:
            return phrase("its weights are used elsewhere too")
        if any(weight in (user.inputs[0], *user.inputs[2:]) for user in users):
            return phrase("its weights are used elsewhere too")
        return _why_too_few(weight, self.least)


def _why_too_few(weight: Tensor, least: float | None) -> str:
    """Why the zeros of a weight are not enough; "" where they are."""
    zeros = _zero_blocks(weight.values())
    if least is None:
        least = next((share for count, share in _LEAST if weight.elements >= count), None)
    if least is None:
        return phrase("it has {elements} weights, too few to gain anything", weight.elements)
    if zeros == 1:
        return phrase("all its weights are zero")
    if zeros < least:
        return phrase(
            "{share} of its blocks of {block} weights are zero, of {share2} that make it worth it",
            percent_text(zeros),
            _BLOCK,
            percent_text(least),
        )
    return ""


def _why_no_form(layer: Layer) -> str:
    """Why the runtime has no sparse form of a layer; "" where it has."""
    weight, op = layer.weight, layer.op
    if weight.quant is not None or layer.unpack is not None or weight.dtype != "float32":
        return (
            _INT8
            if weight.dtype == "int8"
            else phrase("there is no sparse form of {dtype}", weight.dtype)
        )
    if layer.data.dtype != "float32":
        return phrase("it computes in integers")
    if len(weight.shape) != 2 or weight.shape[1] % _BLOCK:
        return phrase("its {shape} inputs are no multiple of {block}", weight.shape[-1], _BLOCK)
    if layer.data.shape[-1:] != weight.shape[1:]:
        return phrase("its data is flattened by the op itself, which the sparse kernel does not do")
    if op.option("weights_format") not in (None, "DEFAULT"):
        return phrase("its weights are shuffled")
    if op.option("fused_activation_function") not in (None, *_ACTIVATIONS):
        return phrase(
            "no sparse kernel has the activation {option}", op.option("fused_activation_function")
        )
    return ""


def _blocks(values: Array) -> Array:
    rows, inputs = values.shape
    return values.reshape(rows, inputs // _BLOCK, _BLOCK)


def _zero_blocks(values: Array) -> float:
    """The share of blocks that hold nothing but zeros."""
    is_zero = ~_blocks(values).any(axis=2)
    return float(is_zero.mean()) if is_zero.size else 0.0


def without_zeros(weight: Tensor) -> Tensor:
    """A matrix as its blocks of four that are not zero, row by row, and where they are."""
    blocks = _blocks(weight.values())
    used = blocks.any(axis=2)
    segments = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    data = frozen(np.ascontiguousarray(blocks[used]).reshape(-1))
    dimensions = (
        Record("DimensionMetadata").set(format="DENSE", dense_size=weight.shape[0]),
        Record("DimensionMetadata").set(
            format="SPARSE_CSR",
            array_segments=_indices(segments),
            array_indices=_indices(np.nonzero(used)[1]),
        ),
        Record("DimensionMetadata").set(format="DENSE", dense_size=_BLOCK),
    )
    sparsity = Record("SparsityParameters").set(
        traversal_order=np.arange(3, dtype=np.int32),
        block_map=np.ones(1, np.int32),
        dim_metadata=dimensions,
    )
    return replace(weight, data=data, sparsity=sparsity)


def with_zeros(weight: Tensor) -> Tensor:
    """The inverse of `without_zeros`; raises for other sparse forms."""
    found = weight.sparsity["dim_metadata"] if weight.sparsity is not None else None
    if not isinstance(found, tuple) or len(found) != 3 or weight.data is None:
        raise CannotApply("{name!r} is not stored in rows of blocks", weight.name)
    _, middle, block = found
    assert isinstance(middle, Record) and isinstance(block, Record)
    ends, places = (_values(middle, name) for name in ("array_segments", "array_indices"))
    width = block.integer("dense_size")
    rows = np.repeat(np.arange(weight.shape[0]), np.diff(ends))
    dense = np.zeros((weight.shape[0], weight.shape[1] // width, width), weight.data.dtype)
    dense[rows, places] = weight.data.reshape(-1, width)
    return replace(weight, data=frozen(dense.reshape(weight.shape)), sparsity=None)


def _values(record: Record, name: str) -> Array:
    indices = record[name]
    assert isinstance(indices, Record)
    return np.array(indices.integers("values"), np.int64)


def _indices(numbers: Array) -> Record:
    """Numbers in the smallest type that holds them."""
    most = int(numbers.max(initial=0))
    name = "uint8" if most < 2**8 else "uint16" if most < 2**16 else "int32"
    return Record(f"{name.capitalize()}Vector").set(values=numbers.astype(name))

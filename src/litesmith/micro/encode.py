"""`encode`: weights in the compressed form that TensorFlow Lite Micro decodes, with the same bits.

Its op TFLM_DECODE (micro/kernels/decode*.cc) reads codes and a table and writes the weights into
the arena, where they stay until the next layer has run. `encode` writes two kinds of code: a table
of up to 128 values for each channel, indexed by a few bits per weight; and, for weights that are
mostly zeros, one bit per weight, set where a value follows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.edit import regraph, substitute, with_graphs
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Array, Graph, Model, Op, Tensor, frozen
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.phrases import phrase
from litesmith.units import bytes_text

DECODE = "TFLM_DECODE"

# The header of a table (decode_state.h): the kind, the version of the header and of the kind.
_HEADER, _VERSION = 16, 1
_TABLE, _PRUNED = 0, 2
_MOST_BITS = 7

# Bytes of a file that an op, its two constants and their descriptions take.
_OVERHEAD = 400

# Ops that accept computed weights, and the place of these inputs.
_WEIGHTS: Mapping[str, int] = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1, "FULLY_CONNECTED": 1}


class Code(NamedTuple):
    """Weights as the kernel reads them: the codes, and the header with its table of values."""

    kind: str
    codes: Array
    table: Array

    @property
    def bytes(self) -> int:
        return self.codes.size + self.table.size


@dataclass(frozen=True)
class Encode:
    """Store clustered and pruned weights in TensorFlow Lite Micro's compressed form.

    least  the share of a layer's weights, in bytes, that must be saved
    """

    least: float = 0.1

    def apply(self, model: Model, context: Context) -> Change:
        if not 0 <= self.least < 1:
            raise BadInput("encode(least={least}): give a share from 0 to below 1", self.least)
        readers = _count_readers(model)
        touched: list[str] = []
        skipped: list[Skip] = []
        graphs = [self._edit(graph, readers, touched, skipped) for graph in model.graphs]
        if not touched:
            return Change(model, (), tuple(skipped))
        return Change(with_graphs(model, graphs), tuple(touched), tuple(skipped))

    def _edit(
        self,
        graph: Graph,
        readers: Mapping[Tensor, int],
        touched: list[str],
        skipped: list[Skip],
    ) -> Graph:
        ops: list[Op] = []
        for op in graph.ops:
            place = _WEIGHTS.get(op.kind, 0)
            weight = op.inputs[place] if place and place < len(op.inputs) else None
            if weight is None or not weight.is_const:
                ops.append(op)
                continue
            code = encode_weights(weight) if readers[weight] == 1 else None
            why = self._why_not(weight, code, readers[weight])
            if code is None or why:
                skipped.append(Skip(op_name(op), why))
                ops.append(op)
                continue
            ops += _insert_decoder(op, weight, code)
            was, now = bytes_text(weight.nbytes), bytes_text(code.bytes)
            touched.append(
                phrase("{op}: {was} to {now} by {kind}", op_name(op), was, now, code.kind)
            )
        return regraph(graph, ops=ops)

    def _why_not(self, weight: Tensor, code: Code | None, readers: int) -> str:
        if readers > 1:
            return phrase("its weights serve several ops")
        if code is None:
            return phrase(
                "its weights are not int8, or of more than {most} values", 1 << _MOST_BITS
            )
        if code.bytes + _OVERHEAD > (1 - self.least) * weight.nbytes:
            return phrase("its weights would take no less")
        return ""


def _count_readers(model: Model) -> dict[Tensor, int]:
    found: dict[Tensor, int] = {}
    for _, _, op in model.ops():
        for tensor in filter(None, op.inputs):
            found[tensor] = found.get(tensor, 0) + 1
    return found


def encode_weights(weight: Tensor) -> Code | None:
    """The shortest code of int8 weights; None where there is none."""
    quant = weight.quant
    is_plain = weight.dtype == "int8" and weight.sparsity is None and weight.data is not None
    if not is_plain or quant is None or quant.block is not None or not quant.scale.size:
        return None
    ends = (0, len(weight.shape) - 1)
    if quant.per_channel and quant.axis not in ends:
        return None
    found = [make(weight) for make in (_table_code, _sparse_code)]
    return min(filter(None, found), key=lambda code: code.bytes, default=None)


def _table_code(weight: Tensor) -> Code | None:
    """A table for each channel, and a number of as many bits as the longest table needs."""
    quant, values = weight.quant, weight.values()
    assert quant is not None
    channels = np.moveaxis(values, quant.axis, 0) if quant.per_channel else values[None]
    tables = [np.unique(channel) for channel in channels]
    longest = max(table.size for table in tables)
    bits = max(1, int(longest - 1).bit_length())
    if bits > _MOST_BITS:
        return None
    numbers = np.zeros(channels.shape, np.int64)
    held = np.zeros((len(tables), longest), np.int8)
    for place, table in enumerate(tables):
        numbers[place] = np.searchsorted(table, channels[place])
        held[place, : table.size] = table
    inside = np.moveaxis(numbers, 0, quant.axis) if quant.per_channel else numbers[0]
    header = _header(_TABLE)
    header[5:7] = bits, longest
    name = phrase("{count} values", longest)
    return Code(name, pack_bits(inside.ravel(), bits), _join(header, held))


def _sparse_code(weight: Tensor) -> Code | None:
    """A bit for each weight, and those that are not zero."""
    quant, values = weight.quant, weight.values().ravel()
    assert quant is not None
    if quant.zero_point.any():
        return None
    kept = values[values != 0]
    zeros = phrase("{count} zeros", values.size - kept.size)
    return Code(zeros, np.packbits(values != 0), _join(_header(_PRUNED), kept))


def _header(kind: int) -> Array:
    header = np.zeros(_HEADER, np.uint8)
    header[[0, 1, 4]] = kind, _VERSION, _VERSION
    return header


def _join(header: Array, values: Array) -> Array:
    return np.concatenate([header, values.ravel().view(np.uint8)])


def pack_bits(numbers: Array, bits: int) -> Array:
    """Packs numbers of this many bits one after another, each with its highest bit first.

    >>> pack_bits(np.array([1, 2, 3]), 2).tolist()
    [108]
    """
    places = np.arange(bits - 1, -1, -1)
    return np.packbits((numbers[:, None] >> places & 1).astype(np.uint8).ravel())


def _insert_decoder(op: Op, weight: Tensor, code: Code) -> Sequence[Op]:
    """The op that decodes the weights, right before the one that reads them."""
    made = replace(weight, name=f"{weight.name}/decoded", data=None)
    codes = _constant(f"{weight.name}/codes", code.codes)
    table = _constant(f"{weight.name}/table", code.table)
    decode = Op("CUSTOM", (codes, table), (made,), custom=DECODE)
    return decode, substitute(op, {weight: made})


def _constant(name: str, values: Array) -> Tensor:
    return Tensor(name, values.shape, "uint8", frozen(values))


def decode_weights(op: Op) -> Array:
    """The weights that the kernel decodes for an op with one output, flat."""
    codes, table = (t.values() for t in op.inputs if t is not None)
    made = op.outputs[0]
    return _DECODERS[int(table[0])](codes, table, made)


def _from_table(codes: Array, table: Array, made: Tensor) -> Array:
    bits, longest = int(table[5]), int(table[6])
    spread = np.unpackbits(codes)[: made.elements * bits].reshape(-1, bits)
    numbers = spread @ (1 << np.arange(bits - 1, -1, -1))
    values = table[_HEADER:].view(np.int8).reshape(-1, longest)
    quant = made.quant
    assert quant is not None
    inside = np.arange(made.elements).reshape(made.shape)
    size = made.shape[quant.axis] if quant.per_channel else 1
    after = int(np.prod(made.shape[quant.axis + 1 :])) if quant.per_channel else made.elements
    channel = inside.ravel() // after % size
    return values[channel, numbers]


def _from_zeros(codes: Array, table: Array, made: Tensor) -> Array:
    is_kept = np.unpackbits(codes)[: made.elements].astype(bool)
    values = np.zeros(made.elements, np.int8)
    values[is_kept] = table[_HEADER:].view(np.int8)
    return values


_DECODERS: Mapping[int, Callable[[Array, Array, Tensor], Array]] = {
    _TABLE: _from_table,
    _PRUNED: _from_zeros,
}

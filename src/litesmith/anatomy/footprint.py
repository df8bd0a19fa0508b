"""The static costs of a model: parameters, multiply-accumulates, bytes, peak memory."""

import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import zstandard

from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import called_graphs, consumers
from litesmith.ir.ops import op_macs as op_macs
from litesmith.ir.types import Graph, Model, Op, Tensor, memory_place
from litesmith.phrases import phrase


@dataclass(frozen=True)
class Footprint:
    """The static costs of a model. Bytes are bytes of constants; shared ones count once."""

    parameters: int
    macs: int
    peak_activation_bytes: int
    ops: dict[str, int]
    macs_by_kind: dict[str, int]
    bytes_by_kind: dict[str, int]
    bytes_by_dtype: dict[str, int]


def footprint(model: Model) -> Footprint:
    ops = Counter(op.label for _, _, op in model.ops())
    macs: Counter[str] = Counter()
    for _, _, op in model.ops():
        macs[op.label] += op_macs(op)
    by_kind, by_dtype = _constant_bytes(model)
    return Footprint(
        parameters=sum(t.elements for g in model.graphs for t in g.tensors if _is_parameter(t)),
        macs=sum(macs.values()),
        peak_activation_bytes=peak_bytes(model),
        ops=dict(ops.most_common()),
        macs_by_kind=dict(macs.most_common()),
        bytes_by_kind=by_kind,
        bytes_by_dtype=by_dtype,
    )


def op_constant_bytes(op: Op) -> int:
    """Bytes of the constants that an op reads."""
    return sum(t.nbytes for t in dict.fromkeys(op.inputs) if t is not None and t.is_const)


def _is_parameter(tensor: Tensor) -> bool:
    """A constant that stands for real numbers, unlike a shape or an axis."""
    return tensor.is_const and (DTYPES[tensor.dtype].is_float or tensor.quant is not None)


def _constant_bytes(model: Model) -> tuple[dict[str, int], dict[str, int]]:
    """Constant bytes by the kind of the op that reads them first, and by element type."""
    by_kind: Counter[str] = Counter()
    by_dtype: Counter[str] = Counter()
    seen: set[tuple[int, int]] = set()
    for graph in model.graphs:
        readers = consumers(graph)
        for tensor in graph.tensors:
            if tensor.data is None:
                continue
            place = memory_place(tensor.data)
            if place in seen:
                continue
            seen.add(place)
            kind = readers[tensor][0].label if tensor in readers else phrase("(no op)")
            by_kind[kind] += tensor.nbytes
            by_dtype[tensor.dtype] += tensor.nbytes
    return dict(by_kind.most_common()), dict(by_dtype.most_common())


def peak_bytes(model: Model) -> int:
    """The most memory that computed tensors need at once, if each is freed after its last use.

    A graph's own inputs, outputs and states live as long as it runs, as in the runtime.
    """
    peaks: dict[int, int] = {}
    for number in _callees_first(model):
        peaks[number] = _graph_peak(model.graphs[number], peaks)
    return peaks[0]


def _callees_first(model: Model) -> list[int]:
    """Graph numbers so that a graph comes after those it calls; the checks rule out loops."""
    order: list[int] = []
    pending = [(0, False)]
    done: set[int] = set()
    while pending:
        number, callees_done = pending.pop()
        if callees_done:
            order.append(number)
        elif number not in done:
            done.add(number)
            pending.append((number, True))
            pending += [(n, False) for op in model.graphs[number].ops for n in called_graphs(op)]
    return order


def _graph_peak(graph: Graph, peaks: dict[int, int]) -> int:
    last_use = {t: index for index, op in enumerate(graph.ops) for t in op.inputs if t is not None}
    always = {t for t in graph.tensors if t.variable} | {*graph.inputs, *graph.outputs}
    live = sum(t.nbytes for t in always if not t.is_const)
    peak = live
    for index, op in enumerate(graph.ops):
        fresh = [t for t in (*op.outputs, *op.intermediates) if t not in always]
        live += sum(t.nbytes for t in fresh)
        below = max((peaks.get(number, 0) for number in called_graphs(op)), default=0)
        peak = max(peak, live + below)
        unread = [t for t in fresh if t not in last_use]
        spent = {t for t in op.inputs if t is not None and last_use[t] == index}
        live -= sum(t.nbytes for t in (*unread, *spent) if not t.is_const and t not in always)
    return peak


def gzip_bytes(pieces: Iterable[bytes | memoryview]) -> int:
    """The size after gzip at its usual level: the cost of a download."""
    squeeze = zlib.compressobj(6, zlib.DEFLATED, 31)
    return sum(len(squeeze.compress(piece)) for piece in pieces) + len(squeeze.flush())


def zstd_bytes(pieces: Iterable[bytes | memoryview], size: int = -1) -> int:
    """The size after zstd at level 9, which takes no longer than gzip at its usual level.

    `size` is the total size of the pieces, where known: small files then compress better.
    """
    squeeze = zstandard.ZstdCompressor(level=9).compressobj(size)
    return sum(len(squeeze.compress(piece)) for piece in pieces) + len(squeeze.flush())
